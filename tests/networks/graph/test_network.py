"""The graph: names, groups, editing, shape inference, messages."""

import re
import subprocess
import sys

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.compile.evaluate import compile_gradient
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.graph.initialize import SeedCounter


def test_declarations_do_not_import_jax():
    code = (
        "import sys, cntkpy.networks.nodes, cntkpy.networks.graph.network, cntkpy.networks.builders.build;"
        "import cntkpy.networks.builders.simple.front_end, cntkpy.networks.files.model_file;"
        "cntkpy.networks.nodes.kinds(); print({'jax', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_names_ignore_case_and_keep_their_spelling(sketch):
    s = sketch
    a, b = s.input("Features", 3), s.parameter("w", 3)
    total = s("Plus", a, b, name="Sum")
    network = s.network
    assert network["FEATURES"] is a and "sum" in network and list(network.nodes) == ["Features", "w", "Sum"]
    with pytest.raises(UserError, match="duplicated name: the network already has a node 'Sum'"):
        s("Negate", a, name="SUM")
    with pytest.raises(UserError, match="no node 'sun'") as caught:
        network.find("sun")
    assert "Sum" in caught.value.diagnostic.hint
    network.rename("W", "Weights")
    assert b.name == "Weights" and list(network.nodes)[1] == "Weights" and total.inputs[1] is b
    network.rename("weights", "WEIGHTS")
    with pytest.raises(UserError, match="cannot rename"):
        network.rename("weights", "sum")


def test_remove_clears_links_and_groups(sketch):
    s = sketch
    x = s.input("x", 3)
    y = s("Negate", s("Negate", x, name="a"), name="b")
    s.network.add_to_group("output", y)
    s.network.add_to_group("output", y)
    s.network.remove("A")
    assert y.inputs == [None] and s.network.groups["output"] == [y]
    with pytest.raises(UserError, match="'b': input 0 is not connected"):
        s.network.validate()
    s.network.remove("b")
    assert s.network.groups["output"] == []


def test_parameters_are_sorted_by_code_points(sketch):
    s = sketch
    for name in ("b", "B", "a0", "_z", "A10", "A2"):
        if name != "B":
            s.parameter(name, 1)
    s.parameter("frozen", 1, learningRateMultiplier=0.0)
    s.constant(3.0)
    assert [node.name for node in s.network.parameters()] == ["A10", "A2", "_z", "a0", "b"]


def test_descriptions(sketch):
    node = sketch.parameter("B0", 6, 1)
    assert node.describe() == "Node 'B0' (LearnableParameter operation) : [6 x 1]"


@pytest.mark.parametrize(
    ("own", "data", "full"),
    [
        ((0,), (4,), (4,)),
        ((0, 1), (4, 1), (4, 1)),
        ((0, 0), (3, 2), (3, 2)),
        ((3, 0), (3, 2), (3, 2)),
        ((0, 0), (4,), (4,)),
    ],
)
def test_dimensions_are_inferred_elementwise(sketch, own, data, full):
    p = sketch.parameter("p", *own, init="uniform")
    sketch("Plus", sketch.input("x", *data), p)
    sketch.network.validate()
    assert p.shape == full and p.value.shape == tuple(reversed(full)) and p.value.any()


def test_dimensions_are_inferred_in_products(sketch):
    s = sketch
    x = s.input("x", 2, 3, 2)
    a, b, c = s.parameter("a", 4, 0), s.parameter("b", 4, 0, 0), s.parameter("c", 4, 12)
    results = [s("Times", p, x) for p in (a, b, c)]
    value = c.value.copy()
    s.network.validate()
    assert [p.shape for p in (a, b, c)] == [(4, 2), (4, 2, 3), (4, 2, 3, 2)]
    assert [r.shape for r in results] == [(4, 3, 2), (4, 2), (4,)]
    assert np.array_equal(c.value.reshape(value.shape), value)


def test_partial_inference_needs_enough_axes(sketch):
    sketch("Plus", sketch.input("x", 4), sketch.parameter("p", 0, 1), name="sum")
    with pytest.raises(UserError, match=r"Plus 'sum' of 'x' \[4\], 'p' \[0 x 1\]"):
        sketch.network.validate()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda s, x: s("Plus", x, s.parameter("p", 4), name="z"),
            r"Plus 'z' of 'x' \[3\], 'p' \[4\]: the shapes do not match",
        ),
        (lambda s, x: s("Times", s.parameter("p", 4, 2), x, name="z"), r"Times 'z' of 'p' \[4 x 2\], 'x' \[3\]: inner"),
        (
            lambda s, x: s("CEWithSM", x, s.input("y", 4), name="z"),
            r"CrossEntropyWithSoftmax 'z' of 'x' \[3\], 'y' \[4\]",
        ),
        (lambda s, x: s("RowSlice", x, start=2, count=2, name="z"), r"rows 2 to 4 .* outside the operand's 3 rows"),
        (lambda s, x: s("Plus", x, name="z"), "Plus 'z' expects 2 inputs, 1 given"),
        (lambda s, x: s("Times", s.parameter("p", 0, 3), x, name="z"), "first dimension of the left operand"),
        (lambda s, x: s("Mean", s.parameter("p", 3), name="z"), "'p' carries no minibatch data"),
        (lambda s, x: s("Plus", s.parameter("p", 0), s.parameter("q", 0), name="z"), r"'p' \[0\] cannot be inferred"),
        (lambda s, x: s("Reshape", x, numRows=6), "would change the time axis"),
        (lambda s, x: s("PastValue", s.parameter("p", 3), rows=3, name="z"), "carries no minibatch data"),
        (lambda s, x: s("Convolution", s.parameter("p", 1, 4), x, kernelShape=(4,)), r"kernel \[4\] .* input \[3\]"),
        (
            lambda s, x: s("Convolution", s.parameter("p", 1, 2), x, kernelShape=(2,), lowerPad=(-1,)),
            "padding must not be negative",
        ),
        (
            lambda s, x: s("Pooling", x, kind="max", kernelShape=(1,), autoPadding=(False,), lowerPad=(1,)),
            "wholly in the padding",
        ),
    ],
)
def test_messages(sketch, make, message):
    with pytest.raises(UserError, match=message):
        make(sketch, sketch.input("x", 3))
        sketch.network.validate()


