"""The start of a training: computed nodes, the first files, the compiled step, a checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cntkpy.networks.compile.evaluate import start_values
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.network import ValidatedNetwork as Network
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.precompute import precompute_all, precompute_data
from cntkpy.trainers.fronts.config.criteria import announce
from cntkpy.trainers.fronts.config.files import TrainingFiles
from cntkpy.trainers.fronts.config.partial import stopped_between_epochs
from cntkpy.trainers.fronts.config.rates import ParallelSequences
from cntkpy.trainers.fronts.config.state import TrainingState
from cntkpy.trainers.log.nodes import log_shapes
from cntkpy.trainers.log.reporting import Reporting
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.rules.rules import regularisation, update_rule, warn_of_idle_settings
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.reading import CountedReader, WrappedReader
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.step import CompiledStep

log = logging.getLogger("cntkpy.trainers")


@dataclass
class Start:
    """Brings a training to its first epoch.

    Attributes:
        parameters: The `SGD` section.
        network: The network.
        reader: Reads the training data.
        done: Number of finished epochs.
        loaded: Whether the network comes from a file of this training.
        reporting: Where progress is reported besides the log.
        parallel: The processes that share the training.
        files: The files of the training.
        stop: Whether the run should end.
    """

    parameters: SGDParameters
    network: Network
    reader: MinibatchReader
    done: int
    loaded: bool
    reporting: Reporting
    parallel: ParallelTraining
    files: TrainingFiles
    stop: Callable[[], bool]

    def nodes(self, sequences: ParallelSequences) -> list[Node]:
        """Compute the nodes that precede the first epoch, and save the start; return the criterion and others.

        Raises:
            Interrupted: The run was asked to stop.
        """
        p = self.parameters
        nodes = announce(self.network, p, self.reporting.device)
        log_shapes(self.network, nodes, p.trace_level)
        warn_of_idle_settings(p, self.network)
        with stopped_between_epochs(self.files.model(self.done) if self.loaded else None):
            computed = precompute_all(self.network, p, self._data())
            if not computed and self.loaded and sequences.varying and not self.done:
                self._read_as_before()
        if computed or not self.loaded:
            self.files.save_start(self.done)
        if not p.max_epochs:
            log.info("maxEpochs = 0: nothing is trained; the network as it was made is saved in %s", p.model_path)
        return nodes

    def _read_as_before(self) -> None:
        """Repeat the reading for nodes computed before the first epoch, which sets the number of sequences."""
        if self.parameters.truncated and self.network.precompute_nodes(pending=False):
            for _ in self._data():
                pass

    def _data(self) -> Iterator[Minibatch]:
        """Return the minibatches from which nodes are computed before the first epoch, until the run is stopped."""
        data = precompute_data(self.parameters, self.reader, self.reporting.tracing)
        return self.parallel.until_stopped(data, self.stop)

    def step(self, nodes: list[Node], targets: Callable[[Stack], Stack] | None) -> CompiledStep:
        """Return the step, which alone has the values of the network; `targets`: see `CompiledStep`."""
        p = self.parameters
        sizes = zip(p.minibatch_size.starts(), p.minibatch_size.distinct(), strict=True)
        values = start_values(self.network)
        for node in self.network.parameters():
            node.value = None
        return CompiledStep(
            self.network,
            nodes,
            update_rule(p),
            regularisation(p, self.network),
            targets,
            p.trace_level,
            self.parallel.alone,
            max_minibatch_size=max(size for start, size in sizes if start < max(1, p.max_epochs)),
            values=values,
        )

    def resume(self, state: TrainingState, step: CompiledStep, part: WrappedReader, counted: CountedReader) -> None:
        """Resume after the last finished epoch.

        Args:
            state: The state of the training.
            step: The step.
            part: The reader of this process.
            counted: The reader inside that counts parallel sequences.
        """
        step.drop_updates()
        try:
            checkpoint = self.files.load_checkpoint(self.done)
        except FileNotFoundError:
            step.reload_updates()
            log.warning(
                "Warning: Checkpoint file is missing. Parameter-learning state (such as momentum) will be reset."
            )
            return
        schedule = state.resume(checkpoint)
        warn_of_reset(step.reload_updates(checkpoint.updates))
        part.restore_epoch(checkpoint.values["reader"])
        counted.last_slots = schedule.get("last_slots", 0)
        if "shapes" in schedule:  # so that minibatches are padded as before, and sums rounded alike
            step.buckets = Buckets.from_json(schedule["shapes"])


def warn_of_reset(names: list[str]) -> None:
    """Warn of parameters whose update rule starts anew, although a checkpoint has arrays."""
    if names:
        log.warning(
            "Warning: The checkpoint is of another update rule or another network. "
            "Parameter-learning state (such as momentum) will be reset for %s.",
            ", ".join(names[:3]) + (", ..." if len(names) > 3 else ""),
        )
