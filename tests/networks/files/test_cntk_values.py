"""Networks of CNTK's model files give what the formulas say, evaluated in NumPy, from both formats."""

import cntk_v1_writer as w
import cntk_v2_writer as v
import numpy as np
import pytest
from cntk_models import assert_all_close, evaluate_all

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.files.cntk_binary.load import read_cntk
from cntkpy.networks.files.cntk_binary.operations import BODIES, rule
from cntkpy.networks.nodes.file_support.rules import same

RANDOM = np.random.default_rng(4)
CELLS = 5


def data(*dims, positive=False):
    """Cells of a sequence, in the shapes that users see."""
    values = RANDOM.normal(size=(CELLS, *dims)).round(3)
    return np.abs(values) + 0.1 if positive else values


def first(operation, x, body=b"", version=30, build=None, before="", after="", double=True):
    """A file of the first format with z = operation(before, x, after)."""
    f = w.Writer(version, "double" if double else "float")
    f.input("x", *x.shape[1:])
    if build is not None:
        build(f)
    f.node(operation, "z", body, f"{before} x {after}")
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    return f.content


def later(op, x, build=None, before=(), after=(), **attributes):
    """The same in the later format."""
    f = v.Writer(double=True)
    variable = f.input("x", *x.shape[1:])
    extra = build(f) if build is not None else {}
    links = [*(extra[k] for k in before), variable, *(extra[k] for k in after)]
    f.function(op, "Function7", *links, name="z", **attributes)
    return f.content("Function7")


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def reciprocal(x):
    return np.where(x == 0, 0, 1 / np.where(x == 0, 1, x))


def hardmax(x):
    return (np.arange(x.size) == x.argmax()).astype(float)


UNARY = [
    ("Negate", 0, np.negative),
    ("Sigmoid", 1, lambda x: 1 / (1 + np.exp(-x))),
    ("Tanh", 2, np.tanh),
    ("RectifiedLinear", 3, lambda x: np.maximum(x, 0)),
    ("Exp", 4, np.exp),
    ("Log", 5, lambda x: np.where(x < 1e-37, -85.09999847412109, np.log(np.maximum(x, 1e-37)))),
    ("Sqrt", 6, lambda x: np.sqrt(np.maximum(x, 0))),
    ("Floor", 7, np.floor),
    ("Abs", 8, np.abs),
    ("Reciprocal", 9, reciprocal),
    ("Softmax", 10, softmax),
    ("Hardmax", 11, hardmax),
    ("LogSoftmax", 51, lambda x: np.log(softmax(x))),
    ("Dropout", 15, lambda x: x),
    ("Sin", 54, np.sin),
    ("Cosine", 55, np.cos),
    ("StableSigmoid", 75, lambda x: 1 / (1 + np.exp(-x))),
    ("StopGradient", 64, lambda x: x),
]


@pytest.mark.parametrize(("operation", "op", "formula"), UNARY, ids=[u[0] for u in UNARY])
def test_functions_of_one_operand(operation, op, formula):
    x = data(4)
    x[0, 0] = 0
    expected = np.stack([formula(cell) for cell in x])
    body = w.u64(1, 2) if operation == "Dropout" else b""
    more = {"dropoutRate": 0.5, "rngSeed": 3, "rngOffset": 4} if operation == "Dropout" else {}
    contents = first(operation, x, body), later(op, x, **more)
    assert_all_close(contents, {"x": x}, expected, rtol=1e-12, atol=1e-14)


LATER = [
    ("Sinh", 77, np.sinh),
    ("Cosh", 78, np.cosh),
    ("Asin", 81, np.arcsin),
    ("Acos", 82, np.arccos),
    ("Atanh", 85, np.arctanh),
    ("Asinh", 86, np.arcsinh),
    ("Tan", 95, np.tan),
    ("Atan", 96, np.arctan),
]


@pytest.mark.parametrize(("operation", "op", "formula"), LATER, ids=[u[0] for u in LATER])
def test_functions_of_later_models(operation, op, formula):
    x = np.tanh(data(4))
    expected = np.stack([formula(cell) for cell in x])
    contents = later(op, x), *([first(operation, x)] if operation in ("Sinh", "Cosh", "Asin", "Acos") else ())
    assert_all_close(contents, {"x": x}, expected, rtol=1e-12, atol=1e-14)


