"""Tables of objects in Kaldi archives: found by an archive or a script file, mapped into memory."""

from __future__ import annotations

import gzip
import logging
import mmap
import os
import re
import shutil
import sys
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from cntk_config.base.files import LIST_LIMIT, open_input, read_input
from readers.errors import DataError

from .specifier import Place, parse_place, parse_read_specifier

log = logging.getLogger("cntkpy.readers")
OPEN_FILES = 256
"""Files that are kept mapped."""
_BATCH = 4096
_BEYOND = 3  # rows by which a range may end too late, for lengths are counted in different ways
_PLAIN = re.compile(r"(\S+)[ \t]+([^|\[\]]*[^|\[\] \t]):(\d{1,18})")
_ALL = (0, -1, 0, -1)


class MappedFile:
    """A file as uint8[n], mapped into memory; its descriptor is needed no longer."""

    def __init__(self, path: str, descriptor: int):
        self.path = path
        empty = os.fstat(descriptor).st_size == 0
        self._map = None if empty else mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        self._data = np.empty(0, np.uint8) if self._map is None else np.frombuffer(self._map, np.uint8)

    @property
    def data(self) -> np.ndarray:
        """The bytes, uint8[n], of a file that is as long as it was."""
        self.check_size()
        return self._data

    def check_size(self) -> None:
        """See that the file is as long as it was: touching pages that are gone would end the process.

        Raises:
            DataError: it is shorter.
        """
        if self._map is not None and self._map.size() < len(self._data):
            raise DataError(f"The archive {self.path} was cut short while it was read.", path=self.path)

    def release(self) -> None:
        """Let the system take the memory back; what is read again comes from the file again."""
        if self._map is not None and sys.platform != "win32":
            self._map.madvise(mmap.MADV_DONTNEED)


def map_file(path: str, packed: bool = False) -> MappedFile:
    """Map a file; a packed one is unpacked to a temporary file first.

    Raises:
        DataError: it cannot be opened or unpacked.
    """
    try:
        if packed:
            with open_input(path) as packed_file, gzip.open(packed_file) as source, tempfile.TemporaryFile() as file:
                shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                return MappedFile(path, file.fileno())
        with open_input(path, buffering=0) as file:
            return MappedFile(path, file.fileno())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked by gzip: {error}", path=path) from None
    except OSError as error:
        raise DataError(f"The file {path} cannot be opened: {error.strerror or error}", path=path) from None


class MappedFiles:
    """Files by number; the ones used last are kept mapped."""

    def __init__(self, places: Sequence[tuple[str, bool]]):
        self.places = list(places)
        self._open: OrderedDict[int, MappedFile] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: int) -> MappedFile:
        with self._lock:
            if (have := self._open.get(number)) is not None:
                self._open.move_to_end(number)
                return have
            file = self._open[number] = map_file(*self.places[number])
            while len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)
            return file

    def add(self, file: MappedFile) -> int:
        """Keep one more file, whatever its use; its number."""
        with self._lock:
            self.places.append((file.path, False))
            self._kept = file  # a temporary file has no path to be mapped from again
            self._open[len(self.places) - 1] = file
            return len(self.places) - 1

    def release(self) -> None:
        """Let the system take the memory of all files back."""
        with self._lock:
            for file in self._open.values():
                file.release()


