"""Damages model files of CNTK in many ways; whatever happens, reading them gives a network or a located error.

By hand, a long run: `python tests/tools/cntk_mutations.py 200000 [SEED]`.
"""

import sys
import tracemalloc
from collections import Counter

import cntk_v1_bodies as b
import cntk_v1_writer as w
import cntk_v2_writer as v
import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.cntk_binary.load import read_cntk

MOST_MEMORY = 8_000_000


def windows(version, kind, *kernel):
    """Windows as convolution and pooling have them since version 5, in a form that can be used."""
    body = w.shape(*kernel) + w.shape(2) + w.shape(1, 1) + w.booleans(True) + w.booleans(True, True, False)
    body += w.shape(0) + w.shape(0) + w.i32(kind, 1) + w.u64(0)
    body += w.boolean(False) if version >= 9 else b""
    body += w.shape(0) if version >= 20 else b""
    return body + bytes((version >= 21) + (version >= 23))


def first_format(version):
    """A network with a layer, an image, a loop, statistics and criteria."""
    f = w.Writer(version)
    f.parameter("A", np.arange(12.0).reshape(3, 4))
    f.parameter("K", np.ones((2, 18)))
    for name in "sbmv":
        f.parameter(name, [[0.5]] * 3)
    f.input("x", 4)
    f.input("l", 3)
    f.input("i", 6, 5, 2)
    rank = (w.u64(1) if version >= 3 else b"") + (w.i32(-1) if version >= 12 else b"")
    f.node("Times", "t", rank, "A x")
    delay = w.i32(1) + (w.shape(3) if version > 3 else w.u64(3, 1)) + (w.f32(0.1) if version >= 2 else b"")
    f.node("PastValue", "p", delay, "n")
    body = w.f64(100) + w.f64(7) + w.i32(1) + (w.boolean(True) if version == 19 else w.u64(48)) + w.f64(0.5)
    body = w.boolean(False) + body + w.boolean(True)
    if version < 6:
        body = w.i32(0x10004, 0x10001) + w.boolean(False, False) + w.f64(100) + w.i32(1) + w.u64(2) + w.f64(0.5)
        body += w.boolean(True)
    f.node("BatchNormalization", "bn", body, "t s b m v")
    f.node("Plus", "h", inputs="bn p")
    f.node("Tanh", "n", inputs="h")
    f.node("CrossEntropyWithSoftmax", "ce", inputs="l n")
    f.node("ErrorPrediction", "err", inputs="l n")
    convolution = windows(version, 0, 3, 3, 2) + w.boolean(False) + (w.shape(1) if version >= 18 else b"")
    if version < 5:
        convolution = w.u64(3, 3, 1, 1) + w.u32(2, 1) + w.boolean(True) + w.u64(0)
    f.node("Convolution", "c", convolution, "K i")
    f.node("MaxPooling", "pool", w.u32(2, 1) + w.u64(2, 2, 2), "i")
    if version >= 5:
        f.node("Pooling", "pool2", windows(version, 2, 2, 2), "i")
    piece = (w.i32(1) if version >= 22 else b"") + w.i64(1, 2) + (w.i32(1) if version >= 3 else b"")
    f.node("RowSlice", "slice", piece + (w.i32(1) if version >= 27 else b""), "n")
    f.node("Mean", "mean", w.boolean(True) + w.matrix([[1.0]] * 4), "x")
    count, keep = w.i32(1) if version >= 27 else b"", w.boolean(False) if version >= 24 else b""
    f.node("ReduceElements", "sum", count + w.i32(0) + w.text("Sum") + keep, "x")
    f.node("TransposeDimensions", "turned", w.i32(1, 2) if version >= 3 else b"", "i")
    f.node("Reshape", "image", w.i32(1, 0) + w.shape(3, 1, 1), "n")
    f.node("Dropout", "d", b.random_state(version), "n")
    f.parameter("weights", np.ones((2, 32)))
    stack = w.u64(0, 1, 2) + w.text("lstm") + (w.i32(-1) if version >= 14 else b"")
    f.node("OptimizedRNNStack", "stack", stack, "weights x")
    f.node("Trace", "traced", b.trace()[0], "n")
    f.node("EnvironmentInput", "training", w.text("isTraining"), "")
    f.node("Crop", "crop", w.f64(np.finfo(float).max) * 2, "i i")
    f.parameter("chances", np.ones((5, 1)))
    f.node("RandomSample", "sample", w.boolean(True) + w.u64(3) + b.random_state(version), "chances")
    if 10 <= version < 26:
        f.input("regions", 4, 3)
        f.node("ROIPooling", "rois", w.shape(2, 2), "i regions")
    f.groups = {
        "FeatureNodes": ["x", "i"],
        "LabelNodes": ["l"],
        "CriterionNodes": ["ce"],
        "EvalNodes": ["err"],
        "OutputNodes": ["n"],
    }
    return f.content