BINARY = [
    ("Plus", 19, np.add),
    ("Minus", 20, np.subtract),
    ("ElementTimes", 21, np.multiply),
    ("Equal", 22, lambda x, y: (x == y) * 1.0),
    ("NotEqual", 23, lambda x, y: (x != y) * 1.0),
    ("Less", 24, lambda x, y: (x < y) * 1.0),
    ("LessEqual", 25, lambda x, y: (x <= y) * 1.0),
    ("Greater", 26, lambda x, y: (x > y) * 1.0),
    ("GreaterEqual", 27, lambda x, y: (x >= y) * 1.0),
    ("LogPlus", 52, np.logaddexp),
    ("CosDistance", 53, lambda x, y: np.array([x @ y / np.linalg.norm(x) / np.linalg.norm(y)])),
]


@pytest.mark.parametrize(("operation", "op", "formula"), BINARY, ids=[u[0] for u in BINARY])
def test_functions_of_two_operands(operation, op, formula):
    x, y = data(4), data(4)
    y[:, 1] = x[:, 1]
    expected = np.stack([formula(a, b) for a, b in zip(x, y, strict=True)])

    def build(f):
        if isinstance(f, w.Writer):
            return f.input("y", 4)
        return {"y": f.input("y", 4)}

    contents = first(operation, x, build=build, after="y"), later(op, x, build, after="y")
    assert_all_close(contents, {"x": x, "y": y}, expected, rtol=1e-12)


def parameters(**values):
    """Both writers' parameters of these values."""

    def build(f):
        if isinstance(f, w.Writer):
            for name, value in values.items():
                flat = np.asarray(value).reshape(np.shape(value)[0], -1, order="F")
                f.parameter(name, flat, *np.shape(value))
            return None
        return {name: f.parameter(name, value) for name, value in values.items()}

    return build


TIMES = w.u64(1) + w.i32(-1)


def test_products():
    x, image = data(4), data(3, 2, 4)
    a, b, k = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(5, 3, 2, 4))
    for op, name, matrix, operand, expected in [
        (31, "Times", a, x, x @ a.T),
        (32, "TransposeTimes", b, x, x @ b),
        (31, "Times", k, image, np.einsum("oabc,tabc->to", k, image)),
    ]:
        build = parameters(W=matrix)
        contents = (
            first(name, operand, TIMES, build=build, before="W"),
            later(op, operand, build, before="W", outputRank=1, inferInputRankToMap=v.Int(-1)),
        )
        assert_all_close(contents, {"x": operand}, expected, rtol=1e-12)


def slices(*parts, version=30):
    out = w.i32(len(parts)) if version >= 22 else b""
    for axis, begin, end, stride in parts:
        out += w.i64(begin, end - begin) + w.i32(axis + 1) + (w.i32(stride) if version >= 27 else b"")
    return out


def test_slices():
    x = data(4, 5)

    def one(axis, begin, end):
        return later(14, x, axis=v.static(axis), beginIndex=v.Int(begin), endIndex=v.Int(end), sliceStrides=v.Int(1))

    for (axis, begin, end), expected in [
        ((0, 1, 3), x[:, 1:3]),
        ((0, -3, 0), x[:, -3:]),
        ((1, 0, 2), x[:, :, :2]),
        ((1, 1, -1), x[:, :, 1:-1]),
    ]:
        part = (axis, begin, end, 1)
        contents = [first("Slice", x, slices(part, version=n), n) for n in (3, 21, 22, 26, 27, 30)]
        contents += [one(axis, begin, end), one(axis - 2, begin, end)]
        assert_all_close(contents, {"x": x}, expected)
    contents = [
        first("Slice", x, slices((0, 1, 3, 1), (1, 2, 0, 1), version=version), version) for version in (22, 27, 30)
    ]
    contents.append(
        later(
            14,
            x,
            axisVec=[v.static(0), v.static(-1)],
            beginIndexVec=[v.Int(1), v.Int(2)],
            endIndexVec=[v.Int(3), v.Int(0)],
            sliceStridesVec=[v.Int(1), v.Int(1)],
        )
    )
    assert_all_close(contents, {"x": x}, x[:, 1:3, 2:])


