"""cntk.core: data of minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntk_config import UserError
from readers import Value

from .device import DeviceDescriptor, cpu
from .missing import no_attribute


class NDArrayView:
    """An array, as CNTK wraps it: dense, or a SciPy CSR matrix. The data stay in the memory of the process.

    Args:
        shape: of the array, which is zeros.
        data_type: of its elements.
        device: accepted; data stay in the memory of the process.
    """

    def __init__(self, shape: Any, data_type: Any = np.float32, device: Any = None) -> None:
        del device
        self._array: Any = np.zeros(shape, data_type)
        self.is_read_only = False

    @staticmethod
    def from_dense(np_array: Any, device: Any = None, read_only: bool = False, borrow: bool = False) -> NDArrayView:
        """The view of a NumPy array, which is copied unless `borrow`."""
        del device
        given = np.asarray(np_array)
        return _view(given if borrow else given.copy(), read_only)

    @staticmethod
    def from_csr(
        csr_array: Any, device: Any = None, read_only: bool = False, borrow: bool = False, shape: Any = None
    ) -> NDArrayView:
        """The view of a CSR matrix, which is copied unless `borrow`; `shape` has to be its own."""
        del device
        if shape is not None and tuple(shape) != tuple(csr_array.shape):
            message = f"NDArrayView.from_csr: shape is {tuple(shape)}, the matrix has {tuple(csr_array.shape)}"
            raise UserError("BadShape", message)
        return _view(csr_array if borrow else csr_array.copy(), read_only)

    @staticmethod
    def from_data(data: Any, device: Any = None, read_only: bool = False, borrow: bool = False) -> NDArrayView:
        """The view of an array or a CSR matrix."""
        make = NDArrayView.from_csr if hasattr(data, "indptr") else NDArrayView.from_dense
        return make(data, device, read_only, borrow)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self._array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return np.dtype(self._array.dtype)

    @property
    def is_sparse(self) -> bool:
        """Whether it is a CSR matrix."""
        return hasattr(self._array, "indptr")

    @property
    def device(self) -> DeviceDescriptor:
        """The CPU."""
        return cpu()

    def slice_view(self, start_offset: Any, extent: Any, read_only: bool = True) -> NDArrayView:
        """A part of the array; no data are copied.

        Args:
            start_offset: first index of each axis.
            extent: how many there are, for the first axes; of those that follow, all from the first index on.
            read_only: whether the part is read only.
        """
        counts = [*extent, *[None] * (len(start_offset) - len(extent))]
        pairs = zip(start_offset, counts, strict=True)
        place = tuple(slice(a, None if n is None else a + n) for a, n in pairs)
        return _view(self._array[place], read_only)

    def asarray(self) -> Any:
        """The array; a CSR matrix as it is."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        dense = self._array.toarray() if self.is_sparse else self._array
        return dense if dtype is None else dense.astype(dtype)


def _view(array: Any, read_only: bool) -> NDArrayView:
    found = NDArrayView.__new__(NDArrayView)
    found._array, found.is_read_only = array, read_only  # pyright: ignore[reportPrivateUsage]
    return found


def asarray(value: Any, dtype: Any = None) -> NDArray[Any]:
    """What a program gave or got as a NumPy array: a value, a view, an array, a number."""
    found = value.asarray() if isinstance(value, Value | NDArrayView) else value
    return np.asarray(found) if dtype is None else np.asarray(found, dtype)


def asvalue(variable: Any, data_array: Any) -> Value:
    """Data for an input, see `Value.create`."""
    return Value.create(variable, data_array)


__all__ = ["NDArrayView", "Value", "asarray", "asvalue"]

__getattr__ = no_attribute("cntk.core", __all__)
