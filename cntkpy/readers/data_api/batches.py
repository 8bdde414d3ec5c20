"""CNTK's rule that makes a batch of sequences of an array, a sparse matrix, or a list of these.

The axes of a sample are matched from the right. What is in front of them depends on the dynamic axes of the input:

    axes left over   batch and sequence axis        batch axis only         no dynamic axis
    0                one sequence of one step       one sample              the value
    1                one sequence                   one sample a row        of size 1
    2                sequences of equal length      the second has size 1   both of size 1

A list is a batch. Each of its items is a sequence (one axis left over) or a single step (none left over).
No axis of a sample may be left out, also none of size 1: an array (n,) has no samples of shape (1,). One exception, as
in CNTK: for a sequence of such samples a list may have a vector of k numbers, k steps.
"""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.cntk_config.base.narrowing import is_list, is_several
from cntkpy.readers.common.sparse import is_csr, is_sparse
from cntkpy.readers.errors import ArgumentError

NUMBERS = "fiub"
"""Kinds of NumPy's types that data may have."""


@dataclass(frozen=True)
class InputAxes:
    """The axes that data of an input have.

    Args:
        name: names the input in messages.
        shape: of a sample, as NumPy counts axes.
        dynamic: how many dynamic axes the input has: 2 are batch and sequence, 1 is the batch. None: nobody has said;
            then one axis left over is the batch, two are batch and sequence.
        is_sparse: whether the input takes sparse data only.
    """

    name: str
    shape: tuple[int, ...]
    dynamic: int | None
    is_sparse: bool = False

    @cached_property
    def size(self) -> int:
        """Elements of a sample."""
        return math.prod(self.shape)

    @property
    def expected(self) -> str:
        """What data of this input look like."""
        inner = "".join(f", {one}" for one in self.shape)
        if self.dynamic == 0:
            return f"the input has no dynamic axes: data have its shape {self.shape}, or axes of size 1 in front of it"
        rows = f"(n{inner or ','})"
        if self.dynamic == 1:
            return f"data have the shape {rows}, n samples; sequences need a sequence.input_variable"
        if self.dynamic is None:
            return (
                f"data have the shape {rows}, n samples, or (n, steps{inner}), sequences; or they are a list of these"
            )
        steps = f"(steps{inner or ','})"
        return f"data have the shape {steps}, one sequence, or (n, steps{inner}); a list has an array {steps} for each"

    def error(self, what: str, given: tuple[int, ...] = ()) -> ArgumentError:
        """Data that do not fit this input.

        Args:
            what: the data.
            given: their shape, if it is the axes of a sample that do not fit.
        """
        hint = self.expected
        if self.shape == (1,) and given and given[-1] != 1:
            hint = f"{hint}; write data[..., None] for an array of single numbers"
        return ArgumentError(f"{what} for the {self.name}, whose samples have the shape {self.shape}", hint)


class Batch(NamedTuple):
    """Sequences of samples, each from its first step on.

    **Fields:**

    - `cells`: (sequences, steps, elements of a sample), zeros after the end of short sequences; None for sparse data.
    - `rows`: CSR (all steps, elements of a sample), sequence after sequence; None for dense data.
    - `lengths`: int64 (sequences,).
    """

    cells: NDArray[Any] | None
    rows: Any
    lengths: NDArray[np.int64]


def batch_of(data: Any, axes: InputAxes) -> Batch:
    """Return the sequences that an array, a sparse matrix or a list stands for.

    Args:
        data: a number, an array, a list of numbers, arrays or lists (of any depth), a sparse matrix of SciPy, or a list
            of such matrices.
        axes: of the input.

    Raises:
        ArgumentError: the data do not fit the input, or are not numbers.
    """
    if is_sparse(data):
        return _of_matrix(data, axes)
    if is_several(data):
        return items_of(data, axes) if axes.dynamic != 0 else of_array(_numbers(data, axes), axes)
    return of_array(_numbers(data, axes), axes)


def of_array(array: NDArray[Any], axes: InputAxes) -> Batch:
    """Return the sequences of one array."""
    over = _left_over(array, array.shape, axes)
    if axes.dynamic == 0 and any(size != 1 for size in array.shape[:over]):
        raise axes.error(f"data of shape {array.shape}")
    if over > 2:
        raise axes.error(f"data of shape {array.shape}, with {over} axes in front of those of a sample,")
    if over == 2:
        return _filled_equal(array, array.shape[0], array.shape[1], axes)
    count = array.shape[0] if over else 1
    return _filled_equal(array, 1, count, axes) if axes.dynamic == 2 else _equal(array, count, 1, axes)


