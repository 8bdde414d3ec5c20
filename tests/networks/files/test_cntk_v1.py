"""CNTK's first binary format, written byte by byte from its description."""

import math
import tracemalloc
from pathlib import Path

import cntk_v1_writer as w
import numpy as np
import pytest
from cntk_v1_bodies import ALIASES, bodies, lattice
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.cntk_binary.load import parse, read_cntk
from cntkpy.networks.files.cntk_binary.operations import BODIES
from cntkpy.networks.files.cntk_binary.recognise import is_cntk
from cntkpy.networks.files.cntk_binary.v1 import MAGIC
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.nodes.file_support.records import BadFile, NotSupported

PAGE = (Path(__file__).parents[3] / "docs/old-models.md").read_text(encoding="utf-8")
A = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]


def times(version):
    return (w.u64(1) if version >= 3 else b"") + (w.i32(-1) if version >= 12 else b"")


def small(version=14, precision="float"):
    """s = A x + b with two criteria."""
    f = w.Writer(version, precision)
    f.parameter("A", A)
    f.parameter("b", [[0.5], [0.25], [0]], *((3,) if version >= 3 else ()), rate=0.0)
    f.node("CrossEntropyWithSoftmax", "ce", inputs="l s")
    f.node("ErrorPrediction", "err", inputs="l s")
    f.input("l", 3)
    f.node("Plus", "s", inputs="t b")
    f.node("Times", "t", times(version), inputs="A x")
    f.input("x", 4)
    f.groups = {
        "FeatureNodes": ["x"],
        "LabelNodes": ["l"],
        "CriterionNodes": ["ce"],
        "EvalNodes": ["err"],
        "OutputNodes": ["s"],
    }
    return f


def one(body, operation, dims=(6,), version=14, extra="", build=None):
    """The node z of `operation` over the input x, in a network of its own."""
    f = w.Writer(version)
    f.input("x", *dims)
    if build is not None:
        build(f)
    f.node(operation, "z", body, f"{extra} x".strip() if not extra.startswith("x ") else extra)
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    return read_cntk(f.content)["z"]


@pytest.mark.parametrize("version", range(1, 31))
@pytest.mark.parametrize("precision", ["float", "double"])
def test_every_node_of_every_version(version, precision):
    """Each node is followed by another, so that a body of another length cannot go unnoticed."""
    f = w.Writer(version, precision)
    f.parameter("A", A)  # before version 7 it says the precision
    expected = bodies(version, 8 if precision == "double" else 4)
    for index, (operation, (body, _)) in enumerate(expected.items()):
        f.node(operation, f"n{index}", body)
    records = parse(f.content).records
    assert len(records) == len(expected) + 1 >= 90
    for index, (operation, (_, attributes)) in enumerate(expected.items()):
        record = records[f"n{index}"]
        assert record.operation == ALIASES.get(operation, operation)
        assert {key: record.attributes[key] for key in attributes} == attributes, operation


def test_all_operations_are_written_by_the_tests():
    written = {ALIASES.get(name, name) for name in bodies(30)}
    leaves = {"LearnableParameter", "InputValue", "SparseInputValue", "Mean", "InvStdDev"}
    others = {"CRF", "SequenceDecoder", "NCEBasedCrossEntropyWithSoftmax"}
    assert written | leaves | others == set(BODIES)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("follower", [False, True])
def test_seeds_of_version_16(narrow, follower):
    """They have 4 bytes where the program ran on Windows."""
    f = w.Writer(16)
    f.node("Dropout", "d", (w.u32(7) if narrow else w.u64(7)) + w.u64(9))
    if follower:
        f.node("Dropout", "e", (w.u32(8) if narrow else w.u64(8)) + w.u64(10))
    records = parse(f.content).records
    assert records["d"].attributes == {"seed": 7, "offset": 9}
    assert not follower or records["e"].attributes == {"seed": 8, "offset": 10}


def test_lattices_of_older_programs_have_one_text_less():
    f = w.Writer(30)
    f.node("LatticeSequenceWithSoftmax", "a", lattice("abcd"))
    f.node("LatticeSequenceWithSoftmax", "b", lattice("abcde"))
    found = [record.attributes["texts"] for record in parse(f.content).records.values()]
    assert found == [tuple("abcd"), tuple("abcde")]


def test_half_precision_is_read_as_float(caplog):
    f = w.Writer(30, "half")
    f.parameter("A", A)
    f.input("x", 4)
    f.node("Times", "z", times(30), "A x")
    with caplog.at_level("INFO", "cntkpy.networks"):
        network = read_cntk(f.content, "half.dnn")
    assert caplog.messages == ["half.dnn: its values of half precision become single precision"]
    assert network.precision == "float"
    np.testing.assert_array_equal(network["A"].matrix(), A)


