"""The order of arguments, parameters, constants and inputs: that of a walk, as CNTK 2.7 has it (W2, P16)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.networks.graph.written import Written


def names(functions: Any) -> str:
    """The names of some functions, a space between them."""
    return " ".join(one.name for one in functions)


def inputs(text: str, shape: Any = 2) -> list[Any]:
    """Inputs with these names, made in this order."""
    return [C.input_variable(shape, name=name) for name in text.split()]


def test_arguments_are_fed_as_the_operands_were_written() -> None:
    y, x = inputs("y x", 1)
    f = C.minus(x, y)
    assert names(f.arguments) == "x y"
    assert f(C.constant([5.0]), C.constant([3.0])).eval().tolist() == [2.0]


def test_the_walk_is_depth_first() -> None:
    a, b, c = inputs("a b c")
    assert names(((c - a) / b).arguments) == "c a b"
    assert names((b / (c - a)).arguments) == "b c a"
    assert names((a * (b + a) - c).arguments) == "a b c"
    assert names(C.combine([b - c, a]).arguments) == "b c a"


OPERATORS: list[tuple[Callable[..., Any], str]] = [
    (lambda a, b, c, n, s: C.times(C.reshape(b, (1, 2)), C.reshape(a, (2, 1))), "b a"),
    (lambda a, b, c, n, s: C.times_transpose(b, C.reshape(a, (1, 2))), "b a"),
    (lambda a, b, c, n, s: C.cross_entropy_with_softmax(b, a), "b a"),
    (lambda a, b, c, n, s: C.cross_entropy_with_softmax(b, a) * 2, "b a"),
    (lambda a, b, c, n, s: C.classification_error(b, a), "b a"),
    (lambda a, b, c, n, s: C.squared_error(b, a), "b a"),
    (lambda a, b, c, n, s: C.binary_cross_entropy(b, a), "b a"),
    (lambda a, b, c, n, s: C.weighted_binary_cross_entropy(c, b, a), "c b a"),
    (lambda a, b, c, n, s: C.clip(c, a, b), "c a b"),
    (lambda a, b, c, n, s: C.element_select(c, a, b), "c a b"),
    (lambda a, b, c, n, s: C.element_max(b, a), "b a"),
    (lambda a, b, c, n, s: C.param_relu(b, a), "b a"),
    (lambda a, b, c, n, s: C.gather(b, a), "a b"),
    (lambda a, b, c, n, s: C.splice(c, a, b), "c a b"),
    (lambda a, b, c, n, s: C.sum([c, a, b]), "c a b"),
    (lambda a, b, c, n, s: C.pow(b, a), "b a"),
    (lambda a, b, c, n, s: C.log_add_exp(b, a), "b a"),
    (lambda a, b, c, n, s: C.cosine_distance(b, a), "b a"),
    (lambda a, b, c, n, s: C.sequence.gather(s, n), "s n"),
    (lambda a, b, c, n, s: C.sequence.scatter(s, n), "s n"),
    (lambda a, b, c, n, s: C.sequence.broadcast_as(a, s), "a s"),
    (lambda a, b, c, n, s: C.sequence.past_value(s, a), "s a"),
]


@pytest.mark.parametrize(("function", "expected"), OPERATORS)
def test_operands_come_from_left_to_right(function: Callable[..., Any], expected: str) -> None:
    a, b, c = inputs("a b c")
    n, s = C.sequence.input_variable((), name="n"), C.sequence.input_variable(2, name="s")
    assert names(function(a, b, c, n, s).arguments) == expected


LAYERS: list[tuple[Any, Any, list[tuple[int, ...]]]] = [
    (lambda: C.layers.Dense(3), 2, [(2, 3), (3,)]),
    (lambda: C.layers.Sequential([C.layers.Dense(3), C.layers.Dense(4)]), 2, [(3, 4), (4,), (2, 3), (3,)]),
    (lambda: C.layers.Convolution2D((3, 3), 4), (2, 8, 8), [(4, 2, 3, 3), (4, 1, 1)]),
    (lambda: C.layers.ConvolutionTranspose2D((3, 3), 4), (2, 8, 8), [(2, 4, 3, 3), (4, 1, 1)]),
]


@pytest.mark.parametrize(("layer", "shape", "expected"), LAYERS)
def test_weights_come_before_biases_and_a_block_before_its_operands(layer: Any, shape: Any, expected: Any) -> None:
    assert [one.shape for one in layer()(C.input_variable(shape)).parameters] == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [(C.layers.RNNStep, "b W H"), (C.layers.LSTM, "b W H"), (C.layers.GRU, "b W H H1")],
)
def test_parameters_of_recurrences(cell: Any, expected: str) -> None:
    assert names(C.layers.Recurrence(cell(3))(C.sequence.input_variable(2)).parameters) == expected


def test_parameters_of_normalisation() -> None:
    z = C.layers.BatchNormalization()(C.input_variable(2))
    assert (
        names(z.parameters) == "scale bias"
        and names(z.constants) == "aggregate_mean aggregate_variance aggregate_count"
    )


def test_blocks_are_one_operation() -> None:
    p, q = C.placeholder(name="p"), C.input_variable(1, name="q")
    w, b, more = (C.parameter(shape, init=1, name=name) for name, shape in (("w", (1, 1)), ("b", 1), ("more", 1)))
    block = C.as_block(C.times(p, w) + b, [(p, q)], "dense")
    assert names(block.root_function.inputs) == "w b q"
    assert names((block + more).parameters) == "w b more"
    assert names((more + block).parameters) == "more w b"


def test_inputs_of_a_function_are_leaves_and_those_of_its_root_are_operands() -> None:
    x, w, b = C.input_variable(2, name="x"), C.parameter((2, 2), name="w"), C.parameter(2, name="b")
    z = C.plus(C.times(x, w), b)
    assert names(z.inputs) == "x w b"
    product, other = z.root_function.inputs
    assert product.is_output and other == b
    assert names(product.owner.inputs) == "x w"


def test_placeholders_and_python_functions() -> None:
    p, q = C.placeholder(name="p"), C.placeholder(name="q")
    assert names((q - p).placeholders) == "q p"
    assert (q - p)(C.constant(5.0), C.constant(3.0)).eval() == 2
    f = C.Function(lambda p, q: q - p)
    assert names(f.signature) == "p q"
    assert f(C.constant(5.0), C.constant(3.0)).eval() == -2
    a, b = inputs("b a")
    assert names(f(a, b).arguments) == "b a"  # a Python function keeps the order of its parameters


@pytest.mark.parametrize("method", ["clone", "share", "freeze"])
def test_clones_keep_the_order(method: str) -> None:
    a, b, c = inputs("a b c")
    z = C.cross_entropy_with_softmax(C.layers.Dense(2)(c) / b, a)
    copy = z.clone(method)
    assert names(copy.arguments) == names(z.arguments) == "c b a"
    assert names(copy.parameters or copy.constants) == names(z.parameters) == "W b"


def test_model_files_keep_the_order(tmp_path: Path) -> None:
    a, b = inputs("a b")
    z = C.layers.Dense(2, name="upper")(C.layers.Dense(2)(b) - a)
    z.save(str(tmp_path / "m"))
    again = C.load_model(str(tmp_path / "m"))
    assert names(again.arguments) == names(z.arguments) == "b a"
    for one, other in zip(again.parameters, z.parameters, strict=True):
        np.testing.assert_array_equal(one.value, other.value)


def loop(x: Any) -> Any:
    """A recurrence by a placeholder: tanh(past_value(h) R + x I)."""
    h = C.placeholder(name="h")
    left = C.times(C.sequence.past_value(h), C.parameter((3, 3), name="R"))
    value = C.tanh(left + C.times(x, C.parameter((3, 3), name="I")))
    return value.replace_placeholders({h: value.output})


def shared(x: Any, y: Any) -> Any:
    """One layer at three places."""
    layer = C.layers.Dense(3, name="sh")
    return layer(layer(x)) + layer(y)


LAYERS = C.layers
NETWORKS: list[tuple[Callable[[Any, Any, Any], Any], str]] = [
    (lambda x, y, s: C.plus(C.times(x, C.parameter((3, 2), name="w")), C.parameter(2, name="v")), "x w v"),
    (lambda x, y, s: LAYERS.Dense(2, activation=C.tanh)(x), "W b x"),
    (lambda x, y, s: LAYERS.Sequential([LAYERS.Embedding(4), LAYERS.Dense(2)])(x), "W b E x"),
    (lambda x, y, s: LAYERS.Convolution((2,), 2, reduction_rank=0)(x), "W b x"),
    (lambda x, y, s: LAYERS.Recurrence(LAYERS.LSTM(2))(s), "b W H s"),
    (lambda x, y, s: LAYERS.Recurrence(LAYERS.GRU(2))(s), "b W H H1 s"),
    (lambda x, y, s: C.squared_error(LAYERS.Dense(3, bias=False)(x), y), "W x y"),
    (lambda x, y, s: LAYERS.LayerNormalization(name="n")(x) * C.parameter(3, name="g"), "scale bias x g"),
    (lambda x, y, s: loop(s), "R s I"),
    (lambda x, y, s: shared(x, y), "W b x y"),
    (lambda x, y, s: C.splice(y - x, C.parameter(1, name="q"), LAYERS.Dense(2)(y)), "y x q W b"),
    (lambda x, y, s: C.combine([LAYERS.Dense(2)(y), x / y]), "W b y x"),
]
"""Networks, and their leaves in the order of CNTK 2.7's walk, reasoned by hand.

