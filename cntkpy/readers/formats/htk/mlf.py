"""Master label files (.mlf): which state every frame of an utterance belongs to. Read in blocks, kept as ranges."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.packed import open_data
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.utterances.labels import Labels
from cntkpy.readers.utterances.lists import picked

from . import mlf_codes as k
from .script import key_of

log = logging.getLogger("cntkpy.readers")
BLOCK_BYTES = 4 << 20
FRAME = 100000
"""The period of frames in CNTK, in units of 100 ns: 10 ms."""
_LAST_FRAME = 2**31 - 2
_LONGEST_LINE = 4 * BLOCK_BYTES
_MAX_NAMES_SHOWN = 5
_SCORE = re.compile(r"-[0-9]+(?:\.[0-9]*)?")
_IT_IS_A_SCORE = (
    "a line is start end name class; HVite writes a score there: add labelMappingFile, the names of the states in the "
    "order of their classes"
)
_WORK = 3
"""Of the fallback for a byte, see `fits_budget`."""


class _Reader:
    """Parses files one by one; knows what was found in all of them."""

    def __init__(self, states: LabelMap | None, wanted: Callable[[str], bool] | None, period: int):
        self.states, self.wanted, self.period = states, wanted, period
        self.places: dict[str, tuple[str, int]] = {}
        self.parts: list[Labels] = []

    def read(self, path: str) -> None:
        states = self.states or LabelMap()
        if self.states is None:
            states.add(b"")
        state = np.zeros(8, np.int64)
        ranges, entries = np.empty((1 << 16, 3), np.int64), np.empty((1 << 12, 5), np.int64)
        result = _Ranges(path, self.period)
        try:
            with open_data(path) as file:
                held = b""
                while True:
                    block = file.read(BLOCK_BYTES)
                    text = held + block
                    if block:
                        whole = max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1
                        if not whole and len(text) > _LONGEST_LINE:
                            raise DataError(f"{path}, line {state[k.LINE] + 1} has no end; is this an MLF?", path=path)
                    else:
                        whole = len(text)
                    if result.at_start and text.startswith(b"\xef\xbb\xbf"):
                        state[k.POSITION] = 3
                    self._parse(result, text, whole, states, (ranges, entries, state))
                    held, state[k.POSITION] = text[whole:], 0
                    if not block:
                        break
        except OSError as error:
            raise DataError(f"The label file {path} cannot be read: {error.strerror or error}", path=path) from None
        if not state[k.STARTED]:
            raise DataError(f"The label file {path} is empty.", path=path, hint="its first line is #!MLF!#")
        if state[k.WHERE] != k.OUTSIDE:
            raise DataError(
                f"The label file {path} ends inside an entry (line {state[k.LINE]}).",
                path=path,
                line=int(state[k.LINE]),
                hint="an entry ends with a line that is a single dot; was the file cut short?",
            )
        self.parts.append(result.labels())

    def _parse(
        self,
        record: _Ranges,
        text: bytes,
        whole: int,
        states: LabelMap,
        into: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """Parse whole lines text[:whole]. into: room for ranges and entries, and the state of the kernel."""
        ranges, entries, state = into
        view = np.frombuffer(text, np.uint8)
        if fits_budget(_WORK * whole):
            from .mlf_fallback import parse_lines
        else:
            from .mlf_kernels import parse_lines
        code = k.FULL if whole else k.DONE
        while code == k.FULL:
            code = parse_lines(
                view, whole, self.states is not None, states.names, states.starts, states.table, ranges, entries, state
            )
            if code == k.NO_HEADER:
                raise self._error(code, record.path, text, state)
            self._collect(record, text, entries[: state[k.ENTRIES]], ranges[: state[k.RANGES]])
            state[k.ENTRIES] = state[k.RANGES] = 0
            if code > k.FULL:
                if record.is_wanted:
                    raise self._error(code, record.path, text, state)
                state[k.WHERE], code = k.SKIPPING, k.FULL

    def _collect(self, record: _Ranges, text: bytes, entries: np.ndarray, ranges: np.ndarray) -> None:
        """Take over what a call of the kernel found; the first ranges belong to the entry before."""
        used: list[int] = []
        for begin, end, line, _, good in entries.tolist():
            name = text[begin:end].decode("utf-8", "surrogateescape")
            if not good:
                shown = printable(name)
                text_of_warning = "%s, line %d: '%s' is not a quoted name; the entry is left out."
                log.warning(text_of_warning, record.path, line, shown, extra=ABOUT_DATA)
                used.append(-1)
                continue
            key = key_of(name[1:-1].removeprefix("*/"))
            if self.wanted is not None and not self.wanted(key):
                used.append(-1)
                continue
            if key in self.places:
                raise DataError(
                    f"{record.path}, line {line}: the utterance {key} has labels already ({{}}, line {{}}).".format(
                        *self.places[key]
                    ),
                    path=record.path,
                    line=line,
                )
            self.places[key] = record.path, line
            used.append(len(record.keys))
            record.keys.append(key)
            record.lines.append(line)
        record.add(np.array(used, np.int64), entries[:, k.FIRST], ranges)

    def _error(self, code: int, path: str, text: bytes, state: np.ndarray) -> DataError:
        line = int(state[k.LINE])
        excerpt = text[state[k.BEGIN] : min(state[k.END], state[k.BEGIN] + 60)].decode("utf-8", "replace")
        wanted = "start end state ..." if self.states is not None else "start end name class"
        message, hint = {
            k.BAD_NUMBER: (
                f"'{excerpt}' is not a number",
                _IT_IS_A_SCORE
                if self.states is None and _SCORE.fullmatch(excerpt)
                else f"a line is {wanted}, with whole numbers from 0",
            ),
            k.TOO_LATE: (f"'{excerpt}' is too large for a time", "times are in 100 ns, or frames"),
            k.BACKWARDS: (f"the range ends before it begins: '{excerpt}'", None),
            k.UNKNOWN_STATE: (f"the state '{excerpt}' is not in the state list", "see labelMappingFile"),
            k.COLUMNS: (
                f"'{excerpt}' is not a range",
                f"a line is {wanted}"
                + ("" if self.states is not None else "; for names of states add labelMappingFile"),
            ),
            k.BAD_CLASS: (f"'{excerpt}' is not a class", f"classes are numbers from 0 to {k.LAST_CLASS}"),
            k.NOT_WHOLE: (f"'{excerpt}' is not a class, which is a whole number", _IT_IS_A_SCORE),
            k.NO_HEADER: (f"a label file begins with #!MLF!#, not with '{excerpt}'", "is this an MLF?"),
        }[code]
        return DataError(f"{path}, line {line}: {message}", path=path, line=line, hint=hint)


class _Ranges:
    """The ranges of one file. Times are turned into frames once it is known what unit they have."""

    def __init__(self, path: str, period: int):
        self.path, self._period = path, period
        self.keys: list[str] = []
        self.lines: list[int] = []
        self.at_start = True
        self._current = -1
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []
        self._times = False
        self._done: list[tuple[np.ndarray, np.ndarray]] = []  # ends, classes
        self._owners: list[np.ndarray] = []
        self._gaps: list[np.ndarray] = []
        self._last = (-1, 0)

    @property
    def is_wanted(self) -> bool:
        """True if the last entry so far is to be used."""
        return self._current >= 0

    def add(self, used: np.ndarray, first: np.ndarray, ranges: np.ndarray) -> None:
        """More ranges int64[n, 3]; entry `used[i]` (-1: none) begins with range first[i]."""
        self.at_start = False
        owner = np.full(len(ranges), self._current, np.int32)
        if len(used):
            sizes = np.diff(np.append(first, len(ranges)))
            owner[first[0] :] = np.repeat(used, sizes)
            self._current = int(used[-1])
        self._times = self._times or bool((ranges[:, 1] - ranges[:, 0] >= self._period - 1).any())
        keep = owner >= 0
        if keep.any():
            self._pending.append((owner[keep], ranges[keep]))
        if self._times:
            self._flush()

    def _flush(self) -> None:
        """Turn pending ranges into frames, and note those that do not begin where the one before them ends."""
        for owner, ranges in self._pending:
            bounds = ranges[:, :2]
            bounds = (bounds + self._period // 2) // self._period if self._times else bounds
            if int(bounds.max()) > _LAST_FRAME:
                bad = int(np.flatnonzero(bounds[:, 1] > _LAST_FRAME)[0])
                raise DataError(
                    f"{self.path}: the labels of {self.keys[owner[bad]]} end at frame {bounds[bad, 1]}, which is too "
                    "late.",
                    path=self.path,
                    line=self.lines[int(owner[bad])],
                )
            previous_ends = np.concatenate([[self._last[1]], bounds[:-1, 1]])
            previous_ends[np.concatenate([[self._last[0]], owner[:-1]]) != owner] = 0
            self._gaps.append(np.unique(owner[bounds[:, 0] != previous_ends]))
            self._last = int(owner[-1]), int(bounds[-1, 1])
            self._owners.append(owner)
            self._done.append((bounds[:, 1].astype(np.int32), ranges[:, 2].astype(np.uint16)))
        self._pending.clear()

    def labels(self) -> Labels:
        """Return all utterances that have ranges."""
        self._flush()
        count = len(self.keys)
        owners = np.concatenate([np.empty(0, np.int32), *self._owners])
        sizes = np.bincount(owners, minlength=count)
        contiguous = np.ones(count, bool)
        for gap in self._gaps:
            contiguous[gap] = False
        empty = np.flatnonzero(sizes == 0)
        if len(empty):
            names = ", ".join(picked(self.keys, empty[:_MAX_NAMES_SHOWN]))
            text = "%s: %d utterances have no ranges and are left out: %s"
            log.warning(text, self.path, len(empty), printable(names), extra=ABOUT_DATA)
        kept = np.flatnonzero(sizes)
        return Labels(
            picked(self.keys, kept),
            starts_of(sizes[kept]),
            np.concatenate([np.empty(0, np.int32), *(e for e, _ in self._done)]),
            np.concatenate([np.empty(0, np.uint16), *(c for _, c in self._done)]),
            contiguous[kept],
            [(self.path, self.lines[i]) for i in kept.tolist()],
            timed=True,
        )


def read_labels_of(
    paths: Sequence[str], states: LabelMap | None, frames: Mapping[str, int] | None, period: int
) -> Labels:
    """Read the labels of utterances of known lengths.

    CNTK counts frames of 10 ms. Where those of the features are of another period, and more utterances have as many
    frames as labels by that one, times are counted by it.

    Args:
        paths: the label files.
        states: what states are called; None if the files hold classes.
        frames: the frames of every utterance that is wanted; None: all utterances are, and have any length.
        period: of the frames of the features, in units of 100 ns; 0: it is not known.

    Returns:
        The labels of the utterances that the files have.

    Raises:
        DataError: a file cannot be read, or is malformed.
    """
    wanted = frames.__contains__ if frames is not None else None
    labels = read_labels(paths, states, wanted)
    if not frames or period in (0, FRAME) or (fitting := _fitting(labels, frames)) == len(labels):
        return labels
    try:
        other_labels = read_labels(paths, states, wanted, period)
    except DataError:
        return labels
    if _fitting(other_labels, frames) <= fitting:
        return labels
    log.info(
        "%s: times are counted in frames of %g ms, the sample period of the feature files, not in those of 10 ms.",
        paths[0],
        period / 10000,
    )
    return other_labels


def _fitting(labels: Labels, frames: Mapping[str, int]) -> int:
    """Return the number of utterances have labels for all their frames."""
    return sum(frames[key] == length for key, length in zip(labels.keys, labels.lengths.tolist(), strict=True))


def read_labels(
    paths: Sequence[str],
    states: LabelMap | None = None,
    wanted: Callable[[str], bool] | None = None,
    period: int = FRAME,
) -> Labels:
    """Read label files.

    Args:
        paths: the files.
        states: what states are called; None if the files hold classes.
        wanted: which keys are kept; None: all.
        period: of a frame, in units of 100 ns.

    Returns:
        The labels of the utterances that are kept.

    Raises:
        DataError: a file cannot be read, or is malformed.
    """
    reader = _Reader(states, wanted, period)
    for path in paths:
        reader.read(path)
    parts = reader.parts
    if len(parts) == 1:
        return parts[0]
    shifts = starts_of([len(part.ends) for part in parts])
    first = [part.first[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    return Labels(
        [key for part in parts for key in part.keys],
        np.append(np.concatenate(first), shifts[-1]),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([part.classes for part in parts]),
        np.concatenate([part.contiguous for part in parts]),
        [place for part in parts for place in part.places],
        timed=True,
    )
