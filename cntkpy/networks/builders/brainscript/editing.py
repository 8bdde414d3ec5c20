"""`BS.Network.Edit` and `BS.Network.CloneFunction`: networks made from the nodes of others."""

from __future__ import annotations

import copy
import functools
import logging
import math
from collections.abc import Callable, Iterable
from typing import Any

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.networks.builders.brainscript.graph import graph_of
from cntkpy.networks.builders.brainscript.language.evaluate import Class, Evaluator, Step
from cntkpy.networks.builders.brainscript.language.parameters import flattened, of_type, parameter, place_of
from cntkpy.networks.builders.brainscript.language.values import (
    Function,
    Origin,
    Path,
    Record,
    Scope,
    joined,
    kind_of,
)
from cntkpy.networks.builders.brainscript.network import NetworkValue, entered
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.brainscript.nodes import attach_inputs

log = logging.getLogger("cntkpy.networks")

LEARNABLE, CONSTANT, SHARED = "learnable", "constant", "shared"
COPIES = (LEARNABLE, CONSTANT, SHARED)
"""Values that a clone may have in the place of the parameters."""

RESULTS = ("criterion", "evaluation", "output")
"""Groups of what a network computes; the others are of its inputs."""

Nodes = dict[NodeValue, NodeValue]
"""Nodes in the place of others."""


# --------------------------------------------------------------------------------------------------------------- edits