@pytest.mark.parametrize("version", [1, 7, 13, 18, 30])
def test_no_version_passes_for_another(version):
    """A file that says another version is refused, or holds the same."""
    f = w.Writer(version)
    f.parameter("W", np.ones((4, 18)))
    for index, name in enumerate(("BatchNormalization", "Convolution", "Dropout", "Slice", "ReduceElements")):
        f.node(name, f"n{index}", bodies(version)[name][0])
    right = f.content
    start = right.find(w.text("BVersion")) + len(w.text("BVersion"))
    for other in range(2, 34):
        if version == 1:
            content = right[: len(w.text("BCN"))] + w.text("BVersion") + w.u64(other) + w.text("EVersion")
            content += right[len(w.text("BCN")) :]
        else:
            content = right[:start] + w.u64(other) + right[start + 8 :]
        try:
            found = parse(content)
        except (BadFile, NotSupported):
            continue
        same = {n: (r.operation, r.inputs) for n, r in found.records.items()}
        assert same == {n: (r.operation, r.inputs) for n, r in parse(right).records.items()}


@pytest.mark.parametrize("version", range(1, 31))
@pytest.mark.parametrize("precision", ["float", "double"])
def test_every_version(version, precision):
    network = read_cntk(small(version, precision).content)
    assert network.precision == precision
    np.testing.assert_array_equal(network["A"].matrix(), A)
    assert network["A"].value is not None
    assert network["A"].value.dtype == network.dtype
    assert network["A"].learning_rate_multiplier == 1
    assert network["b"].learning_rate_multiplier == 0
    assert network["err"].operation == "ClassificationError"
    assert [i.name for i in network["t"].connected] == ["A", "x"]
    assert {group: [n.name for n in nodes] for group, nodes in network.groups.items()} == {
        "feature": ["x"],
        "label": ["l"],
        "criterion": ["ce"],
        "evaluation": ["err"],
        "output": ["s"],
    }
    assert network["s"].shape == (3,)


def test_it_is_a_model_file(tmp_path):
    path = tmp_path / "old.dnn"
    path.write_bytes(small().content)
    assert small().content.startswith(MAGIC)
    assert is_cntk(path)
    network = load_model(path, "double")
    assert network.precision == "double"
    save_model(tmp_path / "new.dnn", network.validate())
    assert not is_cntk(tmp_path / "new.dnn")
    assert not is_cntk(tmp_path / "none")
    np.testing.assert_array_equal(load_model(tmp_path / "new.dnn")["A"].matrix(), A)


def test_values_are_those_of_the_formula(helpers):
    network = read_cntk(small(precision="double").content)
    mask, start, end = helpers.grid([2])
    x = np.array([[[1.0, 0, 0, 0]], [[0, 1, 0, 2]]])
    batch = helpers.Batch({"x": x, "l": np.zeros((2, 1, 3))}, mask, start, end)
    found = helpers.run(network, ["s"], batch)["s"]
    np.testing.assert_allclose(found[:, 0], x[:, 0] @ np.array(A).T + [0.5, 0.25, 0])


def test_groups_of_older_files():
    f = small()
    f.groups = {
        "FeatureNodes": ["x", "l"],
        "CriteriaNodes": ["ce"],
        "NodesReqMultiSeqHandling": ["x"],
        "EvalNodes": [],
        "PairNodes": [],
    }
    network = read_cntk(f.content)
    assert [n.name for n in network.groups["feature"]] == ["x", "l"]
    assert [n.name for n in network.groups["criterion"]] == ["ce"]


def test_shapes_of_inputs_and_parameters_of_older_files():
    f = w.Writer(2)
    f.node("InputValue", "image", w.u64(0, 0) + w.old_shape(5, 4, 3))
    f.node("InputValue", "rows", w.u64(7, 0) + w.old_shape(1, 1, 1))
    f.node("SparseInputValue", "sparse", w.u64(6, 0) + w.shape(6))
    f.node("LearnableParameter", "P", w.boolean(False) + w.u64(0, 2) + w.shape(3) + w.matrix([[1, 2], [3, 4], [5, 6]]))
    network = read_cntk(f.content)
    assert [network[n].shape for n in ("image", "rows", "sparse", "P")] == [(5, 4, 3), (7,), (6,), (3, 2)]
    assert network["P"].matrix().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert not network["P"].trainable


