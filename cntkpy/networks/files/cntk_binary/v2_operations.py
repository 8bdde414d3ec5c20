"""The operations of CNTK's later format, by number: their names, attributes and inputs in the terms of the first.

The numbers: docs/specification/model-files.md 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cntkpy.networks.files.cntk_binary.dictionary import INFERRED, AxisValue, Table
from cntkpy.networks.files.cntk_binary.records import Axis, BadFile

COMBINE, PASS, BLOCK, NO_OP, CAST = 44, 56, 57, 62, 91

_DYNAMIC, _ALL_STATIC, _END, _ALL = 2147483647, 2147483646, 2147483644, 2147483643
_BATCH = "defaultBatchAxis"

Attributes = dict[str, Any]


def _nothing(table: Table) -> Attributes:
    return {}


@dataclass(frozen=True)
class Operation:
    """An operation.

    Attributes:
        name: its name in the first format, or its own if it is not there.
        attributes: reads its attributes.
        order: positions of its inputs in the first format's order; inputs beyond keep their places.
    """

    name: str
    attributes: Callable[[Table], Attributes] = _nothing
    order: tuple[int, ...] = ()

    def ordered(self, inputs: list[str]) -> list[str]:
        """The inputs in the order of the first format."""
        if len(inputs) < len(self.order):
            return inputs
        return [inputs[i] for i in self.order] + inputs[len(self.order) :]


def axis(value: AxisValue, at: int) -> Axis:
    """An axis as records have it."""
    special = {_ALL_STATIC: "all static", _END: "end", _ALL: "all"}
    if value.index == _DYNAMIC:
        return Axis("batch" if value.name == _BATCH else "sequence")
    if value.index in special:
        return Axis(special[value.index])
    if abs(value.index) > 1000:
        raise BadFile(f"the axis {value.index} is not known", at)
    return Axis("static", value.index)


def is_batch(value: AxisValue) -> bool:
    """Return whether this is the batch axis."""
    return value.name == _BATCH or not value.ordered


# ---- attributes


def _axes(table: Table, one: str, many: str = "axisVec") -> tuple[Axis, ...]:
    value = table.get(many, list, [])
    if not value:
        value = [table.need(one, AxisValue, "a function")]
    if not all(isinstance(value, AxisValue) for value in value):
        raise BadFile(f"'{many}' is not a list of axes", table.at)
    return tuple(axis(value, table.at) for value in value)


def _numbers(table: Table, key: str) -> tuple[int, ...]:
    """A list of numbers, which may be stored as a shape."""
    value = table.entries.get(key)
    if value is None:
        return ()
    if isinstance(value, bool | int):
        return (int(value),)
    values = tuple(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else None
    if values is None or not all(type(v) is int for v in values):
        raise BadFile(f"'{key}' is not a list of numbers", table.at)
    return values


def _booleans(table: Table, key: str, default: bool) -> tuple[bool, ...]:
    value = table.get(key, list, [])
    if not all(isinstance(v, bool) for v in value):
        raise BadFile(f"'{key}' is not a list of bools", table.at)
    return tuple(value) or (default,)


def _transpose(table: Table) -> Attributes:
    if table.get("axisVec", list, []):
        axes = _axes(table, "axis1")
        permutation = tuple(a.number + len(axes) if a.number < 0 else a.number for a in axes)
        if sorted(permutation) != list(range(len(permutation))):
            raise BadFile(f"{permutation} is not an order of the axes", table.at)
        return {"permutation": permutation}
    return {"axes": (*_axes(table, "axis1", ""), *_axes(table, "axis2", ""))}


def _slice(table: Table) -> Attributes:
    axes = _axes(table, "axis")
    if table.get("axisVec", list, []):
        begins, ends = _numbers(table, "beginIndexVec"), _numbers(table, "endIndexVec")
        strides = _numbers(table, "sliceStridesVec")
    else:
        begins, ends = (table.get("beginIndex", int, 0),), (table.get("endIndex", int, 0),)
        strides = _numbers(table, "sliceStrides")
    strides = strides or (1,) * len(axes)
    if not len(axes) == len(begins) == len(ends) == len(strides):
        raise BadFile("the lists of axes, begins and ends of a slice have different lengths", table.at)
    return {"slices": tuple(zip(axes, begins, ends, strides, strict=True))}


def _where(table: Table) -> Attributes:
    """The steps of a condition; without a sequence axis there is one step for each sequence."""
    axes = table.get("newDynamicAxes", list, [])  # an axis that is not known is not the batch
    if not all(isinstance(value, AxisValue) for value in axes):
        raise BadFile("'newDynamicAxes' is not a list of axes", table.at)
    return {"single": bool(axes) and all(value.name == _BATCH for value in axes)}


def _reshape(table: Table) -> Attributes:
    shape = table.get("newShape", tuple, ())
    begin = axis(table.get("beginAxis", AxisValue, AxisValue(0, "", False)), table.at)
    end = axis(table.get("endAxis", AxisValue, AxisValue(_END, "", False)), table.at)
    return {"begin": begin, "end": end, "newShape": tuple(0 if d == INFERRED else d for d in shape)}


def _windows(table: Table, kernel: str) -> Attributes:
    return {
        "kernelShape": _numbers(table, kernel),
        "stride": _numbers(table, "strides") or (1,),
        "sharing": _booleans(table, "sharing", True),
        "autoPadding": _booleans(table, "autoPadding", False),
        "lowerPad": _numbers(table, "lowerPad") or (0,),
        "upperPad": _numbers(table, "upperPad") or (0,),
        "imageLayout": "CHW",
        "transpose": table.get("transpose", bool, False),
        "outputShape": _given(_numbers(table, "outputShape")),
        "ceilOutDim": table.get("ceilOutDim", bool, False),
        "includePad": table.get("includePad", bool, False),
    }


def _given(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape, or nothing if it is to be inferred."""
    return () if not any(shape) or max(shape) >= 2**63 else shape


