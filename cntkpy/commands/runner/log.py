"""The log: one line at a time on standard error or in a file, in the shapes of CNTK.

Every package logs through the standard library (`logging.getLogger("cntkpy.<package>")`). This module owns the handler:
where the lines go (`stderr=PATH`), and the time stamp in front of them (`timestamping=true`).
"""

import contextlib
import logging
import os
import platform
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from cntkpy import __version__
from cntkpy.cntk_config.base.diagnostics import ConfigError, Span, UserError, printable
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.systems.locks import lock_soon
from cntkpy.cntk_config.base.writing import NotOurFile, open_text_in_place, shown, why_no_folder
from cntkpy.trainers.log.events import COUNTED

log = logging.getLogger("cntkpy.commands")

BANNER_WIDTH = 78


class LogHandler(logging.Handler):
    """Writes each record at once; with `timestamping`, stamped unless the record says `extra={"plain": True}`."""

    def __init__(self, stream: TextIO | None = None):
        super().__init__(logging.INFO)
        self.stream = stream
        self.path = ""
        """The log file, where the stream is one."""
        self.failure: UserError | None = None
        """Why the log, or another file of the run that is written meanwhile, cannot be written."""
        self._raised = False
        self.timestamping = False
        self.last_error = ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message, stamped where it has to be. Several lines have one stamp, as in CNTK."""
        text = printable(masked(super().format(record)))
        if self.timestamping and not getattr(record, "plain", False):
            return time.strftime("%m/%d/%Y %H:%M:%S: ", time.localtime(record.created)) + text
        return text

    def emit(self, record: logging.LogRecord) -> None:
        """Write and flush one record. Without a stream of its own it goes to whatever `sys.stderr` is now.

        Raises:
            UserError: See `fail`.
        """
        if record.levelno >= logging.ERROR:
            self.last_error = printable(masked(record.getMessage()))
        try:
            stream = self.stream or sys.stderr
            stream.write(self.format(record) + "\n")
            stream.flush()
        except BrokenPipeError:
            pass  # nobody reads the log any more
        except OSError as error:
            standard = "the log to standard output" if self.stream is sys.__stdout__ else "the log to standard error"
            target = f"the log file {self.path}" if self.path else standard
            self.fail(target, error)
        except ValueError:
            self.handleError(record)

    def fail(self, target: str, error: OSError) -> None:
        """Take note that something of the run cannot be written; other threads leave it to the main one to say so.

        Args:
            target: what cannot be written.
            error: why.

        Raises:
            UserError: It cannot; once, and in the main thread, for it ends the run.
        """
        if self.failure is None:
            self.failure = UserError("CannotWrite", f"cannot write {target}: {error.strerror or error}")
        if not self._raised and threading.current_thread() is threading.main_thread():
            self._raised = True
            raise self.failure from None


class Record(logging.Handler):
    """Protocol of what keeps a run: see `run_record.RunRecord`."""

    def begin(self, parent: Path, name: str) -> None:
        """Make the folder of the run."""
        raise NotImplementedError


class Log:
    """The open log of one run: `with Log() as run_log: ... run_log.redirect(path)`."""

    def __init__(self) -> None:
        self.handler = LogHandler()
        self.redirected = False
        self.path = ""
        """The file that the lines go to; empty: they go to the console."""
        self.record: Record | None = None
        """Gets the lines and events for the record of the run."""
        self._logger = logging.getLogger("cntkpy")
        self._restore: list[Callable[[], None]] = []

    def __enter__(self) -> "Log":
        logger = self._logger
        previous = (logger.level, logger.propagate)
        logger.addHandler(self.handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False

        def undo() -> None:
            logger.removeHandler(self.handler)
            logger.level, logger.propagate = previous

        self._restore.append(undo)
        return self

    def __exit__(self, *_: object) -> None:
        while self._restore:
            self._restore.pop()()

    def redirect(self, path: str, process: bool = False, span: Span | None = None) -> None:
        """Send the log to `path`, overwriting it, its folders made; `-` is standard output.

        `process` redirects the file descriptor too, so that what native libraries write goes to the same place. `span`
        is where the path is given.
        """
        if path == "-":
            stream: TextIO = sys.stdout
        else:
            log.info("Redirecting stderr to file %s", path, extra={"plain": True})
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                stream = open_text_in_place(path, "backslashreplace")
                _hold(stream, path, span)
            except OSError as error:
                raise cannot_write(path, error, span) from None
            self._restore.append(lambda: _close(stream))
            self.handler.path = path
        previous = sys.stderr
        self.handler.stream = sys.stderr = stream

        def undo() -> None:
            self.handler.stream, self.handler.path, sys.stderr = None, "", previous

        self._restore.append(undo)
        if process:
            self._redirect_descriptor(stream)
        self.redirected = True
        self.path = path if path != "-" else ""

    def add_events(self, path: str, span: Span | None = None) -> None:
        """Also write events as JSON to `path`; `span` is the place of the path in the configuration."""
        from cntkpy.commands.runner.log_events import EventHandler

        try:
            handler = EventHandler(path, lambda error: self.handler.fail(f"the events to {path}", error))
        except OSError as error:
            raise cannot_write(path, error, span) from None
        self.add(handler)
        self._logger.setLevel(COUNTED)

    def add(self, handler: logging.Handler) -> None:
        """Give a handler every record, those of events that have no line too, until the log is closed."""
        self._logger.addHandler(handler)
        self._logger.setLevel(min(self._logger.level, logging.DEBUG))

        def undo() -> None:
            self._logger.removeHandler(handler)
            handler.close()

        self._restore.append(undo)

    def add_record(self, record: "Record") -> None:
        """Give the record of a run what happens, until the log is closed."""
        self.record = record
        self.add(record)

    def _redirect_descriptor(self, stream: TextIO) -> None:
        try:
            target = stream.fileno()
        except OSError:  # a stream of the program around us, not a file
            return
        saved = os.dup(2)
        os.dup2(target, 2)

        def undo() -> None:
            os.dup2(saved, 2)
            os.close(saved)

        self._restore.append(undo)


def _hold(stream: TextIO, path: str, span: Span | None) -> None:
    """Empty a log file, which stays with this run until the file is closed; not one into which another run writes."""
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        if lock_soon(stream.fileno()) is False:
            stream.close()
            raise UserError(
                "LogInUse",
                f"another run writes into the log file {path}",
                span,
                hint="wait for it, or give this run another stderr=",
            )
        stream.truncate(0)


def _close(stream: TextIO) -> None:
    """Close a log file; that its last lines cannot be written was said before."""
    with contextlib.suppress(OSError):
        stream.close()


def cannot_write(path: str, error: OSError, span: Span | None) -> ConfigError:
    """Return the error of a log file that cannot be opened."""
    no_folder = why_no_folder(path)
    message = f"cannot write the log file {shown(path)}: {no_folder or error.strerror or error}"
    hint = "give the name of a file" + (" in another folder" if no_folder else "")
    if isinstance(error, NotOurFile):
        hint += ", or remove what is there: a log is written to a file of yours, never through a link"
    return ConfigError("BadPath", message, span, hint)


def log_file_name(path: str, commands: list[str], timestamping: bool, rank: int = 0) -> str:
    """Return the name of the log file: verbatim, or with `timestamping` followed by the commands and `.log`.

    Workers after the first have a file of their own: `.rank1`, or with `timestamping` `.logrank1`.
    """
    if path == "-":
        return path
    if not timestamping:
        return f"{path}.rank{rank}" if rank else path
    return "_".join([path, *commands]) + ".log" + (f"rank{rank}" if rank else "")


def program_banner(words: list[str]) -> str:
    """Return the first lines of every log: program, version, host, time; then the command line, blanks doubled."""
    started = time.strftime("%Y/%m/%d %H:%M:%S")
    return f"cntkpy {__version__} on {platform.node()} at {started}\n\n" + "  ".join(
        ["cntkpy", *(masked(word, is_value=True) for word in words)]
    )


def build_information() -> list[str]:
    """Return the block which a log with traceLevel > 0 starts with."""
    rule = "-" * 67
    return [
        rule,
        "Build info:",
        "",
        f"\t\tVersion: cntkpy {__version__}",
        f"\t\tPython: {platform.python_version()} ({platform.python_implementation()})",
        f"\t\tMachine: {platform.machine()}, {os.cpu_count()} CPU cores",
        f"\t\tSystem: {platform.system()} {platform.release()}",
        rule,
    ]


def action_banner(command: str, action: str) -> list[str]:
    """Return the framed banner which precedes an action."""
    edge, empty = "#" * BANNER_WIDTH, "#" + " " * (BANNER_WIDTH - 2) + "#"
    title = f"# {command} command ({action} action)"
    return [edge, empty, title.ljust(BANNER_WIDTH - 2) + " #", empty, edge]


def print_lines(lines: list[str], plain: bool = False) -> None:
    """Log several lines."""
    for line in lines:
        log.info("%s", line, extra={"plain": plain})


def blank_line() -> None:
    """Log an empty line, which carries no time stamp."""
    log.info("", extra={"plain": True})