def test_tensors_are_column_major():
    f = w.Writer()
    f.parameter("K", np.arange(12).reshape(2, 6, order="F"), 2, 3, 2)
    found = read_cntk(f.content)["K"].matrix()
    np.testing.assert_array_equal(found, np.arange(12).reshape(2, 3, 2, order="F"))


@pytest.mark.parametrize("version", [1, 2, 4, 14])
@pytest.mark.parametrize("operation", ["PastValue", "Delay", "FutureValue"])
def test_delays(version, operation):
    body = w.i32(2) + (w.shape(6) if version > 3 else w.u64(6, 1)) + (w.f32(0.3) if version >= 2 else b"")
    node = one(body, operation, version=version)
    assert node.operation == ("FutureValue" if operation == "FutureValue" else "PastValue")
    assert node.options["timeStep"] == 2
    assert node.options["defaultHiddenActivity"] == pytest.approx(0.3 if version >= 2 else 0.1)
    assert node.shape == (6,)


def test_loops():
    f = w.Writer()
    f.input("x", 3)
    f.node("PastValue", "p", w.i32(1) + w.shape(3) + w.f32(0), "s")
    f.node("Plus", "s", inputs="x p")
    network = read_cntk(f.content)
    assert network["p"].shape == network["s"].shape == (3,)


def test_slices_and_stacks():
    node = one(w.i64(2, 3) + w.i32(1), "Slice")
    assert (node.operation, node.shape, node.options["start"], node.options["count"]) == ("RowSlice", (3,), 2, 3)
    assert one(w.i64(2, 3), "RowSlice", version=2).shape == (3,)
    assert one(w.i64(-2, 2) + w.i32(1), "Slice").shape == (2,)
    assert one(w.i32(1), "RowStack", extra="x x").shape == (12,)
    assert one(b"", "RowStack", version=2, extra="x x").shape == (12,)
    assert one(w.u64(3), "RowRepeat").shape == (18,)


def test_transpose_and_reshape():
    def parameter(f):
        f.parameter("A", A)

    f = w.Writer()
    parameter(f)
    f.node("TransposeDimensions", "z", w.i32(1, 2), "A")
    assert read_cntk(f.content)["z"].shape == (4, 3)
    assert one(w.i32(1, 0) + w.shape(3, 2, 1), "Reshape").shape == (3, 2, 1)
    assert one(w.u64(6) + w.old_shape(3, 2, 1), "LegacyReshape").shape == (3, 2, 1)
    assert one(w.u64(6) + w.old_shape(0, 0, 0), "LegacyReshape").shape == (1, 6, 1)


def convolution(kernel, maps, stride, padding, two_d, layout=1, version=14, transpose=False):
    body = w.shape(*kernel) + w.shape(maps) + w.shape(*stride) + w.booleans(True) + w.booleans(*padding)
    body += w.shape(0) + w.shape(0) + w.i32(0) + w.i32(layout) + w.u64(0)
    body += w.boolean(transpose) if version >= 9 else b""
    return body + w.boolean(two_d)


@pytest.mark.parametrize("version", [5, 9, 14])
def test_convolutions(version):
    def kernel(f):
        f.parameter("W", np.ones((4, 18)))

    body = convolution((3, 3, 2), 4, (1, 1, 2), (True, True, False), False, version=version)
    assert one(body, "Convolution", (6, 5, 2), version, "W", kernel).shape == (6, 5, 4)
    body = convolution((3, 3, 1), 4, (1, 1, 1), (False,), True, version=version)
    node = one(body, "Convolution", (6, 5, 2), version, "W", kernel)
    assert node.shape == (4, 3, 4)
    assert node.options["maps"] == 4
    body = convolution((3, 3, 1), 4, (1, 1, 1), (True,), True, 0, version)
    assert one(body, "Convolution", (2, 6, 5), version, "W", kernel).shape == (4, 6, 5)


def test_convolution_before_version_5():
    body = w.u64(3, 3, 2, 2) + w.u32(4, 1) + w.boolean(True) + w.u64(0)
    node = one(body, "Convolution", (6, 5, 2), 4, "W", lambda f: f.parameter("W", np.ones((4, 18))))
    assert node.shape == (3, 3, 4)