def test_a_mistake_in_a_loop_is_told_where_it_is(sketch):
    """Not as dimensions that cannot be inferred, which follows from it."""
    s = sketch
    past = s("PastValue", None, rows=6, name="past")
    product = s("Times", s.parameter("R", 6, 6), past, name="product")
    past.inputs = [s("Tanh", s("Plus", product, s.input("x", 3), name="sum"), name="h")]
    with pytest.raises(UserError, match=r"Plus 'sum' of 'product' \[6\], 'x' \[3\]: the shapes do not match"):
        s.network.validate()


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("Parameter", {"dims": (2,), "init": "foo"}, "unknown kind of init"),
        ("Parameter", {"dims": (2,), "init": "fromFile"}, "needs initFromFilePath"),
        ("Parameter", {"dims": (2,), "learningRateMultiplier": -1.0}, "must not be negative"),
        ("Input", {"dims": (0,)}, "at least 1"),
        ("PastValue", {"rows": 3, "timeStep": 0}, "at least 1"),
        ("Sum", {}, "Sum is not supported"),
        ("Tims", {}, "unknown operation 'Tims'"),
    ],
)
def test_creation_refuses(sketch, kind, options, message):
    with pytest.raises(UserError, match=message):
        nodes.create(sketch.network, kind, "z", (), options)


def test_kinds_have_unique_names_and_documentation():
    for kind in nodes.kinds():
        assert nodes.find(kind.name.upper()) is kind
        if not kind.unsupported:
            assert kind.meaning and nodes.heading(kind) and kind.usage().startswith(kind.name)
            assert all(option.meaning for option in kind.options)


def test_gradient_through_evaluation_only_nodes_is_refused(sketch):
    s = sketch
    x, w = s.input("x", 2), s.parameter("w", 2, 2)
    s("ErrorPrediction", x, s("Times", w, x), name="err")
    with pytest.raises(UserError, match="ClassificationError 'err' has no gradient"):
        compile_gradient(s.network.validate(), "err")


def test_functions_that_make_other_operations(sketch):
    s = sketch
    image = s("ImageInput", width=5, height=4, channels=3, name="i", imageLayout="CHW")
    legacy = s("Image", width=5, height=4, channels=3, images=1, name="l")
    parameter = s("ImageParameter", dims=(7, 5, 4, 3), imageLayout="cudnn", name="p")
    constant = s("Const", value=2.0, rows=2, cols=3, name="c")
    s.network.initialize(constant, SeedCounter())
    assert (image.operation, image.shape, legacy.shape) == ("InputValue", (5, 4, 3), (3, 5, 4))
    assert (parameter.operation, parameter.shape) == ("LearnableParameter", (7, 5, 4, 3))
    assert constant.matrix().tolist() == [[2] * 3] * 2 and not constant.trainable


