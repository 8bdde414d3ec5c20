"""A graph of ONNX operators as plain data; `cntkpy.networks.onnx.model` makes a file of it.

Values of a network have leading axes, for time and batch, and then the sample axes in reverse order, as in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

INT64_MAX = (1 << 63) - 1
"""As the end of a Slice: the end of the axis."""

AXES_AS_INPUT = 18
"""The first opset in which all reductions take their axes as an input; before, all but ReduceSum have an attribute."""

SHARED_ELEMENTS = 16
"""Most elements of a constant that is in a model once."""

Dims = tuple[int, ...]


class NotExpressible(Exception):
    """Why a node has no equivalent of ONNX operators."""


class Port(NamedTuple):
    """An input or output of a graph.

    Attributes:
        name: of the value.
        dims: sizes; words where they may vary.
        kind: the type of the elements: "real" (that of the model) or "integer".
    """

    name: str
    dims: tuple[int | str, ...]
    kind: str = "real"


@dataclass
class Operator:
    """One ONNX operator.

    Attributes:
        kind: its name in ONNX.
        inputs: names of values; "" where an optional one is left out.
        outputs: names of values.
        attributes: numbers, texts, lists of them, arrays and graphs, by name.
    """

    kind: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


@dataclass
class Graph:
    """A graph of operators, or the body of a Scan."""

    name: str
    inputs: list[Port] = field(default_factory=list[Port])
    outputs: list[Port] = field(default_factory=list[Port])
    operators: list[Operator] = field(default_factory=list[Operator])


def rename(operators: Iterable[Operator], old: str, new: str) -> None:
    """Give a value another name, in bodies, too."""
    for operator in operators:
        operator.inputs = [new if name == old else name for name in operator.inputs]
        operator.outputs = [new if name == old else name for name in operator.outputs]
        for attribute in operator.attributes.values():
            if isinstance(attribute, Graph):
                rename(attribute.operators, old, new)


class Names:
    """The names that values have in a graph and its bodies, each used once.

    Attributes:
        shared: the names of small constants, by type and value.
        derived: for initialisers that hold the value of a parameter in another form, the name of the parameter.
        trained: the names of initialisers that are made of several parameters, which training changes.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self.shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.derived: dict[str, str] = {}
        self.trained: set[str] = set()

    def take(self, wanted: str) -> str:
        """Return the wanted name, or if it is taken, that name with a number."""
        name, count = wanted, 1
        while name in self._taken or not name:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