class Table:
    """The entries of a table in order.

    keys; file: int64[U], numbers of their files; entries: int64[U, 8], see `object_kernels`, KIND is 0 until `require`
    has looked at it; ranges: int64[U, 4], first row and last, first column and last, -1: to the end.
    """

    def __init__(
        self, path: str, expect: int, keys: list[str], files: MappedFiles, file: np.ndarray, entries: np.ndarray,
        ranges: np.ndarray, lines: np.ndarray | None,
    ):  # fmt: skip
        self.path, self.expect, self.keys, self.files, self.file = path, expect, keys, files, file
        self.entries, self.ranges, self.lines = entries, ranges, lines
        self._complete = lines is None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def paths(self) -> list[str]:
        """The files of the data."""
        return list(dict.fromkeys(path for path, _ in self.files.places))

    def place(self, number: int) -> str:
        """Where an entry stands, for messages."""
        from . import object_kernels as k

        if self.lines is not None:
            return f"{self.path}, line {self.lines[number]}"
        return f"{self.path}, byte {self.entries[number, k.KEY]}"

    def find(self, keys: Sequence[str]) -> np.ndarray:
        """The entries of these keys, int64; -1 for one that is not there.

        Raises:
            DataError: one of them stands in the table twice.
        """
        where: dict[str, int] = {}
        twice: dict[str, int] = {}
        for i, key in enumerate(self.keys):
            if where.setdefault(key, i) != i:
                twice.setdefault(key, i)
        for key in keys if twice else ():
            if key in twice:
                raise DataError(
                    f"{self.place(twice[key])}: duplicate entry: the utterance {key} stands in the table already "
                    f"({self.place(where[key])}).", path=self.path,
                )  # fmt: skip
        return np.array([where.get(key, -1) for key in keys], np.int64)

    def require(self, which: np.ndarray) -> None:
        """Look at what stands at the places of these entries, unless that was done before.

        Raises:
            DataError: a file cannot be opened or is damaged, or a range does not exist.
        """
        if self._complete:
            return
        from . import object_kernels as k

        missing = np.unique(which[self.entries[which, k.KIND] == 0])
        for number in np.unique(self.file[missing]).tolist():
            data = self.files[number].data
            some = missing[self.file[missing] == number]
            state = np.zeros(3, np.int64)
            code = k.read_objects(
                data, len(data), self.expect, self.entries[some, k.OBJECT], some, self.entries, state
            )  # fmt: skip
            if code != k.DONE:
                bad = int(some[state[k.COUNT]])
                self.entries[bad, k.KIND] = 0
                path, byte, place = self.files.places[number][0], int(state[k.BYTE]), f" ({self.place(bad)})"
                raise object_error(code, path, byte, data, place, self.keys[bad], self.expect)
        self._complete = bool((self.entries[:, k.KIND] != 0).all())

    def first_row(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First row that is used and number of rows of these entries, int64; those ranges have been required.

        Raises:
            DataError: a range goes beyond the matrix.
        """
        return self._part(which, 0)

    def first_column(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of columns."""
        return self._part(which, 1)

    def _part(self, which: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
        from . import object_kernels as k

        size = self.entries[which, k.COLS if axis else k.ROWS]
        first, last = self.ranges[which, 2 * axis], self.ranges[which, 2 * axis + 1]
        bad = np.flatnonzero((last >= size + (0 if axis else _BEYOND)) | (first >= np.maximum(size, 1)))
        if len(bad):
            at, what = int(bad[0]), "columns" if axis else "rows"
            u = int(which[at])
            raise DataError(
                f"{self.place(u)}: the range {first[at]}:{last[at]} does not exist; the matrix of {self.keys[u]} in "
                f"{self.files.places[self.file[u]][0]} has {size[at]} {what}.", path=self.path,
            )  # fmt: skip
        return first, np.where(last < 0, size, np.minimum(last + 1, size)) - first


def open_table(text: str, expect: int, where: str = "", name: str = "data") -> Table:
    """The table that a specifier denotes.

    Args:
        text: an rspecifier.
        expect: `object_kernels.MATRICES`, or UNDECIDED for labels.
        where: what an error about the specifier begins with.
        name: what the file is called in the command that an error shows in place of a pipe.

    Raises:
        DataError: the specifier is malformed, a file cannot be read, an archive is damaged.
    """
    spec = parse_read_specifier(text, where, name)
    if not spec.script:
        return _index(spec.place, expect)
    table = _script(spec.place, expect, name)
    return _readable(table) if spec.permissive else table


def _index(place: Place, expect: int) -> Table:
    """Walk through an archive."""
    from . import object_kernels as k

    files = MappedFiles([(place.path, place.packed)])
    file = files[0]
    state, parts = np.zeros(3, np.int64), []
    state[k.POSITION] = min(place.offset, len(file.data))
    code = k.FULL
    while code == k.FULL:
        state[k.COUNT] = 0
        entries = np.zeros((_BATCH, 8), np.int64)
        code = k.scan(file.data, len(file.data), expect, entries, state)
        parts.append(entries[: state[k.COUNT]])
        if expect == k.UNDECIDED and (parts[-1][:, k.ROWS] > 0).any():
            some = parts[-1][parts[-1][:, k.ROWS] > 0]
            expect = k.AS_POSTERIORS if some[0, k.KIND] == k.POSTERIORS else k.AS_INTEGERS
        if code > k.FULL:
            begin, end = entries[state[k.COUNT], [k.KEY, k.KEY_END]].tolist()
            raise object_error(
                code, place.path, int(state[k.BYTE]), file.data, "", _text(file.data, begin, end), expect
            )  # fmt: skip
    entries = np.concatenate(parts)
    spans = entries[:, [k.KEY, k.KEY_END]].tolist()
    keys = [_text(file.data, begin, end) for begin, end in spans]
    count = len(keys)
    ranges = np.tile(np.array(_ALL, np.int64), (count, 1))
    return Table(place.path, expect, keys, files, np.zeros(count, np.int64), entries, ranges, None)


def _text(data: np.ndarray, begin: int, end: int) -> str:
    return data[begin:end].tobytes().decode("utf-8", "surrogateescape")


def read_lines(path: str, what: str) -> list[tuple[int, str]]:
    """The lines of a list with their numbers (from 1), without blank ones.

    Raises:
        DataError: it cannot be read.
    """
    try:
        content = read_input(path, LIST_LIMIT)
    except OSError as error:
        raise DataError(f"{what} {path} cannot be opened: {error.strerror or error}", path=path) from None
    lines = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    return [(i, line.strip(" \t\r")) for i, line in enumerate(lines, 1) if line.strip(" \t\r")]


def _script(place: Place, expect: int, name: str) -> Table:
    """The table that a script file lists; nothing is opened yet."""
    from . import object_kernels as k

    if place.packed or place.offset:
        raise DataError(f"The script file {place.path} is a text file; it is not compressed.", path=place.path)
    keys, lines, rows, ranges = [], [], [], []
    files: dict[tuple[str, bool], int] = {}
    for at, line in read_lines(place.path, "The script file"):
        lines.append(at)
        if plain := _PLAIN.fullmatch(line):  # most lines
            key, path, offset = plain.groups()
            keys.append(key)
            rows.append((files.setdefault((path, False), len(files)), int(offset)))
            ranges.append(_ALL)
            continue
        where = f"{place.path}, line {at}: "
        key, *rest = line.split(None, 1)
        if not rest:
            raise DataError(
                f"{where}'{line}' has no place behind the key.", path=place.path, line=at,
                hint="a line is KEY FILE:OFFSET",
            )  # fmt: skip
        one = parse_place(rest[0], where, ranges=True, name=name)
        keys.append(key)
        rows.append((files.setdefault((one.path, one.packed), len(files)), one.offset))
        r, c = one.rows, one.columns
        ranges.append((r[0] if r else 0, r[1] if r else -1, c[0] if c else 0, c[1] if c else -1))
    count = len(keys)
    both = np.array(rows, np.int64).reshape(count, 2)
    entries = np.zeros((count, 8), np.int64)
    entries[:, k.OBJECT] = both[:, 1]
    bounds = np.array(ranges, np.int64).reshape(count, 4)
    maps = MappedFiles(list(files))
    return Table(place.path, expect, keys, maps, both[:, 0].copy(), entries, bounds, np.array(lines, np.int64))


def _readable(table: Table) -> Table:
    """Only the entries that can be read; a warning names others."""
    good = []
    for number in range(len(table)):
        one = np.array([number])
        try:
            table.require(one)
            table.first_row(one)
        except DataError as error:
            log.warning("%s: the entry counts as absent, because the specifier is permissive: %s",
                        table.place(number), error)  # fmt: skip
        else:
            good.append(number)
    some = np.array(good, np.int64)
    assert table.lines is not None
    return Table(
        table.path, table.expect, [table.keys[i] for i in good], table.files, table.file[some], table.entries[some],
        table.ranges[some], table.lines[some],
    )  # fmt: skip


def object_error(
    code: int, path: str, byte: int, data: np.ndarray, place: str, key: str, expect: int | None = None
) -> DataError:
    """What is wrong with an object: the file, the byte, the key."""
    from . import object_kernels as k

    labels = expect is not None and expect != k.MATRICES
    seen = bytes(data[max(byte, 0) : byte + 8])
    wanted = "alignments or posteriors" if labels else "a matrix"
    message, hint = {
        k.CUT: ("the file ends inside the entry", "was it cut short? write it again"),
        k.NO_KEY: (f"there is no key, but {seen!r}", "an entry is a key, a blank and an object; is this an archive?"),
        k.NO_TYPE: (
            f"{seen!r} does not begin {wanted}",
            "matrices are FM, DM, CM, CM2, CM3 or text; labels are vectors of integers or posteriors",
        ),
        k.NEGATIVE: ("a size is negative", "is the file damaged?"),
        k.RAGGED: ("a row has another number of values than the rows before it", None),
        k.NO_BRACKET: (f"a matrix in text begins with '[', not with {seen!r}", "is this an archive of features?"),
        k.NO_NUMBER: (f"{seen!r} stands where a number should", None),
        k.AFTER: (f"{seen!r} stands behind the end of a matrix", None),
        k.AMBIGUOUS: (
            f"the entry is not made of {_FORMS.get(expect, 'labels')}",
            "the first entry of a table decides whether it holds integers or posteriors",
        ),
    }[code]
    whose = f", key '{key}'" if key else ""
    return DataError(f"{path}, byte {byte}{whose}{place}: {message}.", path=path, hint=hint)


_FORMS: dict[int | None, str] = {2: "vectors of integers", 3: "posteriors"}
