"""Ctrl-C and SIGTERM: a flag that long work asks; finish the minibatch, save the state, then end.

The handlers do nothing themselves, for what is raised in a handler is lost inside of a `__del__` or a callback of the
garbage collector. Python writes the number of a signal into a socket, even while the main thread computes in a library;
a thread reads it, sets the flag, and sees to it that the process ends:

    first signal    the flag is set
    after 2 s       what waits is woken by `Stopped`, every few seconds anew in case that was lost: a reader of a
                    training (its state is saved then), anything outside of a training
    after 10 s      a message says what is waited for
    after 30 s, or at a second signal, the process ends
"""

import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from cntk_config.base.stopping import Stopped

if TYPE_CHECKING:
    from trainers.loop.sgd import Training
    from trainers.monitors.reporting import Progress

log = logging.getLogger("cntkpy.commands")

WAKE, TELL, END = 2.0, 10.0, 30.0
"""Seconds after the first signal."""
AGAIN = 5.0
"""Seconds until what was woken and went on nevertheless is woken again."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether a signal has asked this run to stop.

    with StopRequest(process=True) as stop:
        ...                       # asks stop() now and then

    Args:
        process: the whole process is the run, and ends with it; else a second signal is left to what was there before.
    """

    def __init__(self, process: bool = False) -> None:
        self.signal: int | None = None
        self.ending = False
        self._training: Training | None = None
        self._process = process
        self._before: dict[int, Any] = {}
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._old_socket = -1
        self._waking = False

    def __call__(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal is not None

    def check(self) -> None:
        """Raise `Stopped` if a signal has arrived."""
        if self.signal is not None:
            raise Stopped

    @contextmanager
    def waking_readers_of(self, training: "Training") -> Generator[None]:
        """Meanwhile, nothing but the reader of a training is woken: the rest comes to where its state is saved."""
        self._training, training.stop = training, self
        yield
        self._training = None

    @property
    def status(self) -> int:
        """The exit status of a run that a signal has ended."""
        return 128 + (self.signal or signal.SIGINT)

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is not threading.main_thread():
            return self
        if self._process:
            self._sockets = socket.socketpair()
            self._sockets[1].setblocking(False)
            self._old_socket = signal.set_wakeup_fd(self._sockets[1].fileno(), warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="cntkpy-signals", daemon=True).start()
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._noticed if self._process else self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._waking = False
        if self._process and self.signal is not None:
            return  # the process is ending, and must come to its end
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        if self._sockets is not None:
            signal.set_wakeup_fd(self._old_socket)
            self._sockets[1].close()  # which ends the thread
            self._sockets = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()

    def _noticed(self, number: int, frame: FrameType | None) -> None:
        """The thread does everything, except that it cannot wake the main thread without help."""
        if not self._waking:
            return
        self._waking = False
        if self._training is None or _is_reading(self._training, frame):
            raise Stopped

    def _watch(self) -> None:
        assert self._sockets is not None
        with self._sockets[0] as reading:
            self._see_to_the_end(reading)

    def _see_to_the_end(self, reading: socket.socket) -> None:
        arrived = self._next(reading, None)
        if not arrived:
            return
        self.signal, begun, told, wake = arrived, time.monotonic(), False, WAKE
        _say("stopping when the minibatches at hand are done; the same signal again stops at once")
        own = 0
        while True:
            arrived = self._next(reading, 1.0)
            passed = time.monotonic() - begun
            if arrived == 0:
                return  # the run has ended by itself
            if arrived and own:
                own -= 1  # the one that this thread has sent
            elif arrived:
                _end(self.status, "ended at once by a second signal")
            if passed > END:
                _end(self.status, f"ended, because the run has not stopped within {END:.0f} s")
            if passed > TELL and not told:
                told = True
                _say(f"still waiting, for {END - passed:.0f} s more, for {_place()}")
            if passed > wake and not own and not self.ending:
                wake, self._waking, own = passed + AGAIN, True, 1
                signal.pthread_kill(threading.main_thread().ident or 0, self.signal)

    @staticmethod
    def _next(reading: socket.socket, seconds: float | None) -> int | None:
        """The next signal of ours; None after so many seconds without one; 0: no more come."""
        while True:
            if not select.select([reading], [], [], seconds)[0]:
                return None
            got = reading.recv(1)
            if not got or got[0] in SIGNALS:
                return got[0] if got else 0


class AskingProgress:
    """The progress of loops that have nothing to save: they end when the run shall stop."""

    def __init__(self, progress: "Progress", stop: StopRequest) -> None:
        self.inner, self._stop = progress, stop

    def start(self, description: str, total: float | None = None) -> None:
        """See `Progress`."""
        self.inner.start(description, total)

    def update(self, done: float, text: str = "") -> None:
        """See `Progress`."""
        self._stop.check()
        self.inner.update(done, text)

    def finish(self) -> None:
        """See `Progress`."""
        self.inner.finish()


def _is_reading(training: "Training", frame: FrameType | None) -> bool:
    """Whether a training waits for a reader which it may leave at any point."""
    from trainers.checkpoints.partial import SavedEpoch
    from trainers.evaluation.evaluate import minibatches

    while frame is not None:
        if frame.f_code is minibatches.__code__:  # of an evaluation, of what comes before an epoch
            return True
        if frame.f_code is SavedEpoch.data.__code__:
            return training.parallel.stops_while_reading
        frame = frame.f_back
    return False


def _place() -> str:
    """Where the main thread is."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # pyright: ignore[reportPrivateUsage]
    last = traceback.extract_stack(frame)[-1]
    return f"{last.filename}:{last.lineno}, in {last.name}: {last.line}"


def _say(text: str) -> None:
    """Log it, but do not wait for a log that cannot be written: the main thread may hold it for ever."""
    thread = threading.Thread(target=log.warning, args=(text,), daemon=True)
    thread.start()
    thread.join(1)


def _end(status: int, text: str) -> None:
    _say(text)
    os._exit(status)


def run_until_stopped(training: "Training", stop: StopRequest | None) -> None:
    """Run a training; a signal saves its state inside the epoch and then ends the run like the signal itself.

    Args:
        training: what is run.
        stop: that of the process; None: this is a library, where Ctrl-C ends the training only.
    """
    from trainers.checkpoints.partial import Interrupted

    if stop is None:
        with StopRequest() as own:
            training.stop = own
            try:
                training.run()
            except Interrupted as saved:
                if own.signal == signal.SIGINT:
                    raise KeyboardInterrupt(str(saved)) from None
                raise Stopped(str(saved)) from None
        return
    with stop.waking_readers_of(training):
        try:
            training.run()
        except Interrupted as saved:
            raise Stopped(str(saved)) from None
