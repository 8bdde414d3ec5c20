"""Features out of Kaldi archives: the utterances of a list, transformed, frames with their neighbours."""

from __future__ import annotations

import logging
import re

import numpy as np

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.errors import DataError
from cntkpy.readers.utterances.lists import picked

from .archive import Table, open_table, read_lines
from .matrices import Matrices, raise_missing
from .parameters import KaldiFeatureParameters, named_in, specifier_of
from .transform import Transform, read_transform

log = logging.getLogger("cntkpy.readers")
_MAX_NAMES_SHOWN = 5
_FRAMES = re.compile(r"[ \t]*[0-9]{1,18}[ \t]*")
_MOST_FRAMES = 2**31 - 1


class Counts:
    """A list of utterances: a line `key frames` each. lengths: int64[U]; lines: numbers of the lines."""

    def __init__(self, path: str):
        self.path = path
        self.keys: list[str] = []
        lengths: list[int] = []
        lines: list[int] = []
        for span, line in read_lines(path, "The list of utterances"):
            key, _, remainder = line.partition(" ")
            if not _FRAMES.fullmatch(remainder) or int(remainder) > _MOST_FRAMES:
                raise DataError(
                    f"{path}, line {span}: malformed path '{line}': a line is `key frames`.",
                    path=path,
                    line=span,
                    hint="feat-to-len RSPECIFIER ark,t:FILE writes such a list; scpFile is not a script file of Kaldi",
                )
            self.keys.append(key)
            lengths.append(int(remainder))
            lines.append(span)
        if not self.keys:
            raise DataError(f"The list of utterances {path} is empty.", path=path)
        self.lengths, self.lines = np.array(lengths, np.int64), np.array(lines, np.int64)


