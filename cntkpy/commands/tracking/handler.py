"""Sends the events of a run to a tracker: in a thread of its own, so that a slow server does not hold up a training."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from cntkpy.cntk_config.base.names import shareable
from cntkpy.commands.runs.events import STOPPED
from cntkpy.commands.tracking.messages import Call, Messages
from cntkpy.trainers.log.tracker import Tracker

log = logging.getLogger("cntkpy.commands")

WAIT_SECONDS, STOPPED_WAIT_SECONDS = 60.0, 0.5
"""Seconds that the end of a run waits for its tracker; of a run that a signal ends."""
STALL_SECONDS = 4.0
"""Seconds to wait for a tracker that takes nothing before asking whether the server can still be reached."""
MAX_WAITING = 100_000
"""Calls that wait for a tracker; with more, values inside of epochs are left out."""


class TrackingHandler(logging.Handler):
    """Gets the records of the log, and passes on the events among them. A tracker that fails is warned of once.

    Args:
        name: what the warning calls the tracker.
        make: makes the tracker, in the thread.
        messages: translates the events.
    """

    def __init__(self, name: str, make: Callable[[], Tracker], messages: Messages) -> None:
        super().__init__(logging.DEBUG)
        self.tracker, self._make, self._messages = name, make, messages
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._failed = threading.Event()
        self._wait = WAIT_SECONDS
        self._taken = 0
        self._tracker: Tracker | None = None
        self._closed = False
        self._command: dict[str, str] = {}
        self._thread = threading.Thread(target=self._work, name=f"cntkpy-track-{name}", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the event of a record, if it has one."""
        event = shareable(getattr(record, "event", None))
        if event is None or self._failed.is_set():
            return
        if event["event"] == "action":
            self._command = {"command": event["command"]}
        elif event["event"] == "run finished" and event.get("status") in STOPPED:
            self._wait = STOPPED_WAIT_SECONDS
        if event["event"] == "progress" and self._calls.qsize() > MAX_WAITING:
            return
        for call in self._messages.of({**self._command, **event}):
            self._calls.put(call)

    def close(self) -> None:
        """Wait for what is on its way; when Python ends it closes all handlers once more."""
        if self._closed:
            return
        self._closed = True
        self._calls.put(None)
        begin, taken, problem = time.monotonic(), -1, ""
        while self._thread.is_alive() and not problem and (left := begin + self._wait - time.monotonic()) > 0:
            if taken == self._taken:
                problem = getattr(self._tracker, "problem", str)()
            taken = self._taken
            self._thread.join(min(STALL_SECONDS, left))
        if self._thread.is_alive() and not self._failed.is_set():
            self._failed.set()
            after = f"after {round(time.monotonic() - begin, 1):g} s" + (f": {problem}" if problem else "")
            log.warning("WARNING: %s has not taken everything %s; it is left alone.", self.tracker, after)
        super().close()

    def _work(self) -> None:
        try:
            self._tracker = self._make()
            while (call := self._calls.get()) is not None:
                getattr(self._tracker, call.method)(*call.arguments)
                self._taken += 1
        except Exception as error:
            if not self._failed.is_set():
                self._failed.set()
                reason = f"{type(error).__name__}: {error}".split("\n")[0]
                log.warning("WARNING: %s fails, and this run is tracked no further: %s", self.tracker, reason)
