"""Shared code of speech writers: the size of a node, and files that are not written over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from cntkpy.cntk_config.declare import Declared
from cntkpy.readers.errors import DataError


class Targets:
    """The files of a writer. Each is written once, and none of them is one that is read."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._read: set[tuple[int, int]] = set()

    def spare(self, paths: Iterable[str]) -> None:
        """These files are read."""
        for path in paths:
            with suppress(OSError):
                status = os.stat(path)  # noqa: PTH116  there may be very many
                self._read.add((status.st_dev, status.st_ino))

    def take(self, path: str, node: str, p: Declared, name: str) -> None:
        """A file is about to be written.

        Args:
            path: the file.
            node: whose values it gets.
            p: the section that asks for it.
            name: the parameter there that says so.

        Raises:
            DataError: it was written before.
            ConfigError: it is one of those that are read.
        """
        same = os.path.normpath(path)
        if same in self._taken:
            raise DataError(
                f"The values of the node '{node}' would be written to {path}, which was written before.",
                path=path,
                hint="give each node files of its own, and each utterance another name",
            )
        with suppress(OSError):
            status = os.stat(path)  # noqa: PTH116
            if (status.st_dev, status.st_ino) in self._read:
                raise p.error(name, f"{path} would be written over, which the reader reads", "name other files")
        self._taken.add(same)


def check_size(values: np.ndarray, dim: int, node: str, p: Declared) -> None:
    """An error at `dim` if values are not (frames, dim)."""
    if values.ndim != 2 or values.shape[1] != dim:
        count = values.shape[-1]
        raise p.error("dim", f"is {dim}, but the node '{node}' has {count} values per frame", f"write {count}")
