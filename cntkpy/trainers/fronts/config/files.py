"""The files of a training: a model and a checkpoint after every epoch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cntkpy.cntk_config.base.stopping import UNSAVED
from cntkpy.networks.compile.evaluate import start_values, with_values
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.trainers.checkpoints.checkpoint import (
    Arrays,
    Checkpoint,
    TrainingRecord,
    checkpoint_name,
    model_name,
    partial_name,
    remove,
)
from cntkpy.trainers.checkpoints.keeping import ALL, BEST
from cntkpy.trainers.fronts.config.state import TrainingState
from cntkpy.trainers.fronts.config.tidy import keeps, remove_needless
from cntkpy.trainers.log import text
from cntkpy.trainers.log.events import event, level
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.schedules.schedules import Schedules

log = logging.getLogger("cntkpy.trainers")

MANY_MODELS = 50
"""Epochs after which the log says how to keep fewer models."""


@dataclass
class TrainingFiles:
    """Writes, reads and removes the files.

    Epochs are counted: `done` is how many are finished.

    Args:
        parameters: The `SGD` section.
        schedules: Its listed values.
        network: The network that is trained; files get its values from elsewhere.
        settings: What the configuration says about this training, kept with its models.
        parallel: The processes that share the training; only the main one writes.
    """

    parameters: SGDParameters
    schedules: Schedules
    network: ValidatedNetwork
    settings: dict[str, str]
    parallel: ParallelTraining

    def model(self, done: int) -> str:
        """Return the path of a model."""
        return model_name(str(self.parameters.model_path), done, self.parameters.max_epochs)

    def save_final(self, done: int, network: ValidatedNetwork) -> None:
        """Save a network as the final model, whatever the number of epochs."""
        self.parallel.write(lambda: self._write_model(done, network, ended=True))

    def save_start(self, done: int) -> None:
        """Save the network as training begins, and remove the state inside an epoch of an earlier training."""

        def write() -> None:
            self._write_model(done, self.network)
            remove(partial_name(self.model(done)))

        self.parallel.write(write)

    def save_epoch(
        self,
        done: int,
        network: ValidatedNetwork,
        state: TrainingState,
        checkpoint: Callable[[], Checkpoint],
        validated: list[text.Total] | None,
    ) -> None:
        """Save model and checkpoint after an epoch, and remove what they replace.

        Args:
            done: Number of epochs.
            network: The network with the values of now.
            state: The state of the training.
            checkpoint: Makes the checkpoint of it, once the best models are known.
            validated: The criteria on validation data, where the best model by each of them is kept.
        """
        p, model = self.parameters, self.model(done)
        shown = p.trace_level > 0
        saved = event("saved", epoch=done, epochs=p.max_epochs, model=model)
        log.log(level(shown), "SGD: Saving checkpoint model '%s'", model, extra=saved)
        if not shown and done == p.max_epochs:
            log.info("INFO: the model is saved in '%s'.", model)
        if p.keep_models == BEST and state.best and state.best[0] <= done == p.max_epochs:
            log.info("The best model is that of epoch %d, '%s'.", state.best[0], self.model(state.best[0]))
        if done == MANY_MODELS < p.max_epochs and p.keep_models == ALL and p.given("keepModels") is None:
            message = "INFO: the models of %d epochs are there and stay; keepModels=best keeps the newest and the best."
            log.info(message, MANY_MODELS)
        better = state.best_models.observe(done, validated or [])
        made = checkpoint()

        def write() -> None:
            for path in better:
                save_model(path, network)
            made.save(checkpoint_name(model))
            self._write_model(done, network)
            remove(partial_name(self.model(done - 1)))
            best = None if state.best is None else state.best[0]
            remove_needless(p, done, best, self.schedules, state.control.options)

        self.parallel.write(write)
        UNSAVED.clear()

    def save_checkpoint(self, done: int, checkpoint: Checkpoint) -> None:
        """Save a checkpoint alone."""
        self.parallel.write(lambda: checkpoint.save(checkpoint_name(self.model(done))))

    def load_checkpoint(self, done: int) -> Checkpoint:
        """Return the checkpoint of a model.

        Raises:
            FileNotFoundError: There is none.
            UserError: It is damaged.
        """
        return Checkpoint.load(checkpoint_name(self.model(done)))

    def load_values(self, done: int) -> Arrays:
        """Return the values of a model by name, see `start_values`."""
        loaded = load_model(self.model(done), self.network.precision)
        values: Arrays = {node.name: node.value for node in loaded.nodes.values() if node.value is not None}
        values |= {f"{node.name}/samples": np.asarray(node.samples) for node in loaded.nodes.values()}
        return start_values(with_values(self.network, values))

    def remove_after(self, done: int, last: int) -> None:
        """Remove models and checkpoints of the epochs after `done`, up to `last`."""
        for stale in range(last, done, -1):
            log.info("SGD: removing model and checkpoint files for epoch %d after rollback to epoch %d", stale, done)
            if self.parallel.main:
                remove(self.model(stale))
                remove(checkpoint_name(self.model(stale)))

    def _write_model(self, done: int, network: ValidatedNetwork, ended: bool = False) -> None:
        record = TrainingRecord(done, self.settings, ended, keeps(self.parameters))
        save_model(self.model(self.parameters.max_epochs if ended else done), network, record.to_json())
