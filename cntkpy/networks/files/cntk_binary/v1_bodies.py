"""Node bodies of CNTK's first binary format, by operation.

The bodies: docs/specification/actions-and-training.md A.4 and docs/specification/model-files.md 2.2.
A body has no length, so every operation that a file may have is listed, also those that have no counterpart here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntkpy.networks.files.cntk_binary.primitives import Reader
from cntkpy.networks.files.cntk_binary.records import Axis, BadFile
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape

Attributes = dict[str, Any]

SHAPE, VALUE = "shape", "value"
"""Keys of the attributes that become fields of the record."""

ALIASES = {
    "ErrorPrediction": "ClassificationError",
    "ColumnElementTimes": "ElementTimes",
    "RowElementTimes": "ElementTimes",
    "Scale": "ElementTimes",
    "Delay": "PastValue",
    "RowSlice": "Slice",
    "Transpose": "TransposeDimensions",
    "ReconcileMBLayout": "ReconcileDynamicAxis",
    "RNN": "OptimizedRNNStack",
    "PerDimMeanVarNormalizationNode": "PerDimMeanVarNormalization",
    "PerDimMeanVarDeNormalizationNode": "PerDimMeanVarDeNormalization",
    "DeprecatedReshape": "LegacyReshape",
}
"""Older names of operations."""

LAYOUTS = {0: "HWC", 1: "CHW"}
PRECISIONS = {"half": 2, "float": 4, "double": 8}
"""Bytes of an element."""
OLD_BATCH = 16
"""Before version 13 a minibatch counts as this many samples in the state of BatchNormalization."""


@dataclass
class Body:
    """One body to be read."""

    reader: Reader
    version: int
    size: int
    """Bytes of an element."""
    operation: str
    name: str

    def next_node_follows(self, ahead: int) -> bool:
        """Return whether what is `ahead` bytes after the position looks like the next node, or the end of the list."""
        return any(self.reader.sees(word, ahead) for word in (*PRECISIONS, "ENodeList"))

    def bad(self, message: str) -> BadFile:
        """An error of this body."""
        return BadFile(f"{message} ({self.operation} '{self.name}')", self.reader.position)


def static_axis(body: Body, number: int) -> Axis:
    """An axis that is counted from 1."""
    if number < 1:
        raise body.bad(f"the axis {number} is not one of the sample")
    return Axis("static", number - 1)


# ---- leaves


def _parameter(body: Body) -> Attributes:
    r = body.reader
    if body.version >= 3:
        rate = r.f32()
        shape = r.shape()
    else:
        rate = 1.0 if r.boolean() else 0.0
        rows, columns = r.u64(), r.u64()
        shape = (rows,) if rows else r.shape(old=True)
        if columns > 1:
            shape = (*shape, columns)
    if not 0 <= rate < math.inf:
        raise body.bad(f"the learning rate multiplier is {rate}")
    values = r.matrix(body.size)
    if 0 in shape or shapes.size(shape) != values.size:
        raise body.bad(f"{values.size} values do not fit the shape {shapes.text(shape)}")
    return {"learningRateMultiplier": rate, SHAPE: shape, VALUE: values}


def _input(body: Body) -> Attributes:
    r = body.reader
    rows, _ = r.u64(), r.u64()
    shape = r.shape(old=True)
    if rows and rows != shapes.size(shape):
        shape = (rows,)
    if 0 in shape:
        raise body.bad(f"the input has the shape {shapes.text(shape)}")
    axis = ""
    if body.version >= 8:
        count = r.u32()
        if count > 1:
            raise body.bad(f"the input has {count} dynamic axes")
        axis = r.text() if count else ""
    if body.version >= 10:
        r.f32()
    return {"dynamicAxis": axis, SHAPE: shape}


def _statistic(body: Body) -> Attributes:
    computed = body.reader.boolean()
    values = body.reader.matrix(body.size)
    return {"computed": computed, VALUE: values if computed else None}


# ---- products, delays, axes


def _times(body: Body) -> Attributes:
    rank = body.reader.u64() if body.version >= 3 else 1
    if body.version >= 12:
        body.reader.i32()  # matters only while shapes are inferred
    return {"outputRank": rank}


def _quantized_times(body: Body) -> Attributes:
    return {**_times(body), "shifts": (body.reader.u64(), body.reader.u64())}


def _transpose(body: Body) -> Attributes:
    r = body.reader
    first, second = (r.i32(), r.i32()) if body.version >= 3 else (1, 2)
    if body.version >= 25 and first == second == 0:
        permutation = r.sizes()
        if sorted(permutation) != list(range(len(permutation))):
            raise body.bad(f"{permutation} is not an order of the axes")
        return {"permutation": permutation}
    return {"axes": (static_axis(body, first), static_axis(body, second))}


def _delay(body: Body) -> Attributes:
    r = body.reader
    steps = r.i32()
    shape: Shape = r.shape() if body.version > 3 else (r.u64(), r.u64())[:1]
    initial = r.real(body.size) if body.version >= 2 else float(np.float32(0.1))
    if steps < 1:
        raise body.bad(f"the time step is {steps}")
    return {"timeStep": steps, "initial": initial, SHAPE: None if 0 in shape else shape}


def _reshape(body: Body) -> Attributes:
    r = body.reader
    begin, end = r.i32(), r.i32()
    if begin < 0 or end < 0:
        raise body.bad(f"the axes {begin} to {end} are not those of the sample")
    return {
        "begin": Axis("static", max(begin, 1) - 1),
        "end": Axis("static", end - 1) if end else Axis("end"),
        "newShape": r.shape(),
    }


def _legacy_reshape(body: Body) -> Attributes:
    return {"rows": body.reader.u64(), "image": body.reader.shape(old=True)}


def _slice(body: Body) -> Attributes:
    r = body.reader
    count = r.i32() if body.version >= 22 else 1
    if count < 1 or count * 20 > r.left:
        raise body.bad(f"it slices {count} axes")
    parts: list[tuple[Axis, int, int, int]] = []
    for _ in range(count):
        begin, length = r.i64(), r.i64()
        axis = static_axis(body, r.i32()) if body.version >= 3 else Axis("static", 0)
        parts.append((axis, begin, begin + length, r.i32() if body.version >= 27 else 1))
    return {"slices": tuple(parts)}


def _row_stack(body: Body) -> Attributes:
    return {"axis": static_axis(body, body.reader.i32() if body.version >= 3 else 1)}


def _reduce(body: Body) -> Attributes:
    r = body.reader
    count = r.i32() if body.version >= 27 else 1
    if count < 1 or count * 4 > r.left:
        raise body.bad(f"it reduces {count} axes")
    special = {0: Axis("all static"), -1: Axis("all"), -2: Axis("sequence"), -3: Axis("batch")}
    numbers = [r.i32() for _ in range(count)]
    axes = tuple(special[n] if n in special else static_axis(body, n) for n in numbers)
    reduction = r.text()
    keep = r.boolean() if body.version >= 24 else axes[0].kind == "static"
    return {"axes": axes, "reduction": reduction, "keepDimensions": keep}


# ---- images


def _layout(body: Body, number: int) -> str:
    if number not in LAYOUTS:
        raise body.bad(f"the image layout is {number}")
    return LAYOUTS[number]


def _windows(body: Body) -> Attributes:
    """Return what convolution and pooling have in common since version 5."""
    r = body.reader
    attributes: Attributes = {"kernelShape": r.shape(), "mapShape": r.shape(), "stride": r.shape()}
    attributes["sharing"], attributes["autoPadding"] = r.booleans() or (True,), r.booleans() or (False,)
    attributes["lowerPad"], attributes["upperPad"] = r.shape(), r.shape()
    kind = r.i32()
    attributes["kind"] = {0: "none", 1: "max", 2: "average"}.get(kind, str(kind))
    attributes["imageLayout"] = _layout(body, r.i32())
    r.u64()
    attributes["transpose"] = r.boolean() if body.version >= 9 else False
    output = r.shape() if body.version >= 20 else ()
    attributes["outputShape"] = () if not any(output) else output
    attributes["ceilOutDim"] = r.boolean() if body.version >= 21 else False
    attributes["includePad"] = r.boolean() if body.version >= 23 else False
    return attributes


def _convolution(body: Body) -> Attributes:
    r = body.reader
    if body.version < 5:
        width, height, x, y = r.u64(), r.u64(), r.u64(), r.u64()
        maps, layout, padding = r.u32(), _layout(body, r.u32()), r.boolean()
        r.u64()
        return {
            "twoD": True,
            "kernelShape": (width, height, 1),
            "stride": (x, y, 1),
            "mapShape": (maps,),
            "autoPadding": (padding,),
            "imageLayout": layout,
        }
    windows = _windows(body)
    windows["twoD"] = r.boolean()
    if body.version >= 18:
        windows["dilation"] = r.shape()
    return windows


def _old_pooling(body: Body) -> Attributes:
    r = body.reader
    width, layout = r.u32(), _layout(body, r.u32())
    height, x, y = r.u64(), r.u64(), r.u64()
    return {"kernelShape": (width, height), "stride": (x, y), "imageLayout": layout}


def _roi_pooling(body: Body) -> Attributes:
    r = body.reader
    shape = r.shape()
    kind, scale = (r.i32(), r.f64()) if body.version >= 26 else (1, 1 / 16)
    attributes = {"outputShape": shape, "kind": {1: "max", 2: "average"}.get(kind, str(kind)), "spatialScale": scale}
    return {**attributes, "relative": body.version < 26}


def _crop(body: Body) -> Attributes:
    return {"offsets": (body.reader.f64(), body.reader.f64())}


# ---- normalisation


def _batch_normalization(body: Body) -> Attributes:
    r = body.reader
    attributes: Attributes = {}
    if body.version >= 6:
        attributes["spatial"] = r.boolean()
        attributes["normalizationTimeConstant"], attributes["blendTimeConstant"] = r.f64(), r.f64()
        attributes["imageLayout"] = _layout(body, r.i32())
        if body.version == 19:
            r.boolean()  # whether the sixth input is zero
            attributes["samples"] = 0
        else:
            attributes["samples"] = r.u64() * (1 if body.version >= 13 else OLD_BATCH)
        attributes["epsilon"] = r.f64()
        attributes["ownEngine"] = r.boolean()
        return attributes
    written, _ = r.i32(), r.i32()
    r.boolean()
    attributes["spatial"] = r.boolean()
    constant = r.f64()
    if written >= 0x10004:
        attributes["normalizationTimeConstant"] = constant
    if written >= 0x10002:
        attributes["imageLayout"] = _layout(body, r.i32())
        attributes["samples"] = r.u64() * OLD_BATCH
    if written >= 0x10003:
        attributes["epsilon"] = r.f64()
        attributes["ownEngine"] = r.boolean()
    return attributes


# ---- random numbers


def _random_state(body: Body) -> Attributes:
    """The seed has 8 bytes; in version 16 it has 4 where the program ran on Windows."""
    r = body.reader
    if body.version < 16:
        return {}
    narrow = body.version == 16 and not body.next_node_follows(16) and body.next_node_follows(12)
    return {"seed": r.u32() if narrow else r.u64(), "offset": r.u64()}


def _random_sample(body: Body) -> Attributes:
    r = body.reader
    return {"allowDuplicates": r.boolean(), "samples": r.u64(), **_random_state(body)}


# ---- others


def _noise_contrastive(body: Body) -> Attributes:
    mode = body.reader.i32()
    if not 0 <= mode <= 3:
        body.reader.position -= 4  # it was not stored
        mode = -1
    return {"evaluationMode": mode}


def _rnn_stack(body: Body) -> Attributes:
    r = body.reader
    attributes: Attributes = {"bidirectional": bool(r.u64()), "numLayers": r.u64(), "hiddenDims": r.u64()}
    attributes["recurrentOp"] = r.text()
    attributes["axis"] = r.i32() if body.version >= 14 else -1
    return attributes


def _edit_distance(body: Body) -> Attributes:
    r = body.reader
    return {
        "substitutionPenalty": r.f32(),
        "deletionPenalty": r.f32(),
        "insertionPenalty": r.f32(),
        "squashInputs": r.boolean(),
        "tokensToIgnore": r.sizes(),
    }


def _lattice(body: Body) -> Attributes:
    r = body.reader
    texts = [r.text() for _ in range(4)]
    numbers = 6 * 8 + 2
    if not body.next_node_follows(numbers):  # programs since 2.6 write one more text, in the same version
        texts.append(r.text())
    r.take(numbers)
    return {"texts": tuple(texts)}


def _trace(body: Body) -> Attributes:
    r = body.reader
    attributes: Attributes = {
        "say": r.text(),
        "logFirst": r.u64(),
        "logFrequency": r.u64(),
        "logGradientToo": r.boolean(),
    }
    r.boolean()
    r.text()
    r.boolean()
    r.boolean()
    for _ in range(8):
        r.bytes_text()
    attributes["onlyUpToRow"], attributes["onlyUpToT"] = r.u64(), r.u64()
    return attributes


def _text(key: str, since: int = 1) -> Callable[[Body], Attributes]:
    return lambda body: {key: body.reader.text() if body.version >= since else ""}


BODIES: dict[str, Callable[[Body], Attributes]] = {
    "LearnableParameter": _parameter,
    "InputValue": _input,
    "SparseInputValue": _input,
    "Mean": _statistic,
    "InvStdDev": _statistic,
    "Times": _times,
    "TransposeTimes": _times,
    "QuantizedTimes": _quantized_times,
    "TransposeDimensions": _transpose,
    "PastValue": _delay,
    "FutureValue": _delay,
    "Reshape": _reshape,
    "LegacyReshape": _legacy_reshape,
    "Slice": _slice,
    "RowStack": _row_stack,
    "RowRepeat": lambda body: {"count": body.reader.u64()},
    "ReduceElements": _reduce,
    "Crop": _crop,
    "Convolution": _convolution,
    "Pooling": _windows,
    "MaxUnpooling": _windows,
    "MaxPooling": _old_pooling,
    "AveragePooling": _old_pooling,
    "ROIPooling": _roi_pooling,
    "BatchNormalization": _batch_normalization,
    "Dropout": _random_state,
    "RandomSample": _random_sample,
    "RandomSampleInclusionFrequency": _random_sample,
    "NoiseContrastiveEstimation": _noise_contrastive,
    "NCEBasedCrossEntropyWithSoftmax": _noise_contrastive,
    "OptimizedRNNStack": _rnn_stack,
    "EditDistanceError": _edit_distance,
    "ForwardBackward": lambda body: {"delayConstraint": body.reader.i32(), "blank": body.reader.u64()},
    "LatticeSequenceWithSoftmax": _lattice,
    "Trace": _trace,
    "EnvironmentInput": _text("propertyName"),
    "Where": _text("dynamicAxisName", 11),
    "ToSequence": _text("dynamicAxisName"),
    "UnpackSequence": lambda body: {"padding": body.reader.f64(), "noMask": body.reader.boolean()},
}
"""By operation, the function that reads its body."""

EMPTY = frozenset((
    "Abs", "Acos", "Asin", "CRF", "ClassBasedCrossEntropyWithSoftmax", "ClassificationError", "Clip", "CosDistance",
    "CosDistanceWithNegativeSamples", "Cosh", "Cosine", "CrossEntropy", "CrossEntropyWithSoftmax", "DiagTimes",
    "Diagonal", "DummyCriterion", "DynamicAxis", "ElementTimes", "EpochAccumulator", "Equal", "Exp", "Floor",
    "GatherPacked", "Greater", "GreaterEqual", "Hardmax", "If", "KhatriRaoProduct", "LabelsToGraph", "LambdaRank",
    "Less", "LessEqual", "Log", "LogPlus", "LogSoftmax", "Logistic", "LookupTable", "MatrixL1Reg", "MatrixL2Reg",
    "Minus", "NDCG1Eval", "Negate", "NotEqual", "PackedIndex", "Pass", "PerDimMeanVarDeNormalization",
    "PerDimMeanVarNormalization", "Plus", "Reciprocal", "ReconcileDynamicAxis", "RectifiedLinear", "ScatterPacked",
    "SequenceDecoder", "SequenceWithSoftmax", "Sigmoid", "Sin", "Sinh", "Softmax", "Sqrt", "SquareError",
    "StableSigmoid", "StopGradient", "StraightThrough", "SumColumnElements", "SumElements", "Tanh",
))  # fmt: skip
"""Operations whose nodes hold nothing but their inputs."""
