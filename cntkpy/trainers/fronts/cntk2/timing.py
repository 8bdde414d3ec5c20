"""Tables of how long each node of a function takes, for the data that it was computed for last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import network_parameters, network_state
from cntkpy.networks.compile.timing import NodeTime, time_nodes
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.step.context import minibatch_of


class _Switch:
    """A switch: minibatches are kept for `measured`."""

    on = False


def set_node_timing(enable: bool) -> None:
    """Let functions, trainers and tests keep their last minibatch from now on, or not.

    `print_node_timing` of them measures their nodes with it; training itself is not slowed down.
    """
    _Switch.on = bool(enable)


def is_node_timing() -> bool:
    """Return whether minibatches are kept."""
    return _Switch.on


class LastMinibatch:
    """The last minibatch of a function or a trainer, if `set_node_timing(True)` was called before."""

    def __init__(self) -> None:
        self._kept: Minibatch | None = None

    def keep(self, minibatch: Minibatch | None) -> None:
        """Keep a minibatch, in place of the one before."""
        if is_node_timing() and minibatch is not None:
            self._kept = minibatch

    def print_times(self, title: str, network: ValidatedNetwork, nodes: Sequence[Node], training: bool) -> None:
        """Measure nodes with the minibatch, and print a table.

        Args:
            title: begins the first line.
            network: the network, with the values of now.
            nodes: what was computed.
            training: whether in training mode; then gradients are measured as well.

        Raises:
            ArgumentError: there is no minibatch.
        """
        if self._kept is None:
            hint = "cntk.debugging.set_node_timing(True), then eval, train_minibatch or test_minibatch"
            raise ArgumentError(f"{title}: no minibatch was kept to measure nodes with", hint)
        times = measured(network, nodes, self._kept, training)
        print(table(f"{title}, a minibatch of {self._kept.num_samples} samples", times), end="")


def measured(network: ValidatedNetwork, nodes: Sequence[Node], minibatch: Minibatch, training: bool) -> list[NodeTime]:
    """Return the times of all nodes that some nodes depend on; see `time_nodes`."""
    batcher = Evaluator(network, nodes, summed=False).batcher(max(1, minibatch.num_samples), 1, chosen=0)
    batch: Any = jax.tree.map(jax.numpy.asarray, minibatch_of(batcher.alone(minibatch).batch, 0))
    names = list(dict.fromkeys(node.name for node in nodes))
    return time_nodes(network, names, network_parameters(network), network_state(network), batch, training)


def table(title: str, times: Sequence[NodeTime]) -> str:
    """Lines of text: the slowest node first.

    Args:
        title: begins the first line.
        times: of the nodes.
    """
    total = sum(row.forward + row.backward for row in times)
    lines = [f"{title}: {total * 1e3:.3f} ms for {len(times)} nodes, each compiled and run alone"]
    lines.append(f"{'forward ms':>12} {'backward ms':>12} {'share':>7}  operation                node")
    for row in sorted(times, key=lambda row: -(row.forward + row.backward)):
        both = row.forward + row.backward
        names = row.nodes[0] if len(row.nodes) == 1 else f"{row.nodes[0]} and {len(row.nodes) - 1} more"
        lines.append(
            f"{row.forward * 1e3:12.4f} {row.backward * 1e3:12.4f} {100 * both / total if total else 0:6.1f}%  "
            f"{row.operation:<24} {names}"
        )
    return "\n".join(lines) + "\n"
