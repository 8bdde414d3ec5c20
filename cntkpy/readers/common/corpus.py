"""Sequence keys: numbers as they stand in the data, or names turned into numbers for the whole reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cntkpy.readers.errors import DataError

_LEADING = re.compile(r"[ \t]*([0-9]+)")
_DIGITS = re.compile("[0-9]{1,20}")


class Corpus:
    """Interpretation of keys; one for all deserializers of a reader, which are joined by the numbers it gives.

    numeric: keys are unsigned numbers. Else names, numbered 0, 1, 2, ... in order of first appearance, or, if hashed,
    known by a hash of 64 bits alone.
    """

    def __init__(self, numeric: bool = True, hashed: bool = False):
        self.numeric, self.hashed = numeric, hashed
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Return the numbers of keys given as text, uint64[n].

        Raises:
            DataError: keys are numbers, but one of these is not, or two different ones are the same number.
        """
        if self.numeric:
            numbers = np.array([_number(name) for name in names], np.uint64)
            check_distinct(padded_keys(names), numbers)
            return numbers
        if self.hashed:
            return np.array([hash_of(name) for name in names], np.uint64)
        known, out = self._numbers, np.empty(len(names), np.uint64)
        for i, name in enumerate(names):
            number = known.setdefault(name, len(known))
            if number == len(self._names):
                self._names.append(name)
            out[i] = number
        return out

    def name(self, number: int) -> int | str:
        """Return a key as it is in the data; of a hashed one only the hash is known."""
        if self.numeric:
            return number
        return f"<Unknown, hash {number}>" if self.hashed else self._names[number]


def padded_keys(names: Iterable[str]) -> Counter[str]:
    """Return the keys that are written otherwise than their number is, as `007` and `7a`, with their counts."""
    return Counter(name for name in names if not (name.isdecimal() and (name[0] != "0" or len(name) == 1)))


def _leading_number(name: str) -> int:
    """Return the number that a key begins with."""
    digits = _LEADING.match(name)
    assert digits is not None, name
    return int(digits[1])


def same_number(padded: Mapping[str, int], numbers: np.ndarray) -> tuple[str, str] | None:
    """Return two different keys that are the same number, `007` and `7`; None if there are none.

    Args:
        padded: what `padded_keys` returns of the keys.
        numbers: the numbers of all keys, uint64[n].
    """
    if not padded:
        return None
    values, counts = np.unique(numbers, return_counts=True)
    total = dict(zip(values.tolist(), counts.tolist(), strict=True))
    for name, count in padded.items():
        if total[number := _leading_number(name)] > count:
            same = (key for key in padded if _leading_number(key) == number and key != name)
            return name, next(same, str(number))
    return None


def check_distinct(padded: Mapping[str, int], numbers: np.ndarray) -> None:
    """Refuse different keys that are the same number; the arguments of `same_number`.

    Raises:
        DataError: it names two of them.
    """
    if (names := same_number(padded, numbers)) is not None:
        raise DataError(
            f"the sequence keys '{names[0]}' and '{names[1]}' are the same number",
            hint="write useNumericSequenceKeys=false in the reader: then keys are texts",
        )


def _number(name: str) -> int:
    number = int(name) if _DIGITS.fullmatch(name) else 2**64
    if number >= 2**64:
        raise DataError(
            f"Invalid numeric sequence id '{name}'",
            hint="leave useNumericSequenceKeys=true out: then ids may be any text",
        )
    return number


def repeated(keys: np.ndarray) -> tuple[int, int] | None:
    """Return the numbers of two sequences of the same key, the later one first; None if there are none.

    Args:
        keys: those of all sequences, uint64[n].
    """
    if bool((keys[1:] > keys[:-1]).all()):
        return None
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if not len(same):
        return None
    first = same[np.argmin(order[same + 1])]
    return int(order[first + 1]), int(order[first])


def hash_of(name: str) -> int:
    """CNTK's hash of a key: h = 33 h xor c, from 5381, modulo 2^64.

    >>> hash_of("100"), hash_of("not")
    (193358996, 193419184)
    """
    h = 5381
    for byte in name.encode("utf-8"):
        h = (33 * h & 2**64 - 1) ^ byte
    return h
