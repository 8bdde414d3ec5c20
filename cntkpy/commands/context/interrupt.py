"""Ctrl-C and SIGTERM: a flag that long work asks; finish the minibatch, save the state, then end.

The handlers do nothing, for what is raised in a handler is lost inside of a `__del__` or a callback of the garbage
collector. Python writes the number of a signal into a socket, even while the main thread computes in a library; a
thread reads it, sets the flag, and sees to it that the process ends:

    first signal    the flag is set
    after 0.3 s     a reader that does not answer is left alone (`cntkpy.trainers.step.reading.InterruptibleReader`)
    after 0.6 s     the process ends, unless a training has progress that is in no file yet (`UNSAVED`)
    after 10 s      a message says what is waited for
    after 30 s, or at a second signal a second after the first or later, the process ends

Every other command runs `until_signal`: a signal raises an exception in the main thread, and if that does not come to
its end, the same thread ends the process after 0.6 s. The kernels, the compilers and the reads of files let it run
meanwhile; a regular expression does not, which is why all of them have to take linear time.
"""

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from cntkpy.cntk_config.base.stopping import UNSAVED, Stopped
from cntkpy.cntk_config.base.writing import remove_temporaries

if TYPE_CHECKING:
    from cntkpy.trainers.fronts.config.training import TrainingLoop
    from cntkpy.trainers.log.reporting import Progress

log = logging.getLogger("cntkpy.commands")

WARN_SECONDS, KILL_SECONDS = 10.0, 30.0
"""Seconds after the first signal."""
GRACE_SECONDS = 0.6
"""Seconds for a process that has nothing to save to end by itself."""
AGAIN_SECONDS = 1.0
"""A signal that follows sooner is the first one once more: `timeout` sends it to the process and to its group."""
POLL_SECONDS, SAID_WITHIN_SECONDS = 0.05, 0.2
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Flag that a signal has asked this run to stop.

    with StopRequest(process=True) as stop:
        ...                       # asks stop() now and then

    Args:
        process: the whole process is the run, and ends with it; else a second signal is left to what was there before.
    """

    def __init__(self, process: bool = False) -> None:
        self.signal: int | None = None
        self._process = process
        self._handlers_before: dict[int, Any] = {}
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._old_socket = -1

    def __call__(self) -> bool:
        """Return whether a signal has arrived."""
        return self.signal is not None

    def check(self) -> None:
        """Raise `Stopped` if a signal has arrived."""
        if self.signal is not None:
            raise Stopped

    @property
    def status(self) -> int:
        """The exit status of a run that a signal has ended."""
        return 128 + (self.signal or signal.SIGINT)

    @property
    def message(self) -> str:
        """Message about it."""
        return "terminated by signal SIGTERM" if self.signal == signal.SIGTERM else "interrupted"

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is not threading.main_thread():
            return self
        if self._process:
            self._sockets = socket.socketpair()
            self._sockets[1].setblocking(False)
            self._old_socket = signal.set_wakeup_fd(self._sockets[1].fileno(), warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="cntkpy-signals", daemon=True).start()
        for number in SIGNALS:
            self._handlers_before[number] = signal.signal(number, self._noticed if self._process else self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process and self.signal is not None:
            # The process is ending; the thread sees to it that it comes to its end.
            for number in self._handlers_before:
                signal.signal(number, signal.SIG_IGN)  # the interpreter would set the default, which kills
            return
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        self._handlers_before = {}
        if self._sockets is not None:
            signal.set_wakeup_fd(self._old_socket)
            self._sockets[1].close()  # which ends the thread
            self._sockets = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()

    def _noticed(self, number: int, frame: FrameType | None) -> None:
        """The thread does everything."""

    def _watch(self) -> None:
        assert self._sockets is not None
        with self._sockets[0] as reading:
            self._see_to_the_end(reading)

    def _see_to_the_end(self, reading: socket.socket) -> None:
        arrived = self._next(reading, None)
        if not arrived:
            return
        self.signal, begun, notified = arrived, time.monotonic(), False
        needed = begun
        if UNSAVED.is_set():
            _say("stopping when the minibatches at hand are done; the same signal again stops at once")
        while True:
            arrived = self._next(reading, POLL_SECONDS)
            now = time.monotonic()
            passed = now - begun
            if arrived == 0:
                return  # the run has ended by itself
            if arrived and passed > AGAIN_SECONDS:
                _end(self.status, "ended at once by a second signal")
            if UNSAVED.is_set():
                needed = now
            elif now - needed > GRACE_SECONDS:
                _end(self.status, self.message)
            if passed > KILL_SECONDS:
                _end(self.status, f"ended, because the run has not stopped within {KILL_SECONDS:.0f} s")
            if passed > WARN_SECONDS and not notified:
                notified = True
                _say(f"still waiting, for {KILL_SECONDS - passed:.0f} s more, for {_place()}")

    @staticmethod
    def _next(reading: socket.socket, seconds: float | None) -> int | None:
        """Return the next signal of ours; None after `seconds` without one; 0 if no more come."""
        while True:
            if not select.select([reading], [], [], seconds)[0]:
                return None
            got = reading.recv(1)
            if not got or got[0] in SIGNALS:
                return got[0] if got else 0


class _Raising(StopRequest):
    """The first signal raises in the main thread: KeyboardInterrupt, or SystemExit with the status of SIGTERM.

    Those that follow raise nothing, for the first exception is being handled. Nothing is raised inside of JAX: the
    thread ends the process then.
    """

    _raised = False

    def _noticed(self, number: int, frame: FrameType | None) -> None:
        self.signal = self.signal or number
        if self._raised or _is_in_jax(frame):
            return
        self._raised = True
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)


def _is_in_jax(frame: FrameType | None) -> bool:
    """Return whether the main thread is inside of a function of JAX.

    JAX lets an exception of a handler out of a compilation while threads of XLA still compile. They crash (SIGSEGV)
    when the frames of the main thread, and with them the module, are released.
    """
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "jax":
            return True
        frame = frame.f_back
    return False


def until_signal() -> StopRequest:
    """Within it, a signal ends the process within a second, whatever the main thread does; the command asks nothing."""
    return _Raising(process=True)


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


def _place() -> str:
    """Return the current position of the main thread."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # pyright: ignore[reportPrivateUsage]
    last = traceback.extract_stack(frame)[-1]
    return f"{last.filename}:{last.lineno}, in {last.name}: {last.line}"


