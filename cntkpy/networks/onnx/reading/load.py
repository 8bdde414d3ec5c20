"""An ONNX file as a network."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.network import Network, ValidatedNetwork
from cntkpy.networks.graph.written import Written
from cntkpy.networks.nodes import create, tables
from cntkpy.networks.nodes.onnx_support.building import Building, Rule
from cntkpy.networks.nodes.onnx_support.model import Input, Model, Operator
from cntkpy.networks.nodes.onnx_support.values import Data, Unusable
from cntkpy.networks.nodes.recurrence.onnx_units import UNITS
from cntkpy.networks.onnx.free_sizes import FREE, free_sizes, same_nodes, with_sizes
from cntkpy.networks.onnx.reading.graph import Graph
from cntkpy.networks.onnx.reading.lengths import without_lengths
from cntkpy.networks.onnx.reading.parse import read_model

log = logging.getLogger("cntkpy.networks")

RULES: dict[str, Rule] = tables("onnx_reading")
"""By operator: makes nodes of it, where it depends on the inputs."""

TIME = re.compile(r"seq|time|step|len|frame", re.IGNORECASE)
"""Names of axes that are time."""

TRAINED, LAYOUT, SEQUENCES = "cntkpy.trained", "cntkpy.layout", "cntkpy.sequences"
"""Names of texts that a model written here has: the parameters that training changes, the leading axes, and the inputs
that have sequences, of which the file has frames where nothing looks along time."""

BATCH = "batch"

MOST_LINES = 50
"""Of a message with the operators that cannot be read."""

REAL = (1, 10, 11)
"""Numbers of the types float, float16 and double."""


def load_onnx(path: str | Path, precision: str | None = None) -> ValidatedNetwork:
    """Read an ONNX model.

    Args:
        path: the file.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS` to convert to; None: as stored.

    Raises:
        UserError: it is damaged, or has operators that cannot become nodes, all of which are named.
    """
    return build(read_model(path), str(path), precision)[0]


def build(model: Model, name: str, precision: str | None = None) -> tuple[ValidatedNetwork, Graph]:
    """Return the network of a model, and which of its nodes the values of the model are.

    Raises:
        UserError: it has operators that cannot become nodes, all of which are named.
    """
    if free := free_sizes(model):
        return _build_free(model, free, name, precision)
    problems: list[UserError] = []
    kinds = {operator.kind for operator in model.operators}
    ways = [Way()]
    if kinds & {*UNITS, "Scan", "Loop"}:
        ways.append(Way(steps=True))
    if "Loop" in kinds:
        ways.append(Way(unrolled=True))
    for way in ways:
        try:
            return _build(model, name, precision, way)
        except UserError as problem:
            problems.append(problem)
    raise problems[1 if "Loop" in kinds else 0]


def _build_free(
    model: Model, free: Mapping[str, tuple[int, int]], name: str, precision: str | None
) -> tuple[ValidatedNetwork, Graph]:
    """Return the network of a model with sizes that only data say, which is built with two choices of them.

    Raises:
        UserError: its nodes depend on these sizes in another way than by their shapes.
    """
    plain = replace(model, metadata={key: text for key, text in model.metadata.items() if key != FREE})
    (network, graph), (twin, _) = (
        build(with_sizes(plain, {word: pair[index] for word, pair in free.items()}), name, precision)
        for index in range(2)
    )
    if not same_nodes(network, twin):
        message = f"the ONNX model {name} cannot be used: its operators depend on sizes that only data say"
        raise UserError("BadModel", message, hint="save it once more, with sizes")
    for port in model.inputs:
        value, sizes = graph.values[port.name], port.sizes or ()
        axes = [len(sizes) - 1 - index for index, size in enumerate(sizes) if size in free]
        if axes and isinstance(value, Data):
            value.node.written = (value.node.written or Written())._replace(free={"axes": axes})
    return network, graph


class Way(NamedTuple):
    """Way to read a model with loops.

    Attributes:
        steps: whether the second axis of inputs is time though its size is fixed.
        unrolled: whether the body of a Loop is computed as often as its fixed trip count says.
    """

    steps: bool = False
    unrolled: bool = False


def _build(model: Model, name: str, precision: str | None, way: Way) -> tuple[ValidatedNetwork, Graph]:
    model = without_lengths(model)
    arrays = [initialiser for initialiser in model.initialisers.values() if isinstance(initialiser, np.ndarray)]
    stored = any(array.dtype == np.float64 for array in (*arrays, *model.inputs))
    trained = _listed(model.metadata, TRAINED)
    building = Building(
        precision or ("double" if stored else "float"), model.opset, trained, model.size, len(model.operators)
    )
    building.unrolled = way.unrolled
    graph = Graph(building, RULES)
    graph.add_initialisers(model)
    try:
        _add_inputs(building, graph, model, way)
        graph.run(model.operators)
    except Unusable as problem:
        raise UserError("BadModel", f"the ONNX model {name} cannot be used: {problem}") from None
    outputs, wrong = graph.usable(model.outputs, model.operators, not model.inputs or LAYOUT in model.metadata)
    if not outputs and graph.refused:
        raise _error(name, graph.refused)
    if not outputs:
        first, why = next(iter(wrong.items()), ("", "is missing"))
        raise UserError("BadModel", f"the ONNX model {name} cannot be used: its output '{first}' {why}")
    graph.finish(outputs)
    network = building.network
    network.left_out.update(wrong)
    for output in wrong:
        if output in network.nodes:  # a node on the way to another output of the same operator
            network.rename(output, building.free(f"{output}.part"))
    for output, why in wrong.items():
        log.warning("the output '%s' of %s is left out: it %s", output, name, why)
    _time_axes(building, graph, model)
    _drop_unused(network)
    try:
        return network.validate(), graph
    except UserError as problem:
        message = f"the ONNX model {name} cannot be used: {problem}"
        raise UserError("BadModel", message, hint=problem.hint) from None


def _listed(metadata: Mapping[str, str], key: str) -> list[str] | None:
    try:
        entries = json.loads(metadata[key])
    except (KeyError, ValueError, RecursionError):
        return None
    return [str(entry) for entry in cast("list[Any]", entries)] if isinstance(entries, list) else None


def _error(name: str, refused: Sequence[tuple[Operator, str]]) -> UserError:
    """Return one error for all operators that cannot be read: of each kind and reason the first one, and how many."""
    groups: dict[tuple[str, str], list[Operator]] = {}
    for operator, why in refused:
        groups.setdefault((operator.key, why), []).append(operator)
    lines = [
        f"  {operators[0].shown()}{f' and {len(operators) - 1:,} more' if len(operators) > 1 else ''}: {why}"
        for (_, why), operators in groups.items()
    ]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES - 1 :] = [f"  and {len(lines) - MOST_LINES + 1:,} more kinds and reasons"]
    count = f"{len(refused):,} operator" + "s" * (len(refused) > 1)
    return UserError("NotSupported", f"the ONNX model {name} cannot be used, because of {count}:\n" + "\n".join(lines))


# ---- inputs


def _add_inputs(building: Building, graph: Graph, model: Model, way: Way) -> None:
    for operand in model.inputs:
        if operand.sizes is None or not operand.sizes:
            raise Unusable(f"the dimensions of its input '{operand.name}' are not given")
        building.owner = operand.name
        embedded = _embedding(operand, model)
        rank = len(operand.sizes)
        steps = rank == 2 if embedded is not None else way.steps and rank > 2
        axes_, dims = _split(building, operand, _recurrent_user(operand, model), steps)
        if operand.integer and embedded is None and not _becomes_real(operand, model):
            allowed = "as numbers of rows of Gather, as lengths of sequences, or before a Cast to real numbers"
            raise Unusable(f"its input '{operand.name}' has integers, which are supported {allowed} only")
        if embedded is not None:
            if dims:
                raise Unusable(f"its input '{operand.name}' of numbers has more axes than those of a minibatch")
            dims = (embedded,)
        kind = "InputValue" if embedded is None else "SparseInputValue"
        node = create(building.network, kind, building.free(operand.name), (), {"dims": dims[::-1] or (1,)})
        building.network.add_to_group("feature", node)
        graph.values[operand.name] = Data(node, (*axes_, *dims))
        building.on_axis = dict.fromkeys(axes_, node) | building.on_axis


def _split(
    building: Building, port: Input, user: Operator | None, steps: bool
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the axes of a minibatch that an input has, and the sizes of the others.

    Args:
        building: keeps the sizes that are fixed.
        port: the input.
        user: the recurrent operator that takes it.
        steps: whether its first two axes are batch and time, though their sizes are fixed.
    """
    sizes = port.sizes or ()
    varying = [index for index, size in enumerate(sizes) if isinstance(size, str)]
    lead = max((index + 1 for index in varying), default=1)
    lead = max(lead, 2) if user is not None or (steps and len(sizes) > 1) else lead
    order = (BATCH, "sequence") if user is None or user.attributes.get("layout", 0) else ("sequence", BATCH)
    words: list[str] = []
    for index, size in enumerate(sizes[:lead]):
        if isinstance(size, int):
            word = f"axis {index}"
            if lead == 1:
                word = BATCH
            elif steps and varying:
                word = "sequence"
            elif user is not None or steps:
                word = order[index]
            if building.fixed.setdefault(word, size) != size:
                raise Unusable(f"its inputs have {building.fixed[word]} and {size} samples")
        else:
            word = size if size not in words else f"{size}#{index}"
        words.append(word)
    if lead > 2:
        raise Unusable(f"its input '{port.name}' has {lead} axes that vary; there are at most two: time and batch")
    return tuple(words), tuple(size for size in sizes[lead:] if isinstance(size, int))


def _recurrent_user(port: Input, model: Model) -> Operator | None:
    """Return the recurrent operator into which an input of fixed sizes goes: its first axes are time and batch."""
    if any(isinstance(size, str) for size in port.sizes or ()):
        return None
    users = (o for o in model.operators if o.kind in ("LSTM", "GRU", "RNN") and o.inputs[:1] == [port.name])
    return next(users, None)


def _becomes_real(port: Input, model: Model) -> bool:
    """Return whether an input of integers is converted to real numbers first, as the bytes of an image are."""
    users = [operator for operator in model.operators if port.name in operator.inputs]
    return bool(users) and all(o.kind == "Cast" and o.attributes.get("to") in REAL for o in users)


def _embedding(port: Input, model: Model) -> int | None:
    """Return the number of rows of the tables that an input of integers indexes; None: it does something else."""
    if not port.integer:
        return None
    users = [operator for operator in model.operators if port.name in operator.inputs]
    tables = [
        model.initialisers.get(o.inputs[0])
        for o in users
        if o.kind == "Gather" and o.inputs[1:] == [port.name] and o.attributes.get("axis", 0) == 0
    ]
    if len(tables) < len(users) or not tables:
        return None
    if any(not isinstance(table, np.ndarray) or table.ndim != 2 for table in tables):
        return None
    counts = {len(table) for table in tables if isinstance(table, np.ndarray)}
    return counts.pop() if len(counts) == 1 else None


# ---- time


def _time_axes(building: Building, graph: Graph, model: Model) -> None:
    """Put the inputs on their time axes."""
    inputs = [(operand, value) for operand in model.inputs if isinstance(value := graph.values[operand.name], Data)]
    words = list(dict.fromkeys(word for _, value in inputs for word in value.words))
    times = [word for word in words if word in building.times]
    for _, value in inputs:
        if len(value.words) == 2 and not any(word in times for word in value.words):
            first, second = value.words
            written_here = model.metadata.get(LAYOUT, "").split(",")
            named = (
                [word for word in value.words if word in written_here and word != BATCH]
                if len(written_here) > 1
                else []
            )
            named = named or [word for word in value.words if TIME.search(word)]
            times.append(named[0] if len(named) == 1 else second if first == BATCH else first)
    sequences = _listed(model.metadata, SEQUENCES) or []
    for operand, value in inputs:
        time_words = [word for word in value.words if word in times]
        value.node.dynamic_axes = 2 if time_words or (not times and operand.name in sequences) else 1
        if times and not time_words:
            value.node.options["dynamicAxis"] = ONE
        elif time_words and times.index(time_words[0]) > 0:
            value.node.options["dynamicAxis"] = time_words[0]


def _drop_unused(network: Network) -> None:
    """Take out what the outputs do not depend on, inputs excepted."""
    needed = {node.name for node in network.linked_below(network.groups["output"])}
    for name in [node.name for node in network.nodes.values()]:
        if name not in needed and network.nodes[name].kind.layout != "always":
            network.remove(name)
