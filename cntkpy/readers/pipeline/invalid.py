"""Sequences that a deserializer could not make sense of are left out, counted, and reported once per sweep."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.errors import DataError

log = logging.getLogger("cntkpy.readers")
_MAX_KEYS_SHOWN = 3


class InvalidSequences:
    """Takes sequences flagged invalid out of minibatches; more than `maximum` different ones are an error.

    Damaged sequences that cannot be used are taken out too, which the deserializer has counted. A minibatch of which
    nothing remains is empty; the budget is looked at when there are data again.
    keys: gives the keys of sequences, for messages. total: number of sequences of a sweep.
    """

    def __init__(self, maximum: int, keys: Callable[[np.ndarray], list[int | str]], total: int = 0):
        self.maximum, self._keys, self._total = maximum, keys, total
        self._seen: dict[int, None] = {}
        self._of_sweep: dict[int, None] = {}

    def concerns(self, parts: Sequence[Part]) -> bool:
        """Return whether `without` has anything to do."""
        flags = (flag for part in parts for flag in (part.chunk.invalid, part.chunk.damaged))
        return bool(self._seen or self._of_sweep) or any(flag is not None for flag in flags)

    def without(
        self,
        sequences: np.ndarray,
        parts: Sequence[Part],
        failed: np.ndarray | None = None,
        *,
        end_of_sweep: bool = False,
    ) -> tuple[np.ndarray, Sequence[Part]]:
        """Return the valid sequences of a minibatch.

        Args:
            sequences: their numbers, int64[n].
            parts: their data.
            failed: bool[n], sequences known to be invalid.
            end_of_sweep: whether a sweep ends with the minibatch; then a line logs what was left out in it.

        Returns:
            The numbers and the parts of what is left.

        Raises:
            DataError: more than `maximum` sequences are invalid, or more than half of a sweep was left out.
        """
        if failed is None and not self.concerns(parts):
            return sequences, parts
        good = np.ones(len(sequences), bool)
        for part in parts:
            if part.chunk.invalid is not None:
                good[part.where] = ~part.chunk.invalid[part.which]
        if failed is not None:
            good &= ~failed
        usable = np.ones(len(sequences), bool)
        for part in parts:
            usable[part.where] = ~part.chunk.unusable(part.which)
        self._seen.update(dict.fromkeys(sequences[~good].tolist()))
        good &= usable
        self._of_sweep.update(dict.fromkeys(sequences[~good].tolist()))
        if good.any() and len(self._seen) > self.maximum:
            last = np.array(list(self._seen)[-5:], np.int64)
            keys = ", ".join(str(key) for key in self._keys(last))
            raise DataError(
                f"Number of invalid sequences '{len(self._seen)}' in the input exceeded the specified maximum number "
                f"'{self.maximum}' (the last ones: {keys}).",
                hint="mend the data, or raise maxErrors of the reader to leave such sequences out",
            )
        if end_of_sweep:
            self._tell()
        if good.all():
            return sequences, parts
        place = np.cumsum(good) - 1
        kept: list[Part] = []
        for part in parts:
            keep = good[part.where]
            if keep.any():
                kept.append(Part(part.chunk, part.which[keep], place[part.where[keep]]))
        return sequences[good], kept

    def _tell(self) -> None:
        """Warn of the sequences that this sweep left out."""
        left_out = list(self._of_sweep)
        if not left_out:
            return
        some = ", ".join(str(key) for key in self._keys(np.array(left_out[:_MAX_KEYS_SHOWN], np.int64)))
        if 2 * len(left_out) > self._total > 0:
            raise DataError(
                f"{len(left_out)} of {self._total} sequences are malformed and were left out, the first: {some}.",
                hint="mend the data: of a sweep, at most half of the sequences may be left out",
            )  # once more where the minibatch is asked for again
        self._of_sweep = {}
        log.warning(
            "WARNING: %d of %d sequences are malformed and were left out of this sweep, the first: %s.",
            len(left_out),
            self._total,
            some,
        )
