"""ONNX models with a few of their numbers, names, types and operators changed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

SIZES = [
    -(1 << 63),
    -(1 << 40),
    -(1 << 31),
    -7,
    -2,
    -1,
    0,
    1,
    2,
    3,
    5,
    64,
    1 << 20,
    1 << 28,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
]
REALS = [float("nan"), float("inf"), float("-inf"), 0.0, -1.0, 1e-30, 1e30, 0.5, 3e9]
WORDS = ["", "NOTSET", "SAME_UPPER", "linear", "reflect", "none", "\0", "é" * 3]


def graphs_of(graph: Any) -> list[Any]:
    """A graph and those inside of it."""
    inner = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
    return [graph, *(each for one in inner for each in graphs_of(one))]


def _attribute(draw: random.Random, graph: Any) -> None:
    found = [one for node in graph.node for one in node.attribute if one.type in (1, 2, 3, 6, 7)]
    if not found:
        return
    one = draw.choice(found)
    if one.type == 2:
        one.i = draw.choice(SIZES)
    elif one.type == 1:
        one.f = draw.choice(REALS)
    elif one.type == 3:
        one.s = draw.choice(WORDS).encode()
    else:
        numbers, values = (one.ints, SIZES) if one.type == 7 else (one.floats, REALS)
        way = draw.randrange(3)
        if way == 0 or not numbers:
            numbers.append(draw.choice(values))
        elif way == 1:
            numbers[draw.randrange(len(numbers))] = draw.choice(values)
        else:
            numbers.pop()


def _new_attribute(draw: random.Random, graph: Any) -> None:
    names = ["axis", "axes", "pads", "strides", "dilations", "group", "ceil_mode", "count_include_pad", "keepdims"]
    names += ["kernel_shape", "auto_pad", "output_shape", "perm", "to", "k", "blocksize", "num_groups", "block_size"]
    node = draw.choice(graph.node)
    value = draw.choice([draw.choice(SIZES), [draw.choice(SIZES) for _ in range(draw.randrange(1, 5))], 1.5, "x"])
    name = draw.choice(names)
    if name not in [one.name for one in node.attribute]:
        node.attribute.append(onnx.helper.make_attribute(name, value))


def _initialiser(draw: random.Random, graph: Any) -> None:
    if not graph.initializer:
        return
    tensor = draw.choice(graph.initializer)
    array = np.array(numpy_helper.to_array(tensor))
    way = draw.randrange(4)
    if way == 0 and array.size and array.dtype.kind in "iuf":
        values = SIZES if array.dtype.kind in "iu" else REALS
        with np.errstate(all="ignore"):
            array.reshape(-1)[draw.randrange(array.size)] = np.array(draw.choice(values)).astype(array.dtype)
    elif way == 1:
        array = array.reshape(-1)
    elif way == 2:
        array = array[:-1] if array.ndim else array.reshape(1)
    else:
        array = np.array(
            draw.choice([[], [0], [1, 2, 3], 1 << 40]), array.dtype if array.dtype.kind in "f" else np.int64
        )
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _operand(draw: random.Random, graph: Any) -> None:
    node = draw.choice(graph.node)
    names = [one.name for one in (*graph.input, *graph.initializer)] + [""]
    names += [name for one in graph.node for name in one.output]
    if node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice(names)


def _fewer_operands(draw: random.Random, graph: Any) -> None:
    node = draw.choice(graph.node)
    if node.input:
        node.input.pop()


def _operator(draw: random.Random, graph: Any) -> None:
    one, other = draw.choice(graph.node), draw.choice(graph.node)
    kinds = [
        "Tile",
        "Pad",
        "Expand",
        "ConstantOfShape",
        "Range",
        "Resize",
        "OneHot",
        "Reshape",
        "Gather",
        "Split",
        "TopK",
    ]
    one.op_type = draw.choice([other.op_type, draw.choice(kinds)])


def _input(draw: random.Random, graph: Any) -> None:
    if graph.input:
        shape = draw.choice(graph.input).type.tensor_type.shape.dim
        if shape:
            draw.choice(shape).dim_value = draw.choice(SIZES)


def _output(draw: random.Random, graph: Any) -> None:
    if graph.output and graph.node:
        names = [name for one in graph.node for name in one.output] + [one.name for one in graph.initializer]
        draw.choice(graph.output).name = draw.choice(names)


WAYS = [
    _attribute,
    _attribute,
    _new_attribute,
    _initialiser,
    _initialiser,
    _operand,
    _fewer_operands,
    _operator,
    _input,
    _output,
]


def mutated(model: Any, draw: random.Random) -> Any:
    """A copy of a model with one to four changes."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for _ in range(draw.randint(1, 4)):
        graph = draw.choice(graphs_of(found.graph))
        if graph.node:
            draw.choice(WAYS)(draw, graph)
    return found