def test_pooling():
    def body(kind, kernel=(2, 2), stride=(2, 2)):
        return (
            w.shape(*kernel)
            + w.shape(1)
            + w.shape(*stride)
            + w.booleans(True)
            + w.booleans(False)
            + w.shape(0)
            + w.shape(0)
            + w.i32(kind, 1)
            + w.u64(0)
            + w.boolean(False)
        )

    node = one(body(2), "Pooling", (6, 4, 3))
    assert (node.shape, node.options["kind"]) == ((3, 2, 3), "average")
    assert one(body(1), "Pooling", (6, 4, 3)).options["kind"] == "max"
    old = one(w.u32(2, 1) + w.u64(2, 2, 2), "MaxPooling", (6, 4, 3))
    assert (old.shape, old.options["windowHeight"]) == ((3, 2, 3), 2)
    assert one(w.u32(2, 0) + w.u64(2, 2, 2), "AveragePooling", (3, 6, 4)).shape == (3, 3, 2)
    with pytest.raises(UserError, match="the kind of pooling of 'z' is none"):
        one(body(0), "Pooling", (6, 4, 3))


@pytest.mark.parametrize("version", [2, 5, 6, 12, 13, 15])
def test_batch_normalisation(version):
    f = w.Writer(version)
    f.input("x", 3)
    for name, value in (("scale", 1), ("bias", 0), ("mean", 0.5), ("variance", 0.25)):
        f.parameter(name, [[value]] * 3)
    if version >= 6:
        body = w.boolean(False) + w.f64(100) + w.f64(math.inf) + w.i32(1) + w.u64(32) + w.f64(1e-3) + w.boolean(True)
    else:
        body = w.i32(0x10004, 0x10001) + w.boolean(False, False) + w.f64(100) + w.i32(1) + w.u64(32)
        body += w.f64(1e-3) + w.boolean(True)
    f.node("BatchNormalization", "z", body, "x scale bias mean variance")
    network = read_cntk(f.content)
    node = network["z"]
    assert node.options["normalizationTimeConstant"] == 100
    assert node.options["blendTimeConstant"] == (math.inf if version >= 6 else 0)
    assert node.options["epsilon"] == 1e-3
    assert node.samples == (32 if version >= 13 else 512)
    variance = network["variance"].matrix().flat[0]
    assert variance == pytest.approx(0.25 if version >= 13 else 16 - 1e-3)


@pytest.mark.parametrize("written", [0x10001, 0x10002, 0x10003])
def test_old_batch_normalisation(written):
    f = w.Writer(5)
    f.input("x", 3)
    for name in "abcd":
        f.parameter(name, [[1.0]] * 3)
    body = w.i32(written, 0x10001) + w.boolean(True, False) + w.f64(0.1)
    body += w.i32(1) + w.u64(2) if written >= 0x10002 else b""
    body += w.f64(0.5) + w.boolean(False) if written >= 0x10003 else b""
    f.node("BatchNormalization", "z", body, "x a b c d")
    node = read_cntk(f.content)["z"]
    assert node.options["normalizationTimeConstant"] == 0
    assert node.options["epsilon"] == (0.5 if written >= 0x10003 else 1e-5)


def test_statistics():
    f = w.Writer()
    f.input("x", 2, 2)
    f.node("Mean", "m", w.boolean(True) + w.matrix([[1], [2], [3], [4]]), "x")
    f.node("InvStdDev", "d", w.boolean(False) + w.matrix([[0], [0], [0], [0]]), "x")
    f.node("PerDimMeanVarNormalizationNode", "n", inputs="x m d")
    network = read_cntk(f.content)
    assert network["m"].computed
    assert network["m"].matrix().tolist() == [[1, 3], [2, 4]]
    assert network.precompute_nodes() == [network["d"]]
    assert network["n"].operation == "PerDimMeanVarNormalization"


@pytest.mark.parametrize("alias", ["Scale", "ColumnElementTimes", "RowElementTimes", "ReconcileMBLayout"])
def test_other_names(alias):
    node = one(b"", alias, extra="x")
    assert node.operation in ("ElementTimes", "ReconcileDynamicAxis")


@pytest.mark.parametrize(
    ("body", "operation", "message"),
    [
        (b"", "Frobnicate", "the operation Frobnicate of the node 'z' (byte 152) is not known"),
        (w.i32(0), "NoiseContrastiveEstimation", "1 operation is not available here: NoiseContrastiveEstimation ('z')"),
        (w.i32(1, 2), "TransposeDimensions", ""),
        (w.u64(1) + w.i32(-1) + w.u64(1, 2), "QuantizedTimes", "1 operation is not available here: QuantizedTimes ("),
        (w.f64(0.5) + w.f64(0), "Crop", "Crop ('z': offsets that are no places: 0.5, 0)"),
        (w.text("weather"), "EnvironmentInput", "EnvironmentInput ('z': the property 'weather')"),
        (w.i32(0) + w.shape(6) + w.f32(0), "PastValue", "the time step is 0 (PastValue 'z')"),
        (w.i32(0) + w.shape(6) + w.f32(0), "Delay", "the time step is 0 (Delay 'z')"),
        (w.i64(0, 1) + w.i32(0), "Slice", "the axis 0 is not one of the sample (Slice 'z')"),
    ],
)
def test_nodes_that_cannot_be_used(body, operation, message):
    if not message:
        assert one(body, operation).shape == (1, 6)
        return
    with pytest.raises(UserError) as caught:
        one(body, operation)
    assert message in str(caught.value)


