"""The samples of a value: an array, or the rows of a sparse matrix, and the sequences that they form."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_list, is_several
from cntkpy.readers.common.arguments import whole_number
from cntkpy.readers.common.sparse import is_csr, is_dense, is_sparse
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Layout

from .batches import NUMBERS, Batch, InputAxes, batch_of, check_sample, items_of, of_array, rows_of, sequences_of

ARRAY, ITEMS, SEQUENCES, PACKED = range(4)
"""Layouts of a value's axes: nothing; the first one counts the sequences; they are (N, T, *sample); they are
that, and the samples of a reader may be flat."""

NO_CLASS = 0xFFFFFFFF
"""Instead of a class: a sample of zeros."""


@dataclass(eq=False)
class Samples:
    """N sequences of samples, or N single samples.

    Attributes:
        sample_shape: Shape of a sample.
        array: (N, T, *sample) or (N, *sample); None where samples are sparse.
        rows: CSR (samples, dim), the samples of all sequences; None where they are dense.
        form: What is known of the axes: ARRAY, ITEMS, SEQUENCES or PACKED.
        lengths: Samples of each sequence, int64[N]; None without an axis for them, or when all are T long.
        continued: Whether each sequence resumes from the one before, bool[N]; None: nothing is known of that.
        has_steps: Whether it is known if there is an axis of steps. Of an array alone it is not.
        of_classes: Whether `Value.one_hot` made them: the classes of one sequence may be samples of a minibatch.
    """

    sample_shape: tuple[int, ...]
    array: np.ndarray | None = None
    rows: Any = None
    form: int = ARRAY
    lengths: np.ndarray | None = None
    continued: np.ndarray | None = None
    has_steps: bool = True
    of_classes: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, T, *sample), or (N, *sample) of single samples without an axis for sequences."""
        if self.array is not None:
            return self.array.shape
        if self.lengths is None:
            return (self.rows.shape[0], *self.sample_shape)
        return (len(self.lengths), int(self.lengths.max(initial=0)), *self.sample_shape)

    @property
    def length_of_each(self) -> np.ndarray:
        """Samples of each sequence, int64[N]; of sparse samples only."""
        count: int = self.rows.shape[0]
        return np.ones(count, np.int64) if self.lengths is None else self.lengths

    def set_begins(self, seq_starts: Any) -> None:
        """Note for each sequence whether it begins here.

        Raises:
            ArgumentError: These are not truth values, one for each sequence.
        """
        if not is_several(seq_starts) or not all(isinstance(seq_start, bool | np.bool_) for seq_start in seq_starts):
            raise ArgumentError(
                f"seq_starts are truth values, one for each sequence, not {seq_starts!r}", "[True, False]"
            )
        count = self.shape[0] if self.shape else 1
        if len(seq_starts) != count:
            raise ArgumentError(f"{len(seq_starts)} seq_starts for {count} sequences")
        self.continued = ~np.asarray(seq_starts, bool)

    def cloned(self) -> Samples:
        """Return a copy with data of its own, which can be written to."""
        clone = copy.deepcopy(self)
        if clone.array is not None and not clone.array.flags.writeable:
            clone.array = clone.array.copy()
        return clone

    def without_data(self) -> Samples:
        """Return no samples of this shape."""
        kind = np.float32 if self.array is None else self.array.dtype
        empty = np.zeros((0, 0, *self.sample_shape), kind)
        return Samples(self.sample_shape, empty, form=self.form, has_steps=self.has_steps)

    def read(self, axes: InputAxes) -> Batch:
        """Return the sequences that these samples are for an input.

        Raises:
            ArgumentError: They do not fit the input.
        """
        if self.rows is not None:
            if len(self.sample_shape) > 1:
                check_sample(self.sample_shape, axes)
            if self.lengths is None and self.form == ARRAY:
                return batch_of(self.rows, axes)
            lengths = self.length_of_each
            if self.of_classes and axes.dynamic == 1 and len(lengths) == 1:
                lengths = np.ones(int(lengths[0]), np.int64)
            return rows_of(self.rows, lengths, axes)
        assert self.array is not None
        if self.form == ARRAY:
            return of_array(self.array, axes)
        if self.form == ITEMS:
            return items_of(self.array, axes)
        return sequences_of(self.array, self.lengths, axes, self.form == PACKED)

    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each step of each sequence is a sample, bool[N, T], and whether the sequence begins there."""
        n, steps = self.shape[0], self.shape[1] if len(self.shape) > 1 else 1
        # Items of the rank of a sample have no axis of steps.
        no_steps = self.form == ITEMS and self.array is not None and self.array.ndim == 1 + len(self.sample_shape)
        if self.lengths is None and (self.rows is not None or no_steps):
            steps = 1
        lengths = np.full(n, steps) if self.lengths is None else self.lengths
        samples = np.arange(steps) < lengths[:, None]
        begins = np.zeros_like(samples)
        begins[lengths > 0, :1] = True
        if self.continued is not None:
            begins[self.continued] = False
        return samples, begins

    def padded(self) -> np.ndarray:
        """Return an array (N, T, *sample) with zeros in the padding; (N, dim) of sparse samples without sequences."""
        if self.array is not None:
            return self.array
        if self.lengths is None:
            return self.rows.toarray()
        out = np.zeros((*self.shape[:2], self.rows.shape[1]), self.rows.dtype)
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        sample = np.repeat(np.arange(len(owner)), np.diff(self.rows.indptr))
        out[owner[sample], step[sample], self.rows.indices] = self.rows.data
        return out.reshape(self.shape)

    def sequences(self) -> list[Any]:
        """Return an array (length, *sample), or a CSR matrix (length, dim), for each sequence."""
        if self.array is None:
            lengths = self.length_of_each
            ends = np.cumsum(lengths)
            return [self.rows[end - n : end] for n, end in zip(lengths.tolist(), ends.tolist(), strict=True)]
        if self.lengths is None:
            return list(self.array)
        return [sequence[:n] for sequence, n in zip(self.array, self.lengths.tolist(), strict=True)]


def samples_of(data: Any, dtype: Any, sample_shape: tuple[int, ...] | None, seq_starts: Any = None) -> Samples:
    """Return samples out of what a `Value` is made of.

    Args:
        data: See `Value`.
        dtype: Of the samples; None: that of the data.
        sample_shape: Shape of a sample where the data cannot tell.
        seq_starts: For each sequence whether it begins here; None: nothing is known of that.

    Raises:
        ArgumentError: It is something else.
    """
    samples = _samples_of(data, dtype, sample_shape)
    if seq_starts is not None:
        samples.form = ITEMS if samples.form == ARRAY else samples.form
        samples.set_begins(seq_starts)
    return samples


def _samples_of(data: Any, dtype: Any, sample_shape: tuple[int, ...] | None) -> Samples:
    if is_several(data):
        return _of_sequences([_as_csr(sequence) for sequence in data], dtype, sample_shape)
    data = _as_csr(data)
    if is_csr(data):
        rows = data if dtype is None else data.astype(dtype)
        return Samples(sample_shape or (rows.shape[1],), rows=rows)
    array: np.ndarray = np.asarray(data, dtype)
    if array.ndim == 0 or array.dtype.kind not in NUMBERS:
        kind = f"{data.dtype}" if is_dense(data) else type(data).__name__
        raise ArgumentError(f"a Value is made of arrays of numbers, CSR matrices, or lists of them, not of {kind}")
    return Samples(sample_shape or array.shape[2:], array, has_steps=sample_shape is not None)


def _of_sequences(data: list[Any], dtype: Any, sample_shape: tuple[int, ...] | None) -> Samples:
    """Return the samples of arrays (length, *sample), or of CSR matrices (length, dim)."""
    if data and all(map(is_csr, data)):
        rows = scipy_sparse().vstack(data, format="csr", dtype=dtype)
        lengths = np.array([matrix.shape[0] for matrix in data], np.int64)
        return Samples(sample_shape or (data[0].shape[1],), rows=rows, form=ITEMS, lengths=lengths)
    sequences = [np.asarray(sequence, dtype) for sequence in data]
    if not sequences:
        raise ArgumentError("the batch of a Value is empty")
    shapes = {sequence.shape[1:] if sequence.ndim else None for sequence in sequences}
    if len(shapes) > 1 or None in shapes or any(sequence.dtype.kind not in NUMBERS for sequence in sequences):
        raise ArgumentError("the sequences of a Value must be arrays (length, *sample) with samples of one shape")
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    shape = sample_shape or sequences[0].shape[1:]
    if (lengths == lengths[0]).all():
        return Samples(shape, np.stack(sequences), form=ITEMS)
    array = np.zeros((len(sequences), int(lengths.max()), *sequences[0].shape[1:]), sequences[0].dtype)
    for target, sequence in zip(array, sequences, strict=True):
        target[: len(sequence)] = sequence
    return Samples(shape, array, form=SEQUENCES, lengths=lengths)


def samples_of_result(array: np.ndarray, has_batch: bool) -> Samples:
    """Return the values of a function; `has_batch`: the first axis is the batch."""
    shape, form = array.shape[1 if has_batch else 0 :], ITEMS if has_batch else ARRAY
    return Samples(shape, array, form=form, has_steps=has_batch)


def samples_of_batch(batch: Batch, sample_shape: tuple[int, ...]) -> Samples:
    """Return the samples of sequences that an input was given."""
    samples = Samples(sample_shape, rows=batch.rows, form=SEQUENCES, lengths=batch.lengths)
    if batch.cells is not None:
        count, steps = batch.cells.shape[:2]
        samples.array = batch.cells.reshape(count, steps, *sample_shape)
        if (batch.lengths == steps).all():
            samples.lengths = None
    return samples


def samples_of_stream(data: Any, layout: Layout, sample_shape: tuple[int, ...]) -> Samples:
    """Return the samples of a stream of a `Minibatch`; single ones are not copied.

    Args:
        data: Dense (T, S, dim), or sparse CSR (T*S, dim).
        layout: Where the sequences lie.
        sample_shape: Shape of a sample.
    """
    if layout.is_single and is_dense(data):
        array = data.reshape(layout.S, 1, *sample_shape)
        return Samples(sample_shape, array, form=PACKED)
    n, steps, slots = layout.num_sequences, layout.T, layout.S
    begin = np.maximum(layout.sequences[:, 2], 0)
    lengths = np.minimum(layout.sequences[:, 3], steps) - begin
    aligned = n == slots and not begin.any() and np.array_equal(layout.sequences[:, 1], np.arange(n))
    continued = layout.sequences[:, 2] < 0
    samples = Samples(sample_shape, form=PACKED, continued=continued if continued.any() else None)
    longest = int(lengths.max(initial=0))
    if is_dense(data):
        if aligned:
            padded = data.transpose(1, 0, 2)
        else:
            step, slot, owner = layout.cells
            padded = np.zeros((n, longest, data.shape[2]), data.dtype)
            padded[owner, step - begin[owner]] = data[step, slot]
        samples.array = padded.reshape(*padded.shape[:2], *sample_shape)
        samples.lengths = lengths if samples.continued is not None or (lengths != longest).any() else None
        return samples
    if not (aligned and steps == 1):
        step, slot, _ = layout.cells
        data = data[step * slots + slot]
    samples.rows, samples.lengths = data, lengths
    return samples


def one_hot_samples(batch: Any, num_classes: int | tuple[int, ...], dtype: Any) -> Samples:
    """Return class numbers as sparse vectors, see `Value.one_hot`.

    Raises:
        ArgumentError: These are no class numbers, or not of these classes.
    """
    batch = list(batch) if is_dense(batch) and batch.ndim else batch
    if not is_list(batch):
        raise ArgumentError("supplied batch has to be a list of sequences, or a list of class numbers")
    shape = tuple(
        whole_number(num_class, "the number of classes", 1)
        for num_class in (num_classes if is_several(num_classes) else (num_classes,))
    )
    inner = int(np.prod(shape[:-1]))
    flat = all(isinstance(sequence, int | float | np.generic) for sequence in batch)
    try:
        sequences = [np.asarray(batch)] if flat else [np.asarray(sequence) for sequence in batch]
    except ValueError:
        raise ArgumentError(f"the sequences given to one_hot() must have {inner} classes per sample") from None
    if not batch or any(sequence.size and not np.issubdtype(sequence.dtype, np.integer) for sequence in sequences):
        raise ArgumentError("supplied data to one_hot() must be of type integer, and there must be some")
    if any(
        sequence.size % inner or not sequence.ndim or sequence.shape[1:] not in ((), shape[:-1])
        for sequence in sequences
    ):
        raise ArgumentError(f"the sequences given to one_hot() must have {inner} classes per sample")
    matrices: list[Any] = []
    for sequence in sequences:
        classes = sequence.reshape(-1).astype(np.int64)
        keep = classes != NO_CLASS
        wrong = classes[keep & ((classes < 0) | (classes >= shape[-1]))]
        if len(wrong):
            raise ArgumentError(f"class {wrong[0]} given to one_hot() is not one of 0 to {shape[-1] - 1}")
        position = np.arange(len(classes))
        columns = (classes + position % inner * shape[-1])[keep].astype(np.int32)
        ones = np.ones(len(columns), dtype)
        size = (len(classes) // inner, int(np.prod(shape)))
        matrices.append(scipy_sparse().csr_matrix((ones, (position[keep] // inner, columns)), shape=size))
    samples = samples_of(matrices[0] if flat else matrices, None, shape)
    samples.of_classes = True
    return samples


def scipy_sparse() -> Any:
    """Return `scipy.sparse`, imported when it is needed: few programs have sparse data."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    return scipy.sparse


def _as_csr(data: Any) -> Any:
    """Return sparse matrices of other formats as CSR; anything else as it is."""
    return data.tocsr() if is_sparse(data) and not is_csr(data) else data
