"""Functions of programs as source: values of `eval`, and gradients, in both frameworks."""

import pytest

import cntkpy.compat.cntk as C
from cntkpy.networks.source.check import check

from .networks import source_of

pytest.importorskip("jax")


def attention_over(query):
    keys = C.sequence.input_variable(3, name="keys", sequence_axis=C.Axis("keys"))
    return C.layers.AttentionModel(4)(keys, query)


def decoder():
    """Each step of a loop looks at all steps of another sequence, which a loop of equally named steps has made."""
    source = C.sequence.input_variable(3, name="given", sequence_axis=C.Axis("given"))
    written = C.sequence.input_variable(2, name="written", sequence_axis=C.Axis("written"))
    encoded = C.layers.Recurrence(C.layers.LSTM(3), go_backwards=True)(source)
    cell, attention = C.layers.LSTM(3), C.layers.AttentionModel(4)

    @C.Function
    def step(h, c, x):
        return cell(h, c, C.splice(x, attention(encoded, h)))

    return C.layers.Recurrence(step)(written)


def softmax_along_time():
    x = C.sequence.input_variable(3, name="x")
    return C.sequence.reduce_sum(C.sequence.softmax(C.layers.Dense(1)(x)) * x)


def stabilized():
    cell = C.layers.LSTM(4, use_peepholes=True, enable_self_stabilization=True)
    return C.layers.Sequential([C.layers.Stabilizer(), C.layers.Recurrence(cell)])(C.sequence.input_variable(3))


def windows():
    """A convolution along time without padding: a sequence has three steps at least."""
    x = C.sequence.input_variable(3, name="x")
    return C.sequence.reduce_max(C.layers.Convolution(3, 4, sequential=True, activation=C.relu, pad=False)(x))


PROGRAMS = {
    "attention_of_samples": lambda: attention_over(C.input_variable(2, name="query")),
    "attention_of_a_state": lambda: attention_over(C.layers.Fold(C.layers.GRU(2))(C.sequence.input_variable(2))),
    "decoder": decoder,
    "softmax_along_time": softmax_along_time,
    "stabilized": stabilized,
    "windows": windows,
}


@pytest.mark.sampled
@pytest.mark.parametrize("framework", ["jax", pytest.param("pytorch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name, framework, tmp_path):
    if framework == "pytorch":
        pytest.importorskip("torch")
    function = PROGRAMS[name]()
    function.save(str(tmp_path / "model"))
    network = C.load_model(str(tmp_path / "model")).network
    differences = check(source_of(network, framework=framework))
    assert differences
    assert all(difference.allowed for difference in differences), differences
