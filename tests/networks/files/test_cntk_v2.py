"""CNTK's later format: blocks, loops, names and groups; what varies between files; what is refused."""

import struct

import cntk_v2_writer as v
import numpy as np
import pytest
from cntk_models import assert_all_close, evaluate_networks
from cntk_v2_blocks import dense, lstm, run_lstm, values
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.cntk_binary.load import read_cntk
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.nodes.file_support.dictionary import Array, AxisValue, Table, parse_dictionary

RANDOM = np.random.default_rng(8)


def two_layers(**names):
    f = v.Writer(double=True)
    x = f.input("x", 3)
    first = dense(f, "Block10", x, 4, 3, names.get("first", "one"))
    hidden = f.function(2, "Tanh20", first)
    second = dense(f, "Block30", hidden, 2, 4, names.get("second", "two"))
    f.function(1, "Sigmoid40", second, name="z")
    return f


def expected_of_two_layers(f, x):
    hidden = np.tanh(x @ values(f, "ParameterBlock100").T + values(f, "ParameterBlock101"))
    return 1 / (1 + np.exp(-(hidden @ values(f, "ParameterBlock300").T + values(f, "ParameterBlock301"))))


def test_blocks_are_taken_apart():
    f = two_layers()
    x = RANDOM.normal(size=(4, 3))
    contents = [
        f.content("Sigmoid40", encoder)
        for encoder in (None, v.Encoder(1), v.Encoder(2, packed=False), v.Encoder(3, packed=False, junk=True))
    ]
    assert len(set(contents)) == 4
    assert_all_close(contents, {"x": x}, expected_of_two_layers(f, x), rtol=1e-12)


def test_names():
    network = read_cntk(two_layers().content("Sigmoid40"))
    assert {node.name: node.operation for node in network.nodes.values()} == {
        "x": "InputValue",
        "one.W": "LearnableParameter",
        "one.b": "LearnableParameter",
        "Block10_Times": "Times",
        "one": "Plus",
        "Tanh20": "Tanh",
        "two.W": "LearnableParameter",
        "two.b": "LearnableParameter",
        "Block30_Times": "Times",
        "two": "Plus",
        "z": "Sigmoid",
    }
    assert {group: [n.name for n in nodes] for group, nodes in network.groups.items() if nodes} == {
        "feature": ["x"],
        "output": ["z"],
    }
    same = read_cntk(two_layers(first="d", second="D").content("Sigmoid40"))
    assert {"d_10", "D_30", "W_100", "W_300", "b_101", "b_301"} <= {*same.nodes}
    assert len(same.nodes) == 11
    unnamed = read_cntk(two_layers(first="", second="").content("Sigmoid40"))
    assert {"W_100", "W_300", "Block10_Plus", "Block30_Plus"} <= {*unnamed.nodes}


@pytest.mark.parametrize(("op", "steps"), [(37, 1), (37, 2), (38, 1)])
def test_recurrence(op, steps):
    f = v.Writer(double=True)
    h, names = lstm(f, "Block1833", f.input("x", 2), 3, steps, op)
    f.function(0, "Negate5", h, name="z")
    x = RANDOM.normal(size=(6, 2))
    expected = -run_lstm(x, *(values(f, name) for name in names), 3, steps, op == 38)
    contents = [f.content("Negate5"), f.content("Negate5", v.Encoder(5, False, True))]
    assert_all_close(contents, {"x": x}, expected, rtol=1e-9)
    network = read_cntk(f.content("Negate5"))
    assert network["Block1833_past_h"].options["timeStep"] == steps
    assert "initial" not in network.nodes
    assert network["lstmBlock1833"].operation == "ElementTimes"


def test_two_directions():
    f = v.Writer(double=True)
    x = f.input("x", 2)
    forward, one = lstm(f, "Block1", x, 2)
    backward, two = lstm(f, "Block2", x, 3, op=38)
    f.function(43, "Splice9", forward, backward, name="z", axis=v.static(0))
    data = RANDOM.normal(size=(5, 2))
    expected = np.concatenate(
        [
            run_lstm(data, *(values(f, name) for name in one), 2),
            run_lstm(data, *(values(f, name) for name in two), 3, backwards=True),
        ],
        axis=1,
    )
    assert_all_close([f.content("Splice9")], {"x": data}, expected, rtol=1e-9)


