"""Ctrl-C and SIGTERM while a network trains: finish the minibatch, save the state, then end."""

import logging
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainers.sgd import Training

log = logging.getLogger("cntkpy.commands")


class Terminated(BaseException):
    """SIGTERM arrived."""


class StopRequest:
    """Notices the first SIGINT or SIGTERM instead of ending the process; a second one ends it at once.

    with StopRequest() as stop:
        ...                       # asks stop() now and then
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal is not None

    def exception(self, message: str) -> BaseException:
        """What the signal would have raised."""
        return KeyboardInterrupt(message) if self.signal == signal.SIGINT else Terminated(message)

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()
        log.warning("stopping when the minibatches at hand are done; the same signal again stops at once")


def run_until_stopped(training: "Training") -> None:
    """Run a training; a signal saves its state inside the epoch and then ends the run like the signal itself."""
    from trainers.partial import Interrupted

    with StopRequest() as stop:
        training.stop = stop
        try:
            training.run()
        except Interrupted as saved:
            raise stop.exception(str(saved)) from None
