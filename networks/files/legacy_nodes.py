"""Bodies of the nodes in the original's model files (actions-and-training, Appendix A.4).

For each operation a function reads the body and completes the node: options, shape, value. Bodies have no length, so a
node that is not known ends the reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from networks import nodes
from networks.files.legacy_bytes import BadFile, NotSupported, Reader, fitted
from networks.graph import shapes
from networks.graph.network import Node
from networks.graph.shapes import Shape

NAMES = {
    "ErrorPrediction": "ClassificationError",
    "ColumnElementTimes": "ElementTimes",
    "RowElementTimes": "ElementTimes",
    "Scale": "ElementTimes",
    "Delay": "PastValue",
    "Slice": "RowSlice",
    "TransposeDimensions": "Transpose",
    "ReconcileMBLayout": "ReconcileDynamicAxis",
    "PerDimMeanVarNormalizationNode": "PerDimMeanVarNormalization",
    "PerDimMeanVarDeNormalizationNode": "PerDimMeanVarDeNormalization",
    "LegacyReshape": "Reshape",
    "DeprecatedReshape": "Reshape",
}
"""Operations that are called differently here."""
LAYOUTS = {0: "HWC", 1: "CHW"}
OLD_RESHAPES = ("LegacyReshape", "DeprecatedReshape")


@dataclass
class Body:
    """One body to be read."""

    reader: Reader
    version: int
    size: int
    """Bytes of an element."""
    node: Node
    written: str
    """The operation's name in the file."""

    def refuse(self, why: str, hint: str = "") -> NotSupported:
        """The error for a feature of this node."""
        return NotSupported(f"{self.written} '{self.node.name}': {why} is not supported", hint)

    def first_axis(self, what: str, number: int) -> None:
        """Refuse any axis but the first."""
        if number != 1:
            raise self.refuse(f"{what} {number}", "only the first axis is possible")


def kind_of(operation: str) -> Any:
    """The kind of an operation; None if there is none here."""
    kind = nodes.find(NAMES.get(operation, operation))
    return None if kind is None or kind.unsupported or kind.makes else kind


def read_body(body: Body) -> None:
    """Read the body of a node."""
    read = _BODIES.get(body.node.operation)
    if read is not None:
        read(body)


# ---- leaves


def _parameter(body: Body) -> None:
    r, node = body.reader, body.node
    if body.version >= 3:
        node.learning_rate_multiplier = r.f32()
        shape = r.shape()
    else:
        node.learning_rate_multiplier = 1.0 if r.boolean() else 0.0
        rows, columns = r.u64(), r.u64()
        shape = (rows,) if rows else r.shape(old=True)
        if columns > 1:
            shape = (*shape, columns)
    if not 0 <= node.learning_rate_multiplier < math.inf:
        raise BadFile(f"the learning rate multiplier of '{node.name}' is {node.learning_rate_multiplier}")
    node.shape = shape
    node.value = fitted(r.matrix(body.size), shape)


def _input(body: Body) -> None:
    r = body.reader
    rows, _ = r.u64(), r.u64()
    shape = r.shape(old=True)
    if rows and rows != shapes.size(shape):
        shape = (rows,)
    if 0 in shape:
        raise BadFile(f"the input '{body.node.name}' has the shape {shapes.text(shape)}")
    body.node.shape = shape
    if body.version >= 8:
        count = r.u32()
        if count > 1:
            raise BadFile(f"the input '{body.node.name}' has {count} dynamic axes")
        axis = r.text() if count else ""
        if axis:
            raise body.refuse(f"the dynamic axis '{axis}'", "all inputs share one minibatch layout")
    if body.version >= 10:
        r.f32()


def _statistic(body: Body) -> None:
    body.node.computed = body.reader.boolean()
    matrix = body.reader.matrix(body.size)
    body.node.value = matrix.reshape(-1) if body.node.computed else None


# ---- products, delays, axes


