"""`NDArrayView`: an array as CNTK wraps it."""

# What programs give is of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
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

    _shape: tuple[int, ...] | None = None
    """The shape of a view of a matrix that has more axes than two; None: that of the array."""

    def __init__(self, shape: Any, data_type: Any = np.float32, device: Any = None) -> None:
        del device
        self._array: Any = np.zeros(shape, data_type)
        self.is_read_only = False

    @classmethod
    def from_dense(cls, np_array: Any, device: Any = None, read_only: bool = False, borrow: bool = False) -> Self:
        """Return the view of a NumPy array, which is copied unless `borrow`.

        Raises:
            ArgumentError: it is a sparse matrix.
        """
        del device
        if hasattr(np_array, "indptr"):
            raise ArgumentError("NDArrayView.from_dense: a sparse matrix is not dense", "NDArrayView.from_csr(matrix)")
        array = np.asarray(np_array)
        return cls._of(array if borrow else array.copy(), read_only)

    @classmethod
    def from_csr(
        cls, csr_array: Any, device: Any = None, read_only: bool = False, borrow: bool = False, shape: Any = None
    ) -> Self:
        """Return the view of a CSR matrix, which is copied unless `borrow`.

        Args:
            csr_array: the matrix.
            device: accepted; data stay in the memory of the process.
            read_only: what `is_read_only` says.
            borrow: whether the matrix is not copied.
            shape: how the elements are seen: the rows are those of its first axes, or columns those of its last ones.

        Raises:
            ArgumentError: the rows or the columns of the matrix are not those of leading or trailing axes of `shape`.
        """
        del device
        seen = tuple(csr_array.shape if shape is None else shape)
        if tuple(csr_array.shape) not in {
            (math.prod(seen[:axis]), math.prod(seen[axis:])) for axis in range(len(seen) + 1)
        }:
            message = f"NDArrayView.from_csr: shape is {seen}, the matrix has {tuple(csr_array.shape)}"
            raise ArgumentError(message)
        view = cls._of(csr_array if borrow else csr_array.copy(), read_only)
        view._shape = seen
        return view

    @classmethod
    def from_data(cls, data: Any, device: Any = None, read_only: bool = False, borrow: bool = False) -> Self:
        """Return the view of an array or a CSR matrix.

        Raises:
            ArgumentError: it is a text.
        """
        if isinstance(data, str):
            raise ArgumentError(
                f"NDArrayView.from_data: {data[:20]!r} is not data", "NumPy arrays and CSR matrices are"
            )
        make = cls.from_csr if hasattr(data, "indptr") else cls.from_dense
        return make(data, device, read_only, borrow)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._shape or tuple(self._array.shape)

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
        """Return a part of the array; no data are copied.

        Args:
            start_offset: first index of each axis.
            extent: the shape of the part; of axes that it does not have, which are the first ones, the element at
                `start_offset` is taken.
            read_only: whether the part is read only.

        Raises:
            ArgumentError: the array has no such part.
        """
        sizes, lengths = self._array.shape, (1,) * (len(start_offset) - len(extent)) + tuple(extent)
        if len(lengths) != len(sizes) or any(
            not 0 <= begin <= begin + count <= size
            for begin, count, size in zip(start_offset, lengths, sizes, strict=True)
        ):
            message = f"slice_view: {tuple(extent)} from {tuple(start_offset)} on is outside of the shape {self.shape}"
            raise ArgumentError(message, "an offset for each axis; the extent may lack the first ones")
        first = len(start_offset) - len(extent)
        pairs = zip(start_offset[first:], extent, strict=True)
        place = (*start_offset[:first], *(slice(begin, begin + count) for begin, count in pairs))
        return self._of(self._array[place], read_only)

    def deep_clone(self, device: Any = None, read_only: bool = False) -> Self:
        """Return a copy of the array and its view."""
        del device
        clone = self._of(self._array.copy(), read_only)
        clone._shape = self._shape
        return clone

    def __getitem__(self, key: Any) -> Self:
        """Return a part of the array, as NumPy counts its elements; no data are copied."""
        return self._of(self._array[key], self.is_read_only)

    def asarray(self) -> Any:
        """Return the array; a CSR matrix as it is."""
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