def test_nested_blocks_aliases_and_combine():
    f = v.Writer(double=True)
    x = f.input("x", 3)
    formal = f.placeholder("Outer_x", 3)
    inner = dense(f, "Inner5", formal, 3, 3, "inner")
    f.function(44, "Roots", inner)
    outer = f.block("Outer6", "Sequential", "Roots", {formal: x}, "model")
    alias = f.function(62, "Alias7", outer, name="result")
    label = f.input("label", 3)
    f.function(35, "Loss8", alias, label, name="ce")
    f.function(36, "Metric9", alias, label, name="err")
    f.function(44, "Combine10", alias, "Loss8_Output_0", "Metric9_Output_0")
    network = read_cntk(f.content("Combine10"))
    assert {group: [n.name for n in nodes] for group, nodes in network.groups.items()} == {
        "feature": ["x"],
        "label": ["label"],
        "criterion": ["ce"],
        "evaluation": ["err"],
        "output": ["result"],
    }
    assert [i.name for i in network["ce"].connected] == ["label", "result"]
    assert [network[name].operation for name in ("model", "result")] == ["Plus", "Pass"]
    assert {"W", "b"} <= set(network.nodes)


def test_an_alias_names_what_has_no_name():
    f = v.Writer()
    f.function(62, "Alias2", f.function(2, "Tanh1", f.input("x", 3)), name="z")
    network = read_cntk(f.content("Alias2"))
    assert {node.name: node.operation for node in network.nodes.values()} == {"x": "InputValue", "z": "Tanh"}


def test_criteria_that_are_blocks():
    """Later programs write the cross entropy as a block of a reduction and a product."""
    f = v.Writer(double=True)
    f.input("x", 3)
    f.input("label", 3)
    z, y = f.placeholder("formal_z", 3), f.placeholder("formal_y", 3)
    f.function(39, "Sum1", f.function(4, "Exp1", z), axis=v.ALL_STATIC, reductionOpName="Sum")
    f.function(20, "Minus2", f.function(5, "Log1", "Sum1_Output_0"), f.function(32, "Dot1", y, z, outputRank=1))
    loss = f.block("Block3", "CrossEntropyWithSoftmax", "Minus2", {z: "Input_x", y: "Input_label"}, "ce")
    f.function(44, "Combine4", loss, f.function(0, "Negate5", "Input_x", name="out"))
    network = read_cntk(f.content("Combine4"))
    assert {group: [n.name for n in nodes] for group, nodes in network.groups.items()} == {
        "feature": ["x"],
        "label": ["label"],
        "criterion": ["ce"],
        "evaluation": [],
        "output": ["out"],
    }
    x, label = RANDOM.normal(size=(4, 3)), np.eye(3)[[0, 2, 1, 1]]
    expected = np.log(np.exp(x).sum(1)) - (x * label).sum(1)
    assert_all_close([f.content("Combine4")], {"x": x, "label": label}, expected[:, None], "ce")


def test_saved_as_ours_they_give_the_same(tmp_path):
    f = v.Writer()
    h, _ = lstm(f, "Block1", f.input("x", 2), 3)
    f.function(1, "Sigmoid5", h, name="z")
    network = read_cntk(f.content("Sigmoid5"))
    save_model(tmp_path / "new.dnn", network)
    again = load_model(tmp_path / "new.dnn")
    x = RANDOM.normal(size=(5, 2)).astype(np.float32)
    one, other = evaluate_networks([network, again], {"x": x})
    np.testing.assert_array_equal(one, other)
    assert one.dtype == np.float32


def test_inputs_keep_their_axes(tmp_path):
    """Data are read by them; of numbers nobody knows whether they have an axis of size 1."""
    for axes, shape, expected in (([v.BATCH], [3], 1), (None, [3], 2), ([v.BATCH], [], None)):
        f = v.Writer()
        f.function(1, "Sigmoid5", f.input("x", *shape) if axes is None else f.input("x", *shape, axes=axes), name="z")
        network = read_cntk(f.content("Sigmoid5"))
        save_model(tmp_path / "new.dnn", network)
        assert [network["x"].dynamic_axes, load_model(tmp_path / "new.dnn")["x"].dynamic_axes] == [expected] * 2


