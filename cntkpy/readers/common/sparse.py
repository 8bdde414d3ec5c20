"""Which data are arrays, or sparse matrices of SciPy; SciPy is not imported unless somebody has one."""

from __future__ import annotations

import sys
from typing import Any, TypeGuard

import numpy as np


def is_sparse(data: Any) -> bool:
    """Return whether it is a sparse matrix or array of SciPy, of any format."""
    sparse = sys.modules.get("scipy.sparse")  # nobody has a matrix of a module that is not imported
    return sparse is not None and bool(sparse.issparse(data))


def is_dense(data: Any) -> TypeGuard[np.ndarray]:
    """Return whether it is an array of NumPy."""
    return isinstance(data, np.ndarray)


def is_csr(data: Any) -> bool:
    """Return whether it is a sparse matrix or array of SciPy in CSR format."""
    return is_sparse(data) and data.format == "csr"


def nbytes_of(data: Any) -> int:
    """Memory of the numbers of an array or a sparse matrix; 0 of anything else."""
    if is_dense(data):
        return data.nbytes
    return data.data.nbytes if is_sparse(data) else 0
