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
    return _nearest(name, tuple(candidates))


@functools.lru_cache(32)
def _nearest(name: str, candidates: tuple[str, ...]) -> str | None:
    spelled = _spelled(candidates)
    name = name.lower()
    bag = letters(name)
    needed = 0.3 * len(name) - (len(name) - bag.bit_count())  # a letter without a bit may be common to both
    alike = [one for one, (_, other, least) in spelled.items() if (bag & other).bit_count() >= least + needed]
    found = difflib.get_close_matches(name, alike, n=1, cutoff=0.6) if alike else []
    return spelled[found[0]][0] if found else None


@functools.lru_cache(8)
def _spelled(candidates: tuple[str, ...]) -> dict[str, tuple[str, int, float]]:
    """Candidates in lower case, with their own case, their letters, and the least number of those to be alike."""
    lower = ((one.lower(), one) for one in candidates)
    return {key: (one, letters(key), 0.3 * len(key) - 1e-9) for key, one in lower}
