"""Layers made from Python are those of BrainScript: same shapes, same start values for the same seeds."""

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.networks.builders.brainscript.build import build_program
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.program import parse_network
from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.functions import graph
from cntkpy.networks.builders.python.functions.function import combine, load_model
from cntkpy.networks.builders.python.functions.variables import (
    constant,
    input_variable,
    parameter,
    placeholder,
    sequence_input,
)
from cntkpy.networks.builders.python.operations import operators, ops
from cntkpy.networks.graph.initialize import SeedCounter


@pytest.fixture(autouse=True)
def seeds():
    graph.set_seed(1)


def brainscript(text: str):
    program = parse_network(text_of_string("{" + text + "}", "net.bs"))
    return build_program(program, "float", SeedCounter(), {"deviceId": -1.0, "traceLevel": 0.0}).network


def values(network):
    """The values of parameters in the order of their seeds."""
    return sorted(
        (node.value for node in network.nodes.values() if node.is_parameter and node.value.size > 1),
        key=lambda value: value.tolist().__repr__(),
    )


CASES = [
    (
        "h = DenseLayer {6, activation=Sigmoid} (x) ; z = DenseLayer {4} (h)",
        lambda x: layers.Dense(4)(layers.Dense(6, activation=operators.sigmoid)(x)),
    ),
    (
        "z = Sequential (DenseLayer {6, activation=Tanh} : DenseLayer {4, init='heNormal'}) (x)",
        lambda x: layers.Sequential(
            [layers.Dense(6, activation=operators.tanh), layers.Dense(4, init=layers.he_normal())]
        )(x),
    ),
    ("z = LinearLayer {4} (RecurrentLSTMLayer {3} (x))", lambda x: layers.Dense(4)(lstm(x, 0.1))),
]


def lstm(x, start):
    return layers.Recurrence(layers.LSTM(3), initial_state=start)(x)


