"""Nodes that `new ComputationNode` and its relatives make of a record.

`network` gives the nodes their names and puts them in order; `build` makes the graph of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.networks.builders.brainscript.language.evaluate import Class, Evaluator, Result, Step
from cntkpy.networks.builders.brainscript.language.parameters import flattened, integer, of_type, parameter, place_of
from cntkpy.networks.builders.brainscript.language.values import (
    PENDING,
    Array,
    Object,
    Origin,
    Path,
    Record,
    kind_of,
    number_text,
)
from cntkpy.networks.builders.brainscript.node_values import Later, NodeValue, Shape, Start, constant_node
from cntkpy.networks.builders.brainscript.operations import OPERATIONS, Attribute
from cntkpy.networks.graph.initialize import KINDS, RANDOM_KINDS
from cntkpy.networks.graph.node import BOOLEAN, BOOLEANS, INTEGER, INTEGERS, REAL, REQUIRED, SECTION, TEXT

MAX_RANK = 12


class Seeds(Protocol):
    """Hands out the seeds of random parameters, in the order of evaluation."""

    def next(self) -> int:
        """Return the next seed."""
        ...

    def given(self, seed: int) -> int:
        """Return the seed to use for an explicit one."""
        ...


# ------------------------------------------------------------------------------------------------- new ComputationNode


class NodeMaker:
    """Makes nodes of records.

    Args:
        seeds: of random parameters.
    """

    def __init__(self, seeds: Seeds) -> None:
        self.seeds = seeds

    def classes(self) -> dict[str, Class]:
        """Return the classes that `new` makes with it."""
        return {
            "ComputationNode": Class(self.make, own_names=True),
            "TensorShape": Class(_tensor_shape),
            "IntVector": Class(_vector(float)),
            "SizeVector": Class(_vector(float)),
            "BoolVector": Class(_vector(bool)),
            "FlatArray": Class(_vector(None)),
        }

    def make(self, evaluator: Evaluator, record: Record, origin: Origin) -> Step:
        """Return the node that a record describes."""
        name = yield of_type(evaluator, str, record, "operation", origin)
        operation = OPERATIONS.get(name)
        if operation is None:
            place, scope = place_of(evaluator, record, "operation", origin)
            raise evaluator.messages.error(
                "UnknownOperation", f"unknown operation '{name}'", place, scope, suggestion(name, OPERATIONS)
            )
        node = NodeValue(operation, origin)
        for attribute in operation.attributes:
            node.options[attribute.option] = yield _attribute(evaluator, record, attribute, origin)
        if operation.shape:
            node.shape = yield _shape_of(evaluator, record, origin)
        if operation.shape == "parameter":
            yield self._start(evaluator, record, node)
        elif operation.later:
            node.inputs = Later(evaluator, record)
        elif not operation.leaf:
            node.inputs = yield inputs_of(evaluator, record, node)
        tag = yield of_type(evaluator, str, record, "tag", origin)
        node.tags = (tag,) if tag else ()
        return node

    def _start(self, evaluator: Evaluator, record: Record, node: NodeValue) -> Step:
        origin = node.origin
        kind = yield of_type(evaluator, str, record, "init", origin, "")
        path = yield of_type(evaluator, str, record, "initFromFilePath", origin, "")
        start = Start(kind)
        if not kind and path:
            start.kind = "fromFile"
        elif not kind:
            value = yield parameter(evaluator, record, "initValue", origin, "")
            place, scope = place_of(evaluator, record, "initValue", origin)
            if type(value) is Array:
                raise evaluator.messages.error(
                    "BadValue", "initValue cannot be an array", place, scope, "give init='fromLiteral'"
                )
            if value == "":
                start.kind = "uniform"
            elif type(value) is float:
                start.kind, start.value = "fixedValue", value
            else:
                raise evaluator.messages.error(
                    "BadValue", f"initValue must be a number, not {kind_of(value)}", place, scope
                )
        elif kind not in KINDS:
            place, scope = place_of(evaluator, record, "init", origin)
            hint = suggestion(kind, KINDS) or "possible: " + ", ".join(KINDS)
            raise evaluator.messages.error("BadValue", f"'{kind}' is not a kind of start value", place, scope, hint)
        elif kind == "fixedValue" and (yield parameter(evaluator, record, "value", origin, "")) != "":
            start.value = yield of_type(evaluator, float, record, "value", origin)
        start.path = path
        if start.kind == "fromFile" and not path:
            place, scope = place_of(evaluator, record, "init", origin)
            raise evaluator.messages.error("BadValue", "init='fromFile' needs initFromFilePath", place, scope)
        start.literal = yield of_type(evaluator, str, record, "initFromLiteral", origin, "")
        if start.kind == "fromLiteral" and not start.literal.strip():
            place, scope = place_of(evaluator, record, "init", origin)
            raise evaluator.messages.error("BadValue", "init='fromLiteral' needs initFromLiteral", place, scope)
        start.scale = yield of_type(evaluator, float, record, "initValueScale", origin, 1.0)
        start.filter_rank = yield integer(evaluator, record, "initFilterRank", origin, 0.0)
        start.output_rank = yield integer(evaluator, record, "initOutputRank", origin, 1.0)
        multiplier = yield of_type(evaluator, float, record, "learningRateMultiplier", origin, 1.0)
        if not multiplier >= 0:
            place, scope = place_of(evaluator, record, "learningRateMultiplier", origin)
            raise evaluator.messages.error("BadValue", "learningRateMultiplier must not be negative", place, scope)
        seed = yield integer(evaluator, record, "randomSeed", origin, -1.0)
        if start.kind in RANDOM_KINDS:
            start.seed = self.seeds.given(seed) if seed >= 0 else self.seeds.next()
        node.start, node.learning_rate_multiplier = start, multiplier
        _warn_of_idle(evaluator, record, node, kind)


IDLE = {"value": "fixedValue", "initFromFilePath": "fromFile", "initFromLiteral": "fromLiteral"}
"""Start values that parameters may be given, and the kind that reads each."""


def _warn_of_idle(evaluator: Evaluator, record: Record, node: NodeValue, kind: str) -> None:
    """Warn of a start value that a parameter is given and does not have; `kind` is what it is given as `init`."""
    assert node.start is not None
    idle = [name for name, reader in IDLE.items() if reader != node.start.kind]
    for name in [*idle, *(["initValue"] if kind else [])]:
        member = record.find(name)
        if member in (None, "") or (kind and member == 0):  # value=0 beside init says nothing: it is CNTK's default
            continue
        place = evaluator.messages.user_place(node.origin.place, node.origin.scope)
        how = f"init='{node.start.kind}'"
        message = f"'{name}' has no effect on the parameter '{node.full_name}', which starts with {how}"
        hint = "leave out init" if name == "initValue" else f"write init='{IDLE[name]}'"
        evaluator.messages.warn("IgnoredParameter", message, place, f"{hint}, or leave out {name}")


def inputs_of(evaluator: Evaluator, record: Record, node: NodeValue) -> Step:
    """Return the inputs of a node, with numbers as constants."""
    operands = yield parameter(evaluator, record, "inputs", node.origin)
    place, scope = place_of(evaluator, record, "inputs", node.origin)
    if isinstance(operands, NodeValue):
        return (operands,)
    values = yield flattened(evaluator, operands, place, scope, "inputs")
    result: list[NodeValue] = []
    for index, value in enumerate(values):
        if isinstance(value, NodeValue):
            result.append(value)
        elif isinstance(value, float | bool) and not node.operation.nodes_only:
            path: Path = ((None, ".inputs"), f".arr[{index}].res")
            result.append(
                constant_node(float(value), Origin(path, node.origin.place, node.origin.scope), (1, 1), False)
            )
        else:
            message = f"input {index + 1} of {node.operation.name} must be a node, not {kind_of(value)}"
            raise evaluator.messages.error("NoNode", message, node.origin.place, node.origin.scope)
    return tuple(result)


def attach_inputs(node: NodeValue) -> Step:
    """Return the inputs of a node, of a delay node evaluated now."""
    later = node.inputs
    if isinstance(later, Later):
        node.inputs = ()
        node.inputs = yield inputs_of(later.evaluator, later.record, node)
    return node.inputs


def _attribute(evaluator: Evaluator, record: Record, attribute: Attribute, origin: Origin) -> Result:
    """Return the value of an attribute, or the step that gives it."""
    default = PENDING if attribute.default is REQUIRED else attribute.default
    if default is not PENDING and record.find(attribute.name) is None:
        return () if attribute.type == INTEGERS and not isinstance(default, tuple) else cast("Any", default)
    name = attribute.name
    if attribute.type == INTEGER:
        return integer(evaluator, record, name, origin)
    if attribute.type == REAL:
        return of_type(evaluator, float, record, name, origin)
    if attribute.type == BOOLEAN:
        return of_type(evaluator, bool, record, name, origin)
    return _long_attribute(evaluator, record, attribute, origin)


def _long_attribute(evaluator: Evaluator, record: Record, attribute: Attribute, origin: Origin) -> Step:
    """Return the value of an attribute that is a text or has several values."""
    name = attribute.name
    if attribute.type == TEXT:
        value = yield parameter(evaluator, record, name, origin)
        if isinstance(value, NodeValue):  # its name may not be known yet
            return value
        return (yield of_type(evaluator, str, record, name, origin))
    value = yield parameter(evaluator, record, name, origin)
    place, scope = place_of(evaluator, record, name, origin)
    if attribute.type == SECTION:
        return (yield _section(evaluator, value, name, origin))
    if attribute.type == BOOLEANS:
        elements = yield flattened(evaluator, value, place, scope, f"truth values of '{name}'")
        for element in elements:
            if type(element) is not bool:
                message = f"'{name}' takes true and false, not {kind_of(element)}"
                raise evaluator.messages.error("BadValue", message, origin.place, origin.scope)
        return tuple(elements)
    return (yield integers(evaluator, value, name, origin))


def _section(evaluator: Evaluator, value: object, name: str, origin: Origin) -> Step:
    """Return a record as the text of a section of the configuration: `type="real"`, one value a line."""
    if type(value) is not Record:
        message = f"'{name}' must be a record, not {kind_of(value)}"
        raise evaluator.messages.error("BadValue", message, origin.place, origin.scope)
    lines: list[str] = []
    for member in value.names:
        member_value = yield parameter(evaluator, value, member, origin)
        if not isinstance(member_value, str | float | bool) or '"' in str(member_value) or "\n" in str(member_value):
            message = f"'{member}' of '{name}' must be a text or a number, not {kind_of(member_value)}"
            raise evaluator.messages.error("BadValue", message, origin.place, origin.scope)
        text = (
            member_value
            if isinstance(member_value, str)
            else str(member_value).lower()
            if isinstance(member_value, bool)
            else number_text(member_value)
        )
        lines.append(f'{member}="{text}"')
    return "\n".join(lines)


def integers(evaluator: Evaluator, value: object, name: str, origin: Origin) -> Step:
    """Return a number or an array of numbers, nested or not, as whole numbers."""
    if isinstance(value, ShapeValue):
        return value.dims
    elements = yield flattened(evaluator, value, origin.place, origin.scope, f"numbers of '{name}'")
    result: list[int] = []
    for element in elements:
        if type(element) is not float or not element.is_integer() or abs(element) > 1e15:
            message = f"expected integer: '{name}' takes whole numbers, not {kind_of(element)}"
            raise evaluator.messages.error("NoInteger", message, origin.place, origin.scope)
        result.append(int(element))
    return tuple(result)


def _shape_of(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the dimensions of an input or a parameter: `shape` in its own record, or `dims`."""
    name = "shape" if "shape" in record.names else "dims"
    value = yield parameter(evaluator, record, name, origin)
    dims: Shape = yield integers(evaluator, value, name, origin)
    if any(dim < 0 for dim in dims) or not dims or len(dims) > MAX_RANK:
        message = f"{list(dims)} cannot be dimensions: one to {MAX_RANK} numbers from 0 on are expected"
        raise evaluator.messages.error("BadValue", message, origin.place, origin.scope)
    return dims


class ShapeValue(Object):
    """The shape of a tensor."""

    kind = "a shape"

    def __init__(self, dims: Shape) -> None:
        self.dims = dims

    def lines(self) -> list[str]:
        """`[3 x 4]`."""
        return ["[" + " x ".join(str(dim) for dim in self.dims) + "]"]


def _tensor_shape(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    value = yield parameter(evaluator, record, "dims", origin)
    return ShapeValue((yield integers(evaluator, value, "dims", origin)))


def _vector(kind: type | None) -> Callable[[Evaluator, Record, Origin], Step]:
    """Makes an array without arrays in it; `kind` is the type that its elements must have."""

    def make(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
        value = yield parameter(evaluator, record, "items", origin)
        place, scope = place_of(evaluator, record, "items", origin)
        elements = yield flattened(evaluator, value, place, scope, "values")
        for element in elements:
            if kind is not None and type(element) is not kind:
                wanted = "a number" if kind is float else "true or false"
                message = f"an element must be {wanted}, not {kind_of(element)}"
                raise evaluator.messages.error("BadValue", message, place, scope)
        return Array(elements)

    return make
