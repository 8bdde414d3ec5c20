"""Recurrent stacks, rankings, regions, samples and what looks at the run, from both formats: NumPy's values."""

import cntk_v1_bodies as b
import cntk_v1_writer as w
import cntk_v2_writer as v
import numpy as np
import pytest
from cntk_models import assert_all_close, evaluate_all, evaluate_networks

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.cntk_binary.load import read_cntk

RANDOM = np.random.default_rng(8)
CELLS = 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(weights, x, hidden):
    """One layer over a sequence, from the flat parameter: i, f, g, o of the input, of the state, then both biases."""
    width = x.shape[1]
    from_x = weights[: 4 * hidden * width].reshape(4, hidden, width)
    rest = weights[4 * hidden * width :]
    from_h, rest = rest[: 4 * hidden * hidden].reshape(4, hidden, hidden), rest[4 * hidden * hidden :]
    bias = rest[: 4 * hidden].reshape(4, hidden) + rest[4 * hidden :].reshape(4, hidden)
    h = c = np.zeros(hidden)
    result = []
    for cell in x:
        i, f, g, o = (from_x[k] @ cell + from_h[k] @ h + bias[k] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        result.append(h)
    return np.array(result)


def test_a_stack_of_lstms():
    x, hidden = RANDOM.normal(size=(CELLS, 3)), 2
    count = 4 * hidden * (3 + hidden) + 8 * hidden
    flat = RANDOM.normal(size=count)
    stored = flat.reshape((hidden, -1), order="F")  # column-major in a file

    def first(version):
        f = w.Writer(version, "double")
        f.parameter("W", stored)
        f.input("x", 3)
        body = w.u64(0, 1, hidden) + w.text("lstm") + (w.i32(-1) if version >= 14 else b"")
        f.node("OptimizedRNNStack" if version > 10 else "RNN", "z", body, "W x")
        f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
        return f.content

    f = v.Writer(double=True)
    variable = f.input("x", 3)
    f.function(
        49,
        "F",
        variable,
        f.parameter("W", stored),
        name="z",
        bidirectional=False,
        numLayers=1,
        hiddenSize=hidden,
        recurrentOp="lstm",
    )
    assert_all_close([first(10), first(14), first(30), f.content("F")], {"x": x}, lstm(flat, x, hidden))


def test_more_layers_than_weights_are_damage():
    f = w.Writer(30)
    f.parameter("W", np.ones((2, 32)))
    f.input("x", 4)
    f.node("OptimizedRNNStack", "z", w.u64(0, 2**31 - 1, 2) + w.text("lstm") + w.i32(-1), "W x")
    with pytest.raises(Exception, match="has sizes or an axis that it cannot have"):
        read_cntk(f.content)


@pytest.mark.parametrize(("operation", "op"), [("LambdaRank", 59), ("NDCG1Eval", 60)])
def test_rankings(operation, op):
    """Operands are in their places: the values are those of the same network in NDL."""
    gain, score = np.array([[3.0], [0], [1], [2], [1]]), np.array([[0.5], [2], [1], [3], [2]])
    query = np.array([[1.0], [1], [1], [2], [2]])
    inputs = {"g": gain, "s": score, "q": query}
    f = w.Writer(30, "double")
    for name in "gsq":
        f.input(name, 1)
    f.node(operation, "z", inputs="g s q")
    f.groups = {"FeatureNodes": ["s"], "LabelNodes": ["g"], "CriterionNodes": ["z"]}
    later = v.Writer(double=True)
    variables = {name: later.input(name, 1) for name in "gsq"}
    later.function(op, "F", variables["s"], variables["g"], variables["q"], name="z")
    text = f"g = Input(1)\ns = Input(1)\nq = Input(1)\nz = {operation}(g, s, q)\ny = {operation}(s, g, q)"
    ndl = parse_ndl(text, precision="double", require_features=False)
    networks = [ndl, *(read_cntk(content) for content in (f.content, later.content("F")))]
    expected, ours, theirs = evaluate_networks(networks, inputs)
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(theirs, expected)
    (other,) = evaluate_networks([ndl], inputs, "y")
    assert not np.array_equal(other, expected)


def test_criteria_of_alignments():
    """Options are those of the file: the values are those of the same network in NDL."""
    labels, scores = np.eye(3)[[0, 0, 1, 2, 1]], RANDOM.normal(size=(5, 3))
    f = w.Writer(30, "double")
    f.input("l", 3)
    f.input("s", 3)
    f.node("LabelsToGraph", "g", inputs="l")
    f.node("ForwardBackward", "z", w.i32(1) + w.u64(2), "g s")
    f.node("EditDistanceError", "e", w.f32(2) + w.f32(0.5) + w.f32(3) + w.boolean(True) + w.u64(1, 1), "l s")
    f.groups = {"FeatureNodes": ["s"], "LabelNodes": ["l"], "CriterionNodes": ["z", "e"]}
    text = (
        "l = Input(3)\ns = Input(3)\nz = ForwardBackward(LabelsToGraph(l), s, 2, delayConstraint=1)\n"
        "e = EditDistanceError(l, s, subPen=2, delPen=0.5, insPen=3, squashInputs=true, tokensToIgnore=1)"
    )
    ndl = parse_ndl(text, precision="double", require_features=False)
    networks = [ndl, read_cntk(f.content)]
    for name in "ze":
        expected, found = evaluate_networks(networks, {"l": labels, "s": scores}, name)
        np.testing.assert_array_equal(found, expected)


def test_options_that_the_later_format_does_not_say_are_refused():
    for op in (61, 66):
        later = v.Writer(double=True)
        labels, scores = later.input("l", 3), later.input("s", 3)
        later.function(op, "F", labels, scores, name="z")
        with pytest.raises(UserError, match="1 operation is not available here"):
            read_cntk(later.content("F"))


@pytest.mark.parametrize("version", [10, 15, 25])
def test_regions_relative_to_the_image(version):
    """A region of the left half, the lower part, and everything: the largest elements of a grid of 2 x 1."""
    x = RANDOM.normal(size=(2, 4, 4, 2))
    regions = np.array([[0, 0, 0.5, 1], [0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1]]).T[None].repeat(2, axis=0)
    f = w.Writer(version, "double")
    f.input("x", 4, 4, 2)
    f.input("r", 4, 3)
    f.node("ROIPooling", "z", w.shape(2, 1), "x r")
    expected = np.empty((2, 2, 1, 2, 3))
    for number, (x0, x1, y0, y1) in enumerate([(0, 2, 0, 4), (2, 4, 2, 4), (0, 4, 0, 4)]):
        half = (x1 - x0) // 2
        for place in range(2):
            part = x[:, x0 + place * half : x0 + (place + 1) * half, y0:y1]
            expected[:, place, 0, :, number] = part.max(axis=(1, 2))
    assert_all_close([f.content], {"x": x, "r": regions}, expected)


def test_regions_in_pixels():
    """The later meaning, of both formats: corners of pictures twice as large."""
    x = RANDOM.normal(size=(2, 4, 4, 2))
    regions = np.array([[0, 0, 3, 7], [4, 2, 6, 6]]).T[None].repeat(2, axis=0).astype(float)
    expected = np.empty((2, 1, 1, 2, 2))
    for number, (x0, x1, y0, y1) in enumerate([(0, 3, 0, 4), (2, 4, 1, 4)]):
        expected[:, 0, 0, :, number] = x[:, x0:x1, y0:y1].mean(axis=(1, 2))
    f = w.Writer(26, "double")
    f.input("x", 4, 4, 2)
    f.input("r", 4, 2)
    f.node("ROIPooling", "z", w.shape(1, 1) + w.i32(2) + w.f64(0.5), "x r")
    g = v.Writer(double=True)
    operands = g.input("x", 4, 4, 2), g.input("r", 4, 2)
    g.function(47, "F", *operands, name="z", roiOutputShape=v.Shape((1, 1)), poolingType=1, spatialScale=0.5)
    assert_all_close([f.content, g.content("F")], {"x": x, "r": regions}, expected)


@pytest.mark.parametrize("offsets", [(np.nan, np.nan), (np.finfo(float).max,) * 2])
def test_cropping_that_finds_its_place(offsets):
    """A convolution without padding and the image it was made from: one element from each edge."""
    x = RANDOM.normal(size=(CELLS, 5, 4, 1))
    f = w.Writer(15, "double")
    f.input("x", 5, 4, 1)
    f.parameter("K", np.ones((1, 9)))
    body = w.shape(3, 3, 1) + w.shape(1) + w.shape(1) + w.booleans(True) + w.booleans(False)
    body += w.shape(0) + w.shape(0) + w.i32(0, 1) + w.u64(0) + w.boolean(False, False)
    f.node("Convolution", "c", body, "K x")
    f.node("Crop", "z", w.f64(offsets[0]) + w.f64(offsets[1]), "x c")
    later = v.Writer(double=True)
    image = later.input("x", 5, 4, 1)
    kernel = later.parameter("K", np.ones((3, 3, 1, 1)))
    convolved = later.function(
        33,
        "C",
        kernel,
        image,
        strides=v.Shape((1,)),
        autoPadding=[False],
        sharing=[True],
        lowerPad=v.Shape((0,)),
        upperPad=v.Shape((0,)),
        transpose=False,
    )
    later.function(84, "F", image, convolved, name="z")
    assert_all_close([f.content, later.content("F")], {"x": x}, x[:, 1:4, 1:3])


def test_what_looks_at_the_run():
    f = w.Writer(30, "double")
    f.input("x", 3)
    f.node("EnvironmentInput", "training", w.text("isTraining"), "")
    f.node("Trace", "t", b.trace()[0], "x")
    f.node("Plus", "z", inputs="t training")
    x = RANDOM.normal(size=(CELLS, 3))
    assert_all_close([f.content], {"x": x}, x)
    options = read_cntk(f.content)["t"].options
    assert [options[name] for name in ("say", "logFirst", "logFrequency", "onlyUpToRow")] == ["look", 1, 2, 3]


@pytest.mark.parametrize("form", ["first", "later"])
def test_random_samples(form):
    if form == "first":
        f = w.Writer(30)
        f.parameter("p", np.ones((5, 1)), rate=0.0)
        f.node("RandomSample", "s", w.boolean(True) + w.u64(4) + b.random_state(30), "p")
        f.node("RandomSampleInclusionFrequency", "q", w.boolean(True) + w.u64(4) + b.random_state(30), "p")
        content = f.content
    else:
        f = v.Writer()
        chances = f.constant("p", np.ones((5, 1)))
        drawn = f.function(45, "S", chances, name="s", numSamples=4, allowDuplicates=True)
        expected = f.function(46, "Q", chances, name="q", numSamples=4, allowDuplicates=True)
        f.function(44, "C", drawn, expected)
        content = f.content("C")
    network = read_cntk(content)
    assert (network["s"].shape, network["q"].shape) == ((5, 4), (5, 1))
    assert network["s"].options["sampleWithReplacement"] is True
    (found,) = evaluate_all([content], {"x": np.zeros((1, 1))}, "q")
    np.testing.assert_allclose(found, np.full((5, 1), 4 / 5))