@pytest.mark.parametrize("axis", [0, 1])
def test_stacks(axis):
    x = data(3, 2)
    expected = np.concatenate([x, x], axis=axis + 1)
    contents = (
        first("RowStack", x, w.i32(axis + 1), after="x"),
        later(43, x, lambda f: {"x": "Input_x"}, after="x", axis=v.static(axis)),
        later(43, x, lambda f: {"x": "Input_x"}, after="x", axis=v.static(axis - 2)),
    )
    assert_all_close(contents, {"x": x}, expected)


def test_transposed():
    x = data(3, 2)
    contents = (
        first("TransposeDimensions", x, w.i32(1, 2)),
        first("TransposeDimensions", x, w.i32(0, 0) + w.u64(2, 1, 0)),
        later(12, x, axis1=v.static(0), axis2=v.static(1)),
        later(12, x, axis1=v.static(-1), axis2=v.static(-2)),
        later(12, x, axisVec=[v.static(1), v.static(0)]),
    )
    assert_all_close(contents, {"x": x}, x.swapaxes(1, 2))


def flat(x):
    """Elements of each cell, first axis fastest."""
    return np.stack([cell.reshape(-1, order="F") for cell in x])


def test_reshaped():
    x = data(4, 3)
    whole = {"beginAxis": v.static(0), "endAxis": v.END}
    contents = (
        first("Reshape", x, w.i32(1, 0) + w.shape(2, 3, 2)),
        first("Reshape", x, w.i32(1, 2) + w.shape(2, 2)),
        first("Reshape", x, w.i32(1, 0) + w.shape(6, 0)),
        first("Reshape", x, w.i32(0, 0) + w.shape(12)),
        first("LegacyReshape", x, w.u64(12) + w.old_shape(2, 3, 2)),
        later(16, x, newShape=v.Shape((2, 3, 2)), **whole),
        later(16, x, newShape=v.Shape((6, v.INFERRED)), **whole),
        later(16, x, newShape=v.Shape((v.INFERRED,)), **whole),
        later(16, x, newShape=v.Shape((2, v.INFERRED)), beginAxis=v.static(0), endAxis=v.static(1)),
        later(16, x, newShape=v.Shape((12,))),
    )
    for found in evaluate_all(contents, {"x": x}):
        np.testing.assert_array_equal(flat(found), flat(x))
    network = read_cntk(first("Reshape", x, w.i32(1, 2) + w.shape(2, 2)))
    assert network["z"].shape == (2, 2, 3)
    image = data(2, 1, 3)
    assert read_cntk(later(88, image))["z"].shape[:2] == (2, 3)
    (found,) = evaluate_all([later(88, image)], {"x": image})
    np.testing.assert_array_equal(flat(found), flat(image))


def reduction(axes, name, keep=True, version=30):
    out = w.i32(len(axes)) if version >= 27 else b""
    return out + w.i32(*axes) + w.text(name) + (w.boolean(keep) if version >= 24 else b"")


def test_sums():
    x = data(4)
    contents = (
        first("SumColumnElements", x),
        first("ReduceElements", x, reduction([0], "Sum", False)),
        first("ReduceElements", x, reduction([1], "Sum", version=23), 23),
        later(39, x, axis=v.ALL_STATIC, reductionOpName="Sum", reductionKeepDimensions=False),
        later(39, x, axisVec=[v.static(0)], reductionOpName="Sum", reductionKeepDimensions=True),
    )
    assert_all_close(contents, {"x": x}, x.sum(axis=1, keepdims=True))
    contents = first("SumElements", x), later(18, x), later(39, x, axis=v.ALL, reductionOpName="Sum")
    assert_all_close(contents, {"x": x}, [x.sum()])


def test_choices():
    x = data(3)
    low, high = np.array([-0.5]), np.array([0.25])
    expected = np.clip(x, -0.5, 0.25)
    contents = (
        first("Clip", x, build=parameters(low=low, high=high), before="low high"),
        later(41, x, parameters(low=low, high=high), after=("low", "high")),
    )
    assert_all_close(contents, {"x": x}, expected)
    expected = np.where(x != 0, x, 7)
    contents = (
        first("If", x, build=parameters(other=np.array([7.0])), before="x", after="other"),
        later(42, x, lambda f: {"x": "Input_x", **parameters(other=np.array([7.0]))(f)}, after=("x", "other")),
    )
    assert_all_close(contents, {"x": x}, expected)