def _pooling(table: Table) -> Attributes:
    kind = table.get("poolingType", int, 0)
    return {**_windows(table, "poolingWindowShape"), "kind": {0: "max", 1: "average"}.get(kind, str(kind))}


def _convolution(table: Table) -> Attributes:
    return {
        **_windows(table, "kernelShape"),
        "mapShape": (),
        "twoD": False,
        "dilation": _numbers(table, "dilation"),
        "groups": table.get("groups", int, 1),
        "sequential": table.get("sequential", bool, False),
    }


def _reduce(table: Table) -> Attributes:
    return {
        "axes": _axes(table, "axis"),
        "reduction": table.need("reductionOpName", str, "a function ReduceElements"),
        "keepDimensions": table.get("reductionKeepDimensions", bool, True),
    }


def _batch_normalization(table: Table) -> Attributes:
    return {
        "spatial": table.get("spatial", bool, False),
        "normalizationTimeConstant": table.get("normalizationTimeConstant", float, 0.0),
        "blendTimeConstant": table.get("blendTimeConstant", float, 0.0),
        "epsilon": table.get("epsilon", float, 1e-5),
        "ownEngine": not table.get("useCuDNNEngine", bool, False),
        "imageLayout": "CHW",
    }


def _roi_pooling(table: Table) -> Attributes:
    kind = table.get("poolingType", int, 0)
    return {
        "outputShape": _numbers(table, "roiOutputShape"),
        "kind": {0: "max", 1: "average"}.get(kind, str(kind)),
        "spatialScale": table.get("spatialScale", float, 1 / 16),
        "relative": "spatialScale" not in table and "poolingType" not in table,
    }


def _rnn_stack(table: Table) -> Attributes:
    return {
        "bidirectional": table.get("bidirectional", bool, False),
        "numLayers": table.get("numLayers", int, 0),
        "hiddenDims": table.get("hiddenSize", int, 0),
        "recurrentOp": table.get("recurrentOp", str, ""),
        "axis": -1,
    }


def _random_sample(table: Table) -> Attributes:
    return {
        "numSamples": table.get("numSamples", int, 0),
        "sampleWithReplacement": table.get("allowDuplicates", bool, False),
    }


def _squeeze(table: Table) -> Attributes:
    has_axes = bool(table.get("axisVec", list, [])) or "axis" in table
    return {"axes": _axes(table, "axis") if has_axes else ()}


def _crop(table: Table) -> Attributes:
    return {"offsets": tuple(float(n) for n in _numbers(table, "offset")) or (math.nan, math.nan)}