def test_constants_and_frozen_parameters():
    f = v.Writer()
    x = f.input("x", 2)
    f.parameter("p", [1, 2])
    f.parameter("c", [3, 4], v.CONSTANT)
    f.function(19, "P1", x, "Parameter_p")
    f.function(19, "P2", "P1_Output_0", "Parameter_c", name="z")
    network = read_cntk(f.content("P2"))
    assert [network[n].learning_rate_multiplier for n in "pc"] == [1, 0]
    assert network.precision == "float"
    assert network["c"].matrix().tolist() == [3, 4]


def test_half_precision_is_read_as_float(caplog):
    f = v.Writer()
    f.input("x", 2)
    f.parameter("p", [1, 2])
    for entry in f.variables:
        entry["data_type"] = 4
    f.function(19, "P", "Input_x", "Parameter_p", name="z")
    with caplog.at_level("INFO", "cntkpy.networks"):
        assert read_cntk(f.content("P"), "half.model").precision == "float"
    assert caplog.messages == ["half.model: its values of half precision become single precision"]


def test_sparse_inputs_and_scalars():
    f = v.Writer()
    f.input("x", 5, sparse=True)
    f.parameter("W", RANDOM.normal(size=(2, 5)))
    f.constant("half", 0.5)
    f.function(31, "T", "Parameter_W", "Input_x", outputRank=1)
    f.function(21, "E", "T_Output_0", "Parameter_half", name="z")
    network = read_cntk(f.content("E"))
    assert network["x"].operation == "SparseInputValue"
    assert network["half"].shape == (1,)


# ---- values


def test_every_type_of_value():
    table = {
        "bool": True, "no": False, "int": v.Int(-3), "size": 2**64 - 1, "float": v.Float(0.5), "double": 0.1,
        "text": "ä", "shape": v.Shape((2, v.INFERRED)), "empty": v.Shape(()), "axis": v.SEQUENCE, "list": [1, "b", []],
        "table": {"a": 1}, "array": np.arange(6.0).reshape(2, 3), "nothing": None, "zero": 0.0,
    }  # fmt: skip
    for encoder in (v.Encoder(), v.Encoder(3), v.Encoder(4, packed=False, junk=True)):
        found = parse_dictionary(encoder.file(table)).entries
        assert set(found) == set(table)
        assert (found["bool"], found["no"], found["int"], found["size"]) == (True, False, -3, 2**64 - 1)
        assert (found["float"], found["double"], found["zero"], found["nothing"]) == (0.5, 0.1, 0.0, None)
        assert (found["text"], found["shape"], found["empty"]) == ("ä", (2, 2**64 - 1), ())
        assert found["axis"] == AxisValue(2147483647, "defaultDynamicAxis", True)
        assert found["list"] == [1, "b", []]
        assert isinstance(found["table"], Table)
        assert found["table"].entries == {"a": 1}
        assert isinstance(found["array"], Array)
        assert found["array"].values.tolist() == [0, 3, 1, 4, 2, 5]


