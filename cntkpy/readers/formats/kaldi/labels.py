"""Labels out of Kaldi tables: alignments (vectors of integers) and posteriors with one label of weight 1 a frame."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.utterances.lists import picked

from .archive import ALL, Table, open_table

LARGEST = 65534
"""The largest class."""
_BYTES_TOGETHER = 8 << 20
_ONE_LIST = re.compile(rb"[ \t]*\[(?:[ \t]+[0-9]+)+[ \t]*\][ \t\r]*")


@dataclass(eq=False)
class Classes:
    """Classes of the frames of utterances.

    classes: int32, utterance after utterance; lengths: int64[U]; places: where each utterance stands, for messages.
    """

    keys: list[str]
    lengths: np.ndarray
    classes: np.ndarray
    table: Table
    which: np.ndarray

    def place(self, utterance: int) -> str:
        """Return the place of an utterance."""
        return self.table.place(int(self.which[utterance]))


def read_classes(
    specifier: str, where: str = "", wanted: Callable[[str], bool] | None = None, name: str = "labels"
) -> Classes:
    """Read a table of labels.

    Args:
        specifier: an rspecifier.
        where: what an error about the specifier begins with.
        wanted: which keys are kept; None: all.
        name: what the file is called in the command that an error shows in place of a pipe.

    Returns:
        The classes of all frames.

    Raises:
        DataError: a file is damaged, a key occurs twice, a frame has no label or several, a class is too large.
    """
    from . import object_kernels as k
    from . import text_kernels as text

    table = open_table(specifier, k.UNDECIDED, where, name)
    table.find(table.keys)  # no key twice
    if len(ranged := np.flatnonzero((table.ranges != ALL).any(axis=1))):
        raise DataError(
            f"{table.place(int(ranged[0]))}: labels have no ranges, in Kaldi neither.",
            path=table.path,
            hint="leave the brackets out; frames without labels cannot be used",
        )
    which = np.array([i for i, key in enumerate(table.keys) if wanted is None or wanted(key)], np.int64)
    _decide(table, which)
    table.require(which)
    out, lengths = np.empty(text.room_for_labels(table.entries, which), np.int32), np.zeros(len(which), np.int64)
    position, parts = 0, np.append(np.flatnonzero(np.diff(table.file[which], prepend=-1)), len(which))
    for first, last in pairwise(_cut(table, which, parts)):  # a file at a time, in order
        file, state = table.files[int(table.file[which[first]])], np.zeros(3, np.int64)
        data, places = _content(file, table, which[first:last])
        code = text.take_labels(
            data, places, table.entries, which[first:last], out, position, lengths[first:last], state
        )
        if code != text.DONE:
            i, frame, byte = state.tolist()
            number = int(which[first + i])
            begin, end = table.entries[number, [k.DATA, k.END]].tolist()
            content = file.bytes(begin, min(end - begin, 1 << 20)) if table.entries[number, k.KIND] == k.LINE else b""
            raise _label_error(code, file.path, byte, frame, table.keys[number], content)
        position = int(state[0])
    out = out[:position]
    if len(out) and int(out.max()) > LARGEST:
        bad = int(np.argmax(out > LARGEST))
        u = int(np.searchsorted(np.cumsum(lengths), bad, side="right"))
        frame = bad - int(lengths[:u].sum())
        raise DataError(
            f"{table.place(int(which[u]))}: the label {out[bad]} of {table.keys[int(which[u])]}, frame {frame}, is "
            f"larger than {LARGEST}.",
            path=table.path,
            hint="ali-to-pdf makes pdf ids of transition ids",
        )
    return Classes(picked(table.keys, which), lengths, out, table, which)


def _cut(table: Table, which: np.ndarray, parts: np.ndarray) -> list[int]:
    """Return the indices that divide these entries: at `parts`, and after every `_BYTES_TOGETHER` bytes."""
    from . import object_kernels as k

    groups = np.cumsum(table.entries[which, k.END] - table.entries[which, k.DATA]) // _BYTES_TOGETHER
    return np.union1d(parts, np.flatnonzero(np.diff(groups)) + 1).tolist()


def _content(file: FileBytes, table: Table, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of these entries, one after the other, and where each begins."""
    from . import object_kernels as k

    begins = table.entries[which, k.DATA]
    starts = starts_of(table.entries[which, k.END] - begins)
    data = np.empty(int(starts[-1]), np.uint8)
    file.pieces(data, begins, np.diff(starts), starts[:-1])
    return data, starts[:-1]


def _decide(table: Table, which: np.ndarray) -> None:
    """Return whether a table that a script lists has integers or posteriors: by its first entry that has frames."""
    from . import object_kernels as k

    if table.lines is None or table.expect != k.UNDECIDED:
        return
    for number in which.tolist():
        table.require(np.array([number]))
        row = table.entries[number]
        if row[k.ROWS] > 0:
            table.expect = k.AS_POSTERIORS if row[k.KIND] == k.POSTERIORS else k.AS_INTEGERS
            return


def _label_error(code: int, path: str, byte: int, frame: int, key: str, content: bytes) -> DataError:
    """Return the error of labels. content: the line of an entry in text."""
    from . import text_kernels as k

    if code == k.NOT_ONE_LABEL and _ONE_LIST.fullmatch(content):
        return DataError(
            f"{path}, byte {byte}: utterance {key}: the labels are one list in brackets, which Kaldi writes of numbers "
            "that are no classes; its posteriors have brackets for each frame, its alignments none.",
            path=path,
            hint="kaldiio writes such a list of an alignment with text=True: leave that out, or remove the brackets",
        )
    message, hint = {
        k.NOT_INTEGER: ("a label is a number from 0 on", "is this a table of alignments or posteriors?"),
        k.TOO_LARGE: ("the label is too large", None),
        k.NOT_ONE_LABEL: (
            "expected one label of weight 1",
            "soft labels are features: a matrix archive and a section with rx",
        ),
        k.NOT_CLOSED: ("expected '[' before the labels of the frame", None),
    }[code]
    return DataError(f"{path}, byte {byte}: utterance {key}, frame {frame}: {message}.", path=path, hint=hint)