_PLAIN = {
    0: "Negate", 1: "Sigmoid", 2: "Tanh", 3: "RectifiedLinear", 4: "Exp", 5: "Log", 6: "Sqrt", 7: "Floor", 8: "Abs",
    9: "Reciprocal", 10: "Softmax", 11: "Hardmax", 18: "SumElements", 19: "Plus",
    20: "Minus", 21: "ElementTimes", 22: "Equal", 23: "NotEqual", 24: "Less", 25: "LessEqual", 26: "Greater",
    27: "GreaterEqual", 28: "PackedIndex", 34: "SquareError", 42: "If", COMBINE: "Combine",
    51: "LogSoftmax", 52: "LogPlus", 53: "CosDistance", 54: "Sin", 55: "Cosine",
    PASS: "Pass", BLOCK: "Block", 61: "EditDistanceError", NO_OP: "Pass",
    63: "LabelsToGraph", 64: "StopGradient", 66: "ForwardBackward", 67: "CosDistanceWithNegativeSamples",
    68: "OneHot", 69: "Pow", 70: "ToSequence", 71: "ToSequenceLike", 73: "Assign", 74: "Gather",
    75: "StableSigmoid", 76: "RandomDistribution", 77: "Sinh", 78: "Cosh", 79: "UnpackBatch", 80: "ToBatch",
    81: "Asin", 82: "Acos", 83: "Pad", 85: "Atanh", 86: "Asinh", 87: "TopK", 90: "LatticeSequenceWithSoftmax",
    CAST: "Cast", 92: "EyeLikeOp", 93: "CustomProxyOp", 94: "StraightThrough", 95: "Tan", 96: "Atan",
    97: "ConvolutionSequenceShape",
}  # fmt: skip
_SWAP = (1, 0)

OPERATIONS: dict[int, Operation] = {
    **{number: Operation(name) for number, name in _PLAIN.items()},
    15: Operation("Dropout", lambda t: {"dropoutRate": t.get("dropoutRate", float, 0.0)}),
    12: Operation("TransposeDimensions", _transpose),
    13: Operation("Where", _where),
    14: Operation("Slice", _slice),
    16: Operation("Reshape", _reshape),
    17: Operation("Pooling", _pooling),
    29: Operation("GatherPacked", order=_SWAP),
    30: Operation("ScatterPacked", order=(2, 1, 0)),
    31: Operation("Times", lambda t: {"outputRank": t.get("outputRank", int, 1)}),
    32: Operation("TransposeTimes", lambda t: {"outputRank": t.get("outputRank", int, 1)}),
    33: Operation("Convolution", _convolution),
    35: Operation("CrossEntropyWithSoftmax", order=_SWAP),
    36: Operation("ClassificationError", order=_SWAP),
    37: Operation("PastValue", lambda t: {"timeStep": t.get("offset", int, 1)}),
    38: Operation("FutureValue", lambda t: {"timeStep": t.get("offset", int, 1)}),
    39: Operation("ReduceElements", _reduce),
    40: Operation("BatchNormalization", _batch_normalization),
    41: Operation("Clip", order=(1, 2, 0)),
    43: Operation("RowStack", lambda t: {"axis": _axes(t, "axis", "")[0]}),
    45: Operation("RandomSample", _random_sample),
    46: Operation("RandomSampleInclusionFrequency", _random_sample),
    47: Operation("ROIPooling", _roi_pooling),
    48: Operation("Logistic", order=_SWAP),
    49: Operation("OptimizedRNNStack", _rnn_stack, _SWAP),
    50: Operation("ReconcileDynamicAxis", lambda _: {"broadcast": True}),  # Sequence::BroadcastAs is written as it
    59: Operation("LambdaRank", order=(1, 0, 2)),  # CNTK's reference: lambda_rank(output, gain, group), ndcg_at_1 too
    60: Operation("NDCG1Eval", order=(1, 0, 2)),
    58: Operation("MaxUnpooling", lambda t: _windows(t, "unpoolingWindowShape")),
    65: Operation("ELU", lambda t: {"alpha": t.get("alpha", float, 1.0)}),
    72: Operation("UnpackSequence", lambda t: {"padding": t.get("sequenceUnpackPaddingValue", float, 0.0)}),
    84: Operation("Crop", _crop),
    88: Operation("Squeeze", _squeeze),
    89: Operation("ConstantOp", lambda t: {"fillValue": t.get("fillValue", float, 0.0)}),
}
"""By number."""