def _say(text: str) -> None:
    """Log it, but do not wait for a log that cannot be written: the main thread may hold it forever."""
    thread = threading.Thread(target=log.warning, args=(text,), daemon=True)
    thread.start()
    thread.join(SAID_WITHIN_SECONDS)


def leave(status: int) -> NoReturn:
    """End a process that a signal has stopped, when it has cleaned up, without finalizing the interpreter.

    Threads of a compiler may still run: they crash (SIGSEGV) when the interpreter destroys what they use.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    remove_temporaries()
    os._exit(status)


def _end(status: int, text: str) -> None:
    _say(text)
    remove_temporaries()
    os._exit(status)


def run_until_stopped(training: "TrainingLoop", stop: StopRequest | None) -> None:
    """Run a training; a signal saves its state inside the epoch and then ends the run like the signal itself.

    Args:
        training: what is run.
        stop: that of the process; None: this is a library, where Ctrl-C ends the training only.
    """
    from cntkpy.trainers.fronts.config.partial import Interrupted

    if stop is None:
        with StopRequest() as own_stop_request:
            training.stop = own_stop_request
            try:
                training.run()
            except Interrupted as saved:
                if own_stop_request.signal == signal.SIGINT:
                    raise KeyboardInterrupt(str(saved)) from None
                raise Stopped(str(saved)) from None
        return
    training.stop = stop
    try:
        training.run()
    except Interrupted as saved:
        raise Stopped(str(saved)) from None
    finally:
        UNSAVED.clear()
