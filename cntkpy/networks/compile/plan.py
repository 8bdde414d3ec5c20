"""Which nodes are computed, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jnp
from cntkpy.networks.arrays.numbers import Numbers
from cntkpy.networks.compile.step_groups import grouped
from cntkpy.networks.graph.axes import axes_of, separate_slots, zeros
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.packing import packed_axes
from cntkpy.networks.graph.precision import PRECISIONS, short_nodes
from cntkpy.networks.graph.validate import check_operands


class Plan:
    """The part of a network needed for some nodes, in evaluation order.

    Args:
        network: the network.
        names: the nodes that are asked for.
        training: whether dropout is active and batch normalisation uses and updates minibatch statistics.

    Attributes:
        outputs: the nodes of these names.
        components: strongly connected components, inputs before their users.
        parts: the same, those of a group of `cntkpy.networks.compile.step_groups` together.
        nodes: the nodes of all components.
        order: the place of each node among them.
        users: the nodes among them that have a node as input.
        inputs: the nodes among them that the minibatch feeds.
        zeros: the nodes among them that are zero whatever the data are, in a network with several time axes.
        own_slots: whether each sequence has a slot of its own.
        packed: the time axes on which sequences may share slots.
        made_axes: the time axes of outputs that are none of an input.
        numbers: the types of their values.

    Raises:
        UserError: an unknown name, or a node that cannot be evaluated.
    """

    def __init__(self, network: ValidatedNetwork, names: Iterable[str], training: bool) -> None:
        self.network = network
        self.names = list(names)
        self.training = training
        self.outputs = [network.find(name) for name in self.names]
        self.components = network.components(self.outputs)
        self.nodes = [node for component in self.components for node in component]
        self.order = {node: index for index, node in enumerate(self.nodes)}
        self.users: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for source in node.connected:
                if source in self.users:
                    self.users[source].append(node)
        for node in self.nodes:
            if node.kind.forward is None and node.inputs and not node.kind.precompute and not node.kind.time.delay:
                raise UserError("BadShape", f"{node.operation} '{node.name}' cannot be evaluated", span=node.span)
        check_operands(self.nodes)
        self.inputs = [n for n in self.nodes if n.kind.layout == "always"]
        self.own_slots = several = separate_slots(self.nodes)
        self.packed = packed_axes(self.nodes) if several else frozenset[str]()
        self.parts = grouped(self.components) if several else list(self.components)
        self.zeros = {n for n in self.nodes if several and n.inputs and n.axis is not None and zeros(n)}
        short = PRECISIONS[network.precision].short
        self.numbers = Numbers(network.dtype)
        if short:
            self.numbers = Numbers(network.dtype, jnp.dtype(short), short_nodes(self.components))
        input_axes = {node.axis for node in self.inputs}
        self.made_axes = [axis for axis in axes_of(self.outputs) if several and axis not in input_axes]
