"""Runs as event files of TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping

from cntkpy.commands.tracking.tracker import Place
from cntkpy.trainers.log.event_files import EventFile


class TensorBoardTracker:
    """Writes scalars, and the configuration as a text, into a folder."""

    def __init__(self, place: Place) -> None:
        self._file = EventFile(place.target or "tensorboard")
        self._tags = place.tags

    def started(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """The configuration and the tags become tables in the tab of texts."""
        self._file.text("configuration", _table(parameters))
        self._file.text("run", _table({**tags, **self._tags}))

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Each value is a scalar."""
        for name, value in values.items():
            self._file.scalar(name, value, step)
        self._file.flush()

    def artifact(self, path: str) -> None:
        """TensorBoard keeps no files."""

    def finished(self, status: int, error: str) -> None:
        """Close the file."""
        self._file.close()


def _table(texts: Mapping[str, str]) -> str:
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in texts.items()]
    return "\n".join(["| name | value |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