def items_of(items: Any, axes: InputAxes) -> Batch:
    """Return the sequences of a list, or of an array whose first axis counts the sequences."""
    if not len(items):
        raise ArgumentError(f"the data for the {axes.name} have no sample", "give at least one")
    matrices = [_is_matrix(one) for one in items] if is_list(items) or is_several(items) else [False]
    if any(matrices):
        if not all(matrices):
            raise ArgumentError(f"the list for the {axes.name} has dense and sparse items", "give one kind of them")
        return _of_matrices(list(items), axes)
    try:
        whole = items[0][None] if len(items) == 1 and type(items[0]) is np.ndarray else np.asarray(items)
    except UserError:  # a function without a value
        raise
    except ValueError:  # items of different shapes
        return _of_different(items, axes)
    if whole.dtype.kind not in NUMBERS:
        raise _not_numbers(items, axes)
    shape = whole.shape[1:]
    over = _left_over_of_item(whole, shape, axes)
    if over > 1:
        raise axes.error(f"a list with items of shape {shape}")
    return _filled_equal(whole, whole.shape[0], whole.shape[1] if over else 1, axes)


def sequences_of(cells: NDArray[Any], lengths: NDArray[np.int64] | None, axes: InputAxes, flat: bool = False) -> Batch:
    """Sequences that are known as such: (n, steps, *sample).

    Args:
        cells: the samples.
        lengths: of each sequence; None: all have all steps.
        axes: of the input.
        flat: samples of a reader may have the elements of the input along one axis.
    """
    if axes.is_sparse and not flat:
        raise _dense(cells.shape, axes)
    sample = cells.shape[2:]
    if flat:
        check_sample(sample, axes)
    elif sample != axes.shape and not ((sample, axes.shape) == ((), (1,)) and axes.dynamic in (2, None)):
        raise axes.error(f"samples of shape {sample}", cells.shape)
    count, steps = cells.shape[:2]
    found = _equal(cells, count, steps, axes)
    return found if lengths is None else Batch(found.cells, None, _checked(lengths, axes))


def check_sample(sample: tuple[int, ...], axes: InputAxes) -> None:
    """Whether the samples of a reader are those of an input; axes of one element may differ, and samples may be flat.

    Raises:
        ArgumentError: they have other elements, or other axes.
    """
    given, own = ([size for size in one if size != 1] for one in (sample, axes.shape))
    if math.prod(sample) != axes.size or (given != own and min(len(given), len(own)) > 1):
        raise axes.error(f"samples of shape {sample}")


def rows_of(rows: Any, lengths: NDArray[np.int64], axes: InputAxes) -> Batch:
    """Sparse samples of sequences that are known as such."""
    return Batch(None, _of_size(rows, axes), _checked(lengths, axes))


# ------------------------------------------------------------------------------------------------------ dense


def _numbers(data: Any, axes: InputAxes) -> NDArray[Any]:
    """Return an array of numbers of anything that NumPy takes for one."""
    try:
        found = np.asarray(data)
    except UserError:  # a function without a value
        raise
    except (ValueError, TypeError):
        raise _not_numbers(data, axes) from None
    if found.dtype.kind not in NUMBERS:
        raise _not_numbers(data, axes)
    return found


def _not_numbers(data: Any, axes: InputAxes) -> ArgumentError:
    kind = f"an array of {data.dtype}" if isinstance(data, np.ndarray) else shorten(repr(data))
    hint = "data are numbers, arrays of numbers, or lists of these; sequences of several lengths are a list of arrays"
    return ArgumentError(f"{kind} is not data for the {axes.name}", hint)


def _left_over(data: NDArray[Any], given: tuple[int, ...], axes: InputAxes, what: str = "data") -> int:
    """How many axes a shape has in front of those of a sample."""
    if axes.is_sparse:
        raise _dense(data.shape, axes)
    over = len(given) - len(axes.shape)
    if axes.dynamic is None and axes.shape == (1,) and len(given) <= 1:
        return len(given) if given != (1,) else 0  # a file may give numbers an axis of size 1 that they had not
    if over < 0 or given[over:] != axes.shape:
        raise axes.error(f"{what} of shape {given}", data.shape)
    return over


def _left_over_of_item(data: NDArray[Any], given: tuple[int, ...], axes: InputAxes) -> int:
    """Return the same for an item of a list; a vector is a sequence of samples of one element."""
    if axes.shape == (1,) and len(given) == 1 and axes.dynamic in (2, None) and not axes.is_sparse:
        return 1
    return _left_over(data, given, axes, "an item")


def _dense(shape: tuple[int, ...], axes: InputAxes) -> ArgumentError:
    hint = f"give a CSR matrix of SciPy (n, {axes.size}), a list of them, or Value.one_hot(...)"
    what = f"dense data of shape {shape} for the sparse {axes.name}"
    return ArgumentError(f"{what}, whose samples have the shape {axes.shape}", hint)


