"""A node of a network, and the kind that says everything about its operation.

A kind declares names, arguments, options, shape rule, forward function, meaning and formula of one function of the
network language, and what the compiler may do with it. The languages, the documentation and the compiler read it;
nothing else knows the operation. The kinds are declared in `cntkpy.networks.nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from cntkpy.cntk_config.base.diagnostics import Span, UserError
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.initialize import Initializer
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.graph.written import Written

#: types of arguments and options
NODE, INTEGER, REAL, BOOLEAN, TEXT, PATH = "node", "integer", "real", "boolean", "text", "path"
INTEGERS, BOOLEANS = "integers", "booleans"  # arrays `{1, 2}`; a single value is an array of one
SECTION = "section"  # a record of BrainScript

REQUIRED: Any = object()
NO_NAMES: Mapping[str, str] = MappingProxyType({})


class Argument(NamedTuple):
    """A positional argument.

    Args:
        name: as in the documentation; scalars are found under it in the node's options.
        type: NODE for an input node, else a scalar or array type.
        many: takes all remaining arguments (at least one).
        choices: permitted words, compared ignoring case.
    """

    name: str
    type: str = NODE
    many: bool = False
    choices: tuple[str, ...] = ()


class Option(NamedTuple):
    """An optional `name=value` argument; names are compared ignoring case.

    Args:
        name: its spelling in the documentation and the key in `Node.options`.
        type: a scalar or array type.
        default: value when it is not given.
        help: one line.
        choices: permitted words, compared ignoring case.
        aliases: other accepted names.
        ignored: why CNTK has it and it changes nothing here.
    """

    name: str
    type: str
    default: Any = None
    help: str = ""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    ignored: str = ""

    @property
    def meaning(self) -> str:
        """Meaning, or the reason why there is none."""
        return self.help or (f"Ignored: {self.ignored}" if self.ignored else "")


Signature = tuple[Argument, ...]
ShapeRule = Callable[["Node"], "Shape | None"]
Forward = Callable[..., Any]


class RecordForm(NamedTuple):
    """Form of a record of BrainScript (`new ComputationNode`) for a node, where the declaration does not say it.

    A record must have an attribute for each scalar argument and each option, of the same name and type.

    Args:
        operation: name of the operation, if it is not the kind's.
        names: by option, the attribute's name, if it is another.
        types: by option, the attribute's type, if it is another. SECTION: a record, read as the text of a section.
        optional: options that a record may leave out; the option's default counts then.
        without: options that a record cannot give.
        nodes_only: a number among its inputs does not become a constant.
    """

    operation: str = ""
    names: Mapping[str, str] = NO_NAMES
    types: Mapping[str, str] = NO_NAMES
    optional: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    nodes_only: bool = False


class TimeRule(NamedTuple):
    """Rule of an operation for time axes.

    Args:
        delay: -1 for PastValue, +1 for FutureValue, else 0.
        reduces_time: cannot be part of a loop.
        across: its operands may be on different time axes; it looks at them itself.
        axis_from: the operand whose time axis the result has, if that is not the first with one.
        keeps_steps: the result is on a time axis of its own: some steps of that of its operand.
        makes_axis: a time axis, which has no value.
        own_slots: needs each sequence of a minibatch in a slot of its own.
        packs: looks at sequences in slots of their own, or in slots that they share, as the axis has them.
        whole: the operands of which every step of the result sees whole sequences, inside of a loop as well.
    """

    delay: int = 0
    reduces_time: bool = False
    across: bool = False
    axis_from: int | None = None
    keeps_steps: bool = False
    makes_axis: bool = False
    own_slots: bool = False
    packs: bool = False
    whole: tuple[int, ...] = ()


NO_TIME_RULE = TimeRule()


class NodeKind(NamedTuple):
    """One function of the network language.

    Args:
        name: the operation's name as CNTK prints it.
        signatures: the accepted lists of positional arguments, usually one.
        meaning: what it computes, in a sentence.
        formula: the formula, where one says more than the sentence.
        example: how it is called, a line or several, with the names of `cntkpy.networks.nodes.declare.EXAMPLE_NODES`.
        shape: rule `node -> shape`, or None while inputs are unknown; raises `ShapeProblem`. Sees `node.inputs` with
            their shapes and may complete the shape of a parameter among them.
        forward: function `(call, *arrays) -> array`; see `cntkpy.networks.nodes.call.Call`.
        aliases: other names in the network language.
        options: optional arguments.
        layout: whether the result has a minibatch layout: "inputs" (if one of the inputs has), "none", "always".
        elementwise: inputs are brought to equal rank before `forward`.
        pointwise: an element of the result depends on the same element of each operand only, whatever their order.
        images: `forward` takes images with the channels last as they are (`cntkpy.networks.arrays.images`).
        differentiable: False if a gradient through it is an error; True also for those with zero gradient.
        gaps: value that replaces the gap cells of the inputs before `forward` (None: gaps may hold anything).
        sparse: `forward` takes sparse inputs as they are; for an input: its data are sparse.
        precompute: computed once over the data set before training.
        random: draws random numbers at evaluation.
        printed: name of the operation in dumps and logs, if another.
        columns: the value of a cell depends on which column of the minibatch it is, so padding would change it.
        makes: name of the operation of the node made (`Constant` makes a LearnableParameter), if another.
        prepare: changes the options of a new node (after defaults were filled in); may raise `ShapeProblem`.
        unsupported: why it cannot be created and what to use instead; such a kind has only names.
        pairwise: its first two operands must have equal shapes where it is computed. One may have further axes in a
            network that does not compute it: a decoder keeps the criterion of its model.
        parameter: a parameter, which has a value of its own.
        product: the forward function is the matrix product of its two inputs, so several with the same right operand
            can be computed at once.
        picks_rows: with a sparse second input, it uses only some rows (as arrays are kept) of its first input.
        running: the inputs that are running statistics: parameters that training updates without a gradient.
        memory: what it remembers from minibatch to minibatch of an epoch: a function of the node gives the arrays as
            they are at the start, by what follows the node's name in the state.
        last_counts: as an evaluation node, its last value counts, not the sum over minibatches.
        width: in a network of half precision, "short": computes in 16 bits; "inputs": computes in 32 bits, the value is
            kept in 16 if an input is; "long": the value has 32 bits, too, because it counts something.
        time: how it treats time axes.
        elsewhere: options that people expect, in lower case, and where to give that value instead.
        record: how a record of BrainScript describes it; None: no record does.
        onnx: its rule of export: an ONNX operator of its operands, broadcast, or a function
            (`cntkpy.networks.nodes.onnx_support.use.Use`) -> name of the value. Rules of many lines
            stand in `onnx_writing` of the family.
        not_exported: why it has no equivalent in ONNX.
    """

    name: str
    signatures: tuple[Signature, ...] = ((),)
    meaning: str = ""
    formula: str = ""
    shape: ShapeRule | None = None
    forward: Forward | None = None
    aliases: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    layout: str = "inputs"
    elementwise: bool = False
    pointwise: bool = False
    images: bool = False
    differentiable: bool = True
    gaps: float | None = None
    sparse: bool = False
    precompute: bool = False
    random: bool = False
    printed: str | None = None
    columns: bool = False
    makes: str | None = None
    prepare: Callable[[dict[str, Any]], None] | None = None
    unsupported: str | None = None
    pairwise: bool = False
    parameter: bool = False
    product: bool = False
    picks_rows: bool = False
    running: tuple[int, ...] = ()
    memory: Callable[[Node], Mapping[str, np.ndarray]] | None = None
    last_counts: bool = False
    width: str = "inputs"
    time: TimeRule = NO_TIME_RULE
    elsewhere: Mapping[str, str] = NO_NAMES
    example: str = ""
    record: RecordForm | None = RecordForm()
    onnx: str | Callable[[Any], str] = ""
    not_exported: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the network language."""
        return (self.name, *self.aliases)

    @property
    def operation(self) -> str:
        """Name of the operation of the nodes it makes."""
        return self.makes or self.name

    def option(self, name: str) -> Option | None:
        """Return the option of that name or alias, ignoring case."""
        wanted = name.lower()
        for option in self.options:
            if wanted in (option.name.lower(), *(alias.lower() for alias in option.aliases)):
                return option
        return None

    def defaults(self) -> dict[str, Any]:
        """Return all options at their defaults."""
        return {option.name: option.default for option in self.options}

    def arity(self) -> tuple[int, int | None]:
        """Smallest and largest number of input nodes (None: any number)."""
        counts = [sum(a.type == NODE for a in signature) for signature in self.signatures]
        many = any(a.type == NODE and a.many for signature in self.signatures for a in signature)
        return min(counts), None if many else max(counts)

    def usage(self) -> str:
        """Return the allowed forms of a call, for messages and documentation."""
        forms: list[str] = []
        for signature in self.signatures:
            words = [argument.name + (", ..." if argument.many else "") for argument in signature]
            words += [f"{option.name}={shown(option.default)}" for option in self.options]
            forms.append(f"{self.name}({', '.join(words)})")
        return " or ".join(forms)


