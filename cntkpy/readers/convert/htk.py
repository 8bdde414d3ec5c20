"""HTK features with MLF labels: read utterance by utterance, written as one archive with a script file."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.formats.htk.archive import FeatureFile
from cntkpy.readers.formats.htk.format import HEADER, make_header
from cntkpy.readers.formats.htk.mlf import read_labels
from cntkpy.readers.formats.htk.script import key_of, read_script
from cntkpy.readers.minibatch import as_dense
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.labels import read_states

from .batches import Batch, Part, Stream, class_numbers, dense_pieces
from .sources import Input, from_reader
from .targets import Target, features_and_classes, sequence_lengths

PERIOD = 100000
"""Of a frame, in units of 100 ns: 10 ms."""


def from_htk(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Utterances. Streams: `features`, and `labels` if there are label files.

    paths: a script file, or a feature file, which is one utterance; label files (.mlf); the list of states, if these
    name them. Without it, classes are the numbers at the end of their lines.
    """
    script, *other_paths = paths
    label_files = [path for path in other_paths if Path(path).suffix.lower() == ".mlf"]
    states = [path for path in other_paths if path not in label_files]
    if Path(script).suffix.lower() != ".scp":
        if other_paths:
            raise ConfigError("TooManyFiles", f"labels belong to a script file, not to {script}")
        return _one_file(script, precision)
    if len(states) > 1 or (states and not label_files):
        raise ConfigError(
            "TooManyFiles",
            f"what is {states[-1]}?",
            hint="name a script file, label files (.mlf), and one list of states",
        )
    files = read_script([script])
    dim = FeatureFile(files.files[int(files.file[0])]).header.dim
    features = {"scpFile": script, "dim": dim}
    parts: list[Any] = [{"type": "HTKFeatureDeserializer", "input": {"features": features}}]
    names: dict[int, str] = {}
    if label_files:
        labels: dict[str, Any] = {"mlfFile": label_files if len(label_files) > 1 else label_files[0]}
        if states:
            labels["labelMappingFile"] = states[0]
            names = read_states(states[0]).mapping()
        labels["labelDim"] = _classes(label_files, states, streams)
        parts.append({"type": "HTKMLFDeserializer", "input": {"labels": labels}})
    from cntkpy.readers.registry import create_reader

    section = to_section({"randomize": False, "deserializers": parts})
    read = from_reader(create_reader(section, precision), precision)
    read.streams = [Stream(s.name, s.dim, "class" if s.name == "labels" else "dense") for s in read.streams]
    read.labels = {"labels": names} if names else {}
    return read


def _classes(label_files: Sequence[str], states: Sequence[str], streams: Sequence[Stream]) -> int:
    dim = next((s.dim for s in streams if s.name == "labels"), None)
    if dim is not None:
        return dim
    if states:
        return len(read_states(states[0]))
    return 1 + int(read_labels(label_files, None, None).classes.max(initial=0))


def _one_file(path: str, precision: str) -> Input:
    file = FeatureFile(path)
    frames, dim = file.header.frames, file.header.dim
    if not frames:
        raise UserError("BadFile", f"{path} has no frames")

    def batches() -> Iterator[Batch]:
        rows = np.asarray(file.frames(), DTYPES[precision])
        yield Batch([key_of(Path(path).name)], {"features": Part(rows, np.array([frames]))})

    return Input([Stream("features", dim)], batches(), frames, precision=precision)


class HTKTarget:
    """An archive with the frames of all sequences, the script file that lists them, and an MLF with their classes."""

    def __init__(
        self,
        files: tuple[IO[bytes], IO[bytes], IO[bytes] | None],
        inside: str,
        features: Stream,
        labels: Stream | None,
        names: dict[int, str],
    ):
        self._archive, self._script, self._mlf = files
        self._inside, self._features, self._labels, self._names = inside, features, labels, names
        self._frames = self._count = 0
        self._archive.write(bytes(HEADER))
        if self._mlf:
            self._mlf.write(b"#!MLF!#\n")

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        sequence_lengths(batch, [self._features, *([self._labels] if self._labels else [])], "frames")
        for piece in dense_pieces(batch, [self._features]):
            self._write(piece)

    def _write(self, batch: Batch) -> None:
        lengths = batch.parts[self._features.name].lengths
        self._archive.write(as_dense(batch.parts[self._features.name].rows).astype(">f4").tobytes())
        classes = None
        if self._labels:
            classes = class_numbers(batch.parts[self._labels.name].rows, self._labels.name)
        position = 0
        for i, length in enumerate(lengths.tolist()):
            key = str(batch.keys[i]) if len(batch.keys) else str(self._count)
            self._count += 1
            if not length:
                raise UserError("EmptySequence", f"sequence {key} has no samples: an utterance has a frame at least")
            first = self._frames + position
            line = f"{key}.fea={self._inside}[{first},{first + length - 1}]\n"
            self._script.write(line.encode("utf-8", "surrogateescape"))
            if self._mlf and classes is not None:
                self._mlf.write(
                    self._entry(key, classes[position : position + length]).encode("utf-8", "surrogateescape")
                )
            position += length
        self._frames += position

    def _entry(self, key: str, classes: np.ndarray) -> str:
        """Return the ranges of equal class: begin and end in 100 ns, the name of the state, the class."""
        begins = np.flatnonzero(np.diff(classes, prepend=-1))
        lines: list[str] = []
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(classes)], strict=True):
            number = int(classes[begin])
            name = "".join(self._names.get(number, "").split()) or f"s{number}"
            lines.append(f"{begin * PERIOD} {end * PERIOD} {name} {number}\n")
        return f'"*/{key}.lab"\n{"".join(lines)}.\n'

    def finish(self) -> None:
        """Write the header, with the number of frames."""
        self._archive.seek(0)
        self._archive.write(make_header(self._frames, self._features.dim, period=PERIOD).pack())


@contextmanager
def to_htk(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A script file; next to it an archive `.ark` and, if there is a stream of classes, label file `.mlf`."""
    features, labels = features_and_classes(streams, "HTK files")
    if Path(path).suffix.lower() != ".scp":
        raise ConfigError(
            "UnknownFormat",
            f"{path} is not the name of a script file",
            hint="write NAME.scp; NAME.ark and NAME.mlf stand next to it",
        )
    make_header(0, features.dim)
    archive, mlf = Path(path).with_suffix(".ark"), Path(path).with_suffix(".mlf")
    with ExitStack() as stack:  # the script file appears last
        script = stack.enter_context(atomic_write(path))
        files = (
            stack.enter_context(atomic_write(str(archive))),
            script,
            stack.enter_context(atomic_write(str(mlf))) if labels else None,
        )
        names = dict(source.labels.get(labels.name, {})) if labels else {}
        target = HTKTarget(files, f".../{archive.name}", features, labels, names)
        yield target
        target.finish()