def _equal(array: NDArray[Any], count: int, steps: int, axes: InputAxes) -> Batch:
    """Sequences of the same length."""
    cells = array.reshape(count, steps, axes.size)
    if axes.dynamic in (0, 1) and steps != 1 and count:
        raise axes.error(f"data of shape {array.shape}, sequences of {steps} steps,")
    return Batch(cells, None, np.full(count, steps, np.int64))


def _filled_equal(array: NDArray[Any], count: int, steps: int, axes: InputAxes) -> Batch:
    """Sequences of the same length, which is not 0; those of a reader may have no steps."""
    if count and not steps:
        raise axes.error(f"data of shape {array.shape}, a sequence without steps,")
    return _equal(array, count, steps, axes)


def _of_different(items: Any, axes: InputAxes) -> Batch:
    """Return the sequences of a list whose items have different shapes."""
    sequences: list[NDArray[Any]] = []
    for one in items:
        array = _numbers(one, axes)
        over = _left_over_of_item(array, array.shape, axes)
        if over > 1:
            raise axes.error(f"a list with items of shape {array.shape}")
        sequences.append(array.reshape(array.shape[0] if over else 1, axes.size))
    lengths = _filled(np.array([len(one) for one in sequences], np.int64), axes)
    cells = np.zeros((len(sequences), int(lengths.max()), axes.size), np.result_type(*sequences))
    for target, one in zip(cells, sequences, strict=True):
        target[: len(one)] = one
    return Batch(cells, None, lengths)


# ------------------------------------------------------------------------------------------------------ sparse


def _of_matrix(matrix: Any, axes: InputAxes) -> Batch:
    """Return the sequences of one matrix: its rows are the axis in front of those of a sample."""
    rows = _of_size(matrix, axes)
    count = rows.shape[0]
    lengths = _filled(np.array([count], np.int64), axes) if axes.dynamic == 2 else np.ones(count, np.int64)
    if axes.dynamic == 0 and count != 1:
        raise axes.error(f"a sparse matrix of shape {rows.shape}")
    return Batch(None, rows, lengths)


def _of_matrices(matrices: list[Any], axes: InputAxes) -> Batch:
    """Return the sequences of a list of matrices, or of a list for each sequence of the matrices of its steps."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    steps = [[_of_size(matrix, axes) for matrix in (item if is_list(item) else [item])] for item in matrices]
    lengths = np.array([sum(rows.shape[0] for rows in sequence) for sequence in steps], np.int64)
    rows = scipy.sparse.vstack([rows for sequence in steps for rows in sequence], format="csr")
    return Batch(None, rows, _filled(lengths, axes))


def _is_matrix(item: Any) -> bool:
    """Return whether an item of a list is a sparse matrix, or a list of them."""
    return is_sparse(item) or (is_list(item) and len(item) > 0 and all(map(is_sparse, item)))


def _of_size(matrix: Any, axes: InputAxes) -> Any:
    """Return a matrix in CSR format whose rows are samples; one of the two axes of a sample is a sample."""
    if len(axes.shape) == 2 and tuple(matrix.shape) == axes.shape and matrix.shape[1] != axes.size:
        return matrix.reshape((1, axes.size)).tocsr()
    if matrix.ndim != 2 or matrix.shape[1] != axes.size:
        whole = f", or the matrix is a sample: {axes.shape}" if len(axes.shape) == 2 else ""
        hint = f"each row of a sparse matrix is a sample: (n, {axes.size}){whole}"
        what = f"a sparse matrix of shape {matrix.shape} for the {axes.name}"
        raise ArgumentError(f"{what}, whose samples have the shape {axes.shape}", hint)
    return matrix if is_csr(matrix) else matrix.tocsr()


def _checked(lengths: NDArray[np.int64], axes: InputAxes) -> NDArray[np.int64]:
    """Return the lengths of sequences, which an input without a sequence axis has not."""
    return _refused(lengths, lengths != 1, axes) if axes.dynamic in (0, 1) else lengths


def _filled(lengths: NDArray[np.int64], axes: InputAxes) -> NDArray[np.int64]:
    """Return the lengths of the sequences of a list, which have at least one step each; those of a reader may have
    none.
    """
    return _refused(_checked(lengths, axes), lengths == 0, axes)


def _refused(lengths: NDArray[np.int64], wrong: NDArray[np.bool_], axes: InputAxes) -> NDArray[np.int64]:
    if wrong.any():
        at = int(np.argmax(wrong))
        raise axes.error(f"a sequence of {int(lengths[at])} steps (number {at} of the data)")
    return lengths
