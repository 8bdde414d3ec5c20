"""The network that an ONNX model becomes, node by node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from cntkpy.networks.graph.network import Network, Node
from cntkpy.networks.graph.shapes import ShapeProblem
from cntkpy.networks.nodes import create, operation
from cntkpy.networks.nodes.onnx_support.model import Model, Operator, Unreadable
from cntkpy.networks.nodes.onnx_support.values import MOST_SIZES, VARYING, Array, Axes, Data, Joined, Unusable, Value

EVERYWHERE = "*"
"""The time axis of all nodes until they are validated."""


LEAST_ELEMENTS, PER_BYTE = 1 << 23, 4
"""Elements that rules may compute: for any model, and for each byte of it."""


LEAST_OPERATORS = 1 << 14
"""Operators that become nodes, at most, those of loops as often as they are computed; for any model."""


LARGEST_SAMPLE = 1 << 28
"""Elements of a value of one sample, at most."""


MOST_WORDS = 8
"""Factors of a product of sizes of axes of a minibatch, at most."""


class Size(NamedTuple):
    """A size, or a product of sizes.

    Attributes:
        known: the factor that is known.
        words: the axes of the minibatch whose sizes are the others, sorted.
    """

    known: int
    words: tuple[str, ...] = ()


class Building:
    """A network under construction.

    Args:
        precision: of the network.
        opset: the version of the operators.
        trained: the names of the parameters that training changes; None: all initialisers of real numbers.
        size: bytes of the model, which bound the elements of constants.
        operators: of the model.

    Attributes:
        network: so far.
        owner: the name that the nodes of the current operator begin with.
        unrolled: whether the body of a Loop is computed as often as its fixed trip count says.
        loop: the time axis of the Loop whose body becomes nodes, and its trip count.
        fixed: the sizes of axes of the minibatch that the model says.
        times: the axes of the minibatch that are known to be time.
        on_axis: by axis of the minibatch, an input that has it.
        left: elements of constants that may still be computed.
        operators_left: operators that may still become nodes.
    """

    def __init__(
        self, precision: str, opset: int, trained: Iterable[str] | None = None, size: int = 0, operators: int = 0
    ) -> None:
        self.network = Network(precision)
        self.opset = opset
        self.owner = ""
        self.unrolled = False
        self.loop: tuple[str, int] | None = None
        self.fixed: dict[str, int] = {}
        self.times: list[str] = []
        self.on_axis: dict[str, Node] = {}
        self._trained = None if trained is None else set(trained)
        self.left = LEAST_ELEMENTS + PER_BYTE * size
        self.operators_left = LEAST_OPERATORS + operators
        self._sizes: dict[Size, int] = {}
        self._numbered: list[Size] = []
        self._counts: dict[str, int] = {}
        self._parameters: dict[tuple[str, tuple[int, ...]], Node] = {}

    # ---- bounds

    def take(self, *sizes: int) -> None:
        """Count the elements of a constant before it is computed.

        Args:
            sizes: of its axes.

        Raises:
            Unusable: the constants would be too large for the model.
        """
        count = math.prod(sizes)
        if count < 0 or any(size < 0 for size in sizes):
            raise Unusable(f"a size of {list(sizes)} is negative")
        if count > self.left:
            raise Unusable(f"it would make {count:,} elements, more than a file of that size may ask for")
        self.left -= count

    def take_operator(self) -> None:
        """Count an operator.

        Raises:
            Unusable: loops would make too many.
        """
        self.operators_left -= 1
        if self.operators_left < 0:
            raise Unusable("its loops would make too many nodes")

    # ---- sizes of a minibatch

    def number_of(self, axis: str) -> int:
        """Return the integer that stands for the size of an axis of the minibatch."""
        atoms = axis.atoms if isinstance(axis, Joined) else (axis,)
        count = math.prod(atom for atom in atoms if isinstance(atom, int))
        return self._number(Size(count, tuple(sorted(atom for atom in atoms if isinstance(atom, str)))))

    def _number(self, size: Size) -> int:
        if not size.words:
            return size.known
        if size not in self._sizes:
            if len(self._sizes) >= MOST_SIZES - 1 or len(size.words) > MOST_WORDS or size.known >= VARYING:
                raise Unusable("its shape arithmetic has too many sizes")
            self._sizes[size] = len(self._sizes)
            self._numbered.append(size)
        return -VARYING - self._sizes[size]

    def size_of(self, number: int) -> Size:
        """Return the size that an integer is or stands for."""
        index = -VARYING - number
        return self._numbered[index] if 0 <= index < len(self._numbered) else Size(number)

    def product(self, first: int, second: int) -> int:
        """Return the integer that is or stands for a product."""
        left, right = self.size_of(first), self.size_of(second)
        return self._number(Size(left.known * right.known, tuple(sorted((*left.words, *right.words)))))

    def quotient(self, first: int, second: int) -> int:
        """Return the integer that is or stands for a quotient without a remainder.

        Raises:
            Unusable: it is none.
        """
        left, right = self.size_of(first), self.size_of(second)
        words = Counter(left.words)
        words.subtract(right.words)
        if right.known == 0 or left.known % right.known or min(words.values(), default=0) < 0:
            raise Unusable("it divides the size of an axis of the minibatch")
        return self._number(Size(left.known // right.known, tuple(sorted(words.elements()))))

    def word_of(self, number: int) -> str | None:
        """Return the axis of the minibatch whose size an integer stands for; None: it is a size, or a product."""
        size = self.size_of(number)
        return size.words[0] if size.known == 1 == len(size.words) else None

    # ---- nodes

    @staticmethod
    def printable(name: str) -> str:
        """Return a name without control characters."""
        return "".join(letter if letter.isprintable() else "_" for letter in name) or "value"

    def free(self, wanted: str) -> str:
        """Return a name that no node has, as near as possible to the wanted one."""
        wanted = self.printable(wanted)
        name, count = wanted, self._counts.get(wanted, 1)
        while name in self.network.nodes:
            count += 1
            name = f"{wanted}_{count}"
        if count > 1:
            self._counts[wanted] = count
        return name

    def node(
        self, kind: str, /, *inputs: Node, name: str = "", shape: Sequence[int] | None = None, **options: object
    ) -> Node:
        """Add a node, and infer its shape if that is not given.

        Raises:
            Unusable: its operands do not fit.
        """
        made = create(self.network, kind, self.free(name or self.owner), inputs, options)
        if made.kind.layout != "none" and any(operand.has_layout for operand in inputs):
            made.axis = EVERYWHERE
        if shape is not None:
            made.shape = tuple(shape)
            return made
        try:
            made.shape = made.kind.shape(made) if made.kind.shape is not None else None
        except ShapeProblem as problem:
            raise Unusable(str(problem)) from None
        if math.prod(made.shape or ()) > LARGEST_SAMPLE:
            raise Unusable(f"it would make {math.prod(made.shape or ()):,} elements of each sample")
        return made

    def data(self, node: Node, axes: Axes) -> Data:
        """Return a node as a value. Its sample gets the axes, if it has others of the same elements."""
        value = Data(node, axes)
        dims = tuple(reversed(node.shape or ()))
        if dims != (value.dims or (1,)):
            node = self.node("NewReshape", node, dims=tuple(reversed(value.dims)) or (1,))
            value = Data(node, axes)
        return value

    def parameter(self, array: Array, dims: Sequence[int] | None = None, of: str = "") -> Node:
        """Return a parameter with the elements of an array, in these dimensions of memory; the same one every time.

        Args:
            array: the elements.
            dims: in the order of memory; those of the array by default.
            of: the initialiser that a part of is in the array.
        """
        dims = array.value.shape if dims is None else tuple(dims)
        key = (array.name, dims)
        if array.name and key in self._parameters:
            return self._parameters[key]
        self.take(array.value.size)
        value = np.ascontiguousarray(array.value, self.network.dtype).reshape(dims or (1,))
        named = array.name or f"{self.owner}.constant"
        node = self.network.add(self.free(named), operation("LearnableParameter"), shape=value.shape[::-1], value=value)
        trained = bool(array.name) and (self._trained is None or (of or array.name) in self._trained)
        node.learning_rate_multiplier = float(trained)
        if array.name:
            self._parameters[key] = node
        return node

    def number(self, value: float) -> Node:
        """Return a constant number."""
        return self.parameter(Array(np.full((1,), value, self.network.dtype)))

    def freeze(self, node: Node) -> Node:
        """Return a parameter that training does not change by gradients."""
        node.learning_rate_multiplier = 0.0
        return node


class Scope(Protocol):
    """The graph of an operator."""

    values: dict[str, Value]
    refused: list[tuple[Operator, str]]

    def run(self, operators: Sequence[Operator]) -> None:
        """Make nodes of operators."""
        ...

    def body(self) -> Scope:
        """For a graph inside of this one."""
        ...

    def results(self, operator: Operator, inputs: Sequence[Value | None]) -> list[Value]:
        """Return the results of an operator for values."""
        ...

    def add_initialisers(self, model: Model) -> None:
        """Make the initialisers of a model known."""
        ...


class Use:
    """One operator that becomes nodes.

    Args:
        operator: the operator.
        inputs: the values that it takes; None where an optional one is left out.
        build: adds nodes.
        scope: the graph that it is part of.
    """

    def __init__(self, operator: Operator, inputs: Sequence[Value | None], build: Building, scope: Scope) -> None:
        self.operator, self.build, self.scope = operator, build, scope
        self.inputs = list(inputs)
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()

    @property
    def opset(self) -> int:
        """The version of the operators."""
        return self.build.opset

    def has(self, index: int) -> bool:
        """Return whether input `index` is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        """Input `index`.

        Raises:
            Unusable: it is not given.
        """
        value = self.inputs[index] if 0 <= index < len(self.inputs) else None
        if value is None:
            raise Unusable(f"its input {index + 1} is missing")
        return value

    def data(self, index: int = 0) -> Data:
        """Input `index`, which depends on data.

        Raises:
            Unusable: it does not.
        """
        value = self.value(index)
        if not isinstance(value, Data):
            raise Unusable(f"its input {index + 1} is a constant")
        return value

    def array(self, index: int) -> Array:
        """Input `index`, which is known.

        Raises:
            Unusable: it depends on data.
        """
        value = self.value(index)
        if not isinstance(value, Array):
            raise Unusable(f"its input {index + 1} depends on the data; only constants are supported there")
        return value

    def get(self, name: str, default: object = None) -> Any:
        """Return an attribute.

        Raises:
            Unusable: its type is not supported.
        """
        attribute = self.operator.attributes.get(name, default)
        if isinstance(attribute, Unreadable):
            raise Unusable(attribute.why)
        return attribute

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is an integer."""
        return int(self.get(name, default))

    def sizes(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return an attribute that is a list of integers."""
        return [int(size) for size in self.get(name) or default]

    def counts(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return an attribute that is a list of numbers from 1 on: sizes, strides, dilations.

        Raises:
            Unusable: one is less than 1, or larger than any size.
        """
        sizes = self.sizes(name, default)
        if any(not 1 <= size < 1 << 31 for size in sizes):
            limit = "1 or more" if min(sizes) < 1 else "less than 2^31"
            raise Unusable(f"{name} = {sizes}: each must be {limit}")
        return sizes

    def axis(self, axis: int, rank: int) -> int:
        """Return the number of an axis from 0 on; a negative one counts from the last.

        Raises:
            Unusable: there is no such axis.
        """
        if not -rank <= axis < rank:
            raise Unusable(f"there is no axis {axis} among {rank}")
        return axis % rank

    def integers(self, name: str, index: int | None = None) -> list[int] | None:
        """Return a list of integers: an attribute, or in later versions input `index`; None: it is not given."""
        if name in self.operator.attributes:
            return [int(number) for number in self.get(name)]
        if index is None or not self.has(index):
            return None
        return [int(number) for number in self.array(index).value.reshape(-1)]

    def real(self, name: str, index: int, default: float | None = None) -> float | None:
        """Return a number: an attribute, or in later versions input `index`."""
        if name in self.operator.attributes:
            return float(self.get(name))
        if not self.has(index):
            return default
        value = self.array(index).value
        if value.size != 1:
            raise Unusable(f"its input {index + 1} must be one number")
        return float(value.reshape(()))

    def refuse(self, name: str, *allowed: object) -> None:
        """Refuse an attribute whose value is none of the allowed ones."""
        value = self.get(name)
        if value is not None and value not in allowed:
            raise Unusable(f"{name} = {value} is not supported")

    def same(self, node: Node, axes: Axes | None = None) -> list[Value]:
        """Return the result: a node, with the axes of the first input that depends on data unless others are given."""
        if axes is None:
            axes = next(operand.axes for operand in self.inputs if isinstance(operand, Data))
        return [self.build.data(node, axes)]

    def part(self, kind: str, *inputs: Value | None, **attributes: object) -> Value:
        """Return the first result of another operator of ONNX, which this one is made of.

        Raises:
            Unusable: it is not supported there.
        """
        outputs = [name for name in self.operator.outputs if name][:1] or [self.build.owner]
        operator = Operator(kind, "", self.operator.name, [], outputs, attributes)
        return self.scope.results(operator, list(inputs))[0]


Rule = Callable[[Use], "list[Value]"]
