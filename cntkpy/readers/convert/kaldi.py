"""Kaldi archives: features with alignments, read utterance by utterance, written as archives with a list of lengths."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.formats.kaldi.archive import Table, open_table
from cntkpy.readers.formats.kaldi.labels import read_classes
from cntkpy.readers.formats.kaldi.matrices import Matrices
from cntkpy.readers.formats.kaldi.specifier import WriteSpecifier
from cntkpy.readers.formats.kaldi.write import ArchiveWriter, open_writer
from cntkpy.readers.minibatch import as_dense

from .batches import Batch, Stream, class_numbers, dense_pieces
from .sources import Input, from_reader
from .targets import Target, features_and_classes, sequence_lengths


def specifier(path: str) -> str:
    """Return a file as a specifier: a script by its suffix, else an archive; a specifier as it is."""
    if path.startswith(("ark:", "ark,", "scp:", "scp,")):
        return path
    return f"scp:{path}" if Path(path).suffix.lower() == ".scp" else f"ark:{path}"


def from_kaldi(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Utterances. Streams: `features`, and `labels` if there is a second table, of alignments or posteriors.

    paths: specifiers, archives or script files.
    """
    from cntkpy.readers.formats.kaldi import object_kernels as k
    from cntkpy.readers.registry import create_reader

    if len(paths) > 2:
        raise ConfigError(
            "TooManyFiles",
            f"what is {paths[2]}?",
            hint="name a table of features, and one of alignments: feats.ark ali.ark",
        )
    table = open_table(specifier(paths[0]), k.MATRICES)
    if _is_of_values(table, streams):
        table.take_values_as_frames()
    columns = Matrices(table, np.arange(len(table))).columns
    if not columns:
        raise UserError("BadFile", f"{paths[0]} has no frames")
    features = {"rx": specifier(paths[0]), "dim": columns}
    parts: list[Any] = [{"type": "KaldiFeatureDeserializer", "input": {"features": features}}]
    if len(paths) > 1:
        dim = next((s.dim for s in streams if s.name == "labels"), None)
        classes = dim or 1 + int(read_classes(specifier(paths[1])).classes.max(initial=0))
        labels = {"mlfFile": specifier(paths[1]), "labelDim": classes}
        parts.append({"type": "KaldiLabelDeserializer", "input": {"labels": labels}})
    section = to_section({"randomize": False, "deserializers": parts})
    read = from_reader(create_reader(section, precision), precision)
    read.streams = [Stream(s.name, s.dim, "class" if s.name == "labels" else "dense") for s in read.streams]
    read.labels = {}
    return read


def _is_of_values(table: Table, streams: Sequence[Stream]) -> bool:
    """Return whether the values of its vectors are frames: that is asked for, or they have as many as there are
    frames."""
    from cntkpy.readers.formats.kaldi import object_kernels as k

    every = np.arange(len(table))
    table.require(every)
    sizes = {table.entries[number, k.COLS] for number in every.tolist() if table.is_vector(number)}
    asked = any(s.name == "features" and s.dim == 1 for s in streams)
    return asked or (len(sizes) > 1 and all(map(table.is_vector, every.tolist())))


class KaldiTarget:
    """An archive of features, one of alignments, and the list of lengths that Kaldi2Reader calls scpFile."""

    def __init__(
        self, features: ArchiveWriter, labels: ArchiveWriter | None, counts: IO[bytes], streams: Sequence[Stream]
    ):
        self._writer, self._label_writer, self._counts = features, labels, counts
        self._features = next(s for s in streams if s.form != "class")
        self._labels = next((s for s in streams if s.form == "class"), None)
        self._count = 0

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        sequence_lengths(batch, [self._features, *([self._labels] if self._labels else [])], "frames")
        for piece in dense_pieces(batch, [self._features]):
            self._write(piece)

    def _write(self, batch: Batch) -> None:
        part = batch.parts[self._features.name]
        rows, position = as_dense(part.rows), 0
        classes = class_numbers(batch.parts[self._labels.name].rows, self._labels.name) if self._labels else None
        for i, length in enumerate(part.lengths.tolist()):
            key = str(batch.keys[i]) if len(batch.keys) else str(self._count)
            self._count += 1
            self._writer.write_matrix(key, rows[position : position + length])
            if self._label_writer is not None and classes is not None:
                self._label_writer.write_integers(key, classes[position : position + length])
            self._counts.write(f"{key} {length}\n".encode("utf-8", "surrogateescape"))
            position += length


@contextmanager
def to_kaldi(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """An archive; next to it NAME.counts, the lengths, and, if there is a stream of classes, NAME.labels.ark."""
    _, labels = features_and_classes(streams, "Kaldi archives")
    if Path(path).suffix.lower() != ".ark":
        raise ConfigError(
            "UnknownFormat",
            f"{path} is not the name of an archive",
            hint="write NAME.ark; NAME.counts and NAME.labels.ark stand next to it",
        )
    with ExitStack() as stack:  # the archive of features appears last
        archive = stack.enter_context(open_writer(WriteSpecifier(f"ark:{path}", path, None)))
        counts = stack.enter_context(atomic_write(str(Path(path).with_suffix(".counts"))))
        beside = str(Path(path).with_suffix(".labels.ark"))
        second = stack.enter_context(open_writer(WriteSpecifier(f"ark:{beside}", beside, None))) if labels else None
        yield KaldiTarget(archive, second, counts, streams)