def shown(value: object) -> str:
    """Return a default as it is written in the network language."""
    if value is None or value == "":
        return '""'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "{" + ", ".join(shown(v) for v in cast("Sequence[Any]", value)) + "}"
    return str(value)


class NodeError(UserError):
    """A mistake at a node of a network.

    Attributes:
        node: The node.
        unknown: The operand whose dimensions are not known, if that is the mistake.
    """

    _process_only = frozenset({"node", "unknown"})
    node: Node
    unknown: Node | None = None

    @classmethod
    def at(
        cls, node: Node, kind: str, message: str, hint: str | None = None, *, unknown: Node | None = None
    ) -> NodeError:
        """Return the error of a node, with its place.

        Args:
            node: The node.
            kind: The name of the kind of error.
            message: What is wrong.
            hint: What to do.
            unknown: The operand whose dimensions are not known; its place is that of the error.
        """
        error = cls(kind, message, (unknown or node).span, hint)
        error.node, error.unknown = node, unknown
        return error


class Node:
    """One node.

    Attributes:
        name: full name, in the spelling of its creation.
        kind: its operation.
        inputs: input nodes in order; None where a link is empty (MEL).
        options: values of the operation's options.
        shape: sample shape (see `cntkpy.networks.graph.shapes`), None while unknown.
        value: array of the reversed shape, for parameters and pre-computed nodes.
        init: how a parameter gets its start value.
        learning_rate_multiplier: factor of the learning rate; 0 for everything that is not trained.
        axis: the time axis of its samples (see `cntkpy.networks.graph.axes`), set by `Network.validate`; None: it
        carries no
            minibatch data.
        dynamic_axes: of an input, how many axes its data have in front of those of a sample: 2 are batch and sequence,
            1 is the batch; None: nobody has said.
        computed: for pre-compute nodes, whether `value` is final.
        samples: for BatchNormalization, the number of samples seen in training.
        written: how a program in Python wrote it; None: no such program has made it.
        span: where it is defined.
    """

    def __init__(
        self,
        name: str,
        kind: NodeKind,
        inputs: Iterable[Node | None] = (),
        options: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
        value: np.ndarray | None = None,
        span: Span | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.inputs: list[Node | None] = list(inputs)
        self.options: dict[str, Any] = dict(options or {})
        self.shape: Shape | None = tuple(shape) if shape is not None else None
        self.value = value
        self.init: Initializer | None = None
        self.learning_rate_multiplier = 0.0
        self.axis: str | None = "*" if kind.layout == "always" else None
        self.dynamic_axes: int | None = None
        self.computed = False
        self.samples = 0
        self.written: Written | None = None
        self.span = span

    @property
    def operation(self) -> str:
        """Name of the operation."""
        return self.kind.name

    @property
    def has_layout(self) -> bool:
        """True if it carries minibatch data."""
        return self.axis is not None

    @property
    def is_parameter(self) -> bool:
        """True if this is a LearnableParameter (constants included)."""
        return self.kind.parameter

    @property
    def trainable(self) -> bool:
        """True if training changes it."""
        return self.is_parameter and self.learning_rate_multiplier > 0

    def input(self, index: int) -> Node:
        """Input `index`; an empty link is an error."""
        node = self.inputs[index]
        if node is None:
            raise NodeError.at(
                self,
                "BadShape",
                f"{self.operation} '{self.name}': input {index} is not connected",
                f"a script that edits models connects it with SetInput({self.name}, {index}, node)",
            )
        return node

    @property
    def connected(self) -> list[Node]:
        """The inputs that are there."""
        return [node for node in self.inputs if node is not None]

    def reshape(self, shape: Shape) -> None:
        """Give a parameter another shape with the same elements in the same order."""
        self.shape = tuple(shape)
        if self.value is not None:
            self.value = self.value.reshape(tuple(reversed(self.shape)))

    def matrix(self) -> np.ndarray:
        """Return the value as the user knows it: an array of shape `self.shape`."""
        if self.value is None:
            raise UserError("NoValue", f"{self.operation} '{self.name}' has no value", span=self.span)
        return self.value.transpose()

    def describe(self) -> str:
        """As in logs: `Node 'B0' (LearnableParameter operation) : [6 x 1]`."""
        return f"Node '{self.name}' ({self.operation} operation) : {shapes.text(self.shape)}"

    def __repr__(self) -> str:
        return f"<{self.describe()}>"
