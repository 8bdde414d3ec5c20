"""The processes of a parallel run: how they were started, how they find each other, how they part."""

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from cntkpy.cntk_config import UserError
from cntkpy.commands.context.device import Device
from cntkpy.trainers.parallel.launchers import find_meeting

if TYPE_CHECKING:
    from cntkpy.trainers.parallel.communicator import Communicator
    from cntkpy.trainers.parallel.rendezvous import Rendezvous

log = logging.getLogger("cntkpy.commands")

PARALLEL_ACTIONS = ("train", "trainRNN", "adapt", "test", "eval", "cv", "testUnroll")
"""Actions that all workers run; worker 0 runs the others alone."""


class Workers:
    """The other processes of this run, if there are any: `workers.link` is `None` in a process started alone."""

    def __init__(self) -> None:
        self.link: Communicator | None = None
        self.meeting: Rendezvous | None = None

    def find(self, wanted: bool | None) -> None:
        """Find the launcher of this process. `wanted` is `parallelTrain`: with False the process stays alone."""
        self.meeting = None if wanted is False else find_meeting(os.environ)

    @property
    def rank(self) -> int:
        """Number of this process."""
        return self.meeting.rank if self.meeting is not None else 0

    def join(self, device: Device) -> None:
        """Meet the others. It has to happen before anything is computed."""
        if self.meeting is None:
            return
        device.prepare()
        from cntkpy.trainers.parallel.rendezvous import join

        self.link = join(self.meeting, _end_process, device.visible(self.meeting.local_rank), device.several)

    def runs(self, action: str) -> bool:
        """Return whether this process runs an action."""
        return self.rank == 0 or action in PARALLEL_ACTIONS

    def wait(self) -> None:
        """After an action: wait for all, however long worker 0 takes."""
        if self.link is not None:
            with self.explained():
                self.link.barrier(no_timeout=True)

    @contextmanager
    def explained(self) -> Generator[None]:
        """Failures of collective operations become errors that name the worker behind them."""
        from cntkpy.trainers.parallel.communicator import WorkerLost

        try:
            yield
        except WorkerLost as error:
            raise _lost(str(error)) from None
        except (UserError, MemoryError):
            raise
        except Exception as error:
            if self.link is None:
                raise
            try:
                self.link.explain(error)
            except WorkerLost as lost:
                raise _lost(str(lost)) from None

    def part(self, status: int, message: str) -> None:
        """At the end: wait for the others; or, if this one failed, tell them why and end at once."""
        if self.link is None:
            return
        if status == 0:
            from cntkpy.trainers.parallel.rendezvous import leave

            leave(self.link)
            return
        try:
            self.link.failed(message.removeprefix("EXCEPTION occurred: "))
        finally:  # also if mpiexec, which has seen another worker end, sends a signal meanwhile
            _exit(status)


def _lost(message: str) -> UserError:
    return UserError(
        "WorkerLost",
        message,
        hint="see the log of that worker; the last checkpoint is whole: start the same command again to resume",
    )


def _end_process(message: str) -> NoReturn:
    """End from the watching thread while the main thread waits inside a library."""
    error: Any = _lost(message)
    log.info("", extra={"plain": True})
    log.error("EXCEPTION occurred: %s", error.diagnostic.render().removeprefix("error: "))
    _exit(1)


def _exit(status: int) -> NoReturn:
    """End without the clean-up of JAX's runtime, which would wait for the others."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