numbers = st.integers(0, 2**64 - 1)
values_ = st.recursive(
    st.one_of(
        st.booleans(),
        numbers,
        st.integers(-(2**31), 2**31 - 1).map(v.Int),
        st.floats(allow_nan=False),
        st.floats(allow_nan=False, width=32).map(v.Float),
        st.text(max_size=8),
        st.lists(numbers, max_size=4).map(v.Shape),
        st.builds(v.Axis, st.integers(-(2**31), 2**31 - 1), st.text(max_size=4), st.booleans()),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)


def plain(value):
    """A value that was read, in the writer's terms."""
    if isinstance(value, Table):
        return {key: plain(v) for key, v in value.entries.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return v.Axis(value.index, value.name, value.ordered) if isinstance(value, AxisValue) else value


@settings(max_examples=20)
@given(st.dictionaries(st.text(max_size=5), values_, max_size=5), st.integers(0, 9), st.booleans(), st.booleans())
def test_dictionaries_are_read_as_they_were_written(table, seed, packed, junk):
    assert plain(parse_dictionary(v.Encoder(seed, packed, junk).file(table))) == table


# ---- refusals and damage


def refused(content):
    with pytest.raises(UserError) as caught:
        read_cntk(content, "new.model")
    assert "new.model" in str(caught.value)
    return str(caught.value)


def one(op, *shape, build=None, inputs=("Input_x",), **attributes):
    f = v.Writer()
    f.input("x", *(shape or (3,)))
    if build is not None:
        build(f)
    f.function(op, "F1", *inputs, name="z", **attributes)
    return f.content("F1")


NOT_HERE = [68, 70, 71, 73, 74, 76, 79, 80, 83, 87, 90, 91, 92, 93, 94, 97]


@pytest.mark.parametrize("op", [61, 66])
def test_criteria_whose_options_nobody_has_described(op):
    assert "1 operation is not available here: " in refused(one(op)) and "('z': its options)" in refused(one(op))


def test_operations_without_counterpart():
    for op in NOT_HERE:
        message = refused(one(op))
        assert "1 operation is not available here: " in message
        assert "('z')" in message, op
    with pytest.raises(UserError) as caught:
        read_cntk(one(68))
    assert "in CNTK, save a model without it" in str(caught.value.hint)
    assert "operation 98, made by a newer program ('z')" in refused(one(98))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (one(32, outputRank=2, inputs=("Input_x", "Input_x")), "TransposeTimes ('z': an output of rank 2)"),
        (one(39, axis=v.static(0), reductionOpName="Argmax"), "ReduceElements ('z': Argmax over axis 1)"),
        (one(39, axis=v.SEQUENCE, reductionOpName="Sum"), "ReduceElements ('z': Sum over sequence)"),
        (one(12, 2, 3, axis1=v.static(0), axis2=v.SEQUENCE), "TransposeDimensions ('z': the axis is sequence)"),
        (one(14, axis=v.SEQUENCE, beginIndex=v.Int(0), endIndex=v.Int(1)), "Slice ('z': the axis is sequence)"),
        (
            one(84, 4, 4, 2, inputs=("Input_x", "Input_x"), offset=[2**40, 0]),
            "Crop ('z': offsets that are no places: 1.09951e+12, 0)",
        ),
        (
            one(49, 4, inputs=("Input_x", "Input_x"), hiddenSize=1, numLayers=1, recurrentOp="tree"),
            "OptimizedRNNStack ('z': units called 'tree')",
        ),
        (one(1, inputs=("Input_y",)), "the model has no variable 'Input_y'"),
        (one(1, build=lambda f: f.placeholder("q", 3), inputs=("q",)), "the placeholder 'q' is not connected"),
        (one(1, inputs=("F1_Output_0",)), "the loop through 'z' has no PastValue or FutureValue node"),
        (one(62, inputs=("F1_Output_0",)), "stands for itself"),
        (one(1, v.FREE, 2), "the input 'x' has a free dimension"),
        (one(14, axis=v.static(0), beginIndex=v.Int(0), endIndex=v.Int(1), sliceStrides=v.Int(2)), "a stride of 2"),
    ],
)
def test_what_cannot_be_used(content, message):
    assert message in refused(content)


def test_user_defined_functions_are_not_looked_for():
    for change in ({"type": "UserDefinedFunction", "op_name": "Plus"}, {"module": "os"}, {"native": True}):
        f = v.Writer()
        f.input("x", 3)
        f.function(19, "F1", "Input_x", "Input_x", name="z")
        f.functions[0].update(change)
        assert "user-defined function" in refused(f.content("F1"))


def test_mixed_inputs():
    f = v.Writer()
    f.input("x", 3)
    f.input("y", 3, axes=[v.BATCH])
    f.function(19, "F1", "Input_x", "Input_y", name="z")
    assert "mixes two time axes: 'x' has the default time axis, 'y' has one step per sequence" in refused(
        f.content("F1")
    )
    f = v.Writer()
    f.input("x", 3)
    f.parameter("p", [1, 2, 3])
    f.variables[-1]["value"] = np.ones(3)
    f.variables[-1]["data_type"] = 2
    f.function(19, "F1", "Input_x", "Parameter_p", name="z")
    assert "some of its inputs and parameters are float, others double" in refused(f.content("F1"))


