"""Settings for nodes that a network does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cntkpy.cntk_config import ConfigValue

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, ValidatedNetwork
    from cntkpy.trainers.parameters.sgd import SGDParameters


class IdleSetting(NamedTuple):
    """A parameter of the trainer that is given, and the operation that it is for."""

    name: str
    operation: str
    value: ConfigValue


def idle_settings(p: SGDParameters, network: Network | ValidatedNetwork) -> Iterator[IdleSetting]:
    """Rates and constants for nodes that the network does not have."""
    operations = {node.operation for node in network.nodes.values()}
    for name, schedule, operation in (
        ("dropoutRate", p.dropout_rate, "Dropout"),
        ("batchNormalizationTimeConstant", p.bn_time_constant, "BatchNormalization"),
        ("batchNormalizationBlendTimeConstant", p.bn_blend_time_constant, "BatchNormalization"),
    ):
        value = p.given(name)
        if value is not None and operation not in operations and any(schedule.distinct()):
            yield IdleSetting(name, operation, value)
