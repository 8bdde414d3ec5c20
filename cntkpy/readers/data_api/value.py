"""Values: the samples of one stream in a minibatch, by sequence."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_list, is_several
from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.data_api.array_view import NDArrayView
from cntkpy.readers.data_api.device import CPU, Device
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.streams import StreamInformation

from .batches import Batch, InputAxes, batch_of, items_of
from .free_axes import sized
from .samples import (
    ARRAY,
    ITEMS,
    NO_CLASS,
    Samples,
    one_hot_samples,
    samples_of,
    samples_of_batch,
    samples_of_result,
    samples_of_stream,
)

PADDING, WITHIN, FIRST = 0, 1, 2
"""Elements of a mask: no sample, a sample, the first sample of a sequence."""


class SampleViews(ABC):
    """Base of what has samples: how to look at them."""

    _erased = False
    """True if the data were let go of."""

    @property
    @abstractmethod
    def _samples(self) -> Samples:
        """The samples, and what is known of their sequences."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, T, *sample), or (N, *sample) of single samples without an axis for sequences."""
        return self._samples.shape

    @property
    def is_sparse(self) -> bool:
        """True if samples are kept as non-zero elements."""
        return self._samples.rows is not None

    @property
    def mask(self) -> np.ndarray:
        """uint8 (N, T): 2 where a sequence begins, 1 at its other samples, 0 at padding.

        Raises:
            ArgumentError: it is made of an array alone, which does not say which of its axes counts steps.
        """
        if not self._samples.has_steps:
            reason = (
                f"an array of shape {self.shape} alone does not say which of its axes counts the steps of sequences"
            )
            raise ArgumentError(reason, "Value.create(input, data).mask")
        samples, begins = self._samples.steps()
        mask = np.where(samples, np.uint8(WITHIN), np.uint8(PADDING))
        mask[begins] = FIRST
        return mask

    def asarray(self) -> Any:
        """Return an array (N, T, *sample), padded with zeros. Sparse (N, dim) without sequences stays a CSR matrix."""
        return self._asarray()

    def _check_valid(self) -> None:
        """Raise an ArgumentError where the data were let go of."""
        if self._erased:
            message = "this Value has no data any more: those that forward gives end with its next call, or by erase"
            raise ArgumentError(message, "value.deep_clone() keeps them, as_numpy=True gives arrays")

    def _asarray(self) -> Any:
        self._check_valid()
        if self._samples.lengths is not None and len(set(self._samples.lengths.tolist())) > 1:
            warnings.warn("the array includes the padding of short sequences; see mask", RuntimeWarning, stacklevel=3)
        return self._content if self._samples.lengths is None else self._samples.padded()

    def as_csr(self) -> Any:
        """Sparse data as one CSR matrix (samples, dim), sequence after sequence; see `lengths`."""
        if not self.is_sparse:
            raise ArgumentError("the value is dense; use asarray()")
        return self._samples.rows

    def as_sequences(self, variable: Any = None) -> list[Any]:
        """Return one array (length, *sample), or CSR matrix (length, dim), for each sequence.

        Args:
            variable: the input whose sequences they are; needed where the value is made of an array alone, whose first
                axis counts the sequences otherwise.
        """
        self._check_valid()
        if variable is not None and (axes := axes_of(variable)).dynamic == 2:
            return samples_of_batch(self._samples.read(axes), axes.shape).sequences()
        return self._samples.sequences()

    def to_jax(self) -> Any:
        """Return a JAX array like `asarray()`; sparse data as a BCSR matrix like `as_csr()`."""
        from .frameworks import to_jax

        return to_jax(self._content)

    def to_torch(self) -> Any:
        """Return a PyTorch tensor like `asarray()`; sparse data as a CSR tensor like `as_csr()`."""
        from .frameworks import to_torch

        return to_torch(self._content)

    @property
    def _content(self) -> Any:
        return self._samples.rows if self._samples.array is None else self._samples.array


