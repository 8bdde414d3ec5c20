"""What `new ComputationNode [ operation = '...' ]` can make: each operation with the attributes that it looks up.

An attribute has the name under which a program gives it (as a member of the record, or a parameter of the function
around) and the name of the option of the node (`cntkpy.networks.nodes`) that it becomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

INTEGER, REAL, BOOLEAN, TEXT = "integer", "real", "boolean", "text"
INTEGERS, BOOLEANS = "integers", "booleans"
SECTION = "section"
"""Types of attributes; those of several values take a number or an array, nested or not;
a section is a record, read as the text of a section of the configuration."""

REQUIRED: Any = object()


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operation.

    Args:
        name: its name in BrainScript.
        option: the name of the node's option.
        type: how its value is read.
        default: the value when no name is found; REQUIRED if it must be there.
    """

    name: str
    option: str
    type: str
    default: Any = REQUIRED


@dataclass(frozen=True)
class Operation:
    """One operation.

    Args:
        name: as a program writes it.
        node_kind: the node's kind in `cntkpy.networks.nodes`, if it has another name.
        attributes: what it looks up, in the order of evaluation.
        later: its inputs are evaluated after all members of the network.
        nodes_only: a number among its inputs does not become a constant.
        shape: "" for a node whose shape follows from its inputs; "input", "parameter" for those that have their own.
    """

    name: str
    node_kind: str = ""
    attributes: tuple[Attribute, ...] = ()
    later: bool = False
    nodes_only: bool = False
    shape: str = ""

    @property
    def kind_name(self) -> str:
        """The node's kind."""
        return self.node_kind or self.name


def _a(name: str, option: str, type_: str, default: Any = REQUIRED) -> Attribute:
    return Attribute(name, option, type_, default)


_WINDOWS = (
    _a("stride", "stride", INTEGERS),
    _a("autoPadding", "autoPadding", BOOLEANS),
    _a("lowerPad", "lowerPad", INTEGERS),
    _a("upperPad", "upperPad", INTEGERS),
    _a("imageLayout", "imageLayout", TEXT),
)
_LEGACY_WINDOWS = (
    _a("windowWidth", "windowWidth", INTEGER),
    _a("windowHeight", "windowHeight", INTEGER),
    _a("horizontalSubsample", "strideWidth", INTEGER),
    _a("verticalSubsample", "strideHeight", INTEGER),
    _a("imageLayout", "imageLayout", TEXT),
)
_DELAY = (
    _a("timeStep", "timeStep", INTEGER),
    _a("defaultHiddenActivation", "defaultHiddenActivity", REAL),
)
_SAMPLES = (
    _a("numSamples", "numSamples", INTEGER),
    _a("sampleWithReplacement", "sampleWithReplacement", BOOLEAN),
)

_PLAIN = [
    "Plus",
    "Minus",
    "ElementTimes",
    "Negate",
    "Reciprocal",
    "Abs",
    "Exp",
    "Log",
    "Floor",
    "Sigmoid",
    "Tanh",
    "Sqrt",
    "Cosine",
    "Sin",
    "RectifiedLinear",
    "LogSoftmax",
    "Hardmax",
    "Softmax",
    "Pass",
    "StopGradient",
    "Assign",
    "Dropout",
    "Clip",
    "LogPlus",
    "ElementPower",
    "DiagTimes",
    "Less",
    "Equal",
    "Greater",
    "GreaterEqual",
    "NotEqual",
    "LessEqual",
    "If",
    "TransposeTimes",
    "SumElements",
    "SumColumnElements",
    "MatrixL1Reg",
    "MatrixL2Reg",
    "KhatriRaoProduct",
    "CosDistance",
    "CosDistanceWithNegativeSamples",
    "Mean",
    "InvStdDev",
    "PerDimMeanVarNormalization",
    "PerDimMeanVarDeNormalization",
    "CrossEntropyWithSoftmax",
    "ClassificationError",
    "CrossEntropy",
    "SquareError",
    "Logistic",
    "ClassBasedCrossEntropyWithSoftmax",
    "LambdaRank",
    "NDCG1Eval",
    "LabelsToGraph",
    "DummyCriterion",
    "LookupTable",
    "Diagonal",
    "EpochAccumulator",
    "GatherPacked",
    "PackedIndex",
    "ScatterPacked",
    "Where",
    "ToSequence",
    "ToSequenceLike",
    "SampleNumber",
    "AdditiveAttention",
    "AttentionWeights",
    "DotProductAttention",
    "ReconcileDynamicAxis",
    "SequenceWithSoftmax",
    "NCEBasedCrossEntropyWithSoftmax",
]
"""Operations that look up nothing but their inputs."""

