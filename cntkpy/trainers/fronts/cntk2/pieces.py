"""Sequences of a program that resume from one minibatch to the next, in the same slot."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cntkpy.readers import MinibatchData, Value
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Layout

HINT = "(data, [True, False]): for each sequence whether it begins here, else it resumes from the minibatch before"


def split(given: Any) -> tuple[Any, list[bool] | None]:
    """Data without what is said of the beginnings of its sequences, and that; None: nothing is said.

    Args:
        given: data, or a pair of data and truth values; data of an input, or of all inputs.
    """
    if isinstance(given, Value):
        return given, given.begins
    if not isinstance(given, tuple):
        return given, None
    pair: tuple[Any, ...] = given
    flags: Any = pair[1] if len(pair) == 2 else None
    if flags is None and len(pair) in (1, 2):
        return pair[0], None
    if isinstance(pair[0], Value | MinibatchData):
        what = type(pair[0]).__name__
        message = f"truth values go with arrays and lists; a {what} knows itself where its sequences begin"
        raise ArgumentError(message, "Value.create(input, data, seq_starts=[True, False])")
    several = isinstance(flags, list | tuple | np.ndarray)
    if not several or not all(isinstance(one, bool | np.bool_) for one in flags):
        raise ArgumentError(f"a pair of data has truth values after the data, not {flags!r}", HINT)
    return pair[0], [bool(one) for one in flags]


def same_beginnings(one: list[bool] | None, other: list[bool] | None) -> list[bool] | None:
    """What is said of the beginnings of sequences, of two inputs of a minibatch.

    Raises:
        ArgumentError: they differ.
    """
    if one is not None and other is not None and one != other:
        raise ArgumentError(
            f"one input has the truth values {one}, another {other}: sequences begin in all or none", HINT
        )
    return other if one is None else one


def check_beginnings(begins: list[bool] | None, layouts: Mapping[str, Layout]) -> None:
    """Whether there is a truth value for each sequence.

    Raises:
        ArgumentError: there are more, or fewer.
    """
    count = next(iter(layouts.values())).num_sequences
    if begins is not None and len(begins) != count:
        raise ArgumentError(f"{len(begins)} truth values for {count} sequences", HINT)


class Pieces:
    """Knows how far the sequences of the last minibatch have come."""

    def __init__(self) -> None:
        self._before: list[int] | None = None
        """The steps of each sequence so far; 0: it cannot continue."""

    @property
    def state(self) -> list[int] | None:
        """What a checkpoint keeps."""
        return self._before

    @state.setter
    def state(self, state: list[int] | None) -> None:
        self._before = state

    def forget(self) -> None:
        """What comes next resumes from nothing."""
        self._before = None

    def place(self, layouts: Mapping[str, Layout], begins: list[bool]) -> dict[str, Layout]:
        """The layout of pieces, the same one for all inputs.

        Args:
            layouts: of the inputs, each sequence from its beginning.
            begins: for each sequence whether it begins here.

        Raises:
            ArgumentError: inputs have pieces of other lengths, or there is nothing to resume from.
        """
        (first, whole), *others = layouts.items()
        for name, other in others:
            if not np.array_equal(other.sequences, whole.sequences):
                message = f"the pieces of sequences have other lengths in '{name}' than in '{first}'"
                raise ArgumentError(message, "all inputs of sequences that continue are cut alike")
        before = self._before or []
        if not all(begins) and len(before) != len(begins):
            message = f"{len(begins)} sequences cannot resume from a minibatch of {len(before)}"
            raise ArgumentError(message, "give as many sequences in every minibatch; True for those that begin")
        rows = np.array(whole.sequences)
        for at, begin in enumerate(begins):
            if not begin and not before[at]:
                message = f"sequence {at} cannot continue: it was shorter than others in the minibatch before"
                raise ArgumentError(message, "only the last piece of a sequence may be shorter")
            rows[at, 2] = 0 if begin else -before[at]
        ends = rows[:, 3]
        self._before = np.where(ends == whole.T, ends - rows[:, 2], 0).tolist()
        return dict.fromkeys(layouts, Layout(whole.T, whole.S, rows))
