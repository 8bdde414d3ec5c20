"""Kaldi2Writer: the values of nodes as matrices in Kaldi archives, a matrix per utterance."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.targets import Targets, check_size, wanted_nodes

from .archive import read_lines
from .write import ArchiveWriter, check_key, open_writer, write_entry, write_object
from .writer_parameters import KaldiOutputParameters, KaldiWriterParameters, node_sections

log = logging.getLogger("cntkpy.readers")


def key_of(line: str) -> str:
    """Return the key of an utterance: of a path the name of the file up to its first dot, else the first field as it
    is.

    A line with a length after its first field is one of a list of utterances, which has keys and no paths.

    >>> key_of("out/a.b.c"), key_of("sp0.9-a"), key_of("a/b.c 7")
    ('a', 'sp0.9-a', 'a/b.c')
    """
    field, *extra = line.split()
    return field.rpartition("/")[2].partition(".")[0] if "/" in field and not extra else field


class Output:
    """Output of one node: an archive of all utterances, or a file for each."""

    def __init__(self, name: str, p: KaldiOutputParameters, dtype: np.dtype, overflow: float | None, targets: Targets):
        self.name, self.dim, self.dtype, self._overflow, self._targets = name, p.dim, dtype, overflow, targets
        self._parameters = p
        self._above = 0
        _ = p.kind  # there is no other
        if not 0 < self.dim < 2**24:
            raise p.error("dim", f"a frame of {self.dim} values cannot be written", "write 1 or more")
        if p.file is None:
            raise p.error("file", "the list of utterances to write is missing", "add scpFile=...", "MissingParameter")
        self.list = str(p.file)
        lines = [line for _, line in read_lines(self.list, "The list of utterances to write")]
        self.fields, self._keys = [line.split()[0] for line in lines], [check_key(key_of(line)) for line in lines]
        self.spec = p.specifier()
        self._files: dict[str, str] = {}
        if self.spec is not None and self.spec.archive is None:
            for _, line in read_lines(str(self.spec.script), "The script file"):
                key, _, path = line.partition(" ")
                self._files[key] = path.strip()
        self._stack, self._archive = ExitStack(), None

    def write(self, number: int, values: np.ndarray) -> None:
        """Write utterance `number`: values (frames, dim)."""
        check_size(values, self.dim, self.name, self._parameters)
        values = np.asarray(values, self.dtype)
        if self._overflow is not None:
            self._above += int(np.count_nonzero(values > self._overflow))
        field, key = self.fields[number], self._keys[number]
        if self.spec is None:
            self._take(field, "file")
            write_entry(field, key, values)
        elif self.spec.archive is None:
            self._write_by_script(key, values)
        else:
            if self._archive is None:
                for path in (self.spec.archive, self.spec.script):
                    if path not in (None, "-"):
                        self._take(path, "Kaldicmd")
                self._archive: ArchiveWriter | None = self._stack.enter_context(open_writer(self.spec))
            self._archive.write_matrix(key, values)
        log.info("evaluate: writing %d frames of %s", len(values), field)

    def _take(self, path: str, name: str) -> None:
        """See that a file may be written, which a parameter asks for."""
        self._targets.take(path, self.name, self._parameters, name)

    def _write_by_script(self, key: str, values: np.ndarray) -> None:
        assert self.spec is not None
        path = self._files.get(key)
        if path is None:
            raise DataError(f"The script file {self.spec.script} names no file for {key}.", path=self.spec.script)
        self._take(path, "Kaldicmd")
        write_object(path, values, as_text=self.spec.as_text)

    def close(self) -> None:
        """Finish the archive."""
        if self._above:
            log.warning(
                "%s: %d values above overflowValue (%g) were written as they are.",
                self.name,
                self._above,
                self._overflow,
            )
        self._stack.close()

    def abandon(self, error: BaseException) -> None:
        """Remove the written part of the archive."""
        self._stack.__exit__(type(error), error, None)


class KaldiWriter:
    """Writes utterance after utterance; call n of `save` is line n of every list."""

    def __init__(self, outputs: list[Output], targets: Targets):
        self.outputs = sorted(outputs, key=lambda output: output.name)
        self._targets = targets
        self._written = 0
        counts = {len(output.fields) for output in outputs}
        if len(counts) > 1:
            lists = ", ".join(f"{output.list}: {len(output.fields)}" for output in outputs)
            raise DataError(f"The lists of utterances to write have different numbers of lines ({lists}).")
        taken: dict[str, str] = {}
        for output in self.outputs:
            if output.spec is not None and output.spec.archive is not None:
                other_name = taken.setdefault(output.spec.archive, output.name)
                if other_name != output.name:
                    raise DataError(
                        f"The nodes '{other_name}' and '{output.name}' would be written to the same archive, "
                        f"{output.spec.archive}.",
                        hint="name an archive for each",
                    )

    def spare(self, paths: Iterable[str]) -> None:
        """These files are read; none of them is written over."""
        self._targets.spare(paths)

    def sections(self) -> dict[str, str]:
        """Return the nodes that are written."""
        return {output.name: "Kaldi" for output in self.outputs}

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write an utterance: by node, values (frames, dim). Returns whether there are more lines in the lists."""
        values = {name.lower(): np.asarray(array) for name, array in data.items()}
        for output in self.outputs:
            if self._written >= len(output.fields):
                raise DataError(
                    f"index for output scp file out of range: {output.list} lists {len(output.fields)} utterances, but "
                    "there are more.",
                    path=output.list,
                    hint="list the utterances of the reader in the same order",
                )
            if output.name.lower() not in values:
                raise DataError(f"There are no values of the node '{output.name}'.")
            output.write(self._written, values[output.name.lower()])
        self._written += 1
        return self._written < len(self.outputs[0].fields)

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Archives hold no names of classes."""
        raise DataError("Names of classes cannot be written to Kaldi archives.")

    def close(self) -> None:
        """Finish the archives."""
        for output in self.outputs:
            output.close()

    def abandon(self) -> None:
        """Archives that were begun are removed; files of single utterances stay."""
        for output in self.outputs:
            output.abandon(DataError("abandoned"))


def create_kaldi_writer(section: ConfigParameters, precision: str) -> KaldiWriter:
    """Kaldi2Writer.

    Raises:
        ConfigError: a node has no section, or that cannot be.
        DataError: a list cannot be read, or a specifier is malformed or a command.
    """
    p = KaldiWriterParameters(section)
    dtype, overflow = np.dtype(DTYPES[precision]), p.overflow if p.verbosity else None
    outputs: dict[str, Output] = {}
    targets = Targets()
    for name, inside in node_sections(section):
        outputs[name.lower()] = Output(name, KaldiOutputParameters(inside), dtype, overflow, targets)
    wanted = wanted_nodes(section, list(p.nodes), [output.name for output in outputs.values()])
    return KaldiWriter([outputs[name.lower()] for name in wanted], targets)
