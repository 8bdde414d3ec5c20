"""Nodes as BrainScript values: what operators and `new ComputationNode` make, before there is a network.

A `NodeValue` says which operation with which attributes and inputs it is, and where it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cntkpy.networks.builders.brainscript.language.arithmetic import quotient
from cntkpy.networks.builders.brainscript.language.evaluate import Evaluator
from cntkpy.networks.builders.brainscript.language.values import PENDING, Array, Operand, Origin, Record
from cntkpy.networks.builders.brainscript.operations import OPERATIONS, Operation
from cntkpy.networks.graph.node import REQUIRED, Node

Shape = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Start:
    """Start of a parameter.

    Args:
        kind: one of `cntkpy.networks.graph.initialize.KINDS`.
        scale: factor of random values.
        value: the value of fixedValue.
        path: the file of fromFile.
        literal: the text of fromLiteral.
        seed: the seed of a random kind.
        filter_rank: how many axes are those of a filter.
        output_rank: how many axes after them (negative: at the end) count outputs.
        kernel: width and height of the filter of bilinear; (0, 0): those of the parameter.
    """

    kind: str
    scale: float = 1.0
    value: float = 0.0
    path: str = ""
    literal: str = ""
    seed: int | None = None
    filter_rank: int = 0
    output_rank: int = 1
    kernel: tuple[int, int] = (0, 0)


@dataclass(slots=True, eq=False)
class Later:
    """Inputs that are evaluated after all members of the network."""

    evaluator: Evaluator
    record: Record


@dataclass(eq=False)
class NodeValue(Operand):
    """A node.

    Args:
        operation: what it does.
        origin: where it was made; its path is its first name.
        options: options of the node, by the names of `cntkpy.networks.nodes`.
        inputs: its inputs; before they are evaluated (`Operation.later`) what gives them.
        shape: of inputs and parameters, the dimensions as given.
        tags: the groups it asks to be in, by their tags.
        start: of a parameter, how it starts.
        learning_rate_multiplier: of a parameter.
        scalar: whether it stands for a number among the operands of an operator.
        stored: of a node of a model file, that node, for its kind, value and state.
        known: in an edited network, the shapes of its nodes.
    """

    operation: Operation
    origin: Origin
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: tuple[NodeValue, ...] | Later = ()
    shape: Shape | None = None
    tags: tuple[str, ...] = ()
    start: Start | None = None
    learning_rate_multiplier: float = 0.0
    scalar: bool = False
    name: str = ""
    stored: Node | None = None
    known: Callable[[], Mapping[NodeValue, Shape | None]] | None = None

    kind = "a node"

    @property
    def full_name(self) -> str:
        """Its name, or what that will be."""
        return self.name or self.origin.name

    # ---- members

    def member(self, name: str) -> object:
        """`node.name`, `.operation`, `.dim`, `.inputs`, `.PlusArgs`."""
        if name == "name":
            return self.full_name
        if name == "operation":
            return self.operation.name
        if name == "dim":
            shape = self.shape if self.known is None else self.known()[self]
            if shape is None or 0 in shape:
                raise ValueError(f"the member 'dim' of '{self.full_name}' is not known before the network is complete")
            size = 1
            for dim in shape:
                size *= dim
            return float(size)
        if name in ("inputs", f"{self.operation.name}Args"):
            if isinstance(self.inputs, Later):
                raise ValueError(f"the inputs of '{self.full_name}' are not known before the network is complete")
            return Array(list(self.inputs))
        return None

    def members(self) -> list[str]:
        """Return the names of `member`."""
        return ["name", "operation", "dim", "inputs", f"{self.operation.name}Args"]

    def lines(self) -> list[str]:
        """`z : Plus [] (`, the inputs, `)`."""
        shape = " x ".join(str(dim) for dim in self.shape or ())
        data = self.operation.shape == "input" or (self.stored is not None and self.stored.has_layout)
        axis = " x *" if data else ""
        head = f"{self.full_name} : {self.operation.name} [{shape}{axis}] ("
        names = [] if isinstance(self.inputs, Later) else [f"  {operand.full_name}" for operand in self.inputs]
        return [head, *names, ")"] if names else [head + ")"]

    # ---- operators

    def infix(self, operator: str, left: Any, right: Any, origin: Origin) -> object:
        """Return the node that an operator makes, or one of its operands."""
        if operator in ("&&", "||"):
            return _logical(operator, left, right, origin)
        if not (_is_scalar(left) and _is_scalar(right)):
            return PENDING
        if operator == "/":
            if type(right) is float:
                return _made("ElementTimes", (left, constant_node(quotient(1.0, right), origin)), origin)
            return _made("Reciprocal", (right,), origin) if left == 1.0 and type(left) is float else PENDING
        name = _OPERATORS.get(operator)
        if operator == "*" and not (isinstance(left, NodeValue) and isinstance(right, NodeValue)):
            name = "ElementTimes"
        if name is None:
            return PENDING
        return _made(name, (_node(left, origin), _node(right, origin)), origin)

    def prefix(self, operator: str, origin: Origin) -> NodeValue:
        """`-x`, `!x`, `+x`."""
        if operator == "+":
            return self
        if operator == "-":
            return _made("Negate", (self,), origin)
        return _made("Minus", (constant_node(1.0, origin), self), origin)

    def choose(self, yes: object, no: object, origin: Origin) -> object:
        """`if x then yes else no`."""
        if not (_is_scalar(yes) and _is_scalar(no)):
            return PENDING
        return _made("If", (self, _node(yes, origin), _node(no, origin)), origin)


_OPERATORS = {
    "+": "Plus",
    "-": "Minus",
    "*": "Times",
    ".*": "ElementTimes",
    "<": "Less",
    "==": "Equal",
    ">": "Greater",
    ">=": "GreaterEqual",
    "!=": "NotEqual",
    "<=": "LessEqual",
}


def _is_scalar(value: object) -> bool:
    return type(value) is float or isinstance(value, NodeValue)


def _logical(operator: str, left: object, right: object, origin: Origin) -> object:
    nodes = isinstance(left, NodeValue) and isinstance(right, NodeValue)
    if operator == "||":
        return left if left is True or right is True else PENDING
    if left is False or right is False:
        return left
    if nodes or left is True or right is True:
        return _made("ElementTimes", (_node(left, origin), _node(right, origin)), origin)
    return PENDING


def _node(value: Any, origin: Origin) -> NodeValue:
    return value if isinstance(value, NodeValue) else constant_node(float(value), origin)


def _made(name: str, inputs: tuple[NodeValue, ...], origin: Origin) -> NodeValue:
    operation = OPERATIONS[name]
    options = {a.option: a.default for a in operation.attributes if a.default is not REQUIRED}
    return NodeValue(operation, origin, options, inputs)


def constant_node(value: float, origin: Origin, shape: Shape = (1,), scalar: bool = True) -> NodeValue:
    """Return a number as a node, under the path of what it is an operand of."""
    node = NodeValue(OPERATIONS["LearnableParameter"], origin, shape=shape, scalar=scalar)
    node.start = Start("fixedValue", value=value)
    return node
