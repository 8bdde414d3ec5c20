"""`new ComputationNetwork { members }`: which nodes make the network, in which order, under which names."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.networks.builders.brainscript.language.evaluate import Class, Evaluator, Step
from cntkpy.networks.builders.brainscript.language.parameters import flattened, parameter, place_of
from cntkpy.networks.builders.brainscript.language.values import Object, Origin, Record, kind_of
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.brainscript.nodes import attach_inputs

SPECIAL = {
    "criterionNodes": "criterion",
    "evaluationNodes": "evaluation",
    "featureNodes": "feature",
    "labelNodes": "label",
    "outputNodes": "output",
}
"""Members that fill groups, in the order in which they are read."""

Current = Callable[[NodeValue], NodeValue]
"""Value in the place of a node."""

AS_MEMBER = str.maketrans(".[]", "___")
"""Characters of names of nodes as they are written after a point."""

TAGS = {**{group: group for group in SPECIAL.values()}, "criteria": "criterion", "eval": "evaluation"}


class NetworkValue(Object):
    """A network.

    Attributes:
        nodes: its nodes in the order of entry, by name in lower case.
        groups: the nodes of each group, in the order of entry.
    """

    kind = "a network"

    def __init__(self) -> None:
        self.nodes: dict[str, NodeValue] = {}
        self.groups: dict[str, list[NodeValue]] = {group: [] for group in SPECIAL.values()}

    def member(self, name: str) -> NodeValue | None:
        """Return a node by its name, ignoring case; dots and square brackets of the name are written `_`."""
        if known := self.nodes.get(name.lower()):
            return known
        return next((node for key, node in self.nodes.items() if key.translate(AS_MEMBER) == name.lower()), None)

    def members(self) -> list[str]:
        """Return the names of its nodes."""
        return [node.name.translate(AS_MEMBER) for node in self.nodes.values()]

    def enter(self, evaluator: Evaluator, node: NodeValue) -> None:
        """Add a node under a name of its own, and to the groups of its tags."""
        name = node.full_name
        if (namesake := self.nodes.get(name.lower())) is not None:
            if node.scalar or any(sign in name for sign in ".[]") or _gives_way(node):
                name = self._free(name)
            elif _gives_way(namesake):
                self._rename(namesake)
            else:
                raise self._clash(evaluator, node, name, namesake)
        node.name = name
        self.nodes[name.lower()] = node
        for tag in node.tags:
            group = TAGS.get(tag)
            if group is None:
                hint = "possible: " + ", ".join(SPECIAL.values())
                message = f"'{tag}' of '{name}' is not a tag of a node"
                raise evaluator.messages.error("BadValue", message, node.origin.place, node.origin.scope, hint)
            if node not in self.groups[group]:
                self.groups[group].append(node)

    def _free(self, name: str) -> str:
        """Return a name that no node has yet, with `_` in front of it where one has it."""
        while name.lower() in self.nodes:
            name = "_" + name
        return name

    def _rename(self, node: NodeValue) -> None:
        """Let a node give way to another one of its name."""
        node.name = self._free(node.name)
        self.nodes = {node.name.lower(): node for node in self.nodes.values()}

    def _clash(self, evaluator: Evaluator, node: NodeValue, name: str, namesake: NodeValue) -> ConfigError:
        """Return the error of two nodes of one name."""
        message = f"duplicated name: two nodes are called '{name}' and '{namesake.name}'; letter case does not count"
        hint, notes = "rename one of the two members", [f"the other one is made at {namesake.origin.place}"]
        if node.stored is not None or namesake.stored is not None:
            hint = f"the input of a loaded network keeps its name; to use it, write {name} = net.{name}"
        return evaluator.messages.error("DuplicateName", message, node.origin.place, node.origin.scope, hint, notes)


def _gives_way(node: NodeValue) -> bool:
    """Return whether a node of a loaded network, but no input, takes another name where a new node has its own."""
    return node.stored is not None and node.name == node.stored.name and node.operation.shape != "input"


def entered(evaluator: Evaluator, roots: Iterable[NodeValue], current: Current | None = None) -> Step:
    """Return the network of some nodes and of all that they depend on, in the order of a work list.

    Args:
        evaluator: evaluates the inputs of delay nodes.
        roots: where the list begins.
        current: what is in the place of a node; by default the node itself.
    """
    network = NetworkValue()
    waiting, seen = deque(roots), set[NodeValue]()
    while waiting:
        node = waiting.popleft()
        if node in seen:
            continue
        seen.add(node)
        network.enter(evaluator, node)
        inputs = node.inputs if isinstance(node.inputs, tuple) else (yield attach_inputs(node))
        if current is not None:
            node.inputs = inputs = tuple(current(operand) for operand in inputs)
        waiting.extend(inputs)
        axis = node.options.get("dynamicAxis")
        if node.stored is not None and isinstance(axis, NodeValue):
            axis = node.options["dynamicAxis"] = axis if current is None else current(axis)
            waiting.append(axis)
    return network


def _make(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the network of the members of a record."""
    if evaluator.failures is not None:
        evaluator.failures.networks.append((record, origin))
    roots: list[NodeValue] = []
    for step in root_steps(evaluator, record, origin):
        roots += yield step
    return (yield entered(evaluator, roots))


def root_steps(evaluator: Evaluator, record: Record, origin: Origin) -> Iterator[Step]:
    """Yield the steps that give the nodes of a network, those of its groups first: each is independent of the others.

    Args:
        evaluator: Evaluates the members.
        record: The record of the network.
        origin: The place of the network.
    """
    for name, group in SPECIAL.items():
        if name in record.names:
            yield _group(evaluator, record, name, group, origin)
    for name in sorted(record.names):
        yield _member(evaluator, record, name, origin)


def _group(evaluator: Evaluator, record: Record, name: str, group: str, origin: Origin) -> Step:
    """Return the nodes of a group."""
    value = yield parameter(evaluator, record, name, origin)
    place, scope = place_of(evaluator, record, name, origin)
    nodes: list[NodeValue] = []
    for node in (yield flattened(evaluator, value, place, scope, "nodes")):
        if not isinstance(node, NodeValue):
            message = f"{name} takes nodes, not {kind_of(node)}"
            raise evaluator.messages.error("NoNode", message, place, scope, "names of nodes without quotes: (a : b)")
        if group not in node.tags:
            node.tags = (group, *node.tags)
        nodes.append(node)
    return nodes


def _member(evaluator: Evaluator, record: Record, name: str, origin: Origin) -> Step:
    """Return the node that a member is; none if it is another value."""
    value = yield parameter(evaluator, record, name, origin)
    if not isinstance(value, NodeValue):
        return []
    if name not in SPECIAL:
        value.name = name
    return [value]


CLASSES = {"ComputationNetwork": Class(_make, own_names=True)}
