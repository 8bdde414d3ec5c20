"""Runs as event files of TensorBoard, by the package tensorboardX."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from commands.tracking.tracker import Place


class TensorBoardTracker:
    """Writes scalars, and the configuration as a text, into a folder."""

    def __init__(self, place: Place) -> None:
        package: Any = importlib.import_module("tensorboardX")
        self._writer: Any = package.SummaryWriter(place.target or "tensorboard")
        self._tags = place.tags

    def started(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """The configuration and the tags become tables in the tab of texts."""
        self._writer.add_text("configuration", _table(parameters))
        self._writer.add_text("run", _table({**tags, **self._tags}))

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Each value is a scalar."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def artifact(self, path: str) -> None:
        """TensorBoard keeps no files."""

    def finished(self, status: int, error: str) -> None:
        """Close the file."""
        self._writer.close()


def _table(texts: Mapping[str, str]) -> str:
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in texts.items()]
    return "\n".join(["| name | value |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
