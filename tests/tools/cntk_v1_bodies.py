"""The body of every node of CNTK's first binary format, as each version writes it, for tests.

`bodies(version)` gives for each operation its bytes and some of what a reader must find in them.
"""

import cntk_v1_writer as w

NEWEST = 30
SINCE = {
    "LambdaRank": 15,
    "NDCG1Eval": 15,
    "Where": 11,
    "StopGradient": 29,
    "LatticeSequenceWithSoftmax": 30,
    "BatchNormalization": 1,
    "ROIPooling": 10,
    "Pooling": 5,
    "MaxUnpooling": 9,
}
"""Versions in which an operation appeared, as far as that matters."""

EMPTY = [
    "Plus", "Minus", "ElementTimes", "Negate", "Reciprocal", "Abs", "Sqrt", "Exp", "Log", "LogPlus", "Sigmoid",
    "Tanh", "RectifiedLinear", "Cosine", "Sin", "Floor", "Clip", "If", "Less", "LessEqual", "Greater",
    "GreaterEqual", "Equal", "NotEqual", "Softmax", "LogSoftmax", "Hardmax", "SumElements", "SumColumnElements",
    "MatrixL1Reg", "MatrixL2Reg", "KhatriRaoProduct", "CosDistance", "CosDistanceWithNegativeSamples", "Diagonal",
    "LookupTable", "CrossEntropyWithSoftmax", "CrossEntropy", "SquareError", "Logistic", "ClassificationError",
    "ClassBasedCrossEntropyWithSoftmax", "DummyCriterion", "PerDimMeanVarNormalization",
    "PerDimMeanVarDeNormalization", "ReconcileDynamicAxis", "DiagTimes", "PackedIndex", "GatherPacked",
    "ScatterPacked", "DynamicAxis", "EpochAccumulator", "LambdaRank", "NDCG1Eval", "SequenceWithSoftmax",
    "StopGradient", "Pass", "LabelsToGraph", "Sinh", "Cosh", "Asin", "Acos", "StableSigmoid", "StraightThrough",
]  # fmt: skip

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
}


def byte_text(value):
    return value.encode() + b"\0"


def element(value, size):
    return w.f64(value) if size == 8 else w.f32(value)


def windows(v, kind):
    """Convolution and pooling since version 5."""
    body = w.shape(3, 2) + w.shape(4) + w.shape(2, 1) + w.booleans(True) + w.booleans(True, False)
    body += w.shape(0) + w.shape(1) + w.i32(kind, 1) + w.u64(9)
    body += w.boolean(False) if v >= 9 else b""
    body += w.shape(5, 6) if v >= 20 else b""
    body += w.boolean(True) if v >= 21 else b""
    body += w.boolean(True) if v >= 23 else b""
    found = {
        "kernelShape": (3, 2),
        "stride": (2, 1),
        "autoPadding": (True, False),
        "upperPad": (1,),
        "kind": ("none", "max", "average")[kind],
        "outputShape": (5, 6) if v >= 20 else (),
        "ceilOutDim": v >= 21,
        "includePad": v >= 23,
        "imageLayout": "CHW",
    }
    return body, found


def convolution(v):
    if v < 5:
        body = w.u64(3, 2, 2, 1) + w.u32(4, 1) + w.boolean(True) + w.u64(9)
        return body, {"kernelShape": (3, 2, 1), "stride": (2, 1, 1), "autoPadding": (True,), "twoD": True}
    body, found = windows(v, 0)
    body += w.boolean(True) + (w.shape(2, 2) if v >= 18 else b"")
    return body, {**found, "twoD": True, **({"dilation": (2, 2)} if v >= 18 else {})}


def batch_normalization(v):
    if v < 6:
        body = w.i32(0x10004, 0x10001) + w.boolean(False, True) + w.f64(100) + w.i32(1) + w.u64(2) + w.f64(0.5)
        return body + w.boolean(True), {"spatial": True, "normalizationTimeConstant": 100, "samples": 32}
    count = w.boolean(True) if v == 19 else w.u64(48)
    body = w.boolean(True) + w.f64(100) + w.f64(7) + w.i32(0) + count + w.f64(0.5) + w.boolean(False)
    samples = 0 if v == 19 else 48 if v >= 13 else 768
    return body, {"blendTimeConstant": 7, "samples": samples, "epsilon": 0.5, "imageLayout": "HWC", "ownEngine": False}


def lattice(texts):
    return b"".join(map(w.text, texts)) + w.f64(1) * 6 + w.boolean(True, False)


def trace():
    body = w.text("look") + w.u64(1, 2) + w.boolean(True, False) + w.text("map") + w.boolean(True, False)
    texts = ["pro", "epi", "\n", "", "", " ", "\n", "%.3f"]
    return body + b"".join(map(byte_text, texts)) + w.u64(3, 4), {"say": "look", "onlyUpToRow": 3, "onlyUpToT": 4}


