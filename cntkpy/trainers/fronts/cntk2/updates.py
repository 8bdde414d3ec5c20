"""Updates of a trainer: minibatches on their way to the compiled step, what they count for, who reports them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.model_file import save_model
from cntkpy.readers.common.planned import State
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.checkpoints.checkpoint import PROGRAM, Checkpoint, not_a_checkpoint
from cntkpy.trainers.fronts.cntk2.learners import Learner
from cntkpy.trainers.fronts.cntk2.objective import CurrentSettings
from cntkpy.trainers.fronts.cntk2.progress import ProgressWriter
from cntkpy.trainers.fronts.cntk2.training import Training
from cntkpy.trainers.fronts.cntk2.user.learners import update_all
from cntkpy.trainers.fronts.cntk2.workers import Workers
from cntkpy.trainers.step.context import Callback


@dataclass
class Counts:
    """Amount of training so far, with the names of a checkpoint.

    Attributes:
        samples: Samples of the criterion, of all workers.
        updates: Minibatches.
        sweeps: Passes over the data that ended.
        reported: Minibatches up to the last `summarize_training_progress`.
    """

    samples: int = 0
    updates: int = 0
    sweeps: int = 0
    reported: int = 0


class Updates:
    """Trains on minibatches.

    Args:
        training: The parameters and the compiled steps.
        learners: They decide rate and momentum.
        workers: The processes that train together.
        writers: Report the progress.

    Attributes:
        counts: Amount of training so far.
    """

    def __init__(
        self, training: Training, learners: Sequence[Learner], workers: Workers, writers: Sequence[ProgressWriter]
    ) -> None:
        self._training, self._learners, self._workers, self._writers = training, learners, workers, writers
        self._settings = CurrentSettings(learners)
        self.counts = Counts()

    def train(self, minibatch: Minibatch | None, seed: int, callbacks: Sequence[Callback] = ()) -> bool:
        """Train on a minibatch.

        Args:
            minibatch: This worker's data; None: there are none.
            seed: Of random masks.
            callbacks: Get the context of the minibatch before.

        Returns:
            Whether any worker had data.
        """
        queue = self._training.queue
        if self._workers.size > 1:
            return self._train_with_others(minibatch, seed, callbacks)
        if minibatch is None or minibatch.num_samples == 0:
            return False
        queue.add(minibatch, self._settings.get(seed), callbacks)
        self._count(self._training.objective.samples_of(minibatch), minibatch.end_of_sweep)
        if self._training.user_learners:
            return self._update_by_python(minibatch)
        if self._training.objective.runs_python:
            queue.collect()
        elif queue.is_full:
            queue.flush()
        return True

    def _update_by_python(self, minibatch: Minibatch) -> bool:
        """Let the learners that are Python code change their parameters; return whether training goes on."""
        queue = self._training.queue
        last = queue.collect()[1]
        gradients = {
            parameter: queue.now.step.updates([name])[name]["gradient"].reshape(parameter.shape)
            for name, (parameter, _) in self._training.user_learners.items()
        }
        learners = dict(self._training.user_learners.values())
        return update_all(learners, gradients, last.samples, minibatch.end_of_sweep)

    def _train_with_others(self, minibatch: Minibatch | None, seed: int, callbacks: Sequence[Callback]) -> bool:
        queue, settings = self._training.queue, self._settings.get(seed)
        renew = self._workers.choose(queue.now.step, self.counts.samples)
        earlier = self.counts.updates
        sweep_end = self._workers.any(minibatch is not None and minibatch.end_of_sweep)
        for samples in queue.train_with_others(minibatch, settings, renew, callbacks):
            self._count(samples, sweep_end)
        return self.counts.updates > earlier

    def _count(self, samples: int, sweep_end: bool) -> None:
        self.counts.samples += samples
        self.counts.updates += 1
        self.counts.sweeps += sweep_end
        for learner in self._learners:
            if self._writers:
                for name, value in learner.changed_numbers().items():
                    for writer in self._writers:
                        writer.on_setting(name, value)
            learner.count(samples, sweep_end)
        for writer in self._writers:
            writer.after_update(self.counts.updates, lambda: self._training.queue.collect()[0])

    def summarize(self, with_metric: bool) -> None:
        """Let the progress writers sum up the training since the last time."""
        if self._workers.together:
            self._training.finish_epoch()
        totals = self._training.queue.collect()[0]
        self.counts.reported = self.counts.updates
        for writer in self._writers:
            writer.after_epoch(totals, with_metric)

    # ---- checkpoints

    def save(self, filename: str | Path, seed: int, external: State) -> None:
        """Write the model, and next to it a checkpoint.

        Args:
            filename: The model file.
            seed: Of random masks.
            external: Values of the program's own.
        """
        workers, training = self._workers, self._training
        values, arrays = training.snapshot()
        values |= {
            **asdict(self.counts),
            "learners": [[lr.samples_seen, lr.sweeps, *lr.rate_since] for lr in self._learners],
            "writers": [writer.saved_state() for writer in self._writers],
            "workers": workers.size,
            "seed": seed,
            "external": workers.exchange(external),
        }
        training.release()
        if workers.main:
            model = training.objective.model
            model.load()
            save_model(filename, model.network)
            Checkpoint(PROGRAM, values, arrays).save(f"{filename}.ckp")
        workers.wait()

    def restore(self, path: str) -> tuple[int, State]:
        """Resume from a checkpoint; return the seed of random masks, and the program's own values.

        Raises:
            UserError: There is none, or it is that of another network, or of another number of workers.
        """
        try:
            checkpoint = Checkpoint.load(path, PROGRAM)
        except FileNotFoundError:
            raise UserError("NoModel", f"there is no checkpoint {path}", hint="save_checkpoint writes it") from None
        values = checkpoint.values
        if int(values["workers"]) != self._workers.size:
            raise not_a_checkpoint(path, f"it is that of {values['workers']} workers", PROGRAM)
        self._training.restore(path, checkpoint, lambda step: self._workers.choose(step, int(values["samples"])))
        for learner, (samples, sweeps, *since) in zip(self._learners, values["learners"], strict=True):
            learner.samples_seen, learner.sweeps = samples, sweeps
            learner.rate_since = (since[0], since[1]) if since else (0, 0)
        for writer, state in zip(self._writers, values["writers"], strict=False):
            writer.take_state(state)
        self.counts = Counts(*(int(values[field.name]) for field in fields(Counts)))
        return int(values["seed"]), values["external"][self._workers.rank]
