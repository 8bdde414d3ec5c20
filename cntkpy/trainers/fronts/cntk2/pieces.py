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


def split(data: object) -> tuple[Any, list[bool] | None]:
    """Data without what is said of the beginnings of its sequences, and that; None: nothing is said.

    Args:
        data: data, or a pair of data and truth values; data of an input, or of all inputs.
    """
    if isinstance(data, Value):
        return data, data.begins
    if not isinstance(data, tuple):
        return data, None
    pair: tuple[Any, ...] = data
    flags: Any = pair[1] if len(pair) == 2 else None
    if flags is None and len(pair) in (1, 2):
        return pair[0], None
    if isinstance(pair[0], Value | MinibatchData):
        kind = type(pair[0]).__name__
        message = f"truth values go with arrays and lists; a {kind} knows itself where its sequences begin"
        raise ArgumentError(message, "Value.create(input, data, seq_starts=[True, False])")
    several = isinstance(flags, list | tuple | np.ndarray)
    if not several or not all(isinstance(flag, bool | np.bool_) for flag in flags):
        raise ArgumentError(f"a pair of data has truth values after the data, not {flags!r}", HINT)
    return pair[0], [bool(flag) for flag in flags]


def same_beginnings(first: list[bool] | None, second: list[bool] | None) -> list[bool] | None:
    """Return the flags of the beginnings of sequences, of two inputs of a minibatch.

    Raises:
        ArgumentError: they differ.
    """
    if first is not None and second is not None and first != second:
        raise ArgumentError(
            f"one input has the truth values {first}, another {second}: sequences begin in all or none", HINT
        )
    return second if first is None else first


def check_beginnings(begins: list[bool] | None, layouts: Mapping[str, Layout]) -> None:
    """Check that there is a truth value for each sequence.

    Raises:
        ArgumentError: there are more, or fewer.
    """
    count = next(iter(layouts.values())).num_sequences
    if begins is not None and len(begins) != count:
        raise ArgumentError(f"{len(begins)} truth values for {count} sequences", HINT)


class Pieces:
    """Keeps the positions of the sequences of the last minibatch."""

    def __init__(self) -> None:
        self._steps: list[int] | None = None
        """The steps of each sequence so far; 0: it cannot continue."""

    @property
    def state(self) -> list[int] | None:
        """Return the position, as checkpoints keep it."""
        return self._steps

    @state.setter
    def state(self, state: list[int] | None) -> None:
        self._steps = state

    def forget(self) -> None:
        """Let the next sequences resume from nothing."""
        self._steps = None

    def place(self, layouts: Mapping[str, Layout], begins: list[bool]) -> dict[str, Layout]:
        """Return the layout of pieces, the same one for all inputs.

        Args:
            layouts: of the inputs, each sequence from its beginning.
            begins: for each sequence whether it begins here.

        Raises:
            ArgumentError: inputs have pieces of other lengths, or there is nothing to resume from.
        """
        (first, whole), *following = layouts.items()
        for name, layout in following:
            if not np.array_equal(layout.sequences, whole.sequences):
                message = f"the pieces of sequences have other lengths in '{name}' than in '{first}'"
                raise ArgumentError(message, "all inputs of sequences that continue are cut alike")
        steps = self._steps or []
        if not all(begins) and len(steps) != len(begins):
            message = f"{len(begins)} sequences cannot resume from a minibatch of {len(steps)}"
            raise ArgumentError(message, "give as many sequences in every minibatch; True for those that begin")
        rows = np.array(whole.sequences)
        for number, begin in enumerate(begins):
            if not begin and not steps[number]:
                message = f"sequence {number} cannot continue: it was shorter than others in the minibatch before"
                raise ArgumentError(message, "only the last piece of a sequence may be shorter")
            rows[number, 2] = 0 if begin else -steps[number]
        ends = rows[:, 3]
        self._steps = np.where(ends == whole.T, ends - rows[:, 2], 0).tolist()
        return dict.fromkeys(layouts, Layout(whole.T, whole.S, rows))
