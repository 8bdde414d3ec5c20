"""Shared code of speech writers: the nodes, their sizes, and files that are not written over."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import numpy as np

from cntkpy.cntk_config.declare import Declared
from cntkpy.cntk_config.parameters import ConfigParameters
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


def wanted_nodes(section: ConfigParameters, named: Sequence[str], outputs: Collection[str]) -> list[str]:
    """Return the nodes that are written.

    Args:
        section: The section of the writer.
        named: What its outputNodeNames says; empty: all of `outputs`.
        outputs: The nodes that have a section.

    Raises:
        ConfigError: There is none, or one has no section.
    """
    wanted = [str(name) for name in named] or list(outputs)
    if not wanted:
        raise section.error(
            "outputNodeNames",
            "there is no node to write",
            "add outputNodeNames and a section for each",
            "MissingParameter",
        )
    known = {name.lower() for name in outputs}
    missing = next((name for name in wanted if name.lower() not in known), None)
    if missing is not None:
        raise section.error(
            "",
            f"the writer has no section for the node '{missing}'",
            f"add {missing}=[dim=... ; scpFile=...]",
            "MissingParameter",
        )
    return wanted
