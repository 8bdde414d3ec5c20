"""Which of several names is meant by one that is spelled wrongly."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable

MAX_REPEATS = 8
"""So often the same letter has a bit."""


MAX_NAME_LENGTH = 300
"""Names of more characters are like none: to compare two takes time in proportion to the product of their lengths."""


@functools.lru_cache(1 << 16)
def letter_bits(name: str) -> int:
    """The letter_bits of a name without case and order: the bits of `a & b` are the letter_bits that both have.

    Beyond `MAX_REPEATS` of a letter there are no bits.
    """
    bag = 0
    for char in name.lower():
        position = (ord(char) & 63) * MAX_REPEATS
        while bag >> position & 1 and position % MAX_REPEATS < MAX_REPEATS - 1:
            position += 1
        bag |= 1 << position
    return bag


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The candidate that `name` was most likely meant to be, or None. Letter case does not count.

    Args:
        name: what is written.
        candidates: what may be meant.
        cutoff: how alike they have to be, 0 to 1.
    """
    return _nearest(name, tuple(candidates), cutoff) if len(name) <= MAX_NAME_LENGTH else None


@functools.lru_cache(32)
def _nearest(name: str, candidates: tuple[str, ...], cutoff: float) -> str | None:
    spelled = _spelled(candidates)
    name = name.lower()
    bag = letter_bits(name)
    without_bit = len(name) - bag.bit_count()  # such a letter may be common to both
    half = cutoff / 2
    alike = [
        key
        for key, (_, other_value) in spelled.items()
        if (bag & other_value).bit_count() + without_bit >= half * (len(name) + len(key)) - 1e-9
    ]
    close_matches = difflib.get_close_matches(name, alike, n=1, cutoff=cutoff) if alike else []
    return spelled[close_matches[0]][0] if close_matches else None


@functools.lru_cache(8)
def _spelled(candidates: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """Candidates in lower case, with their own case and their letter_bits."""
    return {candidate.lower(): (candidate, letter_bits(candidate)) for candidate in candidates}