def test_one_error_names_everything_that_cannot_be_used():
    f = w.Writer(30)
    f.input("x", 4, 3)
    f.node("CRF", "crf", inputs="x x")
    f.node("Plus", "p", inputs="crf x")
    for index in range(7):
        f.node("SequenceDecoder", f"d{index}", inputs="p p p")
    f.node("Slice", "s", w.i32(1) + w.i64(0, 2) + w.i32(1, 2), "p")
    with pytest.raises(UserError) as caught:
        read_cntk(f.content, "old.dnn")
    assert str(caught.value) in PAGE
    assert str(caught.value) == (
        "the model old.dnn cannot be used: 3 operations are not available here: CRF ('crf'), "
        "SequenceDecoder ('d0', 'd1', 'd2', 'd3', 'd4' and 2 more), Slice ('s': a stride of 2)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.replace(w.text("BVersion") + w.u64(14), w.text("BVersion") + w.u64(31)), "format version 31"),
        (lambda c: c.replace(w.text("ENodeList"), w.text("XNodeList")), "the mark ENodeList is expected"),
        (lambda c: c.replace(w.text("A") + w.text("x"), w.text("A") + w.text("y")), "a node 'y', which it does not"),
        (lambda c: c.replace(b"dB\0M\0A\0T\0", b"sB\0M\0A\0T\0"), "is sparse"),
        (lambda c: c.replace(b"dB\0M\0A\0T\0", b"?B\0M\0A\0T\0"), "a matrix is expected"),
        (lambda c: c.replace(w.u64(4) + w.text("W"), w.u64(8) + w.text("W")), "elements of 8 bytes, not 4"),
        (lambda c: c.replace(w.u64(3, 4), w.u64(2**60, 4)), "it ends early"),
        (lambda c: c.replace(w.u64(3, 4), w.u64(2**60, 2**60)), "it ends early"),
        (lambda c: c.replace(w.shape(3, 4), w.shape(4, 4)), "12 values do not fit the shape [4 x 4]"),
        (lambda c: c.replace(w.shape(3, 4), w.u32(2**31, 3, 4)), "a shape of 2147483648 axes"),
        (lambda c: c.replace(w.f32(1.0) + w.shape(3, 4), w.f32(-1) + w.shape(3, 4)), "multiplier is -1"),
        (lambda c: c.replace(w.u64(8) + w.text("BNodeList"), w.u64(2**62) + w.text("BNodeList")), "do not fit"),
        (
            lambda c: c.replace(w.text("err"), w.text("ce ")).replace(w.text("ce "), w.text("ce")),
            "two nodes have the name",
        ),
        (lambda c: c[:-2], "the mark ECN is expected"),
        (
            lambda c: c.replace(w.text("ERootN"), w.text("BPairN")).replace(
                w.text("ERootNodes"), w.text("BPairNodes") + w.u64(1)
            ),
            "PairNodes has 1",
        ),
        (lambda c: c.replace(w.text("float"), w.text("real")), "'float', 'double' or 'half' is expected"),
        (lambda c: c + b"x", "1 bytes follow the end of the model"),
    ],
)
def test_damage(change, message):
    content = change(small().content)
    assert content != small().content
    with pytest.raises(UserError) as caught:
        read_cntk(content, "old.dnn")
    assert message in str(caught.value)
    assert "old.dnn" in str(caught.value)


def test_the_damage_that_the_page_shows():
    with pytest.raises(UserError) as caught:
        read_cntk(small().content.replace(w.text("float"), w.text("half")), "old.dnn")
    assert str(caught.value) in PAGE


@settings(max_examples=40)
@given(st.data())
def test_changed_bytes_never_do_harm(data):
    version = data.draw(st.sampled_from([1, 4, 6, 14]))
    content = bytearray(small(version).content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 8))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8), st.just(b"\0" * 4)))
        content[at : at + len(new)] = new
    cut = data.draw(st.integers(0, len(content)))
    tracemalloc.start()
    try:
        read_cntk(bytes(content) if data.draw(st.booleans()) else bytes(content[:cut]))
    except UserError as problem:
        assert problem.diagnostic.render()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4_000_000
