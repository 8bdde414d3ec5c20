"""Layers as programs for CNTK 2 make them: their defaults, start values and parameters."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError


def test_layers_follow_the_defaults_of_the_block() -> None:
    x = C.input_variable((3, 4, 4))
    with C.layers.default_options(map_rank=1, epsilon=0.5, use_peepholes=True):
        normal = C.layers.BatchNormalization()(x)
        cell = C.layers.Recurrence(C.layers.LSTM(2))(C.sequence.input_variable(3))
    assert {one.value.size for one in normal.parameters} == {3}
    assert {one.name for one in cell.parameters} == {"W", "H", "b", "Ci", "Cf", "Co"}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "relu": (C.relu, lambda x: np.maximum(x, 0)),
    "none": (None, lambda x: x),
    "own": (lambda x: C.softplus(x) - 0.5, lambda x: np.log1p(np.exp(x)) - 0.5),
    "tanh": (C.tanh, np.tanh),
}


def expected_lstm(p, x, f, peepholes):
    size = len(p["b"]) // 4
    c = np.zeros(size)
    h = np.zeros(p["H"].shape[0])
    for step in x:
        gates = (p["b"] + step @ p["W"] + h @ p["H"]).reshape(4, size)
        see = (lambda name, cell: p[name] * cell) if peepholes else (lambda name, cell: 0)
        new = sigmoid(gates[2] + see("Cf", c)) * c + sigmoid(gates[0] + see("Ci", c)) * f(gates[1])
        out = sigmoid(gates[3] + see("Co", new))
        c, h = new, out * f(new)
        h = h @ p["Wmr"] if "Wmr" in p else h
        yield h


def expected_gru(p, x, f):
    size = len(p["b"]) // 3
    h = np.zeros(size)
    for step in x:
        z, r, c = (p["b"] + step @ p["W"]).reshape(3, size)
        of_z, of_r = (h @ p["H"]).reshape(2, size)
        z, r = sigmoid(z + of_z), sigmoid(r + of_r)
        h = (1 - z) * f(c + (r * h) @ p["H1"]) + z * h
        yield h


@pytest.mark.parametrize(
    "name", ["own", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("relu", "none", "tanh"))]
)
@pytest.mark.parametrize("by_default", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_cell_with_another_activation(name: str, by_default: bool) -> None:
    activation, f = ACTIVATIONS[name]
    x = C.sequence.input_variable(3, dtype=np.float64)
    data = np.random.default_rng(3).normal(size=(4, 3))
    below = C.tanh(x)  # stays
    options = {} if by_default else {"activation": activation}
    with C.layers.default_options(**({"activation": activation} if by_default else {})):
        cells = {
            "lstm": C.layers.LSTM(2, **options),
            "peepholes": C.layers.LSTM(2, cell_shape=5, use_peepholes=True, **options),
            "gru": C.layers.GRU(2, **options),
        }
    layers = {kind: C.layers.Recurrence(cell) for kind, cell in cells.items()}
    first, again = (
        {kind: layer(below) for kind, layer in layers.items()} for _ in range(2)
    )  # the layers applied twice
    values = C.combine([*first.values(), *again.values()]).eval({x: [data]})
    steps = np.tanh(data)
    for kind, z in first.items():
        p = {parameter.name: parameter.value for parameter in z.parameters}
        wanted = expected_gru(p, steps, f) if kind == "gru" else expected_lstm(p, steps, f, kind != "lstm")
        wanted = np.stack(list(wanted))
        np.testing.assert_allclose(values[z.output][0], wanted, rtol=1e-6)
        np.testing.assert_allclose(values[again[kind].output][0], wanted, rtol=1e-6)
    totals = [C.sequence.reduce_sum(C.reduce_sum(z)) for z in first.values()]
    weights = [next(parameter for parameter in z.parameters if parameter.name == "W") for z in first.values()]
    gradients = C.sum(totals).grad({x: [data]}, wrt=weights)
    starts = [weight.value.copy() for weight in weights]
    directions = [np.random.default_rng(4).normal(size=start.shape) for start in starts]
    moved = []
    for step in (1e-5, -1e-5):
        for weight, start, direction in zip(weights, starts, directions, strict=True):
            weight.value = start + step * direction
        sums = C.combine(totals).eval({x: [data]})
        moved.append([sums[total.output].sum() for total in totals])
    for weight, direction, above, under in zip(weights, directions, *moved, strict=True):
        assert abs((above - under) / 2e-5 - (gradients[weight] * direction).sum()) < 1e-5 * max(1, abs(above))


def test_steps_of_one_state_may_be_stabilised() -> None:
    x = C.sequence.input_variable(3)
    for cell in (C.layers.GRU, C.layers.RNNStep):
        plain, stable = (C.layers.Recurrence(cell(2, enable_self_stabilization=on))(x) for on in (False, True))
        assert len(stable.parameters) == len(plain.parameters) + 1
        (alpha,) = [one for one in stable.parameters if one.name == "alpha"]
        data = [np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)]
        for one, other in zip(
            *(
                sorted((p for p in z.parameters if p != alpha), key=lambda p: (p.name, p.shape))
                for z in (plain, stable)
            ),
            strict=True,
        ):
            one.value = other.value
        alpha.value = np.log(np.exp(4.0) - 1) / 4  # a factor of 1
        np.testing.assert_allclose(stable.eval(data)[0], plain.eval(data)[0], rtol=1e-5)
        alpha.value = 3.0
        assert abs(stable.eval(data)[0] - plain.eval(data)[0]).max() > 1e-3


def test_a_bias_starts_as_it_is_told() -> None:
    x, image = C.input_variable(4), C.input_variable((2, 5, 5))
    assert C.layers.Dense(3, init_bias=np.array([1, 2, 3]))(x).b.value.tolist() == [1, 2, 3]
    drawn = C.layers.Dense(50, init_bias=C.normal(0.1, seed=3))(x).b.value
    assert 0.05 < drawn.std() < 0.2
    drawn = C.layers.Convolution((3, 3), 4, init_bias=C.uniform(0.5, seed=3))(image).b.value
    assert 0 < abs(drawn).max() <= 0.5


def test_a_convolution_without_a_number_of_filters_has_no_axis_for_them() -> None:
    assert C.layers.Convolution((3, 3))(C.input_variable((2, 5, 6))).shape == (3, 4)


def test_weights_of_an_embedding_say_its_shape() -> None:
    weights = np.ones((3, 2), np.float32)
    for layer in (C.layers.Embedding(2, weights=weights), C.layers.Embedding(weights=weights)):
        assert layer(C.input_variable(3)).shape == (2,)
    with pytest.raises(UserError, match=r"weights \(3, 2\) have vectors of the shape \(2,\), not 5"):
        C.layers.Embedding(5, weights=weights)


def test_a_global_pooling_pads_never() -> None:
    data = np.random.default_rng(1).normal(size=(2, 3, 4, 5)).astype(np.float32)
    with C.layers.default_options(pad=True):
        x = C.input_variable((3, 4, 5))
        largest, mean = C.layers.GlobalMaxPooling()(x), C.layers.GlobalAveragePooling()(x)
    np.testing.assert_allclose(largest.eval(data), data.max((2, 3), keepdims=True))
    np.testing.assert_allclose(mean.eval(data), data.mean((2, 3), keepdims=True), rtol=1e-5)


def test_batch_normalisation_has_the_names_and_shapes_of_cntk() -> None:
    for rank, count in ((None, 60), (1, 3)):
        z = C.layers.BatchNormalization(map_rank=rank, init_scale=2)(C.input_variable((3, 4, 5)))
        assert {one.name: one.shape for one in z.parameters} == {"scale": (count,), "bias": (count,)}
        assert {one.name: one.shape for one in z.constants} == {
            "aggregate_mean": (count,),
            "aggregate_variance": (count,),
            "aggregate_count": (),
        }
        assert (z.scale.value == 2).all() and (z.bias.value == 0).all()


def test_layer_normalisation() -> None:
    x = C.input_variable(4)
    z = C.layers.LayerNormalization(initial_scale=2, initial_bias=1, epsilon=0.5)(x)
    data = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    centred = data - data.mean(axis=1, keepdims=True)
    expected = 2 * centred / (data.std(axis=1, keepdims=True) + 0.5) + 1
    np.testing.assert_allclose(z.eval({x: data}), expected, rtol=1e-4)
    assert sorted((parameter.name, parameter.shape) for parameter in z.parameters) == [("bias", (4,)), ("scale", (4,))]


def test_reductions_take_keepdims_or_a_name_third() -> None:
    x = C.input_variable((2, 3))
    assert C.reduce_sum(x, 0, False).shape == (3,)
    assert C.reduce_max(x, 0, "largest").name == "largest"
    assert (C.reduce_l2(x, 0, False).shape, C.reduce_l2(x, 0, "n").name) == ((3,), "n")
    assert (C.sum(x, x).shape, C.mean([x, x], "mean").name) == ((2, 3), "mean")
    assert [C.flatten(x, axis).shape for axis in (None, 0, 1)] == [(1, 6), (1, 6), (2, 3)]


def test_the_bias_of_an_lstm_has_its_name() -> None:
    z = C.layers.Recurrence(C.layers.LSTM(2))(C.sequence.input_variable(3))
    assert ({one.name for one in z.parameters}, z.b.shape) == ({"W", "H", "b"}, (8,))


@pytest.mark.parametrize("backwards", [False, True])
def test_a_recurrence_may_count_steps(backwards: bool) -> None:
    x = C.sequence.input_variable(2)
    steps = C.layers.Recurrence(lambda h, x: h + 1, backwards)(x)
    long, short = (steps * x).eval({x: [np.ones((3, 2), np.float32), np.ones((1, 2), np.float32)]})
    assert long[:, 0].tolist() == ([3, 2, 1] if backwards else [1, 2, 3])
    assert short[:, 1].tolist() == [1]


def test_a_state_for_each_step_is_no_start() -> None:
    x = C.sequence.input_variable(2, sequence_axis=C.Axis("x"))
    like = C.sequence.input_variable(3, sequence_axis=C.Axis("like"))
    decoded = C.layers.RecurrenceFrom(C.layers.GRU(4))(C.layers.Recurrence(C.layers.GRU(4), name="states")(x), like)
    with pytest.raises(UserError, match=r"takes one sample of 'states' for each .* has 2\n"):
        decoded.eval({x: [np.ones((2, 2), np.float32)], like: [np.ones((3, 3), np.float32)]})


DELAYS = {
    "past": (lambda x, start: C.sequence.past_value(x, start, 2), lambda a, v: np.vstack([[v, v], a])[: len(a)]),
    "future": (lambda x, start: C.layers.Delay(-1, start)(x), lambda a, v: np.vstack([a, [v]])[1:]),
}


@pytest.mark.parametrize("which", DELAYS)
def test_a_delay_may_start_with_a_value_of_each_sequence(which: str) -> None:
    make, expected = DELAYS[which]
    x, start = C.sequence.input_variable(2), C.input_variable(2)
    data, values = [np.arange(6.0).reshape(3, 2), np.ones((1, 2))], np.array([[7.0, 8.0], [9.0, 0.5]])
    found = make(x, start).eval({x: data, start: values})
    for one, a, v in zip(found, data, values, strict=True):
        np.testing.assert_array_equal(one, expected(a, v))
    for placeholder in (C.placeholder(), C.placeholder(2)):
        later = make(placeholder, start).replace_placeholders({placeholder: x}).eval({x: data, start: values})
        assert [one.tolist() for one in later] == [one.tolist() for one in found]


def test_a_loop_may_start_with_a_value_of_each_sequence() -> None:
    x, start = C.sequence.input_variable(2), C.input_variable(2)
    for before, first in ((C.placeholder(), start), (C.placeholder(2), start), (C.placeholder(), C.placeholder())):
        z = C.sequence.past_value(before, first) * 0.5 + x
        given = {before: z.output} if first is start else {before: z.output, first: start}
        (found,) = z.replace_placeholders(given).eval({x: [np.ones((3, 2))], start: [[4, 8]]})
        assert found.tolist() == [[3, 5], [2.5, 3.5], [2.25, 2.75]]


def test_a_unique_axis_is_one_of_its_own() -> None:
    one, other = (C.sequence.input_variable(1, sequence_axis=C.Axis.new_unique_dynamic_axis("a")) for _ in range(2))
    assert one.dynamic_axes != other.dynamic_axes
    sums = C.sequence.reduce_sum(one) + C.sequence.reduce_sum(other)
    found = sums.eval({one: [np.ones((2, 1))], other: [np.ones((5, 1))]})
    assert found.tolist() == [[7]]


def test_the_time_axis_of_an_input_is_among_its_axes() -> None:
    axes = [C.Axis.default_batch_axis(), C.Axis("words")]
    words, others = C.input_variable(2, dynamic_axes=axes), C.sequence.input_variable(2)
    typed = C.input_variable(**C.layers.typing.SequenceOver[C.Axis("words")][C.layers.typing.SparseTensor[2]])
    assert words.dynamic_axes == typed.dynamic_axes == tuple(axes)
    assert C.input_variable(2, dynamic_axes=others.dynamic_axes).dynamic_axes == others.dynamic_axes
    found = C.sequence.last(words) + C.sequence.last(others)
    data = {words: [np.ones((2, 2), np.float32)], others: [np.ones((5, 2), np.float32)]}
    np.testing.assert_array_equal(found.eval(data), [[2, 2]])


def test_a_stack_of_recurrent_layers() -> None:
    x = C.sequence.input_variable(4)
    weights = C.parameter((C.InferredDimension, 3), init=C.glorot_uniform())
    stack = C.optimized_rnnstack(x, weights, 3, 2, bidirectional=True, recurrent_op="gru")
    assert stack.eval({x: [np.ones((2, 4), np.float32)]})[0].shape == (2, 6)
    assert C.dropout([10.0, 20.0], 0.5).eval().tolist() == [10, 20]


def test_a_step_may_have_more_than_two_states() -> None:
    """P23: each state is the one before of the next; with starts of their own."""
    s = C.sequence.input_variable(2)
    data = [np.float32([[1, 2], [3, 4], [5, 6]])]

    def step(a, b, c, x):
        return a + x, b + a, c + b

    layer = C.layers.Recurrence(step, initial_state=[0, 1, 2], return_full_state=True)
    a, b, c = (found[0].tolist() for found in layer(s).eval({s: data}).values())
    assert a == [[1, 2], [4, 6], [9, 12]]
    assert b == [[1, 1], [2, 3], [6, 9]]
    assert c == [[3, 3], [4, 4], [6, 7]]
    assert len(C.layers.Fold(lambda a, b, c, d, x: (x, a, b, c), return_full_state=True)(s).outputs) == 4


def test_a_stabilizer_has_a_number_that_is_called_alpha() -> None:
    """The factor is ln(1 + e^(s alpha)) / s."""
    x = C.input_variable(2)
    layer = C.layers.Stabilizer(steepness=2)
    z = layer(x)
    (alpha,) = z.parameters
    assert alpha.name == "alpha" and alpha.shape == ()
    alpha.value = 0.3
    data = np.array([[1, 2]], np.float32)
    factor = np.log(1 + np.exp(2 * 0.3)) / 2
    assert np.allclose(z.eval({x: data}), data * factor)
    slope = 1 / (1 + np.exp(-2 * 0.3))
    assert np.allclose(z.grad({x: data}, wrt=[alpha]), data.sum() * slope)


def test_a_number_to_the_power_of_a_function() -> None:
    x = C.input_variable(2, needs_gradient=True)
    data = np.array([[1, 3]], np.float32)
    assert np.allclose((2**x).eval({x: data}), [[2, 8]])
    assert np.allclose((2**x).grad({x: data}, wrt=[x]), np.log(2) * 2**data)


def test_types_of_sequences_may_be_derived_from() -> None:
    class Words(C.layers.typing.Sequence):
        pass

    f = C.Function.with_signature(Words[C.layers.typing.Tensor[2]])(lambda x: x + 1)
    (x,) = f.arguments
    assert x.shape == (2,) and [axis.is_ordered for axis in x.dynamic_axes] == [False, True]


def test_layers_and_functions_are_composed_from_right_to_left() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    double = C.element_times(y, 2)
    assert (C.layers.Dense(3) << C.layers.Dense(4))(x).shape == (3,)
    assert np.array_equal((C.relu(x) << double).eval({y: np.array([[1, -2]], np.float32)}), [[2, 0]])


def test_types_are_written_as_programs_write_them() -> None:
    tensor, sequence = C.layers.typing.Tensor[2, 3], C.layers.typing.Sequence
    over = C.layers.typing.SequenceOver[C.Axis("i")][C.layers.typing.Tensor[3]]
    assert [str(kind) for kind in (tensor, sequence[tensor], over)] == [
        "Tensor[2, 3]", "Sequence[Tensor[2, 3]]", "SequenceOver[i][Tensor[3]]",
    ]  # fmt: skip
    variables = C.sequence.input_variable(2), C.input_variable(4, is_sparse=True), C.constant(3.0)
    assert [str(x.type) for x in variables] == ["Sequence[Tensor[2]]", "SparseTensor[4]", "Tensor[]"]


def test_a_signature_of_anything_waits_for_its_inputs() -> None:
    last = C.Function.with_signature(C.layers.typing.Sequence[C.layers.typing.tensor])(lambda x: C.sequence.last(x))
    assert last(C.sequence.input_variable((2, 3))).shape == (2, 3)


def test_default_arguments_of_a_function_keep_their_values() -> None:
    @C.Function
    def scaled(x, factor=3):
        return x * factor

    x = C.input_variable(2)
    z = scaled(x)
    assert len(scaled.signature) == 1
    assert np.array_equal(z.eval({x: np.array([[1, 2]], np.float32)}), [[3, 6]])


def test_arguments_of_steps_and_parameters_of_stabilizers_have_the_names_of_cntk() -> None:
    lstm = C.layers.LSTM(3, use_peepholes=True, enable_self_stabilization=True)
    assert [argument.name for argument in lstm.signature] == ["dh", "dc", "x"]
    assert [[a.name for a in step.signature] for step in (C.layers.GRU(2), C.layers.RNNStep(2))] == [["dh", "x"]] * 2
    names = [parameter.name for parameter in C.layers.Recurrence(lstm)(C.sequence.input_variable(2)).parameters]
    assert sorted(names) == ["Cf", "Ci", "Co", "H", "W", "alpha", "alpha", "alpha", "b"]