class Emitter:
    """Adds operators to a graph.

    Args:
        graph: where they go.
        names: the names in use, those of other graphs of the model included.
        constants: the initialisers of the model, by name.
        dtype: the element type of the model.
        opset: the version of the operators.

    Attributes:
        owner: the beginning of the names of values that are made on the way.
        lengths: by time axis, the value with the numbers of steps of sequences, where these are not all equal.
    """

    def __init__(
        self, graph: Graph, names: Names, constants: dict[str, np.ndarray], dtype: np.dtype[np.floating], opset: int
    ) -> None:
        self.graph, self.names, self.constants, self.dtype, self.opset = graph, names, constants, dtype, opset
        self.owner = ""
        self.lengths: dict[str, str] = {}

    def body(self, name: str) -> Emitter:
        """For the body of a Scan; initialisers stay those of the model."""
        inner = Emitter(Graph(name), self.names, self.constants, self.dtype, self.opset)
        inner.lengths = self.lengths
        return inner

    # ---- values

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add an operator with one result; its name."""
        return self.several(kind, inputs, 1, **attributes)[0]

    def several(self, kind: str, inputs: Sequence[str], results: int, **attributes: object) -> list[str]:
        """Add an operator with several results; their names."""
        names = [self.fresh() for _ in range(results)]
        self.graph.operators.append(Operator(kind, list(inputs), names, attributes))
        return names

    def fresh(self) -> str:
        """Return a new name of a value that is made on the way."""
        count = len(self.graph.operators)
        return self.names.take(f"{self.owner}/{count}")

    def rename(self, old: str, new: str, since: int = 0) -> bool:
        """Rename a value that one of the operators from number `since` on makes; whether there is one."""
        operators = self.graph.operators[since:]
        if not any(old in operator.outputs for operator in operators):
            return False
        rename(operators, old, new)
        return True

    # ---- constants

    def constant(self, value: np.ndarray, name: str = "") -> str:
        """Return an initialiser; small ones without a name of their own are made once."""
        value = np.ascontiguousarray(value).reshape(np.shape(value))
        shared = not name and value.size <= SHARED_ELEMENTS
        key = (value.dtype.name, value.shape, value.tobytes() if shared else b"")
        if shared and key in self.names.shared:
            return self.names.shared[key]
        name = self.names.take(name or (_named(value) if shared else f"{self.owner}/constant"))
        self.constants[name] = value
        if shared:
            self.names.shared[key] = name
        return name

    def derived(self, parameter: str, value: np.ndarray) -> str:
        """Return an initialiser with the value of a parameter in another form."""
        for name, source in self.names.derived.items():
            known = self.constants[name]
            if source == parameter and known.shape == value.shape and np.array_equal(known, value):
                return name
        name = self.names.take(f"{parameter}/value")
        self.constants[name] = np.ascontiguousarray(value)
        self.names.derived[name] = parameter
        return name

    def real(self, value: float) -> str:
        """Return a number of the element type of the model."""
        return self.constant(np.asarray(value, self.dtype))

    def integers(self, values: Iterable[int]) -> str:
        """Return a list of integers."""
        return self.constant(np.asarray(list(values), np.int64))

    def integer(self, value: int) -> str:
        """Return an integer without axes."""
        return self.constant(np.asarray(value, np.int64))

    # ---- what many rules need

    def cast(self, value: str) -> str:
        """Return a value as numbers of the element type of the model."""
        return self.op("Cast", value, to=self.dtype)

    def whole(self, value: str) -> str:
        """Return a value as integers."""
        return self.op("Cast", value, to=np.dtype(np.int64))

    def reshape(self, value: str, lead: int, dims: Iterable[int]) -> str:
        """Return a value whose first `lead` axes stay, with other axes after them."""
        return self.op("Reshape", value, self.integers([*(0,) * lead, *dims]))

    def reduce(self, kind: str, value: str, axes: Iterable[int], keep: bool = True) -> str:
        """Return a reduction: "Sum", "Max", "LogSumExp", ...; reduced axes have 1 element, or go if not `keep`."""
        if kind == "Sum" or self.opset >= AXES_AS_INPUT:
            return self.op(f"Reduce{kind}", value, self.integers(axes), keepdims=int(keep))
        return self.op(f"Reduce{kind}", value, axes=list(axes), keepdims=int(keep))

    def slice(self, value: str, axis: int, begin: int, end: int = INT64_MAX) -> str:
        """Return some elements of one axis."""
        return self.op("Slice", value, self.integers([begin]), self.integers([end]), self.integers([axis]))

    def squeeze(self, value: str, *axes: int) -> str:
        """Return a value without axes of one element."""
        return self.op("Squeeze", value, self.integers(axes))

    def unsqueeze(self, value: str, *axes: int) -> str:
        """Return a value with more axes of one element."""
        return self.op("Unsqueeze", value, self.integers(axes))

    def leading(self, value: str, lead: int) -> str:
        """Return the sizes of the first axes of a value, as a list of integers."""
        return self.op("Shape", value, start=0, end=lead)

    def expand(self, value: str, leading: str, dims: Iterable[int]) -> str:
        """Return a value repeated to the sizes `leading` (a list of integers) and `dims`."""
        dims = list(dims)
        sizes = self.op("Concat", leading, self.integers(dims), axis=0) if dims else leading
        return self.op("Expand", value, sizes)


def _named(value: np.ndarray) -> str:
    """Return the name of a small constant, which says its value."""
    return f"constant/{value.dtype.kind}/{','.join(map(str, value.reshape(-1).tolist()))}"
