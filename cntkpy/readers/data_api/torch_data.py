"""A source as a data set of PyTorch, which is imported when one is made."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from .arrays import PlainSource, arrays_of
from .frameworks import framework_module


class Share(NamedTuple):
    """Share of a source: samples of a minibatch of all partitions together, their number, and which this is."""

    minibatch_size: int
    partitions: int
    partition: int


def torch_dataset(source: PlainSource, share: Share) -> Any:
    """Return the minibatches of a source for a `DataLoader` with `batch_size=None`; see
    `MinibatchSource.torch_dataset`.
    """
    return _dataset_class()(pickle.dumps(source), share, source)


def _opened(pickled: bytes, share: Share) -> Any:
    """Return the data set in another process."""
    return _dataset_class()(pickled, share)


@cache
def _dataset_class() -> Any:
    data = framework_module("torch.utils.data", "pip install torch")

    class TorchDataset(data.IterableDataset):
        """Minibatches as dictionaries of tensors."""

        def __init__(self, pickled: bytes, share: Share, source: PlainSource | None = None) -> None:
            self._pickled, self._share, self._source = pickled, share, source

        def __reduce__(self) -> Any:
            return _opened, (self._pickled, self._share)

        def __iter__(self) -> Iterator[dict[str, Any]]:
            size, partitions, index = self._share
            worker = data.get_worker_info()
            if worker is None:
                self._source = self._source or pickle.loads(self._pickled)
                return arrays_of(self._source, size, "torch", partitions, index)
            source = pickle.loads(self._pickled)  # a forked worker has no threads that read ahead for the first one
            workers = worker.num_workers
            return arrays_of(source, size, "torch", partitions * workers, index * workers + worker.id)

    return TorchDataset
