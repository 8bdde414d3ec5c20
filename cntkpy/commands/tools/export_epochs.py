"""Settings that change from epoch to epoch of a training, for a program of PyTorch: `cntkpy export --training`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cntkpy.networks.source.training.program import Epochs

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.source.export import Source
    from cntkpy.trainers.parameters.sgd import SGDParameters


def momenta(p: SGDParameters) -> list[float]:
    """Return the momentum per sample of each epoch."""
    from cntkpy.trainers.schedules.schedules import Schedules

    schedules = Schedules(p)
    return [schedules.momentum_per_sample(epoch) for epoch in range(p.max_epochs)]


@dataclass
class EpochsWriter:
    """Writes the values of all epochs.

    Args:
        parameters: the SGD section.
        source: the network as source.
        nodes: nodes of the network that are written.
        reasons: gets what cannot be written, and why.

    Attributes:
        norms: nodes of batch normalisation.
    """

    parameters: SGDParameters
    source: Source
    nodes: list[Node]
    reasons: list[str]

    def __post_init__(self) -> None:
        self.norms = [node for node in self.nodes if node.operation == "BatchNormalization"]

    def written(self) -> Epochs:
        """Return the values of each epoch."""
        from cntkpy.trainers.rules.rules import network_settings
        from cntkpy.trainers.schedules.schedules import Schedules

        p = self.parameters
        schedules, epochs = Schedules(p), range(p.max_epochs)
        dropouts = [node for node in self.nodes if node.operation == "Dropout"]
        rates = [float(p.dropout_rate[epoch]) for epoch in epochs]
        if len(set(rates)) < 2 or not dropouts:
            rates = []
        elif any(node.options.get("rate") is not None for node in dropouts):
            self.reasons.append(
                "dropoutRate changes from epoch to epoch, and some Dropout nodes have a rate of their own"
            )
        constants: list[float] = []
        if self.norms:
            constants = self._time_constants([network_settings(p, epoch) for epoch in epochs])
        known = bool(p.rates_per_mb or p.rates_per_sample)
        return Epochs(
            [int(p.minibatch_size[epoch]) for epoch in epochs],
            [schedules.rate_per_sample(epoch) for epoch in epochs] if known else [],
            momenta(p),
            rates,
            constants,
        )

    def _time_constants(self, settings: Sequence[Any]) -> list[float]:
        """Return the time constants of batch normalisation of each epoch."""
        result: list[float] = []
        for of_epoch in settings:
            every = {_chosen(of_epoch.bn_time_constant, node, "normalizationTimeConstant") for node in self.norms}
            blends = {_chosen(of_epoch.bn_blend_time_constant, node, "blendTimeConstant") for node in self.norms}
            if blends != {0.0}:
                self.reasons.append("batchNormalizationBlendTimeConstant: PyTorch normalises by the minibatch alone")
                return []
            if len(every) > 1:
                self.reasons.append("BatchNormalization nodes have several time constants")
                return []
            result.append(every.pop())
        if len({node.samples for node in self.norms}) > 1:
            self.reasons.append("BatchNormalization nodes have statistics of several numbers of samples")
        if self.source.graph.along_time:
            self.reasons.append("BatchNormalization of sequences: PyTorch's layer counts the padding, too")
        if not any(tensor.buffer and name.endswith("running_var") for name, tensor in self.source.tensors.items()):
            self.reasons.append("BatchNormalization whose parameters other nodes have, too")
        return result


def _chosen(of_epoch: float | None, node: Node, option: str) -> float:
    return float(node.options[option]) if of_epoch is None else float(of_epoch)