class KaldiFrames:
    """The frames of some utterances, and how wide a frame is once its neighbours stand next to it.

    Args:
        keys: the utterances.
        places: where each is listed, for messages: the file, and `line` or `byte` with their numbers.
        lengths: int64[U], frames.
        matrices: the rows of their matrices.
        transform: what is done to all frames of an utterance; None: nothing.
        left, right: how many neighbours are before and after a frame.
    """

    def __init__(
        self,
        keys: list[str],
        places: tuple[str, str, np.ndarray],
        lengths: np.ndarray,
        matrices: Matrices,
        transform: Transform | None,
        left: int,
        right: int,
    ):
        self.keys, self._places, self.lengths, self.matrices = keys, places, lengths, matrices
        self.transform, self.left, self.right = transform, left, right
        self.native = matrices.columns if transform is None else transform.outputs

    period = 0
    """An archive does not say how long a frame is."""

    @property
    def held(self) -> bool:
        """True if copying single frames is cheap."""
        return self.matrices.held

    @property
    def dim(self) -> int:
        """Values of a frame with its neighbours."""
        return self.native * (1 + self.left + self.right)

    @property
    def list_path(self) -> str:
        """The file that lists the utterances."""
        return self._places[0]

    @property
    def paths(self) -> list[str]:
        """The archives."""
        return self.matrices.table.paths

    def place(self, utterance: int) -> str:
        """Return the place in the list of an utterance, for messages."""
        path, noun, numbers = self._places
        return f"{path}, {noun} {numbers[utterance]}"

    def keep(self, which: np.ndarray) -> None:
        """Continue with these utterances only."""
        self.keys = picked(self.keys, which)
        path, noun, numbers = self._places
        self._places, self.lengths = (path, noun, numbers[which]), self.lengths[which]
        self.matrices.keep(which)

    def copy(self, which: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Frames begin..end-1 of utterances, (n, native), and where each begins; outside are edge frames."""
        if self.transform is None:
            return self.matrices.copy(which, begin, end)
        last = self.lengths[which] - 1
        low = np.maximum(np.clip(begin, 0, last) - self.transform.frames_before, 0)
        high = np.minimum(np.clip(end - 1, 0, last) + self.transform.after, last)
        rows, place = self.matrices.copy(which, low, high + 1)
        counts = high + 1 - low
        rows = self.transform.apply(rows, np.repeat(place, counts), np.repeat(place + counts - 1, counts))
        wanted = end - begin
        out = np.zeros(len(which) + 1, np.int64)
        np.cumsum(wanted, out=out[1:])
        step = np.arange(int(out[-1])) - np.repeat(out[:-1] - begin, wanted)
        position = np.clip(step, 0, np.repeat(last, wanted)) - np.repeat(low - place, wanted)
        return rows[position], out[:-1]


def open_features(p: KaldiFeatureParameters, dtype: np.dtype) -> KaldiFrames:
    """Return the features that a section describes.

    Args:
        p: the section.
        dtype: float32, or float64, which keeps the last digits of double matrices.

    Raises:
        ConfigError: the section cannot be.
        DataError: a file cannot be read, or does not fit the section.
    """
    from . import object_kernels as k

    p.check_together()
    specifier, path = specifier_of(str(p.rx))
    with named_in(path):
        table = open_table(specifier, k.MATRICES, f"{path}: " if path else "", "features")
    transform = read_transform(p.transform_file) if p.transform_file else None
    if (p.dim if transform is None else transform.inputs) == 1:
        table.take_values_as_frames()
    if p.counts is not None:
        counts = Counts(str(p.counts))
        which = table.find(counts.keys)
        if (which < 0).any():
            bad = int(np.argmax(which < 0))
            raise_missing(counts.keys[bad], table, f"{counts.path}, line {counts.lines[bad]}")
        matrices = Matrices(table, which, dtype, counts.lengths, f"scpFile ({counts.path})")
        kaldi_frames = KaldiFrames(
            counts.keys, (counts.path, "line", counts.lines), counts.lengths, matrices, transform, *p.window
        )
    else:
        kaldi_frames = _whole_table(p, table, dtype, transform)
    _check_dim(p, kaldi_frames)
    return kaldi_frames


def _whole_table(p: KaldiFeatureParameters, table: Table, dtype: np.dtype, transform: Transform | None) -> KaldiFrames:
    """Return all utterances of a table; empty ones are left out with a warning."""
    from . import object_kernels as k

    matrices = Matrices(table, np.arange(len(table)), dtype)
    numbers = table.entries[:, k.KEY] if table.lines is None else table.lines
    reason = "byte" if table.lines is None else "line"
    kaldi_frames = KaldiFrames(
        list(table.keys), (table.path, reason, numbers), matrices.rows, matrices, transform, *p.window
    )
    empty = np.flatnonzero(kaldi_frames.lengths == 0)
    if len(empty):
        names = printable(", ".join(picked(kaldi_frames.keys, empty[:_MAX_NAMES_SHOWN])))
        text = "%s: %d utterances have no frames and are left out: %s"
        log.warning(text, table.path, len(empty), names, extra=ABOUT_DATA)
        kaldi_frames.keep(np.flatnonzero(kaldi_frames.lengths))
    if not kaldi_frames.keys:
        raise DataError(f"{table.path} has no utterances.", path=table.path)
    return kaldi_frames


def _check_dim(p: KaldiFeatureParameters, kaldi_frames: KaldiFrames) -> None:
    """The dimension of the section is that of the data."""
    columns, transform, path = kaldi_frames.matrices.columns, kaldi_frames.transform, kaldi_frames.matrices.table.path
    if transform is not None and columns != transform.inputs:
        raise DataError(
            f"The transform {transform.path} takes frames of {transform.inputs} values, but those of "
            f"{kaldi_frames.keys[0]} in {path} have {columns}.",
            path=transform.path,
        )
    if kaldi_frames.native != p.dim:
        behind = f" after the transform {transform.path}" if transform is not None else ""
        hint = "dim is the size of one frame, before contextWindow"
        if kaldi_frames.matrices.table.is_vector(int(kaldi_frames.matrices.which[0])):
            hint += "; a vector is one frame; with dim=1, each of its values is"
        raise p.error(
            "dim",
            f"dim is {p.dim}, but a frame of {kaldi_frames.keys[0]} in {path} has {kaldi_frames.native} values{behind}",
            hint,
        )
