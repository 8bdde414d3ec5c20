"""`NDArrayView`: an array as CNTK wraps it."""

# What programs give is of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cntkpy.readers.data_api.device import CPU, Device
from cntkpy.readers.errors import ArgumentError


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

    @classmethod
    def from_dense(cls, np_array: Any, device: Any = None, read_only: bool = False, borrow: bool = False) -> Self:
        """The view of a NumPy array, which is copied unless `borrow`."""
        del device
        array = np.asarray(np_array)
        return cls._of(array if borrow else array.copy(), read_only)

    @classmethod
    def from_csr(
        cls, csr_array: Any, device: Any = None, read_only: bool = False, borrow: bool = False, shape: Any = None
    ) -> Self:
        """The view of a CSR matrix, which is copied unless `borrow`; `shape` has to be its own."""
        del device
        if shape is not None and tuple(shape) != tuple(csr_array.shape):
            message = f"NDArrayView.from_csr: shape is {tuple(shape)}, the matrix has {tuple(csr_array.shape)}"
            raise ArgumentError(message)
        return cls._of(csr_array if borrow else csr_array.copy(), read_only)

    @classmethod
    def from_data(cls, data: Any, device: Any = None, read_only: bool = False, borrow: bool = False) -> Self:
        """The view of an array or a CSR matrix."""
        make = cls.from_csr if hasattr(data, "indptr") else cls.from_dense
        return make(data, device, read_only, borrow)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self._array.shape)

    @property
    def device(self) -> Device:
        """The CPU: data are in the memory of the process."""
        return CPU

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return np.dtype(self._array.dtype)

    @property
    def is_sparse(self) -> bool:
        """True if it is a CSR matrix."""
        return hasattr(self._array, "indptr")

    def slice_view(self, start_offset: Any, extent: Any, read_only: bool = True) -> Self:
        """A part of the array; no data are copied.

        Args:
            start_offset: first index of each axis.
            extent: the shape of the part; of axes that it does not have, which are the first ones, the element at
                `start_offset` is taken.
            read_only: whether the part is read only.
        """
        first = len(start_offset) - len(extent)
        pairs = zip(start_offset[first:], extent, strict=True)
        place = (*start_offset[:first], *(slice(begin, begin + count) for begin, count in pairs))
        return self._of(self._array[place], read_only)

    def asarray(self) -> Any:
        """The array; a CSR matrix as it is."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        dense = self._array.toarray() if self.is_sparse else self._array
        return dense if dtype is None else dense.astype(dtype)

    @classmethod
    def _of(cls, array: Any, read_only: bool) -> Self:
        view = cls.__new__(cls)
        view._array, view.is_read_only = array, read_only
        return view
