"""Find runs: an event file or a log is one, a folder has those below it, a model has those that saved it.

docs/runs.md says what a run is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cntkpy.cntk_config import ConfigError, load
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import LIST_LIMIT, open_input, read_input
from cntkpy.cntk_config.base.lines import split_lines
from cntkpy.cntk_config.base.systems.locks import lock
from cntkpy.commands.runs.events import json_events, run_of
from cntkpy.commands.runs.record import Run
from cntkpy.commands.runs.settings import settings_of
from cntkpy.commands.runs.text_log import PROGRAM, log_events
from cntkpy.commands.words import RESOLVED

EVENTS = ".jsonl"
OTHER_WORKER = re.compile(r"\.(log)?rank\d+(\.jsonl)?$")
"""Files of workers after the first, which say the same."""
SAME_SECONDS = 2.0
"""Seconds between the first line of a log and the first event of the same run."""
BANNER_BYTES = 400
"""The first line of a log is shorter."""


def read_run(path: Path) -> Run:
    """Return the run of an event file, or of a log.

    Raises:
        UserError: it cannot be read.
    """
    try:
        text = read_input(path, LIST_LIMIT).decode("utf-8", "replace")
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        if isinstance(error, FileNotFoundError):  # a wrong word of the command line
            raise ConfigError("CannotRead", message, hint="name a log, an event file or a folder with runs") from None
        raise UserError("CannotRead", message) from None
    run = run_of(path, json_events(text) if path.suffix == EVENTS else log_events(split_lines(text)))
    log = path.with_suffix("")
    if path.suffix == EVENTS and not run.words and _is_log(log):  # of a version whose runs had no first and last event
        logged = read_run(log)
        run.state, run.error, run.words = logged.state, logged.error, logged.words
        run.versions, run.place = logged.versions, logged.place
    if run.state == "killed" and _is_written(path):
        run.state = "running"
    return run


def find_runs(words: Iterable[str], empty_folders: bool = False) -> list[Run]:
    """Return the runs that words name: files, folders, models.

    Args:
        words: The words.
        empty_folders: A folder may have no runs.

    Raises:
        UserError: a word names no run.
    """
    result: dict[Path, Run] = {}
    for word in words:
        path = Path(word)
        for child in _runs_of(path, empty_folders):
            result.setdefault(child.path.absolute(), child)
    runs = [_with_configuration(run) for run in _each_once(list(result.values()))]
    for run, name in zip(runs, short_names([run.path.absolute() for run in runs]), strict=True):
        run.name = name
    return runs


def _each_once(runs: list[Run]) -> list[Run]:
    """Return each run once: without its log where it has events, without its record where it has an event file.

    A run with `logFormat=json` has both; its event file has the epochs of the runs that it resumes, too.
    """
    events: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        if run.path.suffix == EVENTS:
            events.setdefault(tuple(run.words), []).append(run)
    return [run for run in runs if not any(_says_more(known, run) for known in events.get(tuple(run.words), ()))]


def _says_more(known: Run, run: Run) -> bool:
    """Return True if an event file is of the same run as another file with the same words, and says more of it."""
    if run.started is None or known.started is None:
        return False
    if run.path.suffix == EVENTS:
        return run.started == known.started and _is_record(run.path) and not _is_record(known.path)
    return abs(run.started.timestamp() - known.started.timestamp()) < SAME_SECONDS


def _is_record(path: Path) -> bool:
    """Return True if an event file is that of a record, whose configuration stands next to it."""
    return (path.parent / RESOLVED).is_file()


def is_run(word: str) -> bool:
    """Return whether a word names a run rather than a configuration."""
    path = Path(word)
    return path.is_dir() or path.suffix == EVENTS or _is_log(path) or _is_model(path)


def _runs_of(path: Path, empty_folders: bool) -> Iterator[Run]:
    if path.is_dir():
        files = list(_files(path))
        if not files and not empty_folders:
            hint = "cntkpy run FILE records trainings next to their models; stderr=FILE writes a log"
            raise UserError("NoRuns", f"{path} has no runs", hint=hint)
        yield from map(read_run, files)
    elif _is_model(path):
        yield from _runs_that_saved(path)
    else:
        run = read_run(path)
        if run.started is None and not run.curves and not run.results:
            hint = "name the .jsonl file of a run, its log, its model, or a folder with runs"
            raise UserError("NoRuns", f"{path} is no run", hint=hint)
        yield run


def _files(folder: Path) -> Iterator[Path]:
    """Return the event files below a folder, and the logs of runs that have none, in the order of their names."""
    for file in sorted(_visible(folder), key=_natural):
        if OTHER_WORKER.search(file.name):
            continue
        if file.suffix == EVENTS and file.is_file():
            if _is_events(file):
                yield file
        elif not Path(f"{file}{EVENTS}").exists() and _is_log(file):
            yield file


def _visible(folder: Path) -> Iterator[Path]:
    """Return the files below a folder, but those in folders whose names begin with a point, as `.git` and `.venv`."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Order of names in which trial 9 stands before trial 10."""
    return [(0, int(part)) if part.isdecimal() and part.isascii() else (1, part) for part in path.parts]


def short_names(files: Sequence[Path]) -> list[str]:
    """Names that tell files apart: without the folders that all have in common; of a folder with one file, its name."""
    alone = [sum(other_file.parent == file.parent for other_file in files) == 1 for file in files]
    named = [file.parent if run else file.with_suffix("") for file, run in zip(files, alone, strict=True)]
    common = os.path.commonpath([path.parent for path in named]) if named else ""
    return [str(path.relative_to(common)) for path in named]


def _start(path: Path) -> bytes:
    try:
        with open_input(path) as file:
            return file.read(BANNER_BYTES)
    except (OSError, ValueError):
        return b""


def _is_log(path: Path) -> bool:
    return path.is_file() and PROGRAM.match(_start(path).split(b"\n")[0].decode("utf-8", "replace")) is not None


def _is_events(path: Path) -> bool:
    """Return whether a `.jsonl` file has events: other programs, and sweeps, write such files, too."""
    start = _start(path)
    return start.startswith(b'{"time": ') and b'"event": ' in start


def _is_model(path: Path) -> bool:
    from cntkpy.networks.files.cntk_binary.recognise import is_cntk

    start = _start(path)
    return path.is_file() and ((start[8:9] == b"{" and b"\0" in start[:8]) or is_cntk(str(path)))


def _runs_that_saved(model: Path) -> Iterator[Run]:
    """Return the runs that saved a model: their event files are in its folder or below its folder."""
    wanted, result = model.absolute(), False
    for file in _files(model.absolute().parent):
        run = read_run(file)
        if any(Path(model).name == wanted.name for curves in run.curves for model in curves.models):
            result = True
            yield run
    if not result:
        hint = "cntkpy run FILE records trainings next to their models; or name the event file of the run"
        raise UserError(
            "NoRuns", f"no event file in the folder of {model} says that its run saved this model", hint=hint
        )


def _is_written(path: Path) -> bool:
    """Return whether a process on this machine writes the file: it holds a lock on it."""
    try:
        with open_input(path) as file:
            return lock(file.fileno()) is False
    except OSError:
        return False


def _with_configuration(run: Run) -> Run:
    """Return the run; without a configuration of its own it gets that of the file in its folder."""
    resolved = run.path.parent / RESOLVED
    if not run.settings and resolved.is_file():
        with suppress(ConfigError):
            run.settings = settings_of(load([f"configFile={resolved}"]))
    return run
