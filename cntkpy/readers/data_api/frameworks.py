"""Arrays for other frameworks, which are imported only when asked for, and shared without a copy where they can be."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for, how_to_install
from cntkpy.readers.common.sparse import is_dense

ALIGNED = 64
"""TensorFlow ends the process where an operation meets memory that begins elsewhere than at a multiple of this."""


def framework_module(name: str, hint: str) -> Any:
    """Return the module of a framework.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError("MissingPackage", f"{name} is not installed: {error}", hint=hint) from error


def _contiguous(array: np.ndarray) -> np.ndarray:
    """Return an array that DLPack can hand over: writable, in C order."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


def canonical(rows: Any) -> Any:
    """CSR rows whose indices ascend and stand once, the last of several being the one that counts."""
    if rows.has_canonical_format:
        return rows
    owner = np.repeat(np.arange(int(rows.shape[0])), np.diff(rows.indptr))
    order = np.lexsort((rows.indices, owner))
    owner, indices = owner[order], rows.indices[order]
    last = np.append((np.diff(owner) != 0) | (np.diff(indices) != 0), np.ones(min(1, len(owner)), bool))
    indptr = np.searchsorted(owner[last], np.arange(int(rows.shape[0]) + 1)).astype(rows.indptr.dtype)
    return type(rows)((rows.data[order][last], indices[last], indptr), shape=rows.shape)


def to_jax(data: Any) -> Any:
    """Return a JAX array of a dense array, a `jax.experimental.sparse.BCSR` matrix of a scipy CSR matrix."""
    jax = framework_module("jax", how_to_install("train"))
    if is_dense(data):
        if data.dtype == np.float64 and not jax.config.jax_enable_x64:
            return jax.numpy.asarray(data)
        return jax.dlpack.from_dlpack(_contiguous(data))
    sparse = framework_module("jax.experimental.sparse", how_to_install("train"))
    data = canonical(data)
    parts = tuple(jax.numpy.asarray(part) for part in (data.data, data.indices, data.indptr))
    return sparse.BCSR(parts, shape=data.shape)


def to_torch(data: Any) -> Any:
    """Return a PyTorch tensor of a dense array, a sparse CSR tensor of a scipy CSR matrix; both share memory with the
    data.
    """
    torch = framework_module("torch", command_for(["torch"]))
    if isinstance(data, np.ndarray):
        return torch.from_dlpack(data if data.flags.writeable else data.copy())
    data = canonical(data)
    parts = (torch.from_dlpack(_contiguous(part)) for part in (data.indptr, data.indices, data.data))
    return torch.sparse_csr_tensor(*parts, size=data.shape, check_invariants=False)


def to_tensorflow(data: Any) -> Any:
    """Return a TensorFlow tensor of a dense array, a `tf.sparse.SparseTensor` of a scipy CSR matrix.

    Dense data that begin at a multiple of 64 bytes are shared, through DLPack; others are copied.
    """
    tf = framework_module("tensorflow", command_for(["tensorflow"]))
    if is_dense(data):
        data = np.ascontiguousarray(data)
        shared = data.size and data.flags.writeable and data.ctypes.data % ALIGNED == 0
        return tf.experimental.dlpack.from_dlpack(data.__dlpack__()) if shared else tf.constant(data)
    data = canonical(data)
    rows = np.repeat(np.arange(int(data.shape[0]), dtype=np.int64), np.diff(data.indptr))
    return tf.sparse.SparseTensor(np.stack([rows, data.indices], 1), data.data, data.shape)