class Value(SampleViews):
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

    _read_only = False

    ONE_HOT_SKIP = NO_CLASS  # in place of a class: a sample of zeros

    def __init__(
        self,
        batch: Any,
        seq_starts: Any = None,
        device: Any = None,
        dtype: Any = None,
        sample_shape: tuple[int, ...] | None = None,
    ):
        del device
        self._held = samples_of(batch, dtype, sample_shape, seq_starts)

    @property
    def _samples(self) -> Samples:
        return self._held

    @classmethod
    def _of(cls, samples: Samples) -> Value:
        value = cls.__new__(cls)
        value._held = samples
        return value

    @classmethod
    def of_result(cls, found: Any, has_batch: bool) -> Value:
        """Return the values of a function, which know their axes.

        Args:
            found: a list of sequences, or an array.
            has_batch: whether the first axis of an array is the batch.
        """
        if is_list(found):
            return cls(found)
        return cls._of(samples_of_result(np.asarray(found), has_batch))

    @classmethod
    def of_rows(cls, rows: Any, sample_shape: tuple[int, ...]) -> Value:
        """Return a value of an array or a CSR matrix whose rows are a sequence each; data are not copied."""
        value = cls(rows, sample_shape=sample_shape)
        value._samples.form, value._samples.has_steps = ITEMS, value.is_sparse
        return value

    @classmethod
    def of_stream(cls, data: Any, layout: Layout, sample_shape: tuple[int, ...]) -> Value:
        """Return a stream of a `Minibatch`: dense (T, S, dim), or sparse CSR (T*S, dim). Single samples are not
        copied.
        """
        return cls._of(samples_of_stream(data, layout, sample_shape))

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
        del device
        return cls._of(one_hot_samples(batch, num_classes, dtype))

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
            A value of shape (n, steps, *sample); of an array for an input without a sequence axis (n, *sample), of a
            list for one (n, 1, *sample).

        Raises:
            ArgumentError: the data do not fit the input.
        """
        del device
        value = cls._of(_samples_for(sized(axes_of(var), data), data, seq_starts))
        value._read_only = bool(read_only)
        return value

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return self._samples.sample_shape

    @property
    def lengths(self) -> np.ndarray | None:
        """Samples of each sequence, int64[N]; None without an axis for them, or when all are T long."""
        return self._samples.lengths

    @property
    def begins(self) -> list[bool] | None:
        """For each sequence whether it begins here; None where nothing was said of it."""
        continued = self._samples.continued
        return None if continued is None else (~continued).tolist()

    @property
    def is_rows(self) -> bool:
        """True if it is an array, or a matrix, of which each row is a sample or a sequence: the input says which."""
        samples = self._samples
        return samples.lengths is None and samples.form in (ARRAY, ITEMS) and samples.continued is None

    def read(self, axes: InputAxes) -> Batch:
        """Return the sequences that this value is for an input.

        Raises:
            ArgumentError: the value does not fit the input.
        """
        self._check_valid()
        return self._samples.read(axes)

    @property
    def device(self) -> Device:
        """The CPU: data are in the memory of the process."""
        return CPU

    @property
    def is_read_only(self) -> bool:
        """True if its array must not be written to."""
        return self._read_only or (self._samples.array is not None and not self._samples.array.flags.writeable)

    @property
    def is_valid(self) -> bool:
        """True if it has data: False after `erase`."""
        return not self._erased

    @property
    def dtype(self) -> np.dtype:
        """The element type."""
        return self._content.dtype

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    @property
    def masked_count(self) -> int:
        """Number of padding elements in the mask."""
        return int((self.mask == PADDING).sum())

    @property
    def data(self) -> NDArrayView:
        """A view of the data, see `asarray`."""
        return NDArrayView.from_data(self.padded() if self.lengths is not None else self._asarray(), borrow=True)

    def deep_clone(self, read_only: bool = False) -> Value:
        """Return a copy with data of its own.

        Args:
            read_only: what `is_read_only` of the copy says.
        """
        clone = copy.copy(self)
        clone._held, clone._read_only = self._samples.cloned(), bool(read_only)
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
        self._erased = True
        self._held = self._held.without_data()

    def padded(self) -> np.ndarray:
        """Return the same as `asarray()`, always an array, and without a warning."""
        return self._samples.padded()


def _samples_for(axes: InputAxes, data: Any, seq_starts: list[bool] | None) -> Samples:
    """Return data for an input, see `Value.create`."""
    if isinstance(data, Value):
        batch = data.read(axes)
    else:
        batch = items_of(data, axes) if seq_starts is not None and is_dense(data) else batch_of(data, axes)
    samples = samples_of_batch(batch, axes.shape)
    # As in CNTK, each element of a list is a sequence, here of one step.
    has_steps = is_several(data) and samples.array is not None and seq_starts is None
    if axes.dynamic == 1 and not has_steps:
        samples.lengths, samples.form = None, ITEMS
        samples.array = None if samples.array is None else samples.array.reshape(-1, *axes.shape)
    elif axes.dynamic == 0 and samples.array is not None:
        samples.array, samples.form = samples.array.reshape(axes.shape), ARRAY
    if seq_starts is not None:
        samples.set_begins(seq_starts)
    return samples


class MinibatchData(SampleViews):
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
        """Return a stream of a minibatch; its `Value` is made when somebody looks at it."""
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
    def _samples(self) -> Samples:
        if self.data is None:
            raise DataError(
                "this worker has no data in this minibatch",
                hint="continue with the next one if num_samples is 0; others have data",
            )
        return self.data._samples


def axes_of(variable: Any) -> InputAxes:
    """Return the axes of an input: a `Function`, or anything else with a shape and perhaps dynamic axes."""
    name = getattr(variable, "name", "")
    label = f"input '{name}'" if name else "input"
    known = getattr(variable, "data_axes", None)
    if known is not None:
        return InputAxes(label, *known)
    if not hasattr(variable, "shape"):
        raise ArgumentError(f"a Value is made for an input, not for {type(variable).__name__}", "Value.create(x, data)")
    dynamic = getattr(variable, "dynamic_axes", None)
    return InputAxes(label, tuple(variable.shape), None if dynamic is None else len(dynamic))
