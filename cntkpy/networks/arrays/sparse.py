"""Sparse minibatch data and row-sparse gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.graph.shapes import Shape, size

if TYPE_CHECKING:
    from jaxtyping import Float, Int32
    from numpy.typing import DTypeLike, NDArray
    from typing_extensions import TypeIs


class Compressed(Protocol):
    """A CSR matrix of scipy."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: NDArray[np.generic]
    shape: tuple[int, int]


class Sparse(NamedTuple):
    """Sparse cells with K entries each (padded with value 0), on T time steps and S slots.

    The distinct elements that occur are listed once, so that only these rows of a weight matrix are touched. Arrays are
    those of NumPy in a minibatch, those of JAX in a compiled program.

    Attributes:
        rows: int32 `(U,)`, the distinct element indices; padding is the width (out of range).
        index: int32 `(T, S, K)`, positions in `rows`.
        values: `(T, S, K)`.
    """

    rows: Int32[Any, " U"]
    index: Int32[Any, "T S K"]
    values: Float[Any, "T S K"]

    @classmethod
    def from_csr(cls, csr: Compressed, T: int, S: int, dtype: DTypeLike = "float32", exact: bool = False) -> Sparse:
        """From a scipy CSR matrix `(T*S, width)`, row `t*S + s`.

        K and U are rounded up to powers of two (unless `exact`), so that few shapes occur.
        """
        counts = np.diff(csr.indptr)
        largest = int(counts.max()) if len(counts) else 0
        distinct, local = np.unique(csr.indices, return_inverse=True)
        entries, different = max(1, largest), max(1, len(distinct))
        if not exact:
            entries, different = 1 << (entries - 1).bit_length(), 1 << (different - 1).bit_length()
        rows = np.full(different, csr.shape[1], np.int32)
        rows[: len(distinct)] = distinct
        index = np.zeros((T * S, entries), np.int32)
        values = np.zeros((T * S, entries), dtype)
        where = (
            np.repeat(np.arange(len(counts)), counts),
            np.arange(len(csr.indices)) - np.repeat(csr.indptr[:-1], counts),
        )
        index[where] = local
        values[where] = csr.data
        return cls(rows, index.reshape(T, S, entries), values.reshape(T, S, entries))

    def elements(self) -> Int32[Array, "T S K"]:
        """Global element indices `(T, S, K)`."""
        return self.rows[self.index]

    def dense(self, shape: Shape | None) -> Float[Array, "T S ..."]:
        """As a dense array `(T, S, *reversed(shape))`."""
        assert shape is not None
        T, S = self.index.shape[0], self.index.shape[1]
        cells = jnp.arange(T * S)[:, None]
        flat = jnp.zeros((T * S, size(shape)), self.values.dtype)
        flat = flat.at[cells, self.elements().reshape(T * S, -1)].add(self.values.reshape(T * S, -1))
        return flat.reshape(T, S, *reversed(shape))


class RowGradient(NamedTuple):
    """Gradient of a matrix parameter that touches few of its columns (rows of the array in memory).

    Attributes:
        rows: int32 `(U,)`, distinct; padding is out of range (JAX drops it in scatters).
        values: `(U, m)`, the gradient of these rows; padding rows are zero.
    """

    rows: Int32[Array, " U"]
    values: Float[Array, "U m"]

    def dense(self, parameter: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """Return the whole gradient, as an array like `parameter`."""
        return jnp.zeros_like(parameter).at[self.rows].add(self.values)


def is_sparse(value: object) -> TypeIs[Sparse]:
    """Return whether a value is `Sparse`."""
    return isinstance(value, Sparse)
