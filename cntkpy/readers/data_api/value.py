"""Values: the samples of one stream in a minibatch, by sequence."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_list, is_several
from cntkpy.readers.common.arguments import whole_number
from cntkpy.readers.common.sparse import is_csr, is_dense, is_sparse
from cntkpy.readers.data_api.array_view import NDArrayView
from cntkpy.readers.data_api.device import CPU, Device
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.streams import StreamInformation

from .batches import NUMBERS, Batch, InputAxes, batch_of, check_sample, items_of, of_array, rows_of, sequences_of
from .free_axes import sized

PADDING, WITHIN, FIRST = 0, 1, 2
"""Elements of a mask: no sample, a sample, the first sample of a sequence."""

ARRAY, ITEMS, SEQUENCES, PACKED = range(4)
"""Layouts of a value's axes: nothing; the first one counts the sequences; they are (N, T, *sample); they are
that, and the samples of a reader may be flat."""


class Value:
    """N sequences of samples, or N single samples.

    Args:
        batch: an ndarray (N, T, *sample) or (N, *sample); a list of arrays (length, *sample), one per sequence; a scipy
            CSR matrix (N, dim); or a list of CSR matrices (length, dim).
        seq_starts: for each sequence whether it begins here; else it resumes from the one before. None: all begin.
        device: accepted for programs written for CNTK; data stay in the memory of the process.
        sample_shape: shape of a sample where `batch` cannot tell, as of sparse samples of several axes.

    An array alone does not say which of its axes are those of a sample. The input that it is given to does, see
    `read` and `cntkpy.readers.data_api.batches`.
    """

    _has_steps = True
    """True if it is known if there is an axis of steps. Of an array alone it is not."""

    _read_only = _erased = False

    ONE_HOT_SKIP = 0xFFFFFFFF
    """Instead of a class in `one_hot`: a sample of zeros."""

    def __init__(
        self,
        batch: Any,
        seq_starts: Any = None,
        device: Any = None,
        dtype: Any = None,
        sample_shape: tuple[int, ...] | None = None,
    ):
        del device
        self.lengths: np.ndarray | None = None
        """Samples of each sequence, int64[N]; None without an axis for them, or when all are T long."""
        self._continued: np.ndarray | None = None
        self._rows: Any = None
        self._array: np.ndarray | None = None
        self._form = ITEMS if is_several(batch) or seq_starts is not None else ARRAY
        batch = [_as_csr(sequence) for sequence in batch] if is_several(batch) else _as_csr(batch)
        if is_csr(batch):
            self._rows = batch if dtype is None else batch.astype(dtype)
            self.sample_shape = sample_shape or (batch.shape[1],)
        elif is_several(batch) and batch and all(map(is_csr, batch)):
            self._rows = _scipy_sparse().vstack(batch, format="csr", dtype=dtype)
            self.lengths = np.array([sequence.shape[0] for sequence in batch], np.int64)
            self.sample_shape = sample_shape or (batch[0].shape[1],)
        elif is_several(batch):
            self._from_sequences([np.asarray(sequence, dtype) for sequence in batch], sample_shape)
        else:
            self._array = np.asarray(batch, dtype)
            if self._array.ndim == 0 or self._array.dtype.kind not in NUMBERS:
                raise ArgumentError(
                    f"a Value is made of arrays of numbers, CSR matrices, or lists of them, not of {_kind_of(batch)}"
                )
            self._has_steps = sample_shape is not None
            self.sample_shape = sample_shape or self._array.shape[2:]
        if seq_starts is not None:
            self._set_begins(seq_starts)

    def _set_begins(self, seq_starts: Any) -> None:
        if not is_several(seq_starts) or not all(isinstance(seq_start, bool | np.bool_) for seq_start in seq_starts):
            raise ArgumentError(
                f"seq_starts are truth values, one for each sequence, not {seq_starts!r}", "[True, False]"
            )
        if len(seq_starts) != len(self):
            raise ArgumentError(f"{len(seq_starts)} seq_starts for {len(self)} sequences")
        self._continued = ~np.asarray(seq_starts, bool)

    @property
    def begins(self) -> list[bool] | None:
        """For each sequence whether it begins here; None where nothing was said of it."""
        return None if self._continued is None else (~self._continued).tolist()

    def _from_sequences(self, sequences: Sequence[np.ndarray], sample_shape: tuple[int, ...] | None) -> None:
        if not sequences:
            raise ArgumentError("the batch of a Value is empty")
        shapes = {sequence.shape[1:] if sequence.ndim else None for sequence in sequences}
        if len(shapes) > 1 or None in shapes or any(sequence.dtype.kind not in NUMBERS for sequence in sequences):
            raise ArgumentError("the sequences of a Value must be arrays (length, *sample) with samples of one shape")
        lengths = np.array([len(sequence) for sequence in sequences], np.int64)
        self.sample_shape = sample_shape or sequences[0].shape[1:]
        if (lengths == lengths[0]).all():
            self._array = np.stack(sequences)
            return
        self.lengths, self._form = lengths, SEQUENCES
        self._array = np.zeros((len(sequences), int(lengths.max()), *sequences[0].shape[1:]), sequences[0].dtype)
        for target, sequence in zip(self._array, sequences, strict=True):
            target[: len(sequence)] = sequence

    @classmethod
    def _of(cls, batch: Batch, sample_shape: tuple[int, ...]) -> Value:
        """A value whose sequences are known."""
        value = cls.__new__(cls)
        value.sample_shape, value._continued, value._form = sample_shape, None, SEQUENCES
        value._rows, value._array, value.lengths = batch.rows, None, batch.lengths
        if batch.cells is not None:
            count, steps = batch.cells.shape[:2]
            value._array = batch.cells.reshape(count, steps, *sample_shape)
            if (batch.lengths == steps).all():
                value.lengths = None
        return value

    @classmethod
    def of_result(cls, found: Any, has_batch: bool) -> Value:
        """The values of a function, which know their axes.

        Args:
            found: a list of sequences, or an array.
            has_batch: whether the first axis of an array is the batch.
        """
        if is_list(found):
            return cls(found)
        value = cls.__new__(cls)
        value._rows, value._array, value._continued, value.lengths = None, np.asarray(found), None, None
        value._form, value._has_steps = (ITEMS if has_batch else ARRAY), has_batch
        value.sample_shape = value._array.shape[1 if has_batch else 0 :]
        return value

    @classmethod
    def of_rows(cls, rows: Any, sample_shape: tuple[int, ...]) -> Value:
        """A value of an array or a CSR matrix whose rows are a sequence each; data are not copied."""
        value = cls(rows, sample_shape=sample_shape)
        value._form, value._has_steps = ITEMS, value.is_sparse
        return value

    @property
    def is_rows(self) -> bool:
        """True if it is an array, or a matrix, of which each row is a sample or a sequence: the input says which."""
        return self.lengths is None and self._form in (ARRAY, ITEMS) and self._continued is None

    def read(self, axes: InputAxes) -> Batch:
        """The sequences that this value is for an input.

        Raises:
            ArgumentError: the value does not fit the input.
        """
        self._check_valid()
        if self._rows is not None:
            if len(self.sample_shape) > 1:
                check_sample(self.sample_shape, axes)
            if self.lengths is None and self._form == ARRAY:
                return batch_of(self._rows, axes)
            lengths = np.ones(self._rows.shape[0], np.int64) if self.lengths is None else self.lengths
            return rows_of(self._rows, lengths, axes)
        assert self._array is not None
        if self._form == ARRAY:
            return of_array(self._array, axes)
        if self._form == ITEMS:
            return items_of(self._array, axes)
        return sequences_of(self._array, self.lengths, axes, self._form == PACKED)

    @classmethod
    def of_stream(cls, data: Any, layout: Layout, sample_shape: tuple[int, ...]) -> Value:
        """A stream of a `Minibatch`: dense (T, S, dim), or sparse CSR (T*S, dim). Single samples are not copied."""
        if layout.is_single and isinstance(data, np.ndarray):
            value = cls.__new__(cls)
            value._rows, value.sample_shape, value._continued, value.lengths = None, sample_shape, None, None
            value._form = PACKED
            value._array = data.reshape(layout.S, 1, *sample_shape)
            return value
        n, steps, slots = layout.num_sequences, layout.T, layout.S
        begin = np.maximum(layout.sequences[:, 2], 0)
        lengths = np.minimum(layout.sequences[:, 3], steps) - begin
        aligned = n == slots and not begin.any() and np.array_equal(layout.sequences[:, 1], np.arange(n))
        value = cls.__new__(cls)
        value._rows, value._array, value.sample_shape, value._form = None, None, sample_shape, PACKED
        continued = layout.sequences[:, 2] < 0
        value._continued = continued if continued.any() else None
        longest = int(lengths.max(initial=0))
        if is_dense(data):
            if aligned:
                padded = data.transpose(1, 0, 2)
            else:
                step, slot, owner = layout.cells
                padded = np.zeros((n, longest, data.shape[2]), data.dtype)
                padded[owner, step - begin[owner]] = data[step, slot]
            value._array = padded.reshape(*padded.shape[:2], *sample_shape)
            value.lengths = lengths if value._continued is not None or (lengths != longest).any() else None
        else:
            if not (aligned and steps == 1):
                step, slot, _ = layout.cells
                data = data[step * slots + slot]
            value._rows, value.lengths = data, lengths
        return value

    @classmethod
    def one_hot(
        cls, batch: Any, num_classes: int | tuple[int, ...], dtype: Any = np.float32, device: Any = None
    ) -> Value:
        """Class numbers as sparse vectors.

        Args:
            batch: a list of sequences of numbers, each a list or an array; or a list or an array of numbers, of which
                each is a sample, or together they are one sequence: the input says which.
            num_classes: of a sample, or its shape, whose last axis has the classes. The numbers of a sample of several
                axes lie one after the other in a sequence, or along the axes of the sample.
            dtype: of the ones.
            device: accepted.
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
            keep = classes != cls.ONE_HOT_SKIP
            wrong = classes[keep & ((classes < 0) | (classes >= shape[-1]))]
            if len(wrong):
                raise ArgumentError(f"class {wrong[0]} given to one_hot() is not one of 0 to {shape[-1] - 1}")
            position = np.arange(len(classes))
            columns = (classes + position % inner * shape[-1])[keep].astype(np.int32)
            ones = np.ones(len(columns), dtype)
            size = (len(classes) // inner, int(np.prod(shape)))
            matrices.append(_scipy_sparse().csr_matrix((ones, (position[keep] // inner, columns)), shape=size))
        return cls(matrices[0] if flat else matrices, None, device, sample_shape=shape)

    @classmethod
    def create(
        cls, var: Any, data: Any, seq_starts: list[bool] | None = None, device: Any = None, read_only: bool = False
    ) -> Value:
        """Data for an input, read by the rule of `cntkpy.readers.data_api.batches`.

        Args:
            var: the input; its shape is that of a sample, its dynamic axes say what is in front of it.
            data: an array, a CSR matrix, or a list of these, one for each sequence.
            seq_starts: for each sequence whether it begins here; else it resumes from the minibatch before. An array
                has a sequence in each of its rows then.
            device: accepted; data stay in the memory of the process.
            read_only: what `is_read_only` says; nothing is written into the data.

        Returns:
            A value of shape (n, steps, *sample), also of a list for an input without a sequence axis, where steps are
            1; of an array for such an input (n, *sample).

        Raises:
            ArgumentError: the data do not fit the input.
        """
        del device
        axes = sized(axes_of(var), data)
        if isinstance(data, Value):
            batch = data.read(axes)
        else:
            batch = items_of(data, axes) if seq_starts is not None and is_dense(data) else batch_of(data, axes)
        value = cls._of(batch, axes.shape)
        if axes.dynamic == 1 and is_several(data) and value._array is not None and seq_starts is None:
            pass  # as in CNTK, each element of a list is a sequence, here of one step
        elif axes.dynamic == 1:  # samples have no axis of steps
            value.lengths, value._form = None, ITEMS
            value._array = None if value._array is None else value._array.reshape(-1, *axes.shape)
        elif axes.dynamic == 0 and value._array is not None:
            value._array, value._form = value._array.reshape(axes.shape), ARRAY
        if seq_starts is not None:
            value._set_begins(seq_starts)
        value._read_only = bool(read_only)
        return value

    # --------------------------------------------------------------------------------------------- what it is

    @property
    def device(self) -> Device:
        """The CPU: data are in the memory of the process."""
        return CPU

    @property
    def is_read_only(self) -> bool:
        """True if its array must not be written to."""
        return self._read_only or (self._array is not None and not self._array.flags.writeable)

    @property
    def is_valid(self) -> bool:
        """True if it has data: False after `erase`."""
        return not self._erased

    @property
    def is_sparse(self) -> bool:
        """True if samples are kept as non-zero elements."""
        return self._rows is not None

    @property
    def dtype(self) -> np.dtype:
        """The element type."""
        return self._rows.dtype if self._array is None else self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, T, *sample), or (N, *sample) of single samples without an axis for sequences."""
        if self._array is not None:
            return self._array.shape
        if self.lengths is None:
            return (self._rows.shape[0], *self.sample_shape)
        return (len(self.lengths), int(self.lengths.max(initial=0)), *self.sample_shape)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    @property
    def mask(self) -> np.ndarray:
        """uint8 (N, T): 2 where a sequence begins, 1 at its other samples, 0 at padding.

        Raises:
            ArgumentError: it is made of an array alone, which does not say which of its axes counts steps.
        """
        if not self._has_steps:
            reason = (
                f"an array of shape {self.shape} alone does not say which of its axes counts the steps of sequences"
            )
            raise ArgumentError(reason, "Value.create(input, data).mask")
        n, steps = self.shape[0], self.shape[1] if len(self.shape) > 1 else 1
        if self.lengths is None and (self._rows is not None or self._is_samples):
            steps = 1
        lengths = np.full(n, steps) if self.lengths is None else self.lengths
        mask = (np.arange(steps) < lengths[:, None]).astype(np.uint8)
        begins = np.ones(n, bool) if self._continued is None else ~self._continued
        mask[begins & (lengths > 0), :1] = FIRST
        return mask

    @property
    def _is_samples(self) -> bool:
        """True if it has no axis of steps."""
        return self._form == ITEMS and self._array is not None and self._array.ndim == 1 + len(self.sample_shape)

    @property
    def masked_count(self) -> int:
        """Number of padding elements in the mask."""
        return int((self.mask == PADDING).sum())

    @property
    def data(self) -> NDArrayView:
        """A view of the data, see `asarray`."""
        return NDArrayView.from_data(self.padded() if self.lengths is not None else self._asarray(), borrow=True)

    def deep_clone(self, read_only: bool = False) -> Value:
        """A copy with data of its own.

        Args:
            read_only: what `is_read_only` of the copy says.
        """
        clone = copy.deepcopy(self)
        if clone._array is not None and not clone._array.flags.writeable:
            clone._array = clone._array.copy()
        clone._read_only = bool(read_only)
        return clone

    def alias(self, read_only: bool = False) -> Value:
        """Another value of the same data.

        Args:
            read_only: what `is_read_only` of the other value says.
        """
        clone = copy.copy(self)
        clone._read_only = bool(read_only) or self._read_only
        return clone

    def erase(self) -> None:
        """Let go of the data; they cannot be read any more."""
        kind = np.float32 if self._array is None else self._array.dtype
        self._erased = True
        self._rows = self.lengths = self._continued = None
        self._array = np.zeros((0, 0, *self.sample_shape), kind)

    # --------------------------------------------------------------------------------------------- data

    def asarray(self) -> Any:
        """An array (N, T, *sample) with zeros in the padding. Sparse (N, dim) without sequences stays a CSR matrix."""
        return self._asarray()

    def _check_valid(self) -> None:
        """Raise an ArgumentError where the data were let go of."""
        if self._erased:
            message = "this Value has no data any more: those that forward gives end with its next call, or by erase"
            raise ArgumentError(message, "value.deep_clone() keeps them, as_numpy=True gives arrays")

    def _asarray(self) -> Any:
        self._check_valid()
        if self.lengths is not None and len(set(self.lengths.tolist())) > 1:
            warnings.warn("the array includes the padding of short sequences; see mask", RuntimeWarning, stacklevel=3)
        if self._array is not None:
            return self._array
        if self.lengths is None:
            return self._rows
        return self.padded()

    def padded(self) -> np.ndarray:
        """The same as `asarray()`, always an array, and without a warning."""
        if self._array is not None:
            return self._array
        if self.lengths is None:
            return self._rows.toarray()
        out = np.zeros((*self.shape[:2], self._rows.shape[1]), self._rows.dtype)
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        of = np.repeat(np.arange(len(owner)), np.diff(self._rows.indptr))
        out[owner[of], step[of], self._rows.indices] = self._rows.data
        return out.reshape(self.shape)

    def as_csr(self) -> Any:
        """Sparse data as one CSR matrix (samples, dim), sequence after sequence; see `lengths`."""
        if self._rows is None:
            raise ArgumentError("the value is dense; use asarray()")
        return self._rows

    def as_sequences(self, variable: Any = None) -> list[Any]:
        """One array (length, *sample), or CSR matrix (length, dim), for each sequence.

        Args:
            variable: the input whose sequences they are; needed where the value is made of an array alone, whose first
                axis counts the sequences otherwise.
        """
        self._check_valid()
        if variable is not None:
            axes = axes_of(variable)
            if axes.dynamic == 2:
                return Value._of(self.read(axes), axes.shape).as_sequences()
        if self._array is not None:
            return (
                list(self._array)
                if self.lengths is None
                else [sequence[:n] for sequence, n in zip(self._array, self.lengths.tolist(), strict=True)]
            )
        lengths = np.ones(self._rows.shape[0], np.int64) if self.lengths is None else self.lengths
        ends = np.cumsum(lengths)
        return [self._rows[end - n : end] for n, end in zip(lengths.tolist(), ends.tolist(), strict=True)]

    def to_jax(self) -> Any:
        """A JAX array like `asarray()`; sparse data as a BCSR matrix like `as_csr()`."""
        from .frameworks import to_jax

        return to_jax(self._rows if self._array is None else self._array)

    def to_torch(self) -> Any:
        """A PyTorch tensor like `asarray()`; sparse data as a CSR tensor like `as_csr()`."""
        from .frameworks import to_torch

        return to_torch(self._rows if self._array is None else self._array)


class MinibatchData:
    """Minibatch of one stream.

    Args:
        value: a `Value`, or what one is made from; None if there are no data in this step.
        num_samples: samples of this stream.
        sweep_end: whether a pass over the data ended in this minibatch.
    """

    _made: tuple[Any, Layout, StreamInformation] | None = None
    """Samples, layout and stream of what a `MinibatchSource` gives."""
    _lent = False
    truncated = False
    """True if its sequences continue in other minibatches: the pieces keep their slots."""

    def __init__(self, value: Any, num_sequences: int, num_samples: int, sweep_end: bool):
        self.data = value if value is None or isinstance(value, Value) else Value(value)
        self.num_sequences = int(num_sequences)
        self.num_samples = int(num_samples)
        self.end_of_sweep = bool(sweep_end)

    def __repr__(self) -> str:
        last = ", end_of_sweep=True" if self.end_of_sweep else ""
        return f"MinibatchData({self.num_sequences} sequences, {self.num_samples} samples{last})"

    @classmethod
    def of_stream(cls, minibatch: Minibatch, stream: StreamInformation) -> MinibatchData:
        """A stream of a minibatch; its `Value` is made when somebody looks at it."""
        data, layout = cls.__new__(cls), minibatch.layouts[stream.name]
        data._made = minibatch.streams[stream.name], layout, stream
        if minibatch.truncated:
            data.truncated = True
        data.num_sequences, data.num_samples = layout.num_sequences, layout.num_samples
        data.end_of_sweep = minibatch.end_of_sweep
        return data

    @cached_property
    def data(self) -> Any:
        """The `Value`; None if there are no data in this step."""
        if self._made is None:
            return None
        data, layout, stream = self._made
        if layout.num_sequences == 0:
            return None
        keeps = self._lent or self.truncated
        return Value.of_stream(data.copy() if keeps else data, layout, stream.sample_shape)

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """Shape of a sample that a `MinibatchSource` has read; None of other data."""
        return None if self._made is None else self._made[2].sample_shape

    def lend(self) -> tuple[Any, Layout] | None:
        """Single samples, or pieces of sequences, and their layout, as the source has made them.

        They are for somebody who does not change them. Who looks at pieces, or later, gets a copy.

        Returns:
            None where there are none, or where somebody has looked at single samples and may change them.
        """
        if self._made is None or ("data" in self.__dict__ and not self.truncated):
            return None
        data, layout, _ = self._made
        if not (layout.is_single or self.truncated) or layout.num_sequences == 0:
            return None
        self._lent = True
        return data, layout

    @property
    def number_of_sequences(self) -> int:
        """The same as `num_sequences`."""
        return self.num_sequences

    @property
    def number_of_samples(self) -> int:
        """The same as `num_samples`."""
        return self.num_samples

    @property
    def sweep_end(self) -> bool:
        """The same as `end_of_sweep`."""
        return self.end_of_sweep

    def __len__(self) -> int:
        return self.num_sequences

    def __bool__(self) -> bool:
        return True

    @property
    def _value(self) -> Value:
        if self.data is None:
            raise DataError(
                "this worker has no data in this minibatch",
                hint="continue with the next one if num_samples is 0; others have data",
            )
        return self.data

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the data."""
        return self._value.shape

    @property
    def mask(self) -> np.ndarray:
        """Mask of the positions with samples; see `Value.mask`."""
        return self._value.mask

    @property
    def is_sparse(self) -> bool:
        """True if the data are sparse."""
        return self._value.is_sparse

    def asarray(self) -> Any:
        """See `Value.asarray`."""
        return self._value._asarray()  # pyright: ignore[reportPrivateUsage]

    def as_csr(self) -> Any:
        """See `Value.as_csr`."""
        return self._value.as_csr()

    def as_sequences(self, variable: Any = None) -> list[Any]:
        """See `Value.as_sequences`."""
        return self._value.as_sequences(variable)

    def to_jax(self) -> Any:
        """See `Value.to_jax`."""
        return self._value.to_jax()

    def to_torch(self) -> Any:
        """See `Value.to_torch`."""
        return self._value.to_torch()


def axes_of(variable: Any) -> InputAxes:
    """The axes of an input: a `Function`, or anything else with a shape and perhaps dynamic axes."""
    name = getattr(variable, "name", "")
    label = f"input '{name}'" if name else "input"
    known = getattr(variable, "data_axes", None)
    if known is not None:
        return InputAxes(label, *known)
    if not hasattr(variable, "shape"):
        raise ArgumentError(f"a Value is made for an input, not for {type(variable).__name__}", "Value.create(x, data)")
    dynamic = getattr(variable, "dynamic_axes", None)
    return InputAxes(label, tuple(variable.shape), None if dynamic is None else len(dynamic))


def _scipy_sparse() -> Any:
    """Imported when it is needed: few programs have sparse data."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    return scipy.sparse


def _as_csr(data: Any) -> Any:
    """Sparse matrices of other formats as CSR; anything else as it is."""
    return data.tocsr() if is_sparse(data) and not is_csr(data) else data


def _kind_of(data: Any) -> str:
    return f"{data.dtype}" if is_dense(data) else type(data).__name__
