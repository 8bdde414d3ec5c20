"""The state of a training inside an epoch: saved now and then, and when the run is interrupted.

A resumed epoch continues with the next minibatch and ends with the same parameters, bit for bit: the file holds the
parameters, the state of the update rule and of the network, the position of the reader, the shapes to which minibatches
are padded, and the sums of the criteria so far.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.stopping import UNSAVED, Stopped
from cntkpy.readers.common.planned import State
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.epochs import EpochRequest
from cntkpy.trainers.checkpoints.checkpoint import INSIDE, Checkpoint
from cntkpy.trainers.hooks import Hook, Position, Running
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.step.reading import EpochSource
from cntkpy.trainers.step.step import CompiledStep

log = logging.getLogger("cntkpy.trainers")
DATA = "samples of the data"
"""The setting that says how many samples the data have: a position inside of an epoch of other data means nothing."""


class Interrupted(Exception):
    """The run was asked to stop, and has saved where it is."""


def load_partial(path: str, settings: State) -> Checkpoint | None:
    """Return the state inside an epoch, if there is one and the epoch was begun with the same settings.

    Its values are `position`, `Position.to_json` and `finished` if the epoch is trained; `reader`, the reader's state
    after the last of the minibatches that are done; `shapes`, `Buckets.to_json`; `settings`, rate, minibatch size and
    the like with which the epoch was begun.
    """
    try:
        partial = Checkpoint.load(path, INSIDE)
    except FileNotFoundError:
        return None
    except UserError as error:
        log.warning("WARNING: the epoch starts over, because its state inside cannot be used: %s", error)
        return None
    earlier = partial.values["settings"]
    if not (earlier.get(DATA) and settings.get(DATA)):  # of an older version, or not known
        earlier = {name: value for name, value in earlier.items() if name != DATA}
        settings = {name: value for name, value in settings.items() if name != DATA}
    if earlier != settings:
        names = [name for name in settings if earlier.get(name) != settings[name]]
        changes = ", ".join(
            "another network" if name == "network" else f"{name} {earlier.get(name)}, now {settings[name]}"
            for name in names
        )
        log.warning("WARNING: the state inside the epoch in %s is not used: it was begun with %s.", path, changes)
        return None
    return partial


@contextmanager
def stopped_between_epochs(model: str | None) -> Generator[None]:
    """Let the block stop at any point, because all progress is in files already.

    Args:
        model: The last model that is saved; None: there is none yet.

    Raises:
        Interrupted: The run was asked to stop.
    """
    try:
        yield
    except Stopped:
        saved = "training has not begun" if model is None else f"the state before is saved in {model}"
        raise Interrupted(f"{saved}; start the same command again to resume") from None


class SavedEpoch(Hook):
    """An epoch that can be interrupted: its data, where it begins, and what is saved between stacks of minibatches.

    Args:
        trainer: Trains the network.
        reader: Reads the data.
        path: File of the state inside this epoch.
        settings: See `load_partial`.
        minutes: How often the state is saved; 0: only when the run is stopped.
        stop: Whether the run should end; called for every minibatch and after every stack.
        parallel: The processes that train together.
    """

    def __init__(
        self,
        trainer: CompiledStep,
        reader: MinibatchReader,
        path: str,
        settings: State,
        minutes: float,
        stop: Callable[[], bool],
        parallel: ParallelTraining,
    ):
        settings = settings | parallel.settings() | {"network": _fingerprint(trainer)}
        self._trainer, self._reader, self._path = trainer, reader, path
        self._settings, self._parallel = settings, parallel
        self._minutes, self._stop = minutes, stop
        self._saved = time.monotonic()
        self._run: Running | None = None
        self._partial = load_partial(path, settings)
        self.position: Position | None = None
        self.finished = False
        """True: the epoch was trained to its end when its state was saved."""
        if self._partial is not None:
            values = self._partial.values
            trainer.restore(self._partial.arrays, values["shapes"])
            self.position = Position.from_json(trainer.nodes, values["position"])
            self.finished = bool(values["position"].get("finished", False))

    @property
    def state(self) -> State | None:
        """Return the position of the data where the epoch resumes; None: at its beginning."""
        return self._parallel.own(self._partial.values["reader"]) if self._partial is not None else None

    def data(self, request: EpochRequest) -> EpochSource:
        """Return the minibatches of the epoch."""
        self._source = EpochSource(self._reader, request, lambda: self._stop() and self._parallel.stops_while_reading)
        return self._source

    def on_stopped(self, run: Running) -> None:
        """Save the state after the last stack."""
        self.on_stack(run)

    def on_stack(self, run: Running) -> None:
        """Save the state if it is time.

        Raises:
            Interrupted: The run should stop.
        """
        self._run = run
        UNSAVED.set()
        due = self._minutes > 0 and time.monotonic() - self._saved >= 60 * self._minutes
        stop, due = self._parallel.any_of(self._stop(), due)
        state = run.data_state() if stop or due else None
        if state is None:  # stopped before the first minibatch: the files have everything
            return
        self._saved = time.monotonic()
        self._save(run.collected(), state)
        if stop:
            raise Interrupted(
                f"the state after {run.position.done} minibatches of the epoch is saved in {self._path}; "
                "start the same command again to resume"
            )

    def stopped_afterwards(self) -> NoReturn:
        """Save the state of the trained epoch, whose model is not saved yet.

        Raises:
            Interrupted: Always.
        """
        position = self._run.collected() if self._run is not None else self.position
        state = self._run.data_state() if self._run is not None else self._source.get_state()
        self._save(position or Position.start(self._trainer.nodes), state, finished=True)
        raise Interrupted(
            f"the state at the end of the epoch is saved in {self._path}; start the same command again to resume"
        )

    def _save(self, position: Position, state: State | None, finished: bool = False) -> None:
        UNSAVED.set()
        assert state is not None
        values = {
            "position": position.to_json() | ({"finished": True} if finished else {}),
            "reader": self._parallel.gather(state),
            "shapes": self._trainer.buckets.to_json(),
            "settings": self._settings,
        }
        whole = Checkpoint(INSIDE, values, self._trainer.snapshot())
        self._parallel.write(lambda: whole.save(self._path))
        UNSAVED.clear()


def _fingerprint(trainer: CompiledStep) -> str:
    """Return a text that is the same for networks with the same parameters, whose state counts the same criteria."""
    parameters = sorted(
        (parameter.name, *map(int, parameter.shape or ()))
        for parameter in trainer.network.nodes.values()
        if parameter.is_parameter
    )
    counted = [node.name for node in trainer.nodes]
    return hashlib.sha256(repr((parameters, counted)).encode()).hexdigest()[:16]