The walk is depth first, operands from left to right. A block is one operation, which has its parameters before its
operands; parameters of a block come in the order of a walk inside of it. Constants without a name are left out.
"""


@pytest.mark.parametrize(("network", "expected"), NETWORKS)
def test_leaves_come_in_the_order_of_the_walk(
    network: Callable[[Any, Any, Any], Any], expected: str, tmp_path: Path
) -> None:
    x, y, s = C.input_variable(3, name="x"), C.input_variable(3, name="y"), C.sequence.input_variable(3, name="s")
    z = network(x, y, s)
    z.save(str(tmp_path / "model"))
    again = C.load_model(str(tmp_path / "model"))
    again.save(str(tmp_path / "model2"))
    for function in (z, z.clone("share"), again, again.clone("clone"), C.load_model(str(tmp_path / "model2"))):
        assert names(leaf for leaf in function.inputs if not leaf.is_constant) == expected
        assert names(function.arguments) == " ".join(name for name in expected.split() if name in "xys")
        assert names(function.parameters) == " ".join(name for name in expected.split() if name not in "xys")


def structure(root: Any) -> list[tuple[str, str, bool, str]]:
    """By function of a walk its operation, name, whether it is a block, and its operands."""
    functions = C.logging.graph.depth_first_search(root, lambda function: function.is_output)
    return [(one.op_name, one.name, one.is_block, names(one.inputs)) for one in functions]


def test_a_model_file_keeps_blocks_and_names(tmp_path: Path) -> None:
    x = C.input_variable(3, name="x")
    z = C.relu(C.layers.Sequential([C.layers.Dense(4, name="first"), C.layers.Dense(2)])(x) + 1, name="top")
    z.save(str(tmp_path / "model"))
    again = C.load_model(str(tmp_path / "model"))
    assert structure(again) == structure(z)
    assert [part[0] for part in structure(z)] == ["ReLU", "Plus", "Dense", "Dense"]
    assert again.first.W.shape == (3, 4) and again.find_by_name("first").name == "first"
    assert names(again.find_all_with_name("W")) == "W W" and again.outputs[0].name == "top"
    (block,) = [part for part in C.logging.graph.depth_first_search(again, lambda part: part.is_block) if part.name]
    assert names(leaf for _, leaf in block.block_arguments_mapping) == "x"
    data = np.ones((1, 3), np.float32)
    assert np.array_equal(again(data), z(data))


@pytest.mark.parametrize(
    "written",
    ["3", '{"name": 3}', '{"operands": "a"}', '{"operands": [3]}', '{"block": []}', '{"block": {"number": 1}}'],
)
def test_what_a_model_file_says_of_the_program_is_checked(written: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    (C.input_variable(3, name="x") + C.input_variable(3, name="y")).save(str(path))
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    graph = json.loads(header["__metadata__"]["cntkpy"])
    graph["nodes"][0]["written"] = json.loads(written)
    header["__metadata__"]["cntkpy"] = json.dumps(graph)
    changed = json.dumps(header).encode()
    path.write_bytes(len(changed).to_bytes(8, "little") + changed + data[8 + length :])
    with pytest.raises(UserError, match="is damaged: its graph cannot be read"):
        C.load_model(str(path))


def test_what_a_model_file_keeps_of_the_program() -> None:
    written = Written("a", ("b",), 1, "Dense", ("c",))
    assert Written.of_json(written.as_json()) == written
    assert Written.of_json(None) is None and Written().as_json() == {"name": ""}


def test_the_count_of_a_batch_normalisation_is_its_last_operand() -> None:
    x = C.input_variable(3)
    layer = C.layers.BatchNormalization()(x)
    names = ["scale", "bias", "aggregate_mean", "aggregate_variance", "aggregate_count"]
    assert [variable.name for variable in layer.constants] == names[2:]
    assert [variable.name for variable in layer.inputs[:5]] == names and layer.inputs[5] == x
    assert [variable.name for variable in layer.block_root.inputs] == ["", *names]
    C.Trainer(layer, C.reduce_sum(layer), C.sgd(layer.parameters, 0.1)).train_minibatch(
        {x: np.eye(3, dtype=np.float32)}
    )
    count = layer.constants[-1]
    assert (count.value, layer.clone("clone").constants[-1].value) == (3, 3)
    count.value = 100
    assert layer.clone("share").constants[-1] == count and layer.constants[-1].value == 100
    number = C.constant(7, name="n")
    by_hand = C.batch_normalization(x, *(C.constant(1, 3) for _ in range(4)), spatial=False, running_count=number)
    assert by_hand.constants[-1] == number and by_hand.root_function.inputs[-1] == number
