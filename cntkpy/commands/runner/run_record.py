"""The record of a run: a folder with its configuration, events and log, in `runs` next to the model."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.writing import atomic_write, open_text_in_place
from cntkpy.cntk_config.export import Export
from cntkpy.commands.catalogue.section_map import TopLevel
from cntkpy.commands.checks.scan import trained_model, trains
from cntkpy.commands.runner.log import LogHandler, Record
from cntkpy.commands.runner.log_events import EventHandler
from cntkpy.commands.words import RECORD, RESOLVED, is_config_word

FOLDER, LOG, EVENTS = "runs", "log", "log.jsonl"
MAX_PENDING = 10_000
"""Records that wait until the run has looked at its configuration."""
MAX_DENSE, SPARSE_SECONDS = 1000, 1.0
"""Values inside of epochs that are all kept, and the least time between two of those that follow."""
MAX_NAME = 60
"""Characters of the name of a configuration in that of a folder."""
MAX_TRIES = 1000
"""Runs of one configuration that begin in one second."""
log = logging.getLogger("cntkpy.commands")


class RunRecord(Record):
    """Gets the records of a run from its beginning, and writes them once the run is sound.

    It takes what the run has computed: nothing else is computed for it but the outline of the network. Of values inside
    of epochs, after the first `MAX_DENSE` one in `SPARSE_SECONDS` is kept.

    Args:
        root: The configuration.
        banner: The first lines of the log, which stand before it.
    """

    def __init__(self, root: ConfigParameters, banner: str) -> None:
        super().__init__(logging.DEBUG)
        self._root, self._banner = root, banner
        self._pending: list[logging.LogRecord] = []
        self._targets: list[logging.Handler] = []
        self._stream: TextIO | None = None
        self._inside, self._last_inside = 0, 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or keep it until the folder is there."""
        if self._is_too_dense(record):
            return
        if not self._targets:
            if len(self._pending) < MAX_PENDING:
                self._pending.append(record)
            return
        for target in self._targets:
            if record.levelno >= target.level:
                target.emit(record)

    def _is_too_dense(self, record: logging.LogRecord) -> bool:
        """Return True for a progress value that the log does not show and that follows the last one too closely."""
        values: dict[str, Any] = getattr(record, "event", None) or {}
        if values.get("event") != "progress" or record.levelno > logging.DEBUG:
            return False
        self._inside += 1
        if self._inside > MAX_DENSE and record.created - self._last_inside < SPARSE_SECONDS:
            return True
        self._last_inside = record.created
        return False

    def begin(self, parent: Path, name: str) -> None:
        """Make the folder, and write what has happened; a folder that cannot be made is a warning.

        Args:
            parent: The folder of records.
            name: The name of the run.
        """
        self.acquire()  # trackers log in threads of their own
        try:
            self._begin(parent, name)
        finally:
            self.release()

    def _begin(self, parent: Path, name: str) -> None:
        try:
            folder = _new_folder(parent, name)
            text = Export(self._root, origins=True, on_error=str).cntk()
            with atomic_write(folder / RESOLVED, "w", durable=False) as file:
                file.write(masked(text))
            self._stream = open_text_in_place(folder / LOG, "backslashreplace")
            self._stream.write(f"{self._banner}\n")
            self._targets = [EventHandler(str(folder / EVENTS), _ignore), _TextLog(self._stream)]
        except OSError as error:
            self._pending = []
            self.setLevel(logging.CRITICAL + 1)
            log.warning(
                "WARNING: the run is not recorded: %s: %s; record=false says so", parent, error.strerror or error
            )
            return
        pending, self._pending = self._pending, []
        for record in pending:
            self.emit(record)

    def close(self) -> None:
        """Close the files."""
        for target in self._targets:
            target.close()
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
        super().close()


class _TextLog(LogHandler):
    """The log as text; that it cannot be written does not end the run."""

    def fail(self, target: str, error: OSError) -> None:
        """Leave the record as it is."""


def _ignore(error: OSError) -> None:
    """Leave the record as it is: the run is worth more."""


def _new_folder(parent: Path, name: str) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, MAX_TRIES):
        folder = parent / (f"{stamp}-{name}" if number == 1 else f"{stamp}-{name}-{number}")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise FileExistsError(None, "too many runs in one second", str(parent))


def place_of_record(words: Sequence[str], top: TopLevel) -> tuple[Path, str] | None:
    """Return the folder of records and the name of a run; None: it is not recorded.

    Args:
        words: The command line.
        top: The top level of the configuration.

    Raises:
        ConfigError: `record` or `runFolder` cannot be read.
    """
    parameters = top.values
    asked = next((word for word in words if word.partition("=")[0] == RECORD), None)
    wanted = parameters.record if parameters.given("record") is not None else asked is not None
    if not wanted:
        return None
    trainings = [use for use in top.parts if top.runs(use) and trains(use)]
    try:
        model = next((trained_model(use.section) for use in trainings), None)
    except ConfigError:
        return None  # the run says it
    if model is None or "://" in model:
        return None
    given_folder = str(parameters.run_folder)
    parent = Path(given_folder) if given_folder else Path(model).parent / FOLDER
    return parent, _name((asked or "").partition("=")[2], words)


def _name(run: str, words: Sequence[str]) -> str:
    """Return the name of a run: the one that a project gives it, or those of its files, joined by dashes."""
    files = [part for word in words if is_config_word(word) for part in word.partition("=")[2].split("+")]
    name = run or "-".join(Path(file.strip()).stem for file in files)
    return re.sub(r"[^\w-]+", "-", name)[:MAX_NAME].strip("-") or "run"