def test_functions_made_of_others():
    x = data(3)
    elu = np.where(x > 0, x, 0.5 * (np.exp(np.minimum(x, 0)) - 1))
    assert_all_close([later(65, x, alpha=0.5)], {"x": x}, elu)
    assert_all_close([later(65, x)], {"x": x}, np.where(x > 0, x, np.expm1(x)))
    with np.errstate(invalid="ignore"):
        powers = [(e, x ** float(e)) for e in (2, -1, 1, 3, -2, 16, 17, 0, 0.5, -0.5, 0.3)]
    for exponent, expected in powers:
        content = later(69, x, lambda f, e=exponent: {"e": f.constant("e", e)}, after="e")
        assert_all_close([content], {"x": x}, expected)
        assert ("e" in read_cntk(content).nodes) == (exponent not in range(1, 17))
    above = np.abs(x)
    content = later(69, above, lambda f: {"y": f.input("y", 3)}, after="y")
    assert_all_close([content], {"x": above, "y": x}, above**x)
    content = later(89, x, fillValue=2.5)
    assert_all_close([content], {"x": x}, np.full(x.shape, 2.5))


@pytest.mark.parametrize("version", [2, 12, 13, 18, 19, 30])
def test_batch_normalisation(version):
    x = data(2, 3)
    scale, bias, mean, variance = (RANDOM.uniform(0.5, 2, size=(3, 1)) for _ in range(4))
    f = w.Writer(version, "double")
    f.input("x", 2, 3)
    stored = 1 / np.sqrt(variance + 1e-3) if version < 13 else variance
    for name, value in (("s", scale), ("b", bias), ("m", mean), ("v", stored)):
        f.parameter(name, value, rate=0)
    head = w.boolean(True) + w.f64(100) + w.f64(5) + w.i32(1)
    count = w.boolean(False) if version == 19 else w.u64(32)
    body = head + count + w.f64(1e-3) + w.boolean(True)
    if version < 6:
        body = w.i32(0x10004, 0x10001) + w.boolean(False, True) + w.f64(100) + w.i32(1) + w.u64(32) + w.f64(1e-3)
        body += w.boolean(True)
    links = "x s b m v"
    if version >= 19:
        f.parameter("seen", [[640.0]], 1, rate=0)
        links += " seen"
    f.node("BatchNormalization", "z", body, links)
    expected = (x - mean.T) / np.sqrt(variance.T + 1e-3) * scale.T + bias.T
    assert_all_close([f.content], {"x": x}, expected, rtol=1e-9)
    network = read_cntk(f.content)
    assert network["z"].samples == (640 if version >= 19 else 32 if version >= 13 else 512)
    assert "seen" not in network.nodes
    assert network["z"].options["blendTimeConstant"] == (5 if version >= 6 else 0)


def test_batch_normalisation_of_the_later_format():
    x = data(2, 3)
    scale, bias, mean, variance = (RANDOM.uniform(0.5, 2, size=3) for _ in range(4))
    expected = (x - mean) / np.sqrt(variance + 1e-3) * scale + bias
    attributes = {"spatial": True, "normalizationTimeConstant": 100.0, "epsilon": 1e-3, "useCuDNNEngine": True}
    for count in (True, False):

        def build(f, count=count):
            made = parameters(s=scale, b=bias, m=mean, v=variance)(f)
            return {**made, **({"n": f.constant("n", 640)} if count else {})}

        content = later(40, x, build, after="sbmv" + ("n" if count else ""), **attributes)
        assert_all_close([content], {"x": x}, expected)
        network = read_cntk(content)
        assert network["z"].samples == (640 if count else 0)
        assert network["z"].options["engine"] == "cudnn"


# ---- criteria


