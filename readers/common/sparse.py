"""Which data are sparse matrices of SciPy; SciPy is not imported unless somebody has one."""

from __future__ import annotations

import sys
from typing import Any


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy, of any format."""
    sparse = sys.modules.get("scipy.sparse")  # nobody has a matrix of a module that is not imported
    return sparse is not None and bool(sparse.issparse(data))


def is_csr(data: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy in CSR format."""
    return is_sparse(data) and data.format == "csr"
