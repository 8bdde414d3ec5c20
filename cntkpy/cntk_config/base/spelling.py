"""Which of several names is meant by one that is spelled wrongly."""

from __future__ import annotations

import functools
from collections.abc import Iterable

MAX_EDITS = 3 / 7
"""Most edits between two near names, as a fraction of the length of the longer name."""
MIN_PART = 0.5
"""Least length of a near name that is part of another name, as a fraction of the other's length."""
TRIED = 3
"""Candidates, the most similar ones, whose edit distance is computed."""
MAX_REPEATS = 8
"""So often the same letter has a bit."""


MAX_NAME_LENGTH = 300
"""Names of more characters are like none: to compare two takes time in proportion to the product of their lengths."""


@functools.lru_cache(1 << 16)
def letter_bits(name: str) -> int:
    """Return the letter_bits of a name without case and order: the bits of `a & b` are the letter_bits that both have.

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
    """Return the candidate that `name` was most likely meant to be, or None. Letter case does not count.

    Args:
        name: what is written.
        candidates: what may be meant.
        cutoff: how alike they have to be, 0 to 1.
    """
    return _nearest(name, tuple(candidates), cutoff) if len(name) <= MAX_NAME_LENGTH else None


def nearest_file(name: str, candidates: Iterable[str], cutoff: float = 0.7) -> str | None:
    """Return the name of a file that is most likely meant; an ending that all files have makes none of them near.

    Args:
        name: The name of a file or folder, without its folder.
        candidates: The names that there are.
        cutoff: See `nearest`.
    """
    stem = name.rpartition(".")[0] or name
    alike = [
        candidate
        for candidate in candidates
        if candidate != name and nearest(stem, [candidate.rpartition(".")[0] or candidate]) is not None
    ]
    return nearest(name, alike, cutoff)


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
    import difflib  # late: texts without mistakes need none of it

    close_matches = difflib.get_close_matches(name, alike, n=TRIED, cutoff=cutoff) if alike else []
    return next((spelled[key][0] for key in close_matches if _is_near(name, key)), None)


def _is_near(name: str, key: str) -> bool:
    """Return True if one name contains the other, or their edit distance is small (U8).

    Anagrams such as `labelDim` and `Kaldicmd` are not near. Neither is a short name inside a long one, such as `Sin` in
    `missing`.
    """
    shortest, longest = sorted((len(name), len(key)))
    is_part = (name in key or key in name) and shortest >= MIN_PART * longest
    return is_part or edits(name, key) <= max(1.0, MAX_EDITS * longest)


def edits(name: str, key: str) -> int:
    """Return the number of letters to insert, remove, replace or exchange with their neighbour.

    Args:
        name: One name.
        key: The other one.
    """
    earlier: list[int] = []
    previous = list(range(len(key) + 1))
    for row, letter in enumerate(name, 1):
        current = [row]
        for column, sign in enumerate(key, 1):
            cost = min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (letter != sign))
            if row > 1 and column > 1 and letter == key[column - 2] and name[row - 2] == sign:
                cost = min(cost, earlier[column - 2] + 1)
            current.append(cost)
        earlier, previous = previous, current
    return previous[-1]


@functools.lru_cache(8)
def _spelled(candidates: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """Candidates in lower case, with their own case and their letter_bits."""
    return {candidate.lower(): (candidate, letter_bits(candidate)) for candidate in candidates}
