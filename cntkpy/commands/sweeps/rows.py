"""`trials.jsonl`: what became of every trial that has ended, one JSON object a line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cntkpy.cntk_config.base.files import LIST_LIMIT, open_input, read_input
from cntkpy.cntk_config.base.lines import json_line
from cntkpy.cntk_config.base.names import shareable
from cntkpy.cntk_config.base.writing import open_in_place
from cntkpy.commands.runs import plain

NAME = "trials.jsonl"
State = Literal["finished", "failed", "pruned"]


@dataclass(frozen=True)
class Row:
    """Outcome of a trial.

    Attributes:
        number: the name of its folder.
        state: `finished`; `failed`, with an error; or `pruned`: ended early, since others were better.
        values: the texts of the choices, by path.
        criterion: the newest value of the criterion; None: there is none.
        epochs: how many have finished.
        seconds: how long it ran; of runs that were interrupted, their finished epochs.
        error: what was wrong, or an empty text.
        same: the number of an earlier trial with the same values, whose outcome this one has; None: it ran.
    """

    number: int
    state: State
    values: dict[str, str]
    criterion: float | None
    epochs: int
    seconds: float
    error: str = ""
    same: int | None = None


class Rows:
    """The file of a sweep, which several processes append to."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def read(self) -> dict[int, Row]:
        """Return all rows by number; a line that a killed process left unfinished is none."""
        try:
            text = read_input(self.path, LIST_LIMIT).decode("utf-8", "replace")
        except FileNotFoundError:
            return {}
        return {row.number: row for row in _rows(text)}

    def append(self, row: Row) -> None:
        """Add a row, in one write.

        Raises:
            OSError: the file cannot be written.
        """
        shown = shareable(asdict(row))
        shown["seconds"] = round(row.seconds, 3)
        if row.same is None:
            del shown["same"]
        if row.criterion is not None and not math.isfinite(row.criterion):
            shown["criterion"] = None
        line = json_line(shown) + "\n"
        if not self._ends_whole():
            line = "\n" + line
        descriptor = open_in_place(self.path, append=True)
        try:
            os.write(descriptor, line.encode())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        finally:
            os.close(descriptor)

    def _ends_whole(self) -> bool:
        try:
            with open_input(self.path) as file:
                file.seek(-1, os.SEEK_END)
                return file.read() == b"\n"
        except OSError:  # it is not there, or empty
            return True


def _rows(text: str) -> Iterator[Row]:
    for row in plain.objects(text):
        match row:
            case {"number": number, "state": "finished" | "failed" | "pruned" as state, "values": dict()} if (
                plain.is_count(number)
            ):
                values: dict[str, Any] = row["values"]
                yield Row(
                    plain.count(number),
                    state,
                    {path: str(value) for path, value in values.items()},
                    plain.finite(row.get("criterion")),
                    plain.count(row.get("epochs")),
                    plain.finite(row.get("seconds")) or 0.0,
                    plain.text(row.get("error")),
                    plain.count(row["same"]) if plain.is_count(row.get("same")) else None,
                )
            case _:
                continue
