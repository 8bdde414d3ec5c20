"""Sequences that a deserializer could not make sense of are left out and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from readers.errors import DataError

from .pack import Part


class InvalidSequences:
    """Takes sequences flagged invalid out of minibatches; more than `maximum` different ones are an error.

    A minibatch of which nothing remains is empty; the budget is looked at when there are data again.
    keys: gives the keys of sequences, for messages.
    """

    def __init__(self, maximum: int, keys: Callable[[np.ndarray], list[int | str]]):
        self.maximum, self._keys = maximum, keys
        self._seen: dict[int, None] = {}

    def concerns(self, parts: Sequence[Part]) -> bool:
        """Whether `without` has anything to do."""
        return bool(self._seen) or any(part.chunk.invalid is not None for part in parts)

    def without(
        self, sequences: np.ndarray, parts: Sequence[Part], failed: np.ndarray | None = None
    ) -> tuple[np.ndarray, Sequence[Part]]:
        """The valid sequences (numbers, parts) of a minibatch. failed: bool[n], sequences known to be invalid."""
        if failed is None and not self.concerns(parts):
            return sequences, parts
        good = np.ones(len(sequences), bool)
        for part in parts:
            if part.chunk.invalid is not None:
                good[part.where] = ~part.chunk.invalid[part.which]
        if failed is not None:
            good &= ~failed
        self._seen.update(dict.fromkeys(sequences[~good].tolist()))
        if good.any() and len(self._seen) > self.maximum:
            last = np.array(list(self._seen)[-5:], np.int64)
            keys = ", ".join(str(key) for key in self._keys(last))
            raise DataError(
                f"Number of invalid sequences '{len(self._seen)}' in the input exceeded the specified maximum number "
                f"'{self.maximum}' (the last ones: {keys}).",
                hint="mend the data, or raise maxErrors of the reader to leave such sequences out",
            )
        if good.all():
            return sequences, parts
        place = np.cumsum(good) - 1
        kept = []
        for part in parts:
            keep = good[part.where]
            if keep.any():
                kept.append(Part(part.chunk, part.which[keep], place[part.where[keep]]))
        return sequences[good], kept