def test_criteria():
    z, labels = data(3), np.eye(3)[[0, 2, 1, 1, 0]]
    p = np.stack([softmax(cell) for cell in z])
    y = np.abs(labels - 0.1)
    wrong = float(np.sum(z.argmax(1) != labels.argmax(1)))
    for name, op, target, output, expected in [
        ("CrossEntropyWithSoftmax", 35, labels, z, -np.sum(labels * np.log(p))),
        ("ErrorPrediction", 36, labels, z, wrong),
        ("SquareError", 34, labels, z, np.sum((labels - z) ** 2)),
        ("Logistic", 48, y, p, -np.sum(np.log(y * p + (1 - y) * (1 - p)))),
    ]:
        f = w.Writer(30, "double")
        f.input("x", 3)
        f.input("l", 3)
        f.node("Abs", "o", b"", "x")
        f.node(name, "z", b"", "l x")

        def build(f):
            return {"l": f.input("l", 3)}

        content = later(op, output, build, after="l")
        assert_all_close([f.content, content], {"x": output, "l": target}, np.ravel(expected))
        network = read_cntk(content)
        evaluation = name == "ErrorPrediction"
        assert [n.name for n in network.groups["evaluation" if evaluation else "criterion"]] == ["z"]
        if name != "SquareError":
            assert [n.name for n in network.groups["label"]] == ["l"]
            assert [n.name for n in network.groups["feature"]] == ["x"]


def test_nodes_of_the_same_name():
    """Operations that are taken over as they are have a kind, but for four that are refused by their names."""
    kinds = {name: nodes.find(name) for name in BODIES if rule(name) is same}
    missing = {name for name, kind in kinds.items() if kind is None or kind.unsupported or kind.makes}
    assert len(kinds) > 50
    assert missing == {"CRF", "SequenceDecoder", "SequenceWithSoftmax", "StraightThrough"}


def test_other_nodes_of_the_first_format():
    x, wide = data(4, 5, 2), data(6)
    table, d = RANDOM.normal(size=(2, 3)), RANDOM.normal(size=6)
    size = data(2, 3, 2)

    def crop():
        f = w.Writer(30, "double")
        f.input("x", 4, 5, 2)
        f.input("y", 2, 3, 2)
        f.node("Crop", "z", w.f64(1) + w.f64(2), "x y")
        return f.content

    assert_all_close([crop()], {"x": x, "y": size}, x[:, 1:3, 2:5])
    assert_all_close([first("RowRepeat", wide, w.u64(3))], {"x": wide}, np.tile(wide, 3))
    content = first("DiagTimes", wide, build=parameters(d=d), before="d")
    assert_all_close([content], {"x": wide}, wide * d)
    content = first("LookupTable", wide, build=parameters(E=table), before="E")
    expected = np.concatenate([wide[:, :3] @ table.T, wide[:, 3:] @ table.T], axis=1)
    assert_all_close([content], {"x": wide}, expected)

    def statistics(f):
        f.node("Mean", "m", w.boolean(True) + w.matrix(np.arange(6.0)[:, None], "<f8"), "x")
        f.node("InvStdDev", "i", w.boolean(True) + w.matrix(np.full((6, 1), 0.5), "<f8"), "x")

    content = first("PerDimMeanVarNormalizationNode", wide, build=statistics, after="m i")
    assert_all_close([content], {"x": wide}, (wide - np.arange(6)) / 2)


def test_numbers_that_are_out_of_range():
    for value in (np.nan, np.inf, -1, 1e20):
        f = w.Writer(30)
        f.input("x", 3)
        f.parameter("shift", [[value]], rate=0)
        f.node("CosDistanceWithNegativeSamples", "z", b"", "x x shift shift")
        with pytest.raises(UserError, match="the shift must not be"):
            read_cntk(f.content)


def test_one_sequence_axis_with_a_name():
    def content(*axes):
        f = w.Writer(30)
        f.node("DynamicAxis", "t")
        for name, axis in zip("xy", axes, strict=True):
            f.node("InputValue", name, w.u64(0, 0) + w.shape(3) + w.u32(1) + w.text(axis) + w.f32(0))
        f.node("Plus", "z", inputs="x y")
        f.groups = {"FeatureNodes": ["x", "y", "t"], "OutputNodes": ["z"]}
        return f.content

    network = read_cntk(content("t", "t"))
    assert [node.name for node in network.groups["feature"]][:2] == ["x", "y"]
    assert network["z"].axis == "*"
    with pytest.raises(
        UserError, match="mixes two time axes: 'x' has the time axis 't', 'y' has the default time axis"
    ):
        read_cntk(content("t", ""))


def test_the_rate_of_dropout_is_told(caplog):
    with caplog.at_level("INFO", "cntkpy.networks"):
        read_cntk(later(15, data(3), dropoutRate=0.25), "old.model")
    assert caplog.messages == [
        "old.model: Dropout 'z' had the rate 0.25: give dropoutRate in the SGD section to train on"
    ]
