"""CNTK's later format (`Function.save`): bytes to records.

The format: docs/specification/model-files.md 5.
A file holds functions and variables with identifiers. Blocks are taken apart, `Combine` and most aliases left out, and
placeholders replaced by what they stand for; what remains are the operations of the first format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from cntkpy.networks.files.cntk_binary.operations import NUMBERS
from cntkpy.networks.files.cntk_binary.v2_names import Named, assign_names
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.dictionary import (
    FREE,
    INFERRED,
    UNKNOWN,
    Array,
    AxisValue,
    Table,
    parse_dictionary,
)
from cntkpy.networks.nodes.file_support.records import (
    BATCH_AXIS,
    HALF_NOTE,
    WITHOUT,
    BadFile,
    NotSupported,
    Record,
    Records,
)
from cntkpy.networks.nodes.file_support.tables import BLOCK, CAST, COMBINE, NO_OP, PASS, Operation, is_batch

NEWEST = 3
DEEPEST_BLOCK = 64
INPUT, PARAMETER, CONSTANT, PLACEHOLDER = 0, 2, 3, 4
_FLOAT, _DOUBLE, _HALF = 1, 2, 4
_USER_KEYS = ("native", "module", "deserialize_method")

CRITERIA = frozenset(
    ("CrossEntropyWithSoftmax", "CrossEntropy", "SquareError", "Logistic", "ClassBasedCrossEntropyWithSoftmax")
)
EVALUATIONS = frozenset(("ClassificationError", "NDCG1Eval", "EditDistanceError"))
"""Operations, and blocks, that are criteria."""
INPUTS = ("InputValue", "SparseInputValue")


@dataclass
class Variable:
    """An input, a parameter, a constant or a placeholder."""

    uid: str
    name: str
    kind: int
    shape: Shape
    data_type: int
    axes: list[AxisValue] | None
    sparse: bool
    needs_gradient: bool
    array: Array | None
    at: int

    @property
    def double(self) -> bool:
        """True if its elements have double precision."""
        return self.data_type == _DOUBLE


@dataclass
class Function:
    """A function; `root` and `bound` (placeholder to argument) are those of a block."""

    uid: str
    name: str
    operation: Operation
    number: int
    attributes: Table
    inputs: list[str]
    at: int
    root: str = ""
    label: str = ""
    bound: dict[str, str] = field(default_factory=dict[str, str])
    inlined: bool = False


def parse_v2(content: bytes) -> Records:
    """Read a whole file.

    Args:
        content: the bytes of the file.

    Raises:
        BadFile: damaged, with the offset.
        NotSupported: not a model, or with something that has no place in a network.
    """
    top = parse_dictionary(content)
    _check_kind(top)
    model = _Model(top)
    return model.records()


def _check_kind(top: Table) -> None:
    kind = top.get("type", str, "")
    if "Learners" in top or kind == "Learner":
        raise NotSupported(
            "it is the state of a trainer, not a model", "the model lies next to it, under the same name without .ckp"
        )
    if kind != "CompositeFunction":
        raise NotSupported(f"it is not a model but a dictionary of the type '{kind[:40]}'")
    version = top.get("version", int, 1)
    if version > NEWEST:
        raise NotSupported(f"its model dictionary has the version {version}; versions up to {NEWEST} are known")


# ---- reading functions and variables


def _texts(table: Table, key: str, owner: str) -> list[str]:
    values = cast("list[Any]", table.need(key, list, owner))
    if not all(isinstance(value, str) for value in values):
        raise BadFile(f"'{key}' of {owner} is not a list of texts", table.at)
    return values


def _tables(table: Table, key: str, owner: str) -> list[Table]:
    values = cast("list[Any]", table.need(key, list, owner))
    if not all(isinstance(value, Table) for value in values):
        raise BadFile(f"'{key}' of {owner} is not a list of dictionaries", table.at)
    return values


def _variable(table: Table) -> Variable:
    uid = table.need("uid", str, "a variable")
    kind = table.get("kind", int, 0)
    if kind not in (INPUT, PARAMETER, CONSTANT, PLACEHOLDER):
        raise BadFile(f"the variable '{uid}' is of the unknown kind {kind}", table.at)
    axes = table.get("dynamic_axis", list, []) if "dynamic_axis" in table else None
    if axes is not None and not all(isinstance(value, AxisValue) for value in axes):
        raise BadFile(f"the dynamic axes of the variable '{uid}' are not axes", table.at)
    array = None
    if kind in (PARAMETER, CONSTANT):
        array = table.need("value", Array, f"the variable '{uid}'")
    shape = table.get("shape", tuple, ())
    if array is not None and array.shape != shape:
        raise BadFile(f"the variable '{uid}' has another shape than its value", table.at)
    data_type = table.get("data_type", int, _FLOAT)
    if data_type not in (_FLOAT, _DOUBLE, _HALF) and kind != PLACEHOLDER:
        raise NotSupported(f"the variable '{uid}' has elements of type {data_type}", "float and double are possible")
    return Variable(
        uid,
        table.get("name", str, ""),
        kind,
        shape,
        data_type,
        axes,
        table.get("is_sparse", bool, False),
        table.get("needs_gradient", bool, False),
        array,
        table.at,
    )


def _function(table: Table) -> Function:
    uid = table.need("uid", str, "a function")
    reason = f"the function '{uid}'"
    name, inputs = table.get("name", str, ""), _texts(table, "inputs", reason)
    if table.get("type", str, "") == "UserDefinedFunction" or any(key in table for key in _USER_KEYS):
        user = Operation(f"user-defined function {table.get('op_name', str, '')}".strip())
        return Function(uid, name, user, -1, Table({}, table.at), inputs, table.at)
    number = table.need("op", int, reason)
    operation = NUMBERS.get(number) or Operation(f"operation {number}, made by a newer program")
    function = Function(
        uid, name, operation, number, table.get("attributes", Table, Table({}, table.at)), inputs, table.at
    )
    if number == BLOCK:
        function.label = table.get("block_function_op_name", str, "")
        function.root = table.need("block_function_composite", Table, reason).need("root", str, f"the block '{uid}'")
        keys = _texts(table, "block_function_composite_arguments_map_keys", reason)
        values = _texts(table, "block_function_composite_arguments_map_values", reason)
        if len(keys) != len(values):
            raise BadFile(f"the block '{uid}' has {len(keys)} formal and {len(values)} actual arguments", table.at)
        function.bound = dict(zip(keys, values, strict=True))
    return function


# ---- from functions to records


class Source(NamedTuple):
    """Source of a value.

    Attributes:
        uid: the function or variable.
        shape: that of the first placeholder on the way, if there was one.
        blocks: those whose output it is.
    """

    uid: str
    shape: Shape | None
    blocks: list[Function]


class _Model:
    """A composite function while it is taken apart."""

    def __init__(self, top: Table) -> None:
        self.at = top.at
        self.root = top.need("root", str, "the model")
        variables = [_variable(table) for table in _tables(top, "inputs", "the model")]
        functions = [_function(table) for table in _tables(top, "primitive_functions", "the model")]
        for thing, count in Counter(thing.uid for thing in (*variables, *functions)).items():
            if count > 1:
                raise BadFile(f"{count} variables or functions have the identifier '{thing[:80]}'", top.at)
        self.variables = {v.uid: v for v in variables}
        self.functions = {f.uid: f for f in functions}
        if self.root not in self.functions:
            raise BadFile(f"the root '{self.root[:80]}' is not among the functions", top.at)
        self.bound = {key: value for f in self.functions.values() for key, value in f.bound.items()}
        self.double = any(v.double for v in self.variables.values() if v.kind != PLACEHOLDER)
        self.flowed: dict[str, str] = {}
        """Names of blocks and aliases, by the function or variable that stands for them."""

    def output(self, uid: str) -> tuple[Function | None, int]:
        """Return the function of which this is an output, and which one."""
        name, mark, number = uid.rpartition("_Output_")
        if not mark or not number.isdecimal() or len(number) > 6:
            return None, 0
        return self.functions.get(name), int(number)

    def follow(self, uid: str) -> Source:
        """Return the function or variable that really makes a value."""
        seen: set[str] = set()
        hint: Shape | None = None
        names: list[str] = []
        blocks: list[Function] = []
        while True:
            if uid in seen:
                raise NotSupported(f"the variable '{uid[:80]}' stands for itself")
            seen.add(uid)
            variable = self.variables.get(uid)
            if variable is not None and variable.kind == PLACEHOLDER and hint is None:
                hint = _concrete(variable.shape)
            if uid in self.bound:
                uid = self.bound[uid]
                continue
            function, k = self.output(uid)
            if function is None:
                if variable is None:
                    raise BadFile(f"the model has no variable '{uid[:80]}'", self.at)
                if variable.kind == PLACEHOLDER:
                    raise NotSupported(
                        f"the placeholder '{variable.name or uid}' is not connected",
                        "replace it by an input before saving",
                    )
                self._name(uid, names)
                return Source(uid, hint, blocks)
            following = self._through(function, k)
            if following is None:
                self._name(function.uid, names)
                return Source(function.uid, hint, blocks)
            if function.number == BLOCK:
                blocks.append(function)
            if function.name and function.number != COMBINE and k == 0:
                names.append(function.name)
            uid = following

    def _through(self, function: Function, k: int) -> str | None:
        """Return the variable that an output of a block, `Combine` or alias stands for."""
        if function.number == COMBINE:
            if k >= len(function.inputs):
                raise BadFile(f"the function '{function.uid}' has no output {k}", function.at)
            return function.inputs[k]
        if function.number == BLOCK:
            root = self.functions.get(function.root)
            if root is None:
                raise BadFile(f"the block '{function.uid}' has no root '{function.root[:80]}'", function.at)
            return f"{root.uid}_Output_{k}"
        same_type = function.number == CAST and function.attributes.get("newDataType", int, 0) == 1 + self.double
        if function.number in (PASS, NO_OP) or same_type:
            if len(function.inputs) != 1:
                raise BadFile(f"the function '{function.uid}' has {len(function.inputs)} inputs", function.at)
            return None if self._has_two_names(function) else function.inputs[0]
        if k:
            raise NotSupported(
                f"output {k} of {function.operation.name} '{function.name or function.uid}' is not available here",
                WITHOUT,
            )
        return None

    def _has_two_names(self, alias: Function) -> bool:
        """Return whether an alias and its operand both have names, so that both are needed."""
        operand = self.output(alias.inputs[0])[0] or self.variables.get(alias.inputs[0])
        return bool(alias.name and operand is not None and operand is not alias and operand.name)

    def _name(self, uid: str, names: list[str]) -> None:
        if names:
            self.flowed.setdefault(uid, names[0])

    def roots(self) -> list[Source]:
        """Return the outputs of the model."""
        root = self.functions[self.root]
        outputs = root.inputs if root.number == COMBINE else [f"{root.uid}_Output_0"]
        sources = [self.follow(uid) for uid in outputs]
        return list({source.uid: source for source in reversed(sources)}.values())[::-1]

    def records(self) -> Records:
        """Return the whole model."""
        roots = self.roots()
        inputs, hints = self._needed([source.uid for source in roots])
        order = [uid for uid in (*self.variables, *self.functions) if uid in inputs]
        blocks = _owners(self.functions, self.variables)
        names = assign_names([self._named(uid, blocks) for uid in order])
        precision = "double" if self.double else "float"
        records = Records("CNTK's later format", precision, shared_padding=True, exact_axes=True)
        for uid in order:
            inside = self._block_label(uid, blocks)
            if uid in self.variables and uid not in self.functions:
                record = _leaf(self.variables[uid], names[uid], inside)
            else:
                function = self.functions[uid]
                attributes = function.operation.attributes(function.attributes)
                links = tuple(names[i] for i in function.operation.ordered(inputs[uid]))
                record = Record(
                    names[uid],
                    function.operation.name,
                    links,
                    attributes,
                    shape=hints.get(uid),
                    at=function.at,
                    id=uid,
                    block=inside,
                )
            records.records[record.name] = record
        self._check_types(order)
        if any(v.data_type == _HALF for v in self.variables.values()):
            records.notes.append(HALF_NOTE)
        records.groups = self._groups(records.records, roots, names)
        return records

    def _groups(self, records: dict[str, Record], roots: list[Source], names: dict[str, str]) -> dict[str, list[str]]:
        """Groups by what the roots compute."""
        groups: dict[str, list[str]] = {
            group: [] for group in ("feature", "label", "criterion", "evaluation", "output")
        }
        labels: set[str] = set()
        for source in roots:
            record = records[names[source.uid]]
            kinds = {record.operation, *(block.label for block in source.blocks)}
            group = "criterion" if kinds & CRITERIA else "evaluation" if kinds & EVALUATIONS else "output"
            groups[group].append(record.name)
            if group == "output":
                continue
            operands = list(record.inputs[:2])  # the label comes first
            for block in source.blocks:
                if block.label in CRITERIA | EVALUATIONS:  # the label comes second
                    operands = [names.get(self.follow(uid).uid, "") for uid in reversed(block.inputs[:2])]
            result = [name for name in operands if name and records[name].operation in INPUTS]
            labels.update(result[:1])
        for record in records.values():
            if record.operation in INPUTS:
                groups["label" if record.name in labels else "feature"].append(record.name)
        return groups

    def _needed(self, roots: list[str]) -> tuple[dict[str, list[str]], dict[str, Shape]]:
        """Everything below the roots with its inputs, and shapes of delayed values where placeholders say them."""
        inputs: dict[str, list[str]] = {}
        hints: dict[str, Shape] = {}
        waiting = list(roots)
        while waiting:
            uid = waiting.pop()
            if uid in inputs:
                continue
            function = self.functions.get(uid)
            followed = [self.follow(i) for i in function.inputs] if function is not None else []
            inputs[uid] = [source.uid for source in followed]
            if followed and followed[0].shape is not None:
                hints[uid] = followed[0].shape
            waiting += inputs[uid]
        return inputs, hints

    def _named(self, uid: str, blocks: dict[str, str]) -> Named:
        thing = self.functions.get(uid) or self.variables[uid]
        path: list[str] = []
        owner = blocks.get(uid)
        while owner and len(path) < DEEPEST_BLOCK:
            block = self.functions[owner]
            path.insert(0, block.name or block.label or owner)
            owner = blocks.get(owner)
        return Named(uid, thing.name or self.flowed.get(uid, ""), ".".join(path))

    def _block_label(self, uid: str, blocks: dict[str, str]) -> str:
        block = self.functions.get(blocks.get(uid, ""))
        return "" if block is None else f"{block.label} '{block.name or block.uid}'".strip()

    def _check_types(self, order: list[str]) -> None:
        leaves = [self.variables[uid] for uid in order if uid not in self.functions]
        if len({v.double if v.array is None else v.array.double for v in leaves}) > 1:
            raise NotSupported("some of its inputs and parameters are float, others double")


def _leaf(v: Variable, name: str, block: str) -> Record:
    if v.kind == INPUT:
        if any(d in (FREE, INFERRED, UNKNOWN) for d in v.shape):
            raise NotSupported(f"the input '{name}' has a free dimension")
        operation = "SparseInputValue" if v.sparse else "InputValue"
        attributes: dict[str, Any] = {"dynamicAxis": _axis_name(v, name)}
        if v.axes is not None and v.shape:  # of numbers it is not known here whether they have an axis of size 1
            attributes["dynamicAxes"] = len(v.axes)
        return Record(name, operation, (), attributes, v.shape or (1,), at=v.at, id=v.uid)
    assert v.array is not None
    trained = v.kind == PARAMETER and v.needs_gradient
    attributes = {"learningRateMultiplier": float(trained)}
    values = v.array.values
    return Record(name, "LearnableParameter", (), attributes, v.shape or (1,), values, v.at, v.uid, block)


def _concrete(shape: Shape) -> Shape | None:
    """Return a shape that is fully known."""
    known = shape and not any(d in (FREE, INFERRED, UNKNOWN, 0) for d in shape)
    return shape if known else None


def _axis_name(v: Variable, name: str) -> str:
    """Return the sequence axis of an input; `batch` if it has none."""
    if v.axes is None:
        return ""
    ordered = [axis.name for axis in v.axes if not is_batch(axis)]
    if len(ordered) > 1:
        raise NotSupported(f"the input '{name}' has {len(ordered)} sequence axes")
    if not v.axes:
        raise NotSupported(f"the input '{name}' has no batch axis")
    return ordered[0] if ordered else BATCH_AXIS


def _owners(functions: dict[str, Function], variables: dict[str, Variable]) -> dict[str, str]:
    """For each function and parameter inside of a block, that block."""
    owners: dict[str, str] = {}
    for block in functions.values():
        waiting = [block.root] if block.number == BLOCK else []
        while waiting:
            uid = waiting.pop()
            if uid in owners or uid == block.uid:
                continue
            owners[uid] = block.uid
            function = functions.get(uid)
            if function is not None:
                waiting += list(_reached(function, functions, variables, block))
    return owners


def _reached(
    function: Function, functions: dict[str, Function], variables: dict[str, Variable], block: Function
) -> Iterator[str]:
    """Yield the references of a function's inputs that are inside of the same block."""
    for uid in function.inputs:
        variable = variables.get(uid)
        if variable is not None and variable.kind in (PARAMETER, CONSTANT):
            yield uid
        elif variable is None and uid not in block.bound:
            name, mark, _ = uid.rpartition("_Output_")
            if mark and name in functions:
                yield name