@pytest.mark.parametrize("text, make", CASES, ids=["two layers", "Sequential", "LSTM"])
def test_start_values_are_those_of_brainscript(text, make) -> None:
    theirs = brainscript(
        f"x = Input {{5}} ; y = Input {{4}} ; {text} ; ce = CrossEntropyWithSoftmax (y, z)"
        "; featureNodes = (x) ; labelNodes = (y) ; criterionNodes = (ce) ; outputNodes = (z)"
    )
    x, y = sequence_input(5, name="x"), sequence_input(4, name="y")
    loss = operators.cross_entropy_with_softmax(make(x), y)
    ours = loss.network
    assert len(values(ours)) > 2
    for mine, other in zip(values(ours), values(theirs), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_an_explicit_seed_is_that_of_a_parameter() -> None:
    theirs = brainscript("x = Input {5} ; W = ParameterTensor {(3:5), init='heUniform', randomSeed=7} ; z = W * x")
    z = layers.Dense(3, bias=False, init=layers.he_uniform(seed=7))(input_variable(5))
    np.testing.assert_array_equal(z.parameters[0].value, theirs.nodes["W"].value)


def test_shapes_are_numpys() -> None:
    x = input_variable((3, 8, 6))
    z = layers.Convolution((3, 3), 4, pad=True)(x)
    assert z.shape == (4, 8, 6)
    assert layers.MaxPooling((2, 2), strides=(2, 1))(z).shape == (4, 4, 5)
    assert layers.Dense((5, 2))(x).shape == (5, 2)
    assert layers.Dense(5)(x).parameters[0].shape == (3, 8, 6, 5)
    assert ops.splice(x, x, axis=0).shape == (6, 8, 6)
    assert ops.reshape(x, (24, 6)).shape == (24, 6)
    assert ops.reduce_sum(x, axis=1).shape == (3, 1, 6)
    assert x[1:3].shape == (2, 8, 6)


def test_a_layer_applied_twice_has_its_parameters_once() -> None:
    layer = layers.Dense(3)
    x, y = input_variable(3, name="x"), input_variable(3, name="y")
    both = layer(x) + layer(y)
    assert len(both.parameters) == 2
    assert {one.name for one in both.arguments} == {"x", "y"}


def test_a_layer_has_its_own_parameters() -> None:
    lower, upper = layers.Dense(3), layers.Recurrence(layers.LSTM(2))
    x = sequence_input(4)
    z = layers.Dense(1)(upper(lower(x)))
    assert sorted(one.shape for one in lower.parameters) == [(3,), (4, 3)]
    assert sorted(one.shape for one in upper.parameters) == [(2, 8), (3, 8), (8,)]
    assert {*lower.parameters, *upper.parameters} < set(z.parameters)
    assert layers.Sequential([])(x) == x


def test_a_function_of_placeholders_has_parameters() -> None:
    known, unknown = layers.Dense(2)(placeholder(3)), layers.Dense(2)(placeholder())
    assert [one.value.shape for one in known.parameters] == [(3, 2), (2,)]
    assert len(unknown.parameters) == 2
    weight = known.W.value
    applied = known(input_variable(3))
    np.testing.assert_array_equal(applied.W.value, weight)
    assert set(applied.parameters) == set(known.parameters)


def test_clones() -> None:
    x = input_variable(3, name="x")
    z = layers.Dense(2)(x)
    z.parameters[0].value = np.ones(z.parameters[0].shape)
    shared, copied, frozen = z.clone("share"), z.clone("clone"), z.clone("freeze")
    assert shared.parameters == z.parameters
    assert copied.parameters != z.parameters
    np.testing.assert_array_equal(copied.parameters[0].value, z.parameters[0].value)
    assert frozen.parameters == ()
    assert len(frozen.constants) == 2
    other = input_variable(3, name="other")
    assert z.clone("share", {x: other}).arguments == (other,)
    assert z(other).arguments == (other,)


def test_names_are_the_same_for_the_same_network() -> None:
    def make():
        return layers.Sequential([layers.Dense(4, activation=operators.relu), layers.Dense(3, name="z")])(
            input_variable(5, name="x")
        )

    assert list(make().network.nodes) == list(make().network.nodes)
    assert make().find_by_name("z").name == "z"
    assert make().find_by_name("nothing") is None


def test_default_options() -> None:
    with layers.default_options(activation=operators.relu, init=layers.uniform(0.5)):
        z = layers.Dense(4)(input_variable(3))
    assert z.block_root.op_name == "ReLU"
    assert abs(z.parameters[-1].value).max() <= 0.5


def test_a_model_file_keeps_the_function(tmp_path) -> None:
    x = input_variable(3, name="x")
    z = combine(layers.Dense(2, name="z")(x))
    z.save(tmp_path / "m")
    back = load_model(tmp_path / "m")
    assert [one.name for one in back.outputs] == ["z"]
    np.testing.assert_array_equal(back.find_by_name("W").value, z.find_by_name("W").value)
    other = layers.Dense(4, name="z")(x)
    before = [one.value for one in other.parameters]
    with pytest.raises(UserError, match=r"'Dense.*' of the model .* has the shape \(.*2,?\), that of this function"):
        other.restore(tmp_path / "m")
    assert all((one.value == kept).all() for one, kept in zip(other.parameters, before, strict=True))


def test_what_is_wrong_is_said() -> None:
    x = input_variable(3, name="x")
    with pytest.raises(UserError, match="not a step of a recurrence"):
        layers.Recurrence(layers.Dense(3))
    with pytest.raises(UserError, match="no parameter 'height'"):
        operators.operator("DenseLayer", 3, height=2)
    with pytest.raises(UserError, match="shapes do not match"):
        _ = operators.plus(x, constant([1.0, 2.0])).network
    with pytest.raises(UserError, match="needs a shape"):
        parameter()
    with pytest.raises(UserError, match="recurrence that depends on no input"):
        _ = layers.Recurrence(lambda h, x: h)(sequence_input(3)).network