def later_format(encoder=None):
    """The same kinds of things."""
    f = v.Writer()
    f.input("x", 4)
    f.input("l", 3)
    f.input("i", 6, 5, 2)
    a, k = f.parameter("A", np.ones((3, 4))), f.parameter("K", np.ones((3, 3, 2, 2)))
    start = f.constant("start", 0.1)
    formal = f.placeholder("formal", 4)
    f.function(31, "Times1", a, formal, outputRank=1)
    layer = f.block("Block2", "Dense", "Times1", {formal: "Input_x"}, "layer")
    past = f.function(37, "Past3", f.placeholder("Tanh5_Output_0", 3), start, offset=1)
    total = f.function(19, "Plus4", layer, past)
    hidden = f.function(2, "Tanh5", total, name="h")
    part = f.function(
        14, "Slice6", hidden, axis=v.static(0), beginIndex=v.Int(0), endIndex=v.Int(-1), sliceStrides=v.Int(1)
    )
    stack = f.function(43, "Splice7", part, hidden, axis=v.static(-1))
    f.function(35, "Loss8", hidden, "Input_l", name="ce")
    image = f.function(
        33,
        "Conv9",
        k,
        "Input_i",
        strides=v.Shape((2, 2)),
        autoPadding=[True, True, False],
        sharing=[True],
        lowerPad=v.Shape((0,)),
        upperPad=v.Shape((0,)),
        transpose=False,
    )
    pool = f.function(
        17,
        "Pool10",
        image,
        poolingType=1,
        poolingWindowShape=v.Shape((2, 2)),
        strides=v.Shape((1, 1)),
        autoPadding=[False],
    )
    flat = f.function(16, "Reshape11", pool, newShape=v.Shape((v.INFERRED,)), beginAxis=v.static(0), endAxis=v.END)
    turned = f.function(12, "Turn12", image, axis1=v.static(0), axis2=v.static(1))
    squeezed = f.function(88, "Squeeze13", turned)
    power = f.function(69, "Pow14", flat, f.constant("two", 2))
    summed = f.function(39, "Sum15", power, axis=v.ALL_STATIC, reductionOpName="Sum")
    weights = f.parameter("weights", np.ones((2, 32)))
    f.function(49, "Stack18", "Input_x", weights, bidirectional=False, numLayers=1, hiddenSize=2, recurrentOp="lstm")
    f.function(84, "Crop19", "Input_i", "Input_i")
    f.function(
        44,
        "Combine16",
        "Stack18_Output_0",
        "Crop19_Output_0",
        stack,
        "Loss8_Output_0",
        squeezed,
        summed,
        f.function(65, "Elu17", flat, alpha=2.0),
    )
    return f.content("Combine16", encoder)


def originals():
    """Whole files: networks of every version, and of the later format."""
    files = [first_format(version) for version in range(1, b.NEWEST + 1)]
    return files + [later_format(), later_format(), later_format(v.Encoder(1, packed=False, junk=True))] * 4


def one_body(operation, body, version, inputs):
    """A network of one node over as many inputs."""
    f = w.Writer(version)
    names = [f.input(f"x{i}", 6, 5, 2) for i in range(inputs)]
    f.node(operation, "z", body, " ".join(names))
    f.groups = {"FeatureNodes": names, "OutputNodes": ["z"]}
    return f.content


ATTRIBUTES = {
    "offset": 1, "outputRank": 1, "alpha": 2.0, "numSamples": 2, "allowDuplicates": True, "bidirectional": False,
    "axis": v.static(0), "axis1": v.static(0), "axis2": v.static(1), "axisVec": [v.static(0), v.static(1)],
    "beginIndex": v.Int(0), "endIndex": v.Int(2), "sliceStrides": v.Int(1), "beginAxis": v.static(0),
    "endAxis": v.END, "newShape": v.Shape((v.INFERRED,)), "reductionOpName": "Max", "reductionKeepDimensions": True,
    "poolingType": 1, "poolingWindowShape": v.Shape((2, 2)), "unpoolingWindowShape": v.Shape((2, 2)),
    "kernelShape": v.Shape((2, 2, 2)), "strides": v.Shape((1, 1)), "sharing": [True], "autoPadding": [True, False],
    "lowerPad": v.Shape((0,)), "upperPad": v.Shape((0,)), "dilation": v.Shape((1,)), "groups": 1, "transpose": False,
    "outputShape": v.Shape((3, 3)), "roiOutputShape": v.Shape((2, 2)), "spatialScale": 0.5, "spatial": True,
    "normalizationTimeConstant": 10.0, "blendTimeConstant": 1.0, "epsilon": 1e-3, "numLayers": 1, "hiddenSize": 2,
    "recurrentOp": "lstm", "dropoutRate": 0.5, "fillValue": 1.0, "rngSeed": 5, "rngOffset": 0, "numClass": 3,
    "oneHotAxis": v.static(0), "oneHotOutputSparse": False, "newDataType": 1, "newDynamicAxes": [],
    "substitutionPenalty": v.Float(1), "paddingValue": 0.5, "PaddingHead": v.Shape((1,)), "PaddingFoot": v.Shape((1,)),
    "randomDistributionType": "uniform", "randomDistributionArgs": [0.0, 1.0], "offsetVec": v.Shape((0, 0)),
}  # fmt: skip
"""What functions of the later format may be told."""