def changed(change):
    f = v.Writer()
    f.input("x", 3)
    f.parameter("p", [1, 2, 3])
    f.function(19, "F1", "Input_x", "Parameter_p", name="z")
    change(f)
    return f.content("F1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.top.update(version=4), "its model dictionary has the version 4; versions up to 3 are known"),
        (lambda f: f.top.update(type="Trainer"), "it is not a model but a dictionary of the type 'Trainer'"),
        (lambda f: f.top.update(Learners=[]), "it is the state of a trainer, not a model"),
        (lambda f: f.top.update(root="F2"), "the root 'F2' is not among the functions"),
        (lambda f: f.top.update(inputs=[1]), "'inputs' of the model is not a list of dictionaries"),
        (lambda f: f.top.update(inputs=None), "the model has no 'inputs'"),
        (lambda f: f.variables[0].update(kind=9), "the variable 'Input_x' is of the unknown kind 9"),
        (lambda f: f.variables[1].pop("value"), "the variable 'Parameter_p' has no 'value'"),
        (lambda f: f.variables[1].update(shape=v.Shape((4,))), "has another shape than its value"),
        (lambda f: f.variables[1].update(data_type=5), "has elements of type 5"),
        (lambda f: f.variables[0].update(uid=3), "'uid' is a whole number, not a text"),
        (lambda f: f.variables.append(f.variables[0]), "2 variables or functions have the identifier 'Input_x'"),
        (lambda f: f.functions[0].pop("op"), "the function 'F1' has no 'op'"),
        (lambda f: f.functions[0].update(op=57), "the function 'F1' has no 'block_function_composite'"),
        (lambda f: f.functions[0].update(inputs=["Input_x"]), "Plus 'z' has 1 inputs"),
    ],
)
def test_models_that_contradict_themselves(change, message):
    found = refused(changed(change))
    assert message in found
    assert "cannot be used" in found or "is damaged at byte " in found


def test_damage_is_located():
    content = changed(lambda f: None)
    for at in range(4, len(content), 97):
        found = refused(content[:at])
        assert "is damaged at byte " in found
        assert int(found.split("at byte ")[1].split(":")[0]) <= at
    value = np.array([1, 2, 3], np.float32).tobytes()
    assert "2 values do not fit the shape [3]" in refused(
        content.replace(v.chunk(4, v.chunk(1, value)), v.chunk(4, v.chunk(1, value[:8] + b"") + b"\x10\x01\x10\x01"))
    )
    start = content.find(value)
    assert "is damaged at byte" in refused(content[: start - 1] + b"\xff" + content[start:])


def test_deep_nesting_is_an_error():
    content = b""
    for _ in range(10_000):
        content = v.key(2, 2) + v.varint(len(content) + 0) + content
    table = v.number(1, 1) + v.chunk(2, v.chunk(1, b"a") + v.chunk(2, v.number(2, 10) + b""))
    inner = b""
    for _ in range(200):
        inner = v.chunk(2, v.chunk(1, b"a") + v.chunk(2, v.number(2, 10) + v.chunk(12, inner)))
    assert "nested more than 64 deep" in refused(v.number(1, 1) + inner)
    assert "is not a model" in refused(table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("BVersion".encode("utf-16-le") + bytes(20), "it is a checkpoint, not a model"),
        ("BCKP".encode("utf-16-le") + bytes(20), "it is a checkpoint, not a model"),
        (struct.pack("<I", 0x636E746B) + bytes(20), "it is larger than 2 GB"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:12", "it is a pointer of Git LFS"),
    ],
)
def test_files_that_are_taken_for_models(content, message, tmp_path):
    assert message in refused(content)
    from cntkpy.networks.files.cntk_binary.recognise import is_cntk

    path = tmp_path / "m.dnn"
    path.write_bytes(content)
    assert is_cntk(path)