def _times(body: Body) -> None:
    rank = body.reader.u64() if body.version >= 3 else 1
    if body.version >= 12:
        body.reader.i32()  # matters only while shapes are inferred
    if rank != 1:
        raise body.refuse(f"an output of rank {rank}")


def _transpose(body: Body) -> None:
    axes = (body.reader.i32(), body.reader.i32()) if body.version >= 3 else (1, 2)
    if sorted(axes) != [1, 2]:
        raise body.refuse(f"exchanging the axes {axes[0]} and {axes[1]}")


def _delay(body: Body) -> None:
    r, options = body.reader, body.node.options
    options["timeStep"] = r.i32()
    shape: Shape = r.shape() if body.version > 3 else (r.u64(), r.u64())[:1]
    initial = r.real(body.size) if body.version >= 2 else float(np.float32(0.1))
    if options["timeStep"] < 1:
        raise BadFile(f"the time step of '{body.node.name}' is {options['timeStep']}")
    options["rows"] = shapes.size(shape)
    options["defaultHiddenActivity"] = initial
    options.pop("delayTime", None)


def _reshape(body: Body) -> None:
    r, options = body.reader, body.node.options
    if body.written in OLD_RESHAPES:
        rows, shape = r.u64(), r.shape(old=True)
        given = tuple(d for d in shape if d)
        if len(given) not in (0, 3):
            raise body.refuse(f"the shape {shapes.text(shape)}")
    else:
        begin, end = r.i32(), r.i32()
        shape = r.shape()
        given, rows = shape, shapes.size(shape)
        if begin not in (0, 1) or end != 0 or len(shape) != 3 or 0 in shape:
            raise body.refuse(f"re-shaping the axes {begin} to {end} to {shapes.text(shape)}", "only whole images")
    options["numRows"] = rows
    if given:
        options.update(imageWidth=given[0], imageHeight=given[1], imageChannels=given[2], imageLayout="CHW")


def _row_slice(body: Body) -> None:
    r, options = body.reader, body.node.options
    options["start"], options["count"] = r.i64(), r.i64()
    if body.version >= 3:
        body.first_axis("slicing axis", r.i32())


def _row_stack(body: Body) -> None:
    if body.version >= 3:
        body.first_axis("stacking along axis", body.reader.i32())


def _row_repeat(body: Body) -> None:
    body.node.options["count"] = body.reader.u64()


def _crop(body: Body) -> None:
    raise body.refuse("a Crop node of a binary model")


# ---- images


def _layout(body: Body, number: int) -> str:
    if number not in LAYOUTS:
        raise BadFile(f"the image layout of '{body.node.name}' is {number}")
    return LAYOUTS[number]


def _windows(body: Body) -> tuple[dict[str, Any], Shape, str]:
    """What convolution and pooling have in common since version 5: options, number of maps, kind of pooling."""
    r = body.reader
    options: dict[str, Any] = {"kernelShape": r.shape()}
    maps = r.shape()
    options["stride"] = r.shape()
    options["sharing"], options["autoPadding"] = r.booleans() or (True,), r.booleans() or (False,)
    options["lowerPad"], options["upperPad"] = r.shape(), r.shape()
    pool = r.i32()
    options["imageLayout"] = _layout(body, r.i32())
    r.u64()
    options["transpose"] = r.boolean() if body.version >= 9 else False
    return options, maps, {0: "none", 1: "max", 2: "average"}.get(pool, str(pool))


def _convolution(body: Body) -> None:
    r, node = body.reader, body.node
    if body.version < 5:
        width, height, x, y = r.u64(), r.u64(), r.u64(), r.u64()
        maps, layout = r.u32(), _layout(body, r.u32())
        _two_d(node, (width, height), maps, (x, y), r.boolean(), layout)
        r.u64()
        return
    options, maps_shape, _ = _windows(body)
    maps = shapes.size(maps_shape)
    if r.boolean():
        kernel, stride = (*options["kernelShape"], 1), (*options["stride"], options["stride"][-1])
        _two_d(node, kernel[:2], maps, stride[:2], options["autoPadding"][0], options["imageLayout"])
        return
    if options["imageLayout"] != "CHW":
        raise body.refuse("a convolution over any number of axes in the layout HWC")
    node.options.update(options, mapCount=maps)