def one_function(number, inputs, some, **more):
    """A function of the later format over as many inputs, with all attributes or with some, and with more."""
    f = v.Writer()
    for i in range(inputs):
        f.input(f"x{i}", 6, 5, 2)
    keys = [key for at, key in enumerate(ATTRIBUTES) if (at + some) % 3 or not some]
    keys = [key for key in keys if not (some and key.endswith("Vec"))]
    given = [f"Input_x{i}" for i in range(inputs)]
    root = f.function(number, "F", *given, **{**{key: ATTRIBUTES[key] for key in keys}, **more})
    return f.content(root.removesuffix("_Output_0"))


def each_operation():
    """Files of one node each, of every operation of both formats, the first with its bodies of several versions."""
    files = []
    for version in (1, 2, 5, 9, 12, 16, 19, 22, 25, 27, b.NEWEST):
        for operation, (body, _) in b.bodies(version).items():
            files.append(_usable(lambda n, o=operation, c=body, version=version: one_body(o, c, version, n)))
    for number in range(100):
        files += [_usable(lambda n, number=number, some=some: one_function(number, n, some)) for some in (0, 1, 2)]
    return files


def _usable(make):
    """The file with the number of inputs with which it can be read; with two inputs if none can."""
    for inputs in (1, 2, 3, 4, 5, 6):
        content = make(inputs)
        try:
            read_cntk(content)
        except UserError:
            continue
        return content
    return make(2)


SPECIAL = [
    bytes(8),
    b"\xff" * 8,
    b"\xff" * 4,
    bytes(4),
    b"\1\0\0\0",
    b"\x7f",
    b"\x80",
    b"\0\0\0\x80",
    b"\xff\xff\x7f\x7f",
]


def mutated(content, random):
    """A damaged copy."""
    content = bytearray(content)
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(0, len(content)))
        kind = random.integers(0, 7)
        if kind == 0:
            content[at] = random.integers(0, 256)
        elif kind == 1:
            content[at] ^= 1 << int(random.integers(0, 8))
        elif kind == 2:
            part = SPECIAL[random.integers(0, len(SPECIAL))]
            content[at : at + len(part)] = part
        elif kind == 3:
            content[at : at + int(random.integers(1, 9))] = b""
        elif kind == 4:
            content[at:at] = random.bytes(int(random.integers(1, 9)))
        elif kind == 5:
            other = int(random.integers(0, len(content)))
            content[at:at] = content[other : other + int(random.integers(1, 60))]
        elif random.integers(0, 8) == 0:
            del content[at:]
        if not content:
            content = bytearray(b"B")
    return bytes(content)


def try_mutations(count, seed=0, memory=False, files=None):
    """Read damaged files; return how many could be used, and how many errors of each kind there were.

    files: what is damaged; by default `originals`.

    Raises:
        AssertionError: another error than a located one came out, or too much memory was taken.
    """
    random = np.random.default_rng(seed)
    files = files or originals()
    outcome = Counter()
    for number in range(count):
        content = mutated(files[number % len(files)], random)
        if memory:
            tracemalloc.start()
        try:
            read_cntk(content, "m.dnn")
            outcome["used"] += 1
        except UserError as error:
            text = error.diagnostic.render()
            assert "m.dnn" in text
            outcome["damaged" if "is damaged" in text else "refused"] += 1
        except BaseException as error:
            raise AssertionError(f"mutation {number} of seed {seed}: {type(error).__name__}: {error}") from error
        finally:
            if memory:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert peak < MOST_MEMORY, f"mutation {number} of seed {seed} took {peak:,} bytes"
    return outcome


if __name__ == "__main__":
    for file in originals():
        read_cntk(file)
    many = originals() * 10 + each_operation()
    print(try_mutations(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, files=many))
