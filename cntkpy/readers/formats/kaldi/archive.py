"""Tables of objects in Kaldi archives, found by an archive or a script file.

Archives are read in pieces and never mapped: a disk that fails, or a file that becomes shorter, would end the process.
"""

from __future__ import annotations

import logging
import re
import shutil
import struct
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.base.files import LIST_LIMIT
from cntkpy.readers.common.beginnings import current
from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.packed import data_bytes, read_data
from cntkpy.readers.errors import DataError

from .specifier import Place, parse_place, parse_read_specifier

log = logging.getLogger("cntkpy.readers")
OPEN_FILES = 256
"""Files that are kept open."""
_BATCH = 4096
_HEADER_BYTES, _MAX_BYTES, _NAME_BYTES = 512, 1 << 30, 1 << 17
"""Bytes of an archive that are looked at for a header, and of one entry at most; of keys, that are kept together."""
_OF_LABELS = 4096
"""Bytes of an entry of labels that are looked at at first."""
_BEYOND = 3  # rows, or values of a vector, by which a range may end too late, for lengths are counted in different ways
_PLAIN = re.compile(r"(\S+)[ \t]+([^|\[\] \t](?:[^|\[\]]*[^|\[\] \t])?):(\d{1,18})")
ALL = (0, -1, 0, -1)
"""The range of everything: rows, columns."""


def open_archive(path: str, packed: bool = False) -> FileBytes:
    """Open a file; a packed one is unpacked to a temporary file first.

    Raises:
        DataError: it cannot be opened or unpacked.
    """
    if not packed:
        return FileBytes(path)
    try:
        data = data_bytes(path)
        if not data.packed:
            raise DataError(
                f"The file {path} is not compressed.",
                path=path,
                hint="leave out the command that unpacks it, or the ending of its name",
            )
        with data.stream() as source:
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open as long as it is read
            shutil.copyfileobj(source, file, 1 << 20)
            return FileBytes(path, file)
    except OSError as error:
        raise DataError(f"The file {path} cannot be opened: {error.strerror or error}", path=path) from None


class OpenArchives:
    """Files by number; the ones used last are kept open."""

    def __init__(self, places: Sequence[tuple[str, bool]]):
        self.places = list(places)
        self._open: OrderedDict[int, FileBytes] = OrderedDict()
        self._made: dict[int, FileBytes] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: int) -> FileBytes:
        with self._lock:
            if (have := self._made.get(number) or self._open.get(number)) is not None:
                if number in self._open:
                    self._open.move_to_end(number)
                return have
            file = self._open[number] = open_archive(*self.places[number])
            while len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)  # it is closed when nobody reads it any more
            return file

    def add(self, file: FileBytes) -> int:
        """Keep one more file, which has no name to be opened by again; its number."""
        with self._lock:
            self.places.append((file.path, False))
            self._made[len(self.places) - 1] = file
            return len(self.places) - 1