def _two_d(node: Node, kernel: Shape, maps: int, stride: Shape, padding: bool, layout: str) -> None:
    for name in ("stride", "sharing", "autoPadding", "lowerPad", "upperPad", "mapCount", "transpose"):
        node.options[name] = node.kind.defaults()[name]
    node.options.update(
        kernelWidth=kernel[0],
        kernelHeight=kernel[1],
        maps=maps,
        strideWidth=stride[0],
        strideHeight=stride[1],
        zeroPadding=padding,
        imageLayout=layout,
    )


def _pooling(body: Body) -> None:
    options, _, pool = _windows(body)
    if options["imageLayout"] != "CHW" or options.pop("transpose"):
        raise body.refuse("this form of pooling")
    del options["sharing"]
    if body.node.operation == "Pooling":
        if pool not in ("max", "average"):
            raise BadFile(f"the kind of pooling of '{body.node.name}' is {pool}")
        options["kind"] = pool
    body.node.options.update(options)


def _old_pooling(body: Body) -> None:
    r, options = body.reader, body.node.options
    options["windowWidth"], options["imageLayout"] = r.u32(), _layout(body, r.u32())
    options["windowHeight"], options["strideWidth"], options["strideHeight"] = r.u64(), r.u64(), r.u64()


# ---- batch normalisation


def _batch_normalization(body: Body) -> None:
    r, node = body.reader, body.node
    options = node.options
    if body.version >= 6:
        options["spatial"] = r.boolean()
        options["normalizationTimeConstant"], options["blendTimeConstant"] = r.f64(), r.f64()
        options["imageLayout"] = _layout(body, r.i32())
        seen = r.u64()
        node.samples = seen if body.version >= 13 else 16 * seen
        options["epsilon"] = r.f64()
        options["engine"] = "cntk" if r.boolean() else "cudnn"
        return
    written, _ = r.i32(), r.i32()
    r.boolean()
    options["spatial"] = r.boolean()
    constant = r.f64()
    if written >= 0x10004:
        options["normalizationTimeConstant"] = constant
    if written >= 0x10002:
        options["imageLayout"] = _layout(body, r.i32())
        node.samples = 16 * r.u64()
    if written >= 0x10003:
        options["epsilon"] = r.f64()
        options["engine"] = "cntk" if r.boolean() else "cudnn"


def deviations_to_variances(normalizations: list[Node], version: int) -> None:
    """Before version 13 the running statistics hold 1 / standard deviation: make them variances, each once."""
    if version >= 13:
        return
    done: set[Node] = set()
    for node in normalizations:
        operand = node.inputs[4] if len(node.inputs) > 4 else None
        if operand is None or operand.value is None or operand in done:
            continue
        done.add(operand)
        epsilon = float(node.options["epsilon"])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            variance = 1 / np.square(operand.value.astype(np.float64)) - epsilon
        operand.value = np.where(np.isfinite(variance), np.maximum(variance, 0), 0).astype(operand.value.dtype)


_BODIES: dict[str, Callable[[Body], None]] = {
    "LearnableParameter": _parameter,
    "InputValue": _input,
    "SparseInputValue": _input,
    "Mean": _statistic,
    "InvStdDev": _statistic,
    "Times": _times,
    "TransposeTimes": _times,
    "Transpose": _transpose,
    "PastValue": _delay,
    "FutureValue": _delay,
    "Reshape": _reshape,
    "RowSlice": _row_slice,
    "RowStack": _row_stack,
    "RowRepeat": _row_repeat,
    "Crop": _crop,
    "Convolution": _convolution,
    "Pooling": _pooling,
    "MaxUnpooling": _pooling,
    "MaxPooling": _old_pooling,
    "AveragePooling": _old_pooling,
    "BatchNormalization": _batch_normalization,
}
