"""LUSequenceWriter and LMSequenceWriter: the words that a network finds likeliest, a sentence a line."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.cntk_config.base.writing import output_file, shown
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.errors import DataError

from .parameters import SequenceOutputParameters
from .vocabulary import load_tokens, load_word_classes


class _Output:
    def __init__(self, p: SequenceOutputParameters, words: list[bytes], file: IO[bytes]):
        self._words, self._best, self._file, self._path = words, p.best, file, str(p.file)

    def write(self, values: np.ndarray) -> None:
        """A line of words from values (steps, elements)."""
        values = values[:, : len(self._words)]
        if self._best <= 1:
            chosen = values.argmax(axis=1)
        else:
            order = np.argsort(-values, axis=1, kind="stable")[:, : self._best]
            chosen = order[np.take_along_axis(values, order, axis=1) != 0]
        try:
            self._file.write(b"".join(self._words[number] + b" " for number in map(int, chosen)) + b"\n")
        except OSError as error:
            raise DataError(
                f"{shown(self._path)} cannot be written: {error.strerror or error}", path=self._path
            ) from None


class SequenceWriter:
    """Writes a file for every node. The files appear when everything has been written."""

    def __init__(self, section: ConfigParameters, with_classes: bool):
        self._stack = ExitStack()
        self._outputs: dict[str, _Output] = {}
        try:
            for name, inside in section.inner():
                p = SequenceOutputParameters(inside)
                words = (load_word_classes(p, "token") if with_classes else load_tokens(p, False)).words
                try:
                    file = self._stack.enter_context(output_file(str(p.file)))
                except UserError as error:
                    raise p.error("file", error.message) from None
                self._outputs[name.lower()] = _Output(p, words, file)
        except BaseException:
            self.abandon()
            raise
        if not self._outputs:
            raise section.error("", "the writer has no section", "add NODE=[file=... ; token=...]", "MissingParameter")

    def sections(self) -> dict[str, str]:
        """Nothing: the sections are those of the configuration."""
        return {}

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write a line for every node, from values (steps, elements)."""
        for name, values in data.items():
            output = self._outputs.get(name.lower())
            if output is None:
                hint = suggestion(name, self._outputs) or f"add {name}=[file=... ; token=...]"
                raise DataError(f"The writer has no section for the node '{name}'.", hint=hint)
            output.write(values if is_dense(values) else values.toarray())
        return True

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Words come from `token`."""

    def close(self) -> None:
        """Finish the files."""
        self._stack.close()

    def abandon(self) -> None:
        """Leave no files after."""
        try:
            with self._stack:
                raise _Abandoned
        except _Abandoned:
            pass


class _Abandoned(Exception):
    """Takes temporary files away."""


def create_lu_sequence_writer(section: ConfigParameters, precision: str) -> SequenceWriter:
    """LUSequenceWriter."""
    return SequenceWriter(section, with_classes=False)


def create_lm_sequence_writer(section: ConfigParameters, precision: str) -> SequenceWriter:
    """LMSequenceWriter."""
    return SequenceWriter(section, with_classes=True)