_ALL = (
    Operation("InputValue", attributes=(_a("dynamicAxis", "dynamicAxis", TEXT, ""),), shape="input"),
    Operation("SparseInputValue", attributes=(_a("dynamicAxis", "dynamicAxis", TEXT, ""),), shape="input"),
    Operation("LearnableParameter", shape="parameter"),
    Operation("EnvironmentInput", attributes=(_a("propertyName", "propertyName", TEXT),)),
    Operation("DynamicAxis"),
    *(Operation(name) for name in _PLAIN),
    Operation(
        "RandomLike",
        attributes=(
            _a("distribution", "distribution", TEXT),
            _a("first", "first", REAL),
            _a("second", "second", REAL),
            _a("seed", "seed", INTEGER, 0.0),
        ),
    ),
    Operation(
        "UnpackSequence",
        attributes=(
            _a("steps", "steps", INTEGER, 0.0),
            _a("padding", "padding", REAL, 0.0),
            _a("mask", "mask", BOOLEAN, False),
        ),
    ),
    Operation("UnpackBatch", attributes=(_a("count", "count", INTEGER, 0.0),)),
    Operation("ToBatch", attributes=(_a("oneStep", "oneStep", BOOLEAN, False),)),
    Operation("RepeatSteps", attributes=(_a("factor", "factor", REAL, 2.0),)),
    Operation(
        "Times",
        attributes=(
            _a("outputRank", "outputRank", INTEGER, 1),
            _a("inferInputRankToMap", "inferInputRankToMap", INTEGER, -1),
        ),
    ),
    Operation(
        "ReduceElements",
        attributes=(_a("axis", "axis", INTEGER), _a("reductionOp", "reductionOp", TEXT)),
    ),
    Operation("ElementFunction", attributes=(_a("function", "function", TEXT),)),
    Operation("ReduceMinibatch", attributes=(_a("reductionOp", "reductionOp", TEXT),)),
    Operation(
        "TopK",
        attributes=(_a("k", "k", INTEGER), _a("axis", "axis", INTEGER), _a("numbers", "numbers", BOOLEAN)),
    ),
    Operation(
        "Slice",
        attributes=(
            _a("beginIndex", "beginIndex", INTEGER),
            _a("endIndex", "endIndex", INTEGER),
            _a("axis", "axis", INTEGER),
        ),
    ),
    Operation("RowStack", nodes_only=True),
    Operation("RowRepeat", attributes=(_a("numRepeats", "count", INTEGER),)),
    Operation(
        "TransposeDimensions",
        attributes=(_a("axis1", "axis1", INTEGER), _a("axis2", "axis2", INTEGER)),
    ),
    Operation(
        "Reshape",
        node_kind="NewReshape",
        attributes=(
            _a("dims", "dims", INTEGERS),
            _a("beginAxis", "beginAxis", INTEGER),
            _a("endAxis", "endAxis", INTEGER),
        ),
    ),
    Operation(
        "LegacyReshape",
        node_kind="Reshape",
        attributes=(
            _a("numRows", "numRows", INTEGER),
            _a("imageWidth", "imageWidth", INTEGER),
            _a("imageHeight", "imageHeight", INTEGER),
            _a("imageChannels", "imageChannels", INTEGER),
            _a("imageLayout", "imageLayout", TEXT),
        ),
    ),
    Operation("ElementFunction", attributes=(_a("function", "function", TEXT),)),
    Operation(
        "Crop",
        attributes=(_a("xOffset", "offsetX", INTEGER, None), _a("yOffset", "offsetY", INTEGER, None)),
    ),
    Operation(
        "Convolution",
        attributes=(
            _a("kernelDims", "kernelShape", INTEGERS),
            _a("mapDims", "mapCount", INTEGERS),
            _a("stride", "stride", INTEGERS),
            _a("sharing", "sharing", BOOLEANS),
            *_WINDOWS[1:4],
            _a("transpose", "transpose", BOOLEAN),
            _a("imageLayout", "imageLayout", TEXT),
            _a("maxTempMemSizeInSamples", "maxTempMemSizeInSamples", INTEGER, 0),
            _a("dilation", "dilation", INTEGERS, (1,)),
            _a("outputShape", "outputShape", INTEGERS, (0,)),
        ),
    ),
    Operation(
        "Pooling",
        attributes=(
            _a("poolKind", "kind", TEXT),
            _a("kernelDims", "kernelShape", INTEGERS),
            *_WINDOWS,
            _a("ceilOutDim", "ceilOutDim", BOOLEAN, False),
            _a("includePad", "includePad", BOOLEAN, False),
        ),
    ),
    Operation("MaxUnpooling", attributes=(_a("kernelDims", "kernelShape", INTEGERS), *_WINDOWS)),
    Operation("MaxPooling", attributes=_LEGACY_WINDOWS),
    Operation("AveragePooling", attributes=_LEGACY_WINDOWS),
    Operation("ROIPooling", attributes=(_a("dims", "outputShape", INTEGERS), _a("spatialScale", "spatialScale", REAL))),
    Operation(
        "BatchNormalization",
        attributes=(
            _a("spatial", "spatial", BOOLEAN),
            _a("normalizationTimeConstant", "normalizationTimeConstant", REAL),
            _a("blendTimeConstant", "blendTimeConstant", REAL),
            _a("epsilon", "epsilon", REAL),
            _a("useCntkEngine", "engine", BOOLEAN),
            _a("imageLayout", "imageLayout", TEXT),
            _a("disableRegularization", "disableRegularization", BOOLEAN, False),
        ),
    ),
    Operation("PastValue", attributes=(_a("dims", "rows", INTEGERS, 0.0), *_DELAY), later=True),
    Operation("FutureValue", attributes=(_a("dims", "rows", INTEGERS, 0.0), *_DELAY), later=True),
    Operation(
        "OptimizedRNNStack",
        attributes=(
            _a("hiddenDims", "hiddenDims", INTEGER),
            _a("numLayers", "numLayers", INTEGER),
            _a("bidirectional", "bidirectional", BOOLEAN),
            _a("recurrentOp", "recurrentOp", TEXT),
            _a("axis", "axis", INTEGER, -1),
        ),
    ),
    Operation(
        "Trace",
        nodes_only=True,
        attributes=(
            _a("say", "say", TEXT),
            _a("logFrequency", "logFrequency", INTEGER),
            _a("logFirst", "logFirst", INTEGER),
            _a("logGradientToo", "logGradientToo", BOOLEAN),
            _a("onlyUpToRow", "onlyUpToRow", INTEGER),
            _a("onlyUpToT", "onlyUpToT", INTEGER),
            _a("format", "format", SECTION, ""),
        ),
    ),
    Operation(
        "ForwardBackward",
        attributes=(
            _a("blankTokenId", "blankTokenId", INTEGER),
            _a("delayConstraint", "delayConstraint", INTEGER, -1),
        ),
    ),
    Operation(
        "EditDistanceError",
        attributes=(
            _a("subPen", "subPen", REAL),
            _a("delPen", "delPen", REAL),
            _a("insPen", "insPen", REAL),
            _a("squashInputs", "squashInputs", BOOLEAN),
            _a("ignored", "tokensToIgnore", INTEGERS),
        ),
    ),
    Operation("RandomSample", attributes=_SAMPLES, nodes_only=True),
    Operation("RandomSampleInclusionFrequency", attributes=_SAMPLES, nodes_only=True),
    Operation("Shift"),
    Operation("TimeReverse"),
    Operation("GMMLogLikelihood"),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}