class Table:
    """The entries of a table in order.

    keys; file: int64[U], numbers of their files; entries: int64[U, 8], see `object_kernels`, KIND is 0 until `require`
    has looked at it; ranges: int64[U, 4], first row and last, first column and last, -1: to the end.
    """

    def __init__(
        self,
        path: str,
        expect: int,
        keys: list[str],
        files: OpenArchives,
        file: np.ndarray,
        entries: np.ndarray,
        ranges: np.ndarray,
        lines: np.ndarray | None,
    ):
        self.path, self.expect, self.keys, self.files, self.file = path, expect, keys, files, file
        self.entries, self.ranges, self.lines = entries, ranges, lines
        self._complete = lines is None
        self._by_values = False

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def paths(self) -> list[str]:
        """The files of the data."""
        return list(dict.fromkeys(path for path, _ in self.files.places))

    def place(self, number: int) -> str:
        """Return the place of an entry, for messages."""
        from . import object_kernels as k

        if self.lines is not None:
            return f"{self.path}, line {self.lines[number]}"
        return f"{self.path}, byte {self.entries[number, k.KEY]}"

    def take_values_as_frames(self) -> None:
        """Take a vector for as many frames of one value as it has values, in place of one frame of all of them."""
        self._by_values = True
        self._turn(np.arange(len(self)))

    def is_vector(self, number: int) -> bool:
        """Return whether an entry that has been required is a vector."""
        from . import object_kernels as k

        return int(self.entries[number, k.KIND]) in (k.FV, k.DV)

    def _turn(self, some: np.ndarray) -> None:
        """Vectors among these entries become columns, if they shall; a text of one row is a vector."""
        from . import object_kernels as k

        if self._by_values:
            entries = self.entries[some]
            rows = some[np.isin(entries[:, k.KIND], (k.FV, k.DV, k.TEXT)) & (entries[:, k.ROWS] == 1)]
            self.entries[rows, k.ROWS] = self.entries[rows, k.COLS]
            self.entries[rows, k.COLS] = 1

    def find(self, keys: Sequence[str]) -> np.ndarray:
        """Return the entries of these keys, int64; -1 for one that is not there.

        Raises:
            DataError: one of them is in the table twice.
        """
        where: dict[str, int] = {}
        twice: dict[str, int] = {}
        for i, key in enumerate(self.keys):
            if where.setdefault(key, i) != i:
                twice.setdefault(key, i)
        for key in keys if twice else ():
            if key in twice:
                raise DataError(
                    f"{self.place(twice[key])}: duplicate entry: the utterance {key} is in the table already "
                    f"({self.place(where[key])}).",
                    path=self.path,
                )
        return np.array([where.get(key, -1) for key in keys], np.int64)

    def require(self, which: np.ndarray) -> None:
        """Look at what is at the places of these entries, unless that was done before.

        Raises:
            DataError: a file cannot be opened or is damaged, or a range does not exist.
        """
        if self._complete:
            return
        from . import object_kernels as k

        missing = np.unique(which[self.entries[which, k.KIND] == 0])
        for number in np.unique(self.file[missing]).tolist():
            some = missing[self.file[missing] == number]
            for first in range(0, len(some), _BATCH):
                self._read_headers(number, some[first : first + _BATCH])
        self._complete = bool((self.entries[:, k.KIND] != 0).all())

    def _read_headers(self, number: int, some: np.ndarray) -> None:
        """Look at these entries of a file: at the first bytes of each, and at more where that is not enough."""
        from . import object_kernels as k

        file, offsets = self.files[number], self.entries[some, k.OBJECT]
        size = _HEADER_BYTES if self.expect == k.MATRICES else _OF_LABELS
        sizes = np.clip(file.size - offsets, 0, size)
        places = np.arange(len(some)) * size
        data = np.empty(len(some) * size, np.uint8)
        file.pieces(data, offsets, sizes, places)
        state = np.zeros(3, np.int64)
        while (
            code := k.read_objects(data, places, sizes, offsets, file.size, self.expect, some, self.entries, state)
        ) != k.DONE:
            i = int(state[k.COUNT])
            offset = int(offsets[i])
            if code == k.MORE:
                code, state[k.BYTE] = _read_large(file, offset, size, self.expect, self.entries[some[i]])
                state[k.COUNT] += 1
            if code != k.DONE:
                bad = int(some[i])
                self.entries[bad, k.KIND] = 0
                place = f" ({self.place(bad)})"
                raise object_error(code, file, int(state[k.BYTE]), place, self.keys[bad], self.expect)
        self._turn(some)

    def first_row(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First row that is used and number of rows of these entries, int64; those ranges have been required.

        Raises:
            DataError: a range goes beyond the matrix.
        """
        return self._part(which, 0)

    def first_column(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of columns."""
        return self._part(which, 1)

    def _part(self, which: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
        from . import object_kernels as k

        size = self.entries[which, k.COLS if axis else k.ROWS]
        vector = np.isin(self.entries[which, k.KIND], (k.FV, k.DV))  # one row: its only range is of the values in it
        vector &= not self._by_values
        size_bytes = 2 * np.where(vector, 1 - axis, axis)
        first, last = self.ranges[which, size_bytes], self.ranges[which, size_bytes + 1]
        beyond = np.where(size_bytes == 0, _BEYOND, 0)
        bad = np.flatnonzero(
            (last >= size + beyond) | (first >= np.maximum(size, 1)) | (vector & (size_bytes > 0) & (last >= 0))
        )
        if len(bad):
            index, reason = int(bad[0]), "columns" if axis else "rows"
            u = int(which[index])
            raise DataError(
                f"{self.place(u)}: the range {first[index]}:{last[index]} does not exist; the matrix of {self.keys[u]} "
                f"in {self.files.places[self.file[u]][0]} has {size[index]} {reason}.",
                path=self.path,
            )
        return first, np.where(last < 0, size, np.minimum(last + 1, size)) - first


def open_table(text: str, expect: int, where: str = "", name: str = "data") -> Table:
    """Return the table that a specifier denotes.

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


def _read_large(file: FileBytes, position: int, size: int, expect: int, entry: np.ndarray) -> tuple[int, int]:
    """Look at an object that continues after its first `size` bytes, at more and more of it. Code, offending byte."""
    from . import object_kernels as k

    while True:
        size = min(4 * size, file.size - position, _MAX_BYTES)
        data = file.window(position, size, np.dtype(np.uint8))
        code, bad = k.read_object(data, 0, size, file.size - position - size, position, expect, entry)
        if code != k.MORE:
            return code, bad
        _check_window(file, position, size)


def _check_window(file: FileBytes, position: int, size: int) -> None:
    """An object that continues after this many bytes may be looked at once more, unless they are too many already."""
    if size >= _MAX_BYTES:
        raise DataError(
            f"{file.path}, byte {position}: the entry has more than {_MAX_BYTES:,} bytes.",
            path=file.path,
            hint="is the file damaged? copy-feats writes a text archive as a binary one",
        )


def _index(place: Place, expect: int) -> Table:
    """Walk through an archive, reading the headers of matrices, and all of what else there is."""
    from . import object_kernels as k

    files = OpenArchives([(place.path, place.packed)])
    file = files[0]
    keys: list[str] = []
    state = np.zeros(6, np.int64)
    parts: list[np.ndarray] = []
    state[k.POSITION] = min(place.offset, file.size)
    data, names = np.empty(_HEADER_BYTES, np.uint8), np.empty(_NAME_BYTES, np.uint8)
    code = k.MORE
    limits = current()
    batch = _BATCH if limits is None else min(_BATCH, limits.records)
    while code != k.DONE and not (limits is not None and len(keys) >= limits.count_of(place.path, len(keys) + 1)):
        entries = np.zeros((batch, 8), np.int64)
        state[k.COUNT] = state[k.NAMES] = 0
        while (code := k.scan(file.descriptor, file.size, data, expect, entries, names, state)) == k.MORE:
            position, have = int(state[k.POSITION]), int(state[k.HAVE])
            if position == state[k.BASE] and have == len(data):
                _check_window(file, position, have)
                data = np.empty(min(4 * have, _MAX_BYTES), np.uint8)
            state[k.BASE], state[k.HAVE] = position, min(len(data), file.size - position)
            file.read(data[: state[k.HAVE]], position)
            expect = _form(entries[: state[k.COUNT]], expect)
        entry, entries = entries[min(state[k.COUNT], batch - 1)], entries[: state[k.COUNT]]
        expect = _form(entries, expect)
        if code not in (k.DONE, k.FULL):
            key = file.bytes(int(entry[k.KEY]), int(entry[k.KEY_END] - entry[k.KEY])).decode("utf-8", "surrogateescape")
            raise object_error(code, file, int(state[k.BYTE]), "", key, expect)
        keys += _keys(file, entries, names)
        parts.append(entries)
    entries = np.concatenate(parts)
    count = len(keys)
    ranges = np.tile(np.array(ALL, np.int64), (count, 1))
    return Table(place.path, expect, keys, files, np.zeros(count, np.int64), entries, ranges, None)


def _form(entries: np.ndarray, expect: int) -> int:
    """Return the form expected after these entries: the first entry with frames decides it for labels."""
    from . import object_kernels as k

    some = np.flatnonzero(entries[:, k.ROWS] > 0)
    if expect != k.UNDECIDED or not len(some):
        return expect
    return k.AS_POSTERIORS if entries[some[0], k.KIND] == k.POSTERIORS else k.AS_INTEGERS


def _keys(file: FileBytes, entries: np.ndarray, names: np.ndarray) -> list[str]:
    """Return the keys of these entries; `names` has their bytes, one after the other, unless one is too long."""
    from . import object_kernels as k

    sizes = entries[:, k.KEY_END] - entries[:, k.KEY]
    if len(sizes) and int(sizes.max()) > len(names):
        spans = zip(entries[:, k.KEY].tolist(), sizes.tolist(), strict=True)
        return [file.bytes(position, size).decode("utf-8", "surrogateescape") for position, size in spans]
    ends = np.cumsum(sizes)
    raw = names[: int(sizes.sum())].tobytes()
    return [
        raw[a:b].decode("utf-8", "surrogateescape") for a, b in zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    ]


def read_lines(path: str, kind: str) -> list[tuple[int, str]]:
    """Return the lines of a list with their numbers (from 1), without blank ones.

    Raises:
        DataError: it cannot be read.
    """
    try:
        content = read_data(path, LIST_LIMIT)
    except OSError as error:
        raise DataError(f"{kind} {path} cannot be opened: {error.strerror or error}", path=path) from None
    lines = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    return [(i, line.strip(" \t\r")) for i, line in enumerate(lines, 1) if line.strip(" \t\r")]


def _script(place: Place, expect: int, name: str) -> Table:
    """Return the table that a script file lists; nothing is opened yet."""
    from . import object_kernels as k

    if place.packed or place.offset:
        raise DataError(f"The script file {place.path} is a text file; it is not compressed.", path=place.path)
    keys: list[str] = []
    lines: list[int] = []
    rows: list[tuple[int, int]] = []
    ranges: list[tuple[int, ...]] = []
    files: dict[tuple[str, bool], int] = {}
    for span, line in read_lines(place.path, "The script file"):
        lines.append(span)
        if plain := _PLAIN.fullmatch(line):  # most lines
            key, path, offset = plain.groups()
            keys.append(key)
            rows.append((files.setdefault((path, False), len(files)), int(offset)))
            ranges.append(ALL)
            continue
        where = f"{place.path}, line {span}: "
        key, *remainder = line.split(None, 1)
        if not remainder:
            raise DataError(
                f"{where}'{shorten(line)}' has no place after the key.",
                path=place.path,
                line=span,
                hint="a line is KEY FILE:OFFSET",
            )
        location = parse_place(remainder[0], where, ranges=True, name=name)
        keys.append(key)
        rows.append((files.setdefault((location.path, location.packed), len(files)), location.offset))
        r, c = location.rows, location.columns
        ranges.append((r[0] if r else 0, r[1] if r else -1, c[0] if c else 0, c[1] if c else -1))
    count = len(keys)
    both = np.array(rows, np.int64).reshape(count, 2)
    entries = np.zeros((count, 8), np.int64)
    entries[:, k.OBJECT] = both[:, 1]
    bounds = np.array(ranges, np.int64).reshape(count, 4)
    archives = OpenArchives(list(files))
    return Table(place.path, expect, keys, archives, both[:, 0].copy(), entries, bounds, np.array(lines, np.int64))


def _readable(table: Table) -> Table:
    """Only the entries that can be read; a warning names others."""
    good: list[int] = []
    for number in range(len(table)):
        index = np.array([number])
        try:
            table.require(index)
            table.first_row(index)
        except DataError as error:
            text = "%s: the entry counts as absent, because the specifier is permissive: %s"
            log.warning(text, table.place(number), error, extra=ABOUT_DATA)
        else:
            good.append(number)
    some = np.array(good, np.int64)
    assert table.lines is not None
    return Table(
        table.path,
        table.expect,
        [table.keys[i] for i in good],
        table.files,
        table.file[some],
        table.entries[some],
        table.ranges[some],
        table.lines[some],
    )


def object_error(code: int, file: FileBytes, byte: int, place: str, key: str, expect: int | None = None) -> DataError:
    """Return the error of an object, with the file, the byte and the key."""
    from . import object_kernels as k

    labels = expect is not None and expect != k.MATRICES
    path, seen = file.path, file.bytes(max(byte, 0), 8)
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
        k.NO_NUMBER: (f"{seen!r} found where a number is expected", None),
        k.AFTER: (f"{seen!r} follows the end of a matrix", None),
        k.AMBIGUOUS: (
            f"the entry is not made of {_FORMS.get(expect, 'labels')}",
            "the first entry of a table decides whether it holds integers or posteriors",
        ),
    }[code]
    if code == k.NO_TYPE and _is_htk(file, byte):
        message = "the entry is an HTK matrix, not one of Kaldi"
        hint = "copy-feats --htk-in=true ark:FILE ark:NEW.ark makes a Kaldi archive of it"
    whose = f", key '{shorten(key)}'" if key else ""
    return DataError(f"{path}, byte {byte}{whose}{place}: {message}.", path=path, hint=hint)


def _is_htk(file: FileBytes, position: int) -> bool:
    """Return whether the header of an HTK matrix is here, followed by its frames."""
    head = file.bytes(max(position, 0), 12)
    if len(head) < 12:
        return False
    frames, period, size, code = struct.unpack(">iiHH", head)
    return frames > 0 and period > 0 and size > 0 and code & 63 < 13 and frames * size <= file.size - position - 12


_FORMS: dict[int | None, str] = {2: "vectors of integers", 3: "posteriors"}