def _edit(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return a network in which nodes are replaced by others; the given one stays as it is."""
    model = yield parameter(evaluator, record, "inputModel", origin)
    if not isinstance(model, NetworkValue):
        place, scope = place_of(evaluator, record, "inputModel", origin)
        hint = 'give a network: BS.Network.Load ("in.dnn"), or the result of another BS.Network.Edit'
        raise evaluator.messages.error(
            "NoNetwork", f"a network can be edited, not {kind_of(model)}", place, scope, hint
        )
    functions = yield _all_of(Function, "functions of a node", evaluator, record, "editFunctions", origin)
    additional = yield _all_of(NodeValue, "nodes", evaluator, record, "additionalRoots", origin)
    edits: Nodes = {}
    for node in sorted(model.nodes.values(), key=lambda node: node.name.lower()):
        for function in functions:
            result = yield _edited(evaluator, function, node, record, origin)
            if result is not node:
                edits[node] = result
                break
    if functions and not edits:
        place, scope = place_of(evaluator, record, "editFunctions", origin)
        hint = f"names count with their letter case; the nodes are {_listed(model)}"
        message = "the edit functions replace no node of the network"
        evaluator.messages.warn("UnknownNode", message, evaluator.messages.user_place(place, scope), hint)
    users = _users(model.nodes.values())
    copies = {node: _copy(node) for node in _dependent(edits, users) if node not in edits}
    current = _follower({**copies, **edits}, evaluator, origin)
    roots = [*_roots(model, users), *additional]
    network = yield entered(evaluator, [current(node) for node in roots], current)
    known = _shapes(network, evaluator)
    for node in set(network.nodes.values()) - set(model.nodes.values()):
        node.known = known
    trace_level = yield parameter(evaluator, record, "traceLevel", origin, 0.0)
    if trace_level and evaluator.prints:
        log.info(
            "Edit: %d of %d nodes replaced, %d more copied with new inputs, %d roots, %d nodes in the result.",
            len(edits),
            len(model.nodes),
            len(copies),
            len(roots),
            len(network.nodes),
        )
    return network


def _listed(model: NetworkValue) -> str:
    """Return the names of some of its nodes, for a message."""
    names = [f"'{node.name}'" for node in model.nodes.values()]
    return ", ".join(names[:6]) + (" and others" if len(names) > 6 else "")


def _shapes(network: NetworkValue, evaluator: Evaluator) -> Callable[[], dict[NodeValue, Shape | None]]:
    """Gives the shapes of the nodes of a network; they are inferred once, when the first of them is asked for."""

    @functools.cache
    def known() -> dict[NodeValue, Shape | None]:
        values = graph_of(network, evaluator, "float", values=False).values
        return {value: node.shape for node, value in values.items()}

    return known


def _edited(evaluator: Evaluator, function: Function, node: NodeValue, record: Record, origin: Origin) -> Step:
    """Return the node that an edit function makes of a node."""
    place, scope = place_of(evaluator, record, "editFunctions", origin)
    result = yield evaluator.apply(function, (node,), {}, place, scope, (None, "." + node.name))
    if not isinstance(result, NodeValue):
        message = f"an edit function must give a node, but gives {kind_of(result)} for '{node.name}'"
        hint = "for nodes that stay it gives its argument: n => if n.name == 'h' then Tanh (n.inputs[0]) else n"
        raise evaluator.messages.error("NoNode", message, place, scope, hint)
    if result is not node and isinstance(result.inputs, tuple) and node in result.inputs:
        message = (
            f"the replacement of '{node.name}' takes '{node.name}' as its input, but every link to '{node.name}' is "
            "redirected to the replacement"
        )
        hint = f"repeat the operation: with n.inputs[0] a {node.operation.name} like the replaced one can be made"
        raise evaluator.messages.error("CircularReference", message, place, scope, hint)
    return result


def _all_of(kind: type[object], subject: str, evaluator: Evaluator, record: Record, name: str, origin: Origin) -> Step:
    """Return the elements of a parameter, nested or not, all of one kind."""
    value = yield parameter(evaluator, record, name, origin)
    place, scope = place_of(evaluator, record, name, origin)
    members = yield flattened(evaluator, value, place, scope, subject)
    for member in members:
        if not isinstance(member, kind):
            raise evaluator.messages.error("NoNode", f"{name} takes {subject}, not {kind_of(member)}", place, scope)
    return members


def _roots(model: NetworkValue, users: dict[NodeValue, list[NodeValue]]) -> list[NodeValue]:
    """Return the nodes that nothing uses, and results (members of groups) from which none of them takes anything."""
    nodes = sorted(model.nodes.values(), key=lambda node: node.name.lower())
    roots = [node for node in nodes if not users.get(node)]
    reached = _below(roots)
    grouped = {node for group in RESULTS for node in model.groups.get(group, [])}
    return [*roots, *(node for node in nodes if node in grouped and node not in reached)]


def _follower(replaced: Nodes, evaluator: Evaluator, origin: Origin) -> Callable[[NodeValue], NodeValue]:
    """Return a function that follows replacements of replacements to the last node."""

    def current(node: NodeValue) -> NodeValue:
        passed: list[NodeValue] = []
        while node in replaced:
            if node in passed:
                names = " -> ".join(f"'{step.full_name}'" for step in [*passed, node])
                message = f"the edits replace nodes in a circle: {names}"
                raise evaluator.messages.error("CircularReference", message, origin.place, origin.scope)
            passed.append(node)
            node = replaced[node]
        return node

    return current


# -------------------------------------------------------------------------------------------------------------- clones


def _clone_function(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return a function of nodes: what the output nodes would be if the input nodes were its arguments."""
    sources = yield _all_of(NodeValue, "nodes", evaluator, record, "inputNodes", origin)
    outputs, single = yield _outputs(evaluator, record, origin)
    how = yield of_type(evaluator, str, record, "parameters", origin)
    if how not in COPIES:
        place, scope = place_of(evaluator, record, "parameters", origin)
        message = f"parameters= must be 'learnable', 'constant' or 'shared', not '{how}'"
        hint = suggestion(how, COPIES) or "'constant' copies parameters that training leaves alone"
        raise evaluator.messages.error("BadValue", message, place, scope, hint)
    yield _attach_all(outputs.values())
    nodes = _below(outputs.values())
    for source in sources:
        if source not in nodes:
            place, scope = place_of(evaluator, record, "inputNodes", origin)
            names = ", ".join(f"'{output.full_name}'" for output in outputs.values())
            message = f"the input node '{source.full_name}' is not needed for {names}"
            inputs = sorted(node.full_name for node in nodes if node.operation.shape == "input")
            hint = f"needed are the inputs {', '.join(inputs[:6])}" if inputs else None
            raise evaluator.messages.error("NoNode", message, place, scope, hint)
    changing = {node for node in nodes if how != SHARED and _has_state(node)}
    cloned = [node for node in _dependent({*sources, *changing}, _users(nodes)) if node not in sources]
    names = tuple(f"input_{index}" for index in range(len(sources)))

    def body(evaluator: Evaluator, arguments: dict[str, object], path: Path | None, inside: Scope) -> Step:
        replaced: Nodes = {}
        for name, source in zip(names, sources, strict=True):
            argument = yield evaluator.forced(arguments[name], origin.place)
            if not isinstance(argument, NodeValue):
                place = inside.call or origin.place
                message = f"'{name}' of a cloned function must be a node, not {kind_of(argument)}"
                hint = "a number as a node is Constant (1)"
                raise evaluator.messages.error("NoNode", message, place, inside.caller, hint)
            replaced[source] = argument
        made = _clone(cloned, replaced, how, Origin(path, inside.call or origin.place, inside))
        if evaluator.prints:
            log.debug("CloneFunction: %d nodes cloned for '%s'.", len(cloned), joined(path))
        results = {name: made.get(node, node) for name, node in outputs.items()}
        return results[""] if single else Record(dict[str, Any](results), None, origin.place, path)

    return Function("cloned function", names, {}, body, origin.scope, origin.place)


def _outputs(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the output nodes by the names of their members, and whether it is just one, under the name ''."""
    value = yield parameter(evaluator, record, "outputNodes", origin)
    place, scope = place_of(evaluator, record, "outputNodes", origin)
    if isinstance(value, NodeValue):
        return {"": value}, True
    if type(value) is not Record or not value.names:
        description = "an empty record" if type(value) is Record else kind_of(value)
        hint = "write a node, or { name = node ; ... }"
        raise evaluator.messages.error(
            "NoNode", f"outputNodes takes a node or a record of nodes, not {description}", place, scope, hint
        )
    result: dict[str, NodeValue] = {}
    for name, member in value.names.items():
        node = yield evaluator.forced(member, place)
        if not isinstance(node, NodeValue):
            message = f"the member '{name}' of outputNodes must be a node, not {kind_of(node)}"
            raise evaluator.messages.error("NoNode", message, *place_of(evaluator, value, name, origin))
        result[name] = node
    return result, False


def _clone(cloned: Iterable[NodeValue], replaced: Nodes, how: str, origin: Origin) -> Nodes:
    """Copies of nodes under the path of a call, linked among each other and with what is given."""
    made: Nodes = {}
    for node in cloned:
        copy = made[node] = _copy(node)
        copy.origin = Origin((origin.path, "." + node.full_name), origin.place, origin.scope)
        copy.name = ""
        if how == CONSTANT:
            copy.learning_rate_multiplier = 0.0
            if "blendTimeConstant" in copy.options:
                copy.options.update(normalizationTimeConstant=math.inf, blendTimeConstant=math.inf)
    made.update(replaced)
    for node in cloned:
        inputs = made[node].inputs
        assert isinstance(inputs, tuple)
        made[node].inputs = tuple(made.get(source, source) for source in inputs)
    return made


def _has_state(node: NodeValue) -> bool:
    """Return whether training changes something of the node itself."""
    return node.operation.shape == "parameter" or node.operation.name == "BatchNormalization"


# --------------------------------------------------------------------------------------------------------------- graphs


def _copy(node: NodeValue) -> NodeValue:
    """Return a node like another one, with options of its own; its value becomes its own when the network is made."""
    result = copy.copy(node)
    result.known = None
    result.options = dict(node.options)
    return result


def _attach_all(roots: Iterable[NodeValue]) -> Step:
    """Evaluate the inputs of all delay nodes below some nodes."""
    waiting, seen = list(roots), set[NodeValue]()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend((yield attach_inputs(node)))


def _inputs(node: NodeValue) -> tuple[NodeValue, ...]:
    return node.inputs if isinstance(node.inputs, tuple) else ()


def _below(roots: Iterable[NodeValue]) -> dict[NodeValue, None]:
    """Nodes and all that they depend on, each once."""
    waiting, reached = list(roots), dict[NodeValue, None]()
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached[node] = None
            waiting.extend(_inputs(node))
    return reached


def _users(nodes: Iterable[NodeValue]) -> dict[NodeValue, list[NodeValue]]:
    """By node, those that take it as an input."""
    users: dict[NodeValue, list[NodeValue]] = {}
    for node in nodes:
        for source in _inputs(node):
            users.setdefault(source, []).append(node)
    return users


def _dependent(nodes: Iterable[NodeValue], users: dict[NodeValue, list[NodeValue]]) -> list[NodeValue]:
    """Nodes and all that depend on them, each once."""
    waiting, reached = list(nodes), dict[NodeValue, None]()
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached[node] = None
            waiting.extend(users.get(node, ()))
    return list(reached)


CLASSES = {"ComputationNetworkWithEdits": Class(_edit), "CloneFunctionConfigLambda": Class(_clone_function)}