def reduction(v):
    body = (w.i32(2, 1, -2) if v >= 27 else w.i32(1)) + w.text("LogSum") + (w.boolean(False) if v >= 24 else b"")
    return body, {"reduction": "LogSum", "keepDimensions": v < 24}


def sliced(v):
    body = w.i32(1) if v >= 22 else b""
    body += w.i64(-2, 1) + (w.i32(1) if v >= 3 else b"") + (w.i32(3) if v >= 27 else b"")
    return body, {"slices": ((("static", 0), -2, -1, 3 if v >= 27 else 1),)}


def random_state(v):
    return w.u64(11, 12) if v >= 16 else b""


def bodies(v, size=4):
    """By operation: the body as version `v` writes it, and what a reader must find."""
    rank = (w.u64(2) if v >= 3 else b"") + (w.i32(-1) if v >= 12 else b"")
    delay = w.i32(2) + (w.shape(3, 2) if v > 3 else w.u64(3, 1)) + (element(0.5, size) if v >= 2 else b"")
    axes = w.i32(2, 3) if v >= 3 else b""
    pools = {1: windows(v, 1), 2: windows(v, 2)}
    sample = w.boolean(True) + w.u64(5) + random_state(v)
    state = {"seed": 11, "offset": 12} if v >= 16 else {}
    rois = w.shape(6, 6) + (w.i32(2) + w.f64(0.25) if v >= 26 else b"")
    stack = w.u64(1, 2, 3) + w.text("lstm") + (w.i32(2) if v >= 14 else b"")
    result = {name: (b"", {}) for name in EMPTY}
    result |= {
        "Times": (rank, {"outputRank": 2 if v >= 3 else 1}),
        "TransposeTimes": (rank, {"outputRank": 2 if v >= 3 else 1}),
        "QuantizedTimes": (rank + w.u64(3, 4), {"shifts": (3, 4)}),
        "TransposeDimensions": (axes, {"axes": (("static", v >= 3), ("static", 1 + (v >= 3)))}),
        "PastValue": (delay, {"timeStep": 2}),
        "FutureValue": (delay, {"timeStep": 2}),
        "Reshape": (w.i32(2, 0) + w.shape(4, 0), {"begin": ("static", 1), "end": ("end", 0), "newShape": (4, 0)}),
        "LegacyReshape": (w.u64(6) + w.old_shape(3, 2, 1), {"rows": 6, "image": (3, 2, 1)}),
        "Slice": sliced(v),
        "RowStack": (w.i32(2) if v >= 3 else b"", {"axis": ("static", 1 if v >= 3 else 0)}),
        "RowRepeat": (w.u64(3), {"count": 3}),
        "ReduceElements": reduction(v),
        "Crop": (w.f64(1) + w.f64(2), {"offsets": (1.0, 2.0)}),
        "Convolution": convolution(v),
        "Pooling": pools[1],
        "MaxUnpooling": pools[2],
        "MaxPooling": (w.u32(2, 0) + w.u64(3, 4, 5), {"kernelShape": (2, 3), "stride": (4, 5), "imageLayout": "HWC"}),
        "AveragePooling": (w.u32(2, 1) + w.u64(3, 4, 5), {"kernelShape": (2, 3), "imageLayout": "CHW"}),
        "ROIPooling": (rois, {"outputShape": (6, 6), "spatialScale": 0.25 if v >= 26 else 0.0625}),
        "BatchNormalization": batch_normalization(v),
        "Dropout": (random_state(v), state),
        "RandomSample": (sample, {"numSamples": 5, **state}),
        "RandomSampleInclusionFrequency": (sample, {"sampleWithReplacement": True, **state}),
        "NoiseContrastiveEstimation": (w.i32(2), {"evaluationMode": 2}),
        "OptimizedRNNStack": (stack, {"hiddenDims": 3, "recurrentOp": "lstm", "axis": 2 if v >= 14 else -1}),
        "EditDistanceError": (
            w.f32(1) + w.f32(2) + w.f32(3) + w.boolean(True) + w.u64(2, 8, 9),
            {"insPen": 3, "tokensToIgnore": (8, 9)},
        ),
        "ForwardBackward": (w.i32(-1) + w.u64(4), {"delayConstraint": -1, "blankTokenId": 4}),
        "LatticeSequenceWithSoftmax": (lattice("abcde"), {"texts": tuple("abcde")}),
        "Trace": trace(),
        "EnvironmentInput": (w.text("isTraining"), {"propertyName": "isTraining"}),
        "Where": (w.text("axis") if v >= 11 else b"", {"dynamicAxisName": "axis" if v >= 11 else ""}),
        "ToSequence": (w.text("axis"), {"dynamicAxisName": "axis"}),
        "UnpackSequence": (w.f64(0.5) + w.boolean(True), {"padding": 0.5, "noMask": True}),
    }
    for alias, name in ALIASES.items():
        result[alias] = result[name]
    return {name: body for name, body in result.items() if v >= SINCE.get(name, 1)}
