"""Which of several names is meant by one that is spelled wrongly."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable

SAME = 8
"""So often the same letter has a bit."""


@functools.lru_cache(1 << 16)
def letters(name: str) -> int:
    """The letters of a name without case and order: the bits of `a & b` are the letters that both have.

    Beyond `SAME` of a letter there are no bits.
    """
    bag = 0
    for char in name.lower():
        at = (ord(char) & 63) * SAME
        while bag >> at & 1 and at % SAME < SAME - 1:
            at += 1
        bag |= 1 << at
    return bag


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was most likely meant to be, or None. Letter case does not count."""
    spelled = {candidate.lower(): candidate for candidate in candidates}
    name = name.lower()
    bag = letters(name)
    without_bit = len(name) - bag.bit_count()
    alike = [
        one for one in spelled if 2 * ((bag & letters(one)).bit_count() + without_bit) >= 0.6 * (len(name) + len(one))
    ]
    found = difflib.get_close_matches(name, alike, n=1, cutoff=0.6)
    return spelled[found[0]] if found else None