# ---- model files


def _model(s):
    x = s.input("x", 3)
    w, k = s.parameter("W", 2, 3), s.constant(float("inf"))
    norm = s("PerDimMVNorm", x, s("Mean", x, name="m"), s("InvStdDev", x, name="v"))
    past = s("PastValue", x, rows=2, timeStep=2, name="past")
    h = s("Tanh", s("Plus", s("Times", w, norm), past), name="h")
    past.inputs = [h]
    parts = [s.parameter(n, 2, learningRateMultiplier=0.5) for n in ("scale", "bias", "mean", "var")]
    bn = s("BatchNormalization", h, *parts, normalizationTimeConstant=float("inf"), name="bn")
    s("Scale", k, bn)
    s.network["m"].value, s.network["m"].computed = np.array([1.0, 2, 3]), True
    s.network["bn"].samples = 17
    for group, name in (("feature", "x"), ("output", "h"), ("output", "bn")):
        s.network.add_to_group(group, s.network[name])
    return s.network


def test_model_round_trip(sketch, tmp_path):
    network = _model(sketch)
    save_model(tmp_path / "deep" / "m.dnn", network.validate())
    again = load_model(tmp_path / "deep" / "m.dnn")
    assert list(again.nodes) == list(network.nodes) and again.precision == "double"
    for old, new in zip(network.nodes.values(), again.nodes.values(), strict=True):
        assert (old.operation, old.shape, old.options) == (new.operation, new.shape, new.options)
        assert [i.name for i in old.inputs] == [i.name for i in new.inputs]
        assert (old.learning_rate_multiplier, old.computed, old.samples) == (
            new.learning_rate_multiplier,
            new.computed,
            new.samples,
        )
        assert old.value is new.value is None or np.array_equal(old.value, new.value)
    assert {g: [n.name for n in m] for g, m in again.groups.items()} == {
        g: [n.name for n in m] for g, m in network.groups.items()
    }
    single = load_model(tmp_path / "deep" / "m.dnn", "float")
    assert single["W"].value.dtype == np.float32


def test_arrays_are_stored_as_the_user_knows_them(sketch, tmp_path):
    import safetensors.numpy as safetensors

    network = _model(sketch)
    save_model(tmp_path / "m", network.validate())
    stored = safetensors.load_file(tmp_path / "m")
    assert stored["W"].shape == (2, 3)
    assert np.array_equal(stored["W"], network["W"].matrix())


@pytest.mark.parametrize("damage", ["cut", "short", "text", "graph", "newer", "version", "longer", "empty", "bits"])
def test_damaged_models(sketch, tmp_path, damage):
    path = tmp_path / "m"
    save_model(path, _model(sketch).validate())
    content = path.read_bytes()
    changed = {
        "cut": content[:-9],
        "short": content[:100],
        "text": b"hello, world, this is not a model",
        "graph": content.replace(b"cntkpy", b"zzzzzz", 1),
        "newer": content.replace(b'\\"format\\": 1', b'\\"format\\": 9', 1),
        "version": content.replace(b'\\"format\\": 1', b'\\"format\\":[]', 1),
        "longer": content + b"xx",
        "empty": b"",
        "bits": content.replace(b"Tanh", b"Tamh", 1),
    }[damage]
    assert changed != content
    path.write_bytes(changed)
    with pytest.raises(UserError, match=re.escape(str(path))):
        load_model(path)


def test_missing_and_foreign_models(tmp_path):
    with pytest.raises(UserError, match="there is no model"):
        load_model(tmp_path / "none")
    (tmp_path / "old").write_bytes("BCN\0BVersion\0".encode("utf-16-le") + b"\0" * 20)
    with pytest.raises(UserError, match="is damaged at byte 34: the mark EVersion is expected"):
        load_model(tmp_path / "old")


def test_saving_needs_complete_networks(sketch, tmp_path):
    network = _model(sketch)
    sketch.parameter("pending", 0, 3)
    with pytest.raises(UserError, match="'pending' has no value"):
        save_model(tmp_path / "m", network.validate())
    network.remove("pending")
    network["h"].inputs = [None]
    with pytest.raises(UserError, match="'h'"):
        save_model(tmp_path / "m", network.validate())
    assert not list(tmp_path.iterdir())
