"""The labels of a data set: names, their ids, and the file that keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from cntkpy.cntk_config.base.files import LIST_LIMIT
from cntkpy.cntk_config.base.writing import atomic_write, shown
from cntkpy.readers.common.label_lines import label_lines
from cntkpy.readers.common.packed import read_data
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def in_order(names: Iterable[str]) -> list[str]:
    """Names of classes in the order of their numbers: by value if all are whole numbers, else by alphabet."""
    several = list(names)
    if all(_WHOLE.fullmatch(name) for name in several):
        return sorted(several, key=lambda name: (int(name), name))
    return sorted(several)


class LabelMap:
    """Labels with ids 0, 1, 2, ..., found by their bytes. The arrays are what the kernel looks things up in."""

    def __init__(self, labels: Sequence[bytes] = ()):
        self.ids: dict[bytes, int] = {label: number for number, label in enumerate(labels)}
        """They are all different."""
        self.names = np.frombuffer(bytearray(b"".join(labels) + bytes(1024)), np.uint8)
        self.starts = np.append(starts_of(np.fromiter(map(len, labels), np.int64)), np.zeros(64, np.int64))
        self._make_table()

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, label: bytes) -> bool:
        return label in self.ids

    def mapping(self) -> dict[int, str]:
        """Label of every id."""
        return {number: label.decode("utf-8", "replace") for label, number in self.ids.items()}

    def add(self, label: bytes) -> int:
        """Give a new label the next id."""
        number = len(self.ids)
        self.ids[label] = number
        begin = int(self.starts[number])
        end = begin + len(label)
        if end > len(self.names) - _WORD:
            self.names = np.concatenate([self.names, np.zeros(end + _WORD, np.uint8)])
        if number + 2 > len(self.starts):
            self.starts = np.concatenate([self.starts, np.empty(len(self.starts), np.int64)])
        self.names[begin:end] = np.frombuffer(label, np.uint8)
        self.starts[number + 1] = end
        if 2 * len(self.ids) > len(self.table):
            self._make_table()
        else:
            value = hash_of(label)
            place = _place(value, len(self.table))
            while self.table[place, 1] >= 0:
                place = (place + 1) & len(self.table) - 1
            self.table[place].view(np.uint64)[0] = value
            self.table[place, 1] = _LINE * number + min(len(label), _WORD + 1)
        return number

    def _make_table(self) -> None:
        """Make a table that is a third full at most; `add` makes a new one when half of it is full.

        Its lines are the hash of a label, and 16 times its id plus its bytes, which count as nine at most; -1 if empty.
        """
        count, size = len(self.ids), 256
        while 3 * (count + 1) > size:
            size *= 2
        self.table = np.full((size, 2), -1, np.int64)
        starts, lines = self.starts[: count + 1], np.arange(count)
        hashes = _hashes(self.names, starts)
        entries = _LINE * lines + np.minimum(np.diff(starts), _WORD + 1)
        places = (hashes * np.uint64(_FACTOR) >> np.uint64(65 - size.bit_length())).astype(np.int64)
        while len(lines):  # those whose place is taken go to the next one, all at once
            free = self.table[places, 1] < 0
            self.table[places[free], 1] = entries[lines[free]]
            stays = self.table[places, 1] == entries[lines]
            self.table[places[stays], 0] = hashes[lines[stays]].view(np.int64)
            lines, places = lines[~stays], (places[~stays] + 1) & size - 1

    def save(self, path: str) -> None:
        """Write the labels, one per line in order of their ids."""
        for label in self.ids:
            if label.startswith(b"#"):
                raise DataError(
                    f"The label '{label.decode('utf-8', 'replace')}' cannot stand in the label mapping file {path}.",
                    path=path,
                    hint="a line that begins with # is a comment there; use other names for the labels in the data",
                )
        try:
            with atomic_write(path) as file:
                file.writelines(b" " + label + b" \n" for label in self.ids)  # the blanks are CNTK's
        except OSError as error:
            raise DataError(
                f"The label mapping file {shown(path)} cannot be written: {error.strerror or error}", path=path
            ) from None


def ids_in(names: np.ndarray, starts: np.ndarray, table: np.ndarray) -> dict[bytes, int]:
    """Return the ids of a `LabelMap` by label, out of the arrays that kernels look things up in."""
    text, bounds = names.tobytes(), starts[: int((table[:, 1] >= 0).sum()) + 1].tolist()
    return {text[a:b]: number for number, (a, b) in enumerate(pairwise(bounds))}


_FACTOR, _WORD, _LINE = 0x9E3779B97F4A7C15, 8, 16


def hash_of(label: bytes) -> int:
    """Return the hash of `label_kernels.hash_of`: products of eight bytes after the other, then of the last eight."""
    value = 0
    for begin in (*range(0, len(label) - _WORD, _WORD), max(len(label) - _WORD, 0)):
        value = (value ^ int.from_bytes(label[begin : begin + _WORD], "little")) * _FACTOR & 2**64 - 1
        value ^= value >> 32
    return value


def _place(value: int, size: int) -> int:
    """Return the line of a table at which the search for a hash begins."""
    return (value * _FACTOR & 2**64 - 1) >> 65 - size.bit_length()


def _hashes(names: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the hashes of labels, uint64[n]: names[starts[i]:starts[i+1]] is the one with number i."""
    lengths, ends = np.diff(starts), starts[1:]
    hashes = np.zeros(len(lengths), np.uint64)
    at_each_byte = np.lib.stride_tricks.sliding_window_view(names, _WORD)

    def mix(which: np.ndarray, begins: np.ndarray, used: np.ndarray) -> None:
        words = at_each_byte[begins].view("<u8")[:, 0].astype(np.uint64)
        words &= np.uint64(2**64 - 1) >> np.uint64(8) * (_WORD - used).astype(np.uint64)
        values = (hashes[which] ^ words) * np.uint64(_FACTOR)
        hashes[which] = values ^ values >> np.uint64(32)

    for index in range(0, int(min(lengths.max(initial=0), _LONG)) - _WORD, _WORD):
        longer = np.flatnonzero(lengths > index + _WORD)
        mix(longer, starts[longer] + index, np.full(len(longer), _WORD))
    some = np.flatnonzero(lengths)
    used = np.minimum(lengths[some], _WORD)
    mix(some, ends[some] - used, used)
    for number in np.flatnonzero(lengths > _LONG).tolist():
        hashes[number] = hash_of(names[starts[number] : starts[number + 1]].tobytes())
    return hashes


_LONG = 100
"""Longer labels are few, and their bytes are gone through one by one."""


def load_labels(path: str) -> LabelMap:
    """Read a label mapping file: a label per line, the first has id 0; empty lines and lines with # are skipped."""
    try:
        content = read_data(path, LIST_LIMIT)
    except FileNotFoundError:
        raise DataError(
            f"The label mapping file {path} does not exist.",
            path=path,
            hint="run a command with action=createLabelMap first; it makes the file from the data",
        ) from None
    except OSError as error:
        raise DataError(f"The label mapping file {path} cannot be read: {error.strerror or error}", path=path) from None
    labels = LabelMap()
    places: dict[bytes, int] = {}
    for number, label in label_lines(content):
        if label in places:
            raise DataError(
                f"The label '{label.decode('utf-8', 'replace')}' occurs twice in the label mapping file "
                f"{path} (line {places[label]} and line {number}).",
                path=path,
                line=number,
                hint="each label has one id, the number of its line",
            )
        places[label] = number
        labels.add(label)
    if not len(labels):
        raise DataError(f"The label mapping file {path} is empty.", path=path, hint="it holds one label per line")
    return labels
