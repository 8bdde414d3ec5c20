"""`logFormat=json`: besides the log, one JSON object per line for everything that happens.

Objects have `time`, `event`, and what belongs to the event: "run started", "action", "network", "epoch started",
"progress", "epoch finished", "validation", "final results", "confusion", "saved", "warning", "run finished". Numbers
that are not finite are null. The events of epochs that an earlier run has trained stay in the file. While a run writes,
it holds a shared lock on the file.
"""

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.lines import json_line
from cntkpy.cntk_config.base.names import masked, shareable
from cntkpy.cntk_config.base.systems.locks import lock_soon
from cntkpy.cntk_config.base.writing import empty, open_text_in_place
from cntkpy.commands.runner.earlier_events import EarlierEvents


def event_of(record: logging.LogRecord) -> dict[str, Any] | None:
    """Return the event of a log record without secrets of URLs: its own one, or that it is a warning; None: it has
    none.
    """
    event = getattr(record, "event", None)
    if event is not None or record.levelno != logging.WARNING:
        return shareable(event)
    text = record.getMessage()
    _, warning, message = text.partition("WARNING: ")
    return {"event": "warning", "text": masked(message if warning else text)}


class EventHandler(logging.Handler):
    """Writes the events of log records (`extra={"event": {...}}`) to a file, one JSON object a line, at once.

    Args:
        path: the file.
        fail: is told of an event that cannot be written.
    """

    def __init__(self, path: str, fail: Callable[[OSError], None]) -> None:
        super().__init__(logging.DEBUG)
        self._fail = fail
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._stream = open_text_in_place(path)
        self._earlier = EarlierEvents(path)
        empty(self._stream)
        lock_soon(self._stream.fileno(), shared=True)
        self._command: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write the event of a record, if it has one."""
        event = event_of(record)
        if event is None:
            return
        if event["event"] == "action":
            self._command = {"command": event["command"]}
        earlier = self._earlier.before({**self._command, **event})
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        try:
            written = json_line(_finite({"time": time, **self._command, **event}))
            self._stream.write("".join(f"{line}\n" for line in (*earlier, written)))
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Close the file; that its last lines cannot be written was said before."""
        with suppress(OSError):
            self._earlier.close()
        with suppress(OSError):
            self._stream.close()
        super().close()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in cast("dict[str, Any]", value).items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
