"""The folder of a trial: `config.resolved.cntk`, `log`, `log.jsonl`, and what the commands write.

A trial that was interrupted runs once more in the same folder and resumes from its checkpoints. The log of a run begins
anew; so what is there before is kept aside as `log.before` and put in front of the new log when the run has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cntkpy.cntk_config import load
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import LIST_LIMIT, open_input, read_input
from cntkpy.cntk_config.base.lines import split_lines
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.cntk_config.export import Export
from cntkpy.commands.runs import plain
from cntkpy.commands.sweeps.choices import Space
from cntkpy.commands.sweeps.locks import hold
from cntkpy.commands.sweeps.outputs import OUTSIDE, OUTSIDE_HINT, moving_words, outside
from cntkpy.commands.words import RESOLVED, same_directory

LOG, EVENTS, OUTPUT, LOCK = "log", "log.jsonl", "output", ".trial.lock"
BEFORE = ".before"
COMPLETED = "COMPLETED."
FAILED = "EXCEPTION occurred: "


@dataclass(frozen=True)
class TrialFolder:
    """The folder of one trial, absolute."""

    path: Path

    @property
    def log(self) -> Path:
        """The log of the run."""
        return self.path / LOG

    @property
    def events(self) -> Path:
        """The events of the run, one JSON object a line."""
        return self.path / EVENTS

    def claim(self) -> int | None:
        """Make the folder and lock it, see `hold`; None: another process has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        return hold(self.path / LOCK)

    def words(self, space: Space, values: Mapping[str, str]) -> list[str]:
        """Return the command line of the trial; writes its resolved configuration, with the origin of each value.

        The file has no users, passwords and queries of URLs.

        Raises:
            UserError: the configuration cannot be read, or an output cannot be moved into the folder.
        """
        words = space.words_for(dict(values))
        with same_directory():
            words += moving_words(load(words), self.path)
            root = load(words)
            for path in outside(root, self.path):
                raise UserError("CannotWrite", OUTSIDE.format(path), hint=OUTSIDE_HINT)
            text = Export(root, origins=True, on_error=str).cntk()
        with atomic_write(self.path / RESOLVED, "w", durable=False) as file:
            file.write(masked(text))
        return [*words, f'stderr="{self.log}"', "logFormat=json", "timestamping=false"]

    def is_completed(self) -> bool:
        """Return whether a run in it has come to its end without an error."""
        lines = _read(self.log).split()
        return bool(lines) and lines[-1] == COMPLETED

    def begin(self) -> None:
        """Keep aside what earlier runs have logged."""
        for path in (self.log, self.events):
            if there := _read(path):
                previous_text = _read(_before(path))
                if not previous_text.endswith(there):
                    _write(_before(path), previous_text + _whole_lines(there))
                path.unlink()

    def end(self, succeeded: bool) -> None:
        """Put the log of earlier runs in front of the log; remove the output of a run that `succeeded`."""
        for path in (self.log, self.events):
            if previous_text := _read(_before(path)):
                there = _read(path)
                if not there.startswith(previous_text):
                    _write(path, previous_text + there)
                _before(path).unlink()
        if succeeded:
            (self.path / OUTPUT).unlink(missing_ok=True)

    def earlier_events(self) -> Iterator[dict[str, Any]]:
        """Return the events of earlier runs, which `begin` has kept aside."""
        return plain.objects(_read(_before(self.events)))

    def all_events(self) -> Iterator[dict[str, Any]]:
        """Return the events of all runs."""
        yield from self.earlier_events()
        yield from plain.objects(_read(self.events))

    def error(self, status: int) -> str:
        """Why the run ended: the last error of its log, or what it printed before it had one."""
        for path in (self.log, self.path / OUTPUT):
            _, head, text = _read(path).rpartition(FAILED)
            if head:
                return text.strip()
        printed = _read(self.path / OUTPUT).strip()
        return split_lines(printed)[-1] if printed else f"the run ended with exit status {status}"


class Follower:
    """The events of a run that goes on, as they are written."""

    def __init__(self, path: Path) -> None:
        self._path, self._read, self._tail = path, 0, b""

    def new(self) -> Iterator[dict[str, Any]]:
        """Return the events since the last call."""
        try:
            with open_input(self._path) as file:
                file.seek(self._read)
                got = file.read()
        except OSError:
            return
        self._read += len(got)
        whole, newline, self._tail = (self._tail + got).rpartition(b"\n")
        if newline:
            yield from plain.objects(whole.decode("utf-8", "replace"))


def seconds_of(events: Iterator[dict[str, Any]]) -> float:
    """Return the total time of the finished epochs, in seconds."""
    return sum(plain.finite(event.get("seconds")) or 0.0 for event in events if event.get("event") == "epoch finished")


def _before(path: Path) -> Path:
    return path.with_name(path.name + BEFORE)


def _read(path: Path) -> str:
    try:
        return read_input(path, LIST_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _write(path: Path, text: str) -> None:
    with atomic_write(path, "w", durable=False) as file:
        file.write(text)
