"""The state of a training inside an epoch: saved now and then, and when the run is interrupted.

A resumed epoch goes on with the next minibatch and ends with the same parameters, bit for bit: the file holds the
parameters, the state of the update rule and of the network, the position of the reader, the shapes to which minibatches
are padded, and the sums of the criteria so far.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cntk_config.base.diagnostics import UserError
from cntk_config.base.stopping import Stopped
from readers.contracts import MinibatchReader
from readers.minibatch import Minibatch
from trainers.checkpoints.array_file import Arrays, load_arrays, save_arrays
from trainers.loop.batching import CAPACITY
from trainers.loop.epoch import Position
from trainers.loop.shapes import Shapes
from trainers.loop.step import Trainer
from trainers.parallel.training import ParallelTraining

FORMAT = "cntkpy partial epoch 1"


class Interrupted(Exception):
    """The run was asked to stop, and has saved where it is."""


@dataclass
class Partial:
    """A training inside an epoch.

    **Arguments:**

    - `arrays`: `Trainer.snapshot()`.
    - `position`: `Position.to_json()`: minibatches done, and their sums.
    - `reader`: the reader's state after the last of these minibatches.
    - `shapes`: the padded shapes in use.
    - `settings`: rate, minibatch size and the like with which the epoch was begun; compared when it is resumed.
    """

    arrays: Arrays
    position: dict[str, Any]
    reader: dict[str, Any]
    shapes: list[Any]
    settings: dict[str, Any]

    def save(self, path: str) -> None:
        """Write the file in one step. **Raises** a `UserError` if the disk does not take it."""
        values = {
            "position": self.position,
            "reader": self.reader,
            "shapes": self.shapes,
            "settings": self.settings,
        }
        save_arrays(path, FORMAT, self.arrays, values)

    @classmethod
    def load(cls, path: str, settings: dict[str, Any]) -> "Partial | None":
        """The saved state, if there is one and it was begun with the same settings."""
        try:
            arrays, values = load_arrays(path, FORMAT)
        except (FileNotFoundError, UserError):
            return None
        if values["settings"] != settings:
            return None
        return cls(arrays, values["position"], values["reader"], values["shapes"], values["settings"])


class SavedEpoch:
    """An epoch that can be interrupted: its data, where it begins, and what is saved between stacks of minibatches.

    **Arguments:**

    - `trainer`, `reader`: what is trained, on what.
    - `path`: file of the state inside this epoch.
    - `settings`: see `Partial`.
    - `minutes`: how often the state is saved; 0 is only when the run is stopped.
    - `stop`: asked after every stack whether the run should end.
    - `parallel`: the workers that train together.
    """

    def __init__(
        self,
        trainer: Trainer,
        reader: MinibatchReader,
        path: str,
        settings: dict[str, Any],
        minutes: float,
        stop: Callable[[], bool],
        parallel: ParallelTraining,
    ):
        settings = settings | parallel.settings()
        self._trainer, self._reader, self._path, self._settings, self._parallel = (
            trainer,
            reader,
            path,
            settings,
            parallel,
        )
        self._minutes, self._stop = minutes, stop
        self._saved = time.monotonic()
        self._states: deque[tuple[int, dict[str, Any]]] = deque(maxlen=2 * CAPACITY + 2)
        self._partial = Partial.load(path, settings)
        self.position: Position | None = None
        if self._partial is not None:
            trainer.restore(self._partial.arrays)
            trainer.shapes = Shapes.from_json(self._partial.shapes)
            self.position = Position.from_json(trainer.nodes, self._partial.position)

    def data(self, size: int, epoch: int, samples: int | None) -> Iterator[Minibatch]:
        """The minibatches that are left; the reader's states after those that are read ahead are kept."""
        self._reader.start_minibatch_loop(size, epoch, samples)
        if self._partial is not None:
            self._reader.restore(self._parallel.own(self._partial.reader))
        number = self.position.done if self.position is not None else 0
        self._states.append((number, self._reader.state()))
        while (minibatch := self._reader.get_minibatch()) is not None:
            if self._stop() and self._parallel.communicator.size == 1:
                raise Stopped  # a stack may take long to fill
            number += 1
            self._states.append((number, self._reader.state()))
            yield minibatch

    def between(self, collected: Callable[[], Position]) -> None:
        """After a stack: save the state if it is time.

        **Raises** `Interrupted` if the run should stop.
        """
        due = self._minutes > 0 and time.monotonic() - self._saved >= 60 * self._minutes
        stop, due = self._parallel.any_of(self._stop(), due)
        if not (stop or due):
            return
        self._saved = time.monotonic()
        position = collected()
        state = next(state for number, state in reversed(self._states) if number <= position.done)
        reader, shapes = self._parallel.gather(state), self._trainer.shapes.to_json()
        whole = Partial(self._trainer.snapshot(), position.to_json(), reader, shapes, self._settings)
        self._parallel.write(lambda: whole.save(self._path))
        if stop:
            raise Interrupted(
                f"the state after {position.done} minibatches of the epoch is saved in {self._path}; "
                "start the same command again to go on from there"
            )
