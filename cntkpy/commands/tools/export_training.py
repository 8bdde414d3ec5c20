"""`cntkpy export CONFIG OUT --to pytorch --training`: the training of a configuration as a program of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.actions.training import TrainingParameters
from cntkpy.commands.tools import export_data
from cntkpy.commands.tools.export_batches import Asked, BatchesWriter
from cntkpy.commands.tools.export_epochs import EpochsWriter
from cntkpy.commands.tools.export_rule import RuleWriter
from cntkpy.networks.source.training import data, program
from cntkpy.networks.source.training.data import Loading
from cntkpy.networks.source.training.program import Training

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.source.export import Settings, Source
    from cntkpy.networks.source.function import Function
    from cntkpy.readers.contracts import MinibatchReader


@dataclass(frozen=True)
class Written:
    """A network and its training.

    Attributes:
        source: the network.
        text: of `train.py`.
        notes: lines for the README.
    """

    source: Source
    text: str
    notes: list[str]


def write_training(asked: Asked, settings: Settings) -> Written:
    """Write a network and its training as programs of PyTorch.

    Args:
        asked: the training.
        settings: of the network; its outputs are chosen here.

    Raises:
        UserError: the training has something that is not written; all of it is listed.
    """
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.source.export import export
    from cntkpy.networks.source.function import criteria_function
    from cntkpy.networks.source.graph import prediction_nodes
    from cntkpy.trainers.fronts.config.criteria import choose_criteria

    criteria, evaluations = choose_criteria(asked.network, asked.parameters)
    roots = [criteria[0], *evaluations]
    names = [node.name for node in roots]
    cut = [node.name for node in prediction_nodes(asked.network, roots)]
    _compute_statistics(asked, cut or names)
    function = criteria_function(asked.network, names, cut, ours.constants)
    if function.parameters or not cut:  # then the network gives the criteria themselves
        source = export(asked.network, ours.constants, replace(settings, outputs=tuple(names)))
        function = None
    else:
        source = export(asked.network, ours.constants, replace(settings, outputs=tuple(cut)))
    return _Writer(asked, roots, source, function).written()


def _compute_statistics(asked: Asked, names: Sequence[str]) -> None:
    """Compute means and deviations of the data that nodes depend on, as a training does before its first epoch."""
    from cntkpy.trainers.evaluation.precompute import precompute

    network, p = asked.network, asked.parameters
    below = set(network.below([network.find(name) for name in names]))
    if not below.intersection(network.precompute_nodes()):
        return
    samples = None if p.precompute_on_all_data else p.epoch_size or None
    reader = export_data.open_reader(asked.reader_section, network.precision)
    precompute(network, _minibatches(reader, p.minibatch_size[0], samples), p.minibatch_size[0])


def _minibatches(reader: MinibatchReader, size: int, samples: int | None) -> Iterator[Any]:
    reader.start_minibatch_loop(size, 0, samples)
    while (minibatch := reader.get_minibatch()) is not None:
        yield minibatch


class _Writer:
    """Writes the program.

    Attributes:
        reasons: what cannot be written, and why.
    """

    def __init__(self, asked: Asked, roots: list[Node], source: Source, function: Function | None) -> None:
        self.asked, self.source, self.function = asked, source, function
        self.p, self.nodes = asked.parameters, list(source.graph.users)
        self.reasons: list[str] = []
        self.rule = RuleWriter(self.p, asked.network, roots[0], source, self.reasons)
        self.epochs = EpochsWriter(self.p, source, self.nodes, self.reasons)
        self.batches = BatchesWriter(asked, roots, source, function, self.reasons)

    def written(self) -> Written:
        """Return the programs.

        Raises:
            UserError: some of the training is not written.
        """
        self._check_parameters()
        rule, groups, frozen = self.rule.written()
        epochs = self.epochs.written()
        outputs, results = self.batches.names()
        loading, inputs, arguments = self.batches.written(rule, outputs)
        if self.reasons or loading is None:
            raise self._refusal()
        training = Training(
            model=self.source.name,
            origin=self.asked.config.rpartition("/")[2],
            loading=loading,
            rule=rule,
            epochs=epochs,
            inputs=inputs,
            outputs=list(outputs.values()),
            criteria="" if self.function is None else self.function.text,
            arguments=arguments,
            results=results,
            frozen=frozen,
            groups=groups,
            seen=self.epochs.norms[0].samples if self.epochs.norms else 0,
            notes=self._notes(loading),
        )
        return Written(self.source, program.program(training), self._ignored())

    def _refusal(self) -> UserError:
        listed = "\n".join(f"  {reason}" for reason in self.reasons)
        message = f"the training cannot be written as PyTorch source, because of:\n{listed}"
        return UserError("NotSupported", message, hint="without --training the network alone is written")

    def _check_parameters(self) -> None:
        """Note parameters that have no code."""
        p: Any = self.p
        adapts = p.auto_adjust.adjust_minibatch
        unwritten = {
            "AutoAdjust: it finds the rates while it trains": not (p.rates_per_mb or p.rates_per_sample),
            "autoAdjustMinibatch: it finds the minibatch size while it trains": adapts,
            "truncated: the states of a recurrence would go from one minibatch to the next": p.truncated,
            "gaussianNoiseInjectStd: PyTorch draws other numbers than JAX": p.noise > 0,
        }
        self.reasons += [reason for reason, applies in unwritten.items() if applies]
        if p.auto_adjust.auto_adjust_lr.lower() not in ("none", "false") and (p.rates_per_mb or p.rates_per_sample):
            self.reasons.append("autoAdjustLR: it changes the rates while it trains")

    def _notes(self, loading: Loading) -> list[str]:
        """Lines for the head of the program."""
        notes: list[str] = []
        if loading.shuffled:
            notes.append(
                "The configuration shuffles the data; here they come in another order, so that criteria differ."
            )
        if any(node.operation == "Dropout" for node in self.nodes):
            notes.append("Dropout draws other numbers than CNTK, so that criteria differ.")
        elif any(node.kind.random for node in self.nodes):
            notes.append("The network draws random numbers, others than CNTK, so that criteria differ.")
        if isinstance(loading.origin, data.Reader):
            notes.append("The data are read by cntkpy, in the order of the configuration.")
        return notes

    def _ignored(self) -> list[str]:
        """Lines for the README: what of the configuration has no code here."""
        p, lines = TrainingParameters(self.asked.section), list[str]()
        if p.cv_reader is not None:
            lines.append("`cvReader` is not written: `train.py` validates nothing.")
        if self.p.parallel_train is not None:
            lines.append("`ParallelTrain` is not written: `train.py` is one process.")
        lines.append(
            "Checkpoints and logs (`keepCheckPointFiles`, `numMBsToShowResult`, ...) are not written; "
            "`trained.safetensors` has the weights after the last epoch."
        )
        if self.asked.network.precision == "double":
            lines.append("The configuration is of double precision; `train.py` computes in single precision.")
        return lines
