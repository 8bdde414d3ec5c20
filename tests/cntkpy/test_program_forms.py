"""How programs for CNTK 2 call things: by position, by name, with other forms of the same argument."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError

F = np.float32
Tensor, Sequence = C.layers.typing.Tensor, C.layers.typing.Sequence


# --------------------------------------------------------------------------------------------- signatures


def test_a_layer_whose_signature_is_given_has_values() -> None:
    """The documentation's examples of layers of pictures call them with lists of pictures."""
    picture = np.array([[[3, 5, 2, 6], [4, 2, 8, 3], [1, 6, 4, 7], [7, 3, 5, 9]]])
    layer = C.layers.AveragePooling((2, 2), strides=2)
    layer.update_signature((1, 4, 4))
    for data in (picture, picture[None], [[picture]]):
        assert layer(data).tolist() == [[[[3.5, 4.75], [4.25, 6.25]]]]
    whole = C.layers.GlobalMaxPooling()
    whole.update_signature((1, 4, 4))
    assert whole(picture).tolist() == [[[[9]]]]
    assert [one.shape for one in whole.arguments] == [(1, 4, 4)]


def test_a_normalised_layer_has_the_mean_and_the_deviation_of_its_parameters() -> None:
    layer = C.layers.LayerNormalization(initial_scale=2, initial_bias=1)
    layer.update_signature(4)
    np.testing.assert_allclose(layer([np.array([4, 0, 0, 4])]), [[3, -1, -1, 3]], atol=1e-3)


def test_a_signature_of_sequences() -> None:
    model = C.layers.Sequential([C.layers.Recurrence(C.plus), C.sequence.last])
    model.update_signature(Sequence[Tensor[2]])
    assert len(model.arguments[0].dynamic_axes) == 2
    assert model([np.array([[1, 2], [3, 4]], F), np.array([[5, 6]], F)]).tolist() == [[4, 6], [5, 6]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_of_a_signature_have_the_precision_of_what_they_meet(dtype: Any) -> None:
    layer = C.layers.Dense(2, init=C.normal(1))
    layer.update_signature(3)
    x = C.input_variable(3, dtype=dtype)
    assert layer(x).eval({x: np.ones((1, 3))}).dtype == dtype


def test_the_parameters_of_a_python_function_are_its_signature() -> None:
    @C.Function
    def scaled(value, factor):
        return value * factor

    @C.Function
    def squared(value):
        return value * value

    x = C.input_variable(2)
    assert squared(x).eval([[2, 3]]).tolist() == [[4, 9]]
    assert [one.name for one in scaled.signature] == ["value", "factor"]
    assert [one.name for one in squared.signature] == ["value"]


def test_a_signature_may_come_after_an_application() -> None:
    model = C.layers.For(range(2), lambda i: C.layers.Dense([3, 2][i]))
    assert model(C.input_variable(4)).shape == (2,)
    model.update_signature(4)
    assert model.shape == (2,) and model([[1, 2, 3, 4]]).shape == (1, 2)


def test_parameters_of_any_shape() -> None:
    """The documentation's `@Signature` with types of unknown shape."""
    typing = C.layers.typing

    @C.Function
    @typing.Signature(typing.Sequence[typing.tensor], typing.tensor)
    def weighted(steps, weight):
        return C.sequence.reduce_sum(steps) * weight

    x, w = C.sequence.input_variable(2), C.input_variable(2)
    found = weighted(x, w).eval({x: [np.array([[1, 2], [3, 4]], F)], w: [[1, 10]]})
    assert found.tolist() == [[4, 60]]
    assert [one.name for one in weighted.signature] == ["steps", "weight"]


# --------------------------------------------------------------------------------------------- layers


def test_given_vectors_of_words() -> None:
    table = [[0.5, 0.25], [0.75, 1], [0, 2]]
    layer = C.layers.Embedding(weights=table)
    assert layer.E.value.tolist() == table and layer.E.is_constant
    x = C.input_variable(3, is_sparse=True)
    assert layer(x)(C.Value.one_hot([[1], [0], [2]], 3)).tolist() == [table[1], table[0], table[2]]


def test_both_directions_have_the_shape_of_both() -> None:
    layers = C.layers
    both = layers.Sequential(
        [
            (layers.Recurrence(layers.LSTM(3)), layers.Recurrence(layers.LSTM(2), go_backwards=True)),
            C.splice,
        ]
    )
    both.update_signature(Sequence[Tensor[4]])
    assert both.shape == (5,)
    assert [one.name for one in both.dynamic_axes] == ["defaultBatchAxis", "defaultDynamicAxis"]


def test_running_sums_and_sums_of_steps() -> None:
    steps = np.array([[3, 2], [13, 42], [-100, 100]])
    sums = C.layers.Recurrence(C.plus, initial_state=C.Constant(0, (2,)))
    sums.update_signature(Sequence[Tensor[2]])
    (found,) = sums(steps)
    assert found.tolist() == steps.cumsum(0).tolist()
    for step, expected in ((C.plus, steps.sum(0)), (C.element_max, steps.max(0))):
        whole = C.layers.Fold(step)
        whole.update_signature(Sequence[Tensor[2]])
        assert whole(steps).tolist() == [expected.tolist()]


def test_three_neighbouring_steps() -> None:
    x = C.sequence.input_variable((3, 2))
    steps = np.arange(24, dtype=F).reshape(4, 3, 2)
    three = C.layers.Sequential([tuple(C.layers.Delay(at) for at in (-1, 0, 1)), C.splice])
    none = np.zeros((1, 3, 2))
    (found,) = three(x)(steps[None])
    later, earlier = np.concatenate([steps[1:], none]), np.concatenate([none, steps[:-1]])
    assert found.tolist() == np.concatenate([later, steps, earlier], -1).tolist()


def test_a_model_of_bytes(tmp_path: Path) -> None:
    x = C.input_variable(2, name="x")
    z = C.layers.Dense(3, init=C.normal(1))(x)
    z.save(str(tmp_path / "model"))
    content = (tmp_path / "model").read_bytes()
    for again in (C.load_model(content), C.Function.load(bytearray(content), device=C.cpu())):
        assert again([[1, 2]]).tolist() == z([[1, 2]]).tolist()


# --------------------------------------------------------------------------------------------- learners


def test_options_of_learners_by_position() -> None:
    w = C.parameter((2,), init=1)
    x = C.input_variable(2)

    def moved(learner: Any) -> list[float]:
        w.value = 1
        C.Trainer(None, C.reduce_sum(w * x), learner).train_minibatch({x: [[3, 4]]})
        return w.value.tolist()

    rate, momentum = C.learning_parameter_schedule(0.1), C.momentum_schedule(0)
    assert moved(C.sgd([w], rate, 0.0, 1.0)) == pytest.approx([0.6, 0.5])  # the second one is of L2
    assert moved(C.sgd([w], rate, l2_regularization_weight=1.0)) == pytest.approx([0.6, 0.5])
    assert moved(C.momentum_sgd([w], rate, momentum, False, 0.0, 1.0)) == pytest.approx([0.6, 0.5])
    assert moved(C.sgd([w], rate, 0.0, 0.0, 0.0, 2.0, True)) == pytest.approx([0.8, 0.8])  # clipped
    adam = moved(C.adam([w], rate, momentum, True, C.momentum_schedule(0.9), 0.0, 0.0, 0.0, np.inf, True, None, 1e-3))
    assert adam == moved(
        C.adam([w], rate, momentum, unit_gain=True, variance_momentum=C.momentum_schedule(0.9), epsilon=1e-3)
    )


def test_a_learner_takes_gradients_that_are_values() -> None:
    w = C.parameter((2,), init=1)
    x = C.input_variable(2)
    z = w * x
    learner = C.sgd([w], C.learning_parameter_schedule_per_sample(0.5))
    gradient = z.grad({x: [[1, 2]]}, wrt=[w], as_numpy=False)
    assert isinstance(gradient, C.Value)
    learner.update({w: gradient}, 1)
    assert w.value.tolist() == [0.5, 0]


def test_the_name_of_a_combination_of_one() -> None:
    x = C.input_variable(2)
    made = C.combine([C.plus(x, 1, name="sum")], name="whole")
    assert (made.name, made.eval([[1, 2]]).tolist()) == ("whole", [[2, 3]])
    assert (made * 2).find_by_name("whole") == made
    assert made.find_by_name("sum") is not None
    assert C.combine([made]) == made


# --------------------------------------------------------------------------------------------- names and order


def test_names_of_arguments() -> None:
    x = C.input_variable((2, 3))
    data = {x: np.arange(6).reshape(1, 2, 3) / 4}
    assert C.floor(arg=x).eval(data).tolist() == np.floor(data[x]).tolist()
    assert C.ceil(arg=x, name="up").name == "up"
    assert C.element_or(x=x, y=0).eval(data).tolist() == data[x].tolist()
    assert C.stop_gradient(input=x).eval(data).tolist() == data[x].tolist()
    turned = C.transpose(x, (1, 0), "turned")
    assert turned.name == "turned" and turned.shape == (3, 2)
    assert C.transpose(x, 0, 1).shape == C.transpose(x, 0, axis2=1).shape == (3, 2)


def test_the_second_argument_of_a_placeholder_are_its_axes() -> None:
    x = C.sequence.input_variable(2)
    before = C.placeholder((2,), x.dynamic_axes, "before")
    assert before.name == "before" and before.shape == (2,)


def test_the_fifth_argument_of_a_session_is_how_often_it_reports() -> None:
    x, y = C.input_variable(2), C.input_variable(1)
    z = C.layers.Dense(1)(x)
    source = C.io.MinibatchSourceFromData({"x": np.ones((8, 2), F), "y": np.ones((8, 1), F)}, max_samples=8)
    streams = {x: source.streams.x, y: source.streams.y}
    trainer = C.Trainer(z, C.squared_error(z, y), C.sgd(z.parameters, 0.1))
    C.training_session(trainer, source, 4, streams, 2, 4).train()
    assert trainer.total_number_of_samples_seen == 4


# --------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "call",
    [
        lambda x: C.times(x, np.ones((3, 2), F)).eval({x: [[1, 2]]}),
        lambda x: C.reshape(x, (5,)),
        lambda x: C.slice(x, 3, 0, 1),
        lambda x: C.dropout(x, 2.0),
        lambda x: x.eval({x: [[1, 2, 3]]}),
        lambda x: C.layers.Dense(2, activation=3)(x),
    ],
)
def test_programs_catch_errors_as_value_errors(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError) as caught:
        call(C.input_variable(2))
    assert isinstance(caught.value, UserError)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y,
        lambda x, y: C.plus(x, [1, 2, 3]),
        lambda x, y: C.greater(x, y),
        lambda x, y: C.element_divide(x, y),
        lambda x, y: C.times(x, np.ones((3, 2), F)),
        lambda x, y: C.times(x, C.parameter((3, 2), init=1)),
        lambda x, y: C.times_transpose(x, np.ones((2, 3), F)),
        lambda x, y: C.clip(x, y, 1),
        lambda x, y: C.element_select(x, y, x),
        lambda x, y: C.splice(C.reshape(x, (1, 2)), C.input_variable((1, 3)), axis=0),
        lambda x, y: C.splice(C.input_variable((1, 2)), C.input_variable((1, 3)), axis=0),
        lambda x, y: C.pooling(C.input_variable((1, 2, 2)), C.MAX_POOLING, (3, 3)),
        lambda x, y: C.convolution(C.parameter((2, 3, 3, 3), init=1), C.input_variable((2, 8, 8))),
        lambda x, y: C.cross_entropy_with_softmax(x, y),
    ],
)
def test_shapes_of_leaves_that_do_not_fit_are_errors_where_they_meet(call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(ValueError):
        call(C.input_variable(2), C.input_variable(3))


def test_parameters_keep_their_seeds_where_shapes_are_looked_at() -> None:
    """A random parameter has the seed of its place in the network, not that of the first operator that takes it."""

    def started(more: Callable[[Any], Any]) -> Any:
        C.cntk_py.set_fixed_random_seed(3)
        x, w, v = C.input_variable(2), C.parameter((2, 3), init=C.glorot_uniform()), C.parameter(3, init=C.normal(1))
        more(C.times(x, w))
        _ = C.plus(C.times(C.times(x, w), np.eye(3, dtype=F)), v).parameters
        return w.value.tolist(), v.value.tolist()

    assert started(lambda made: None) == started(lambda made: C.plus(made, 1))


# --------------------------------------------------------------------------------------------- numbers of NumPy


def test_numbers_and_arrays_of_numpy_are_arguments() -> None:
    x, picture = C.input_variable(np.int64(3)), C.input_variable((1, 5, 5))
    assert C.reshape(x, (np.int64(1), np.int32(3))).shape == (1, 3)
    assert x[np.int64(1) : np.int64(3)].shape == C.slice(x, np.int64(0), np.int64(1), np.int64(3)).shape == (2,)
    assert C.layers.Dense(np.int32(4))(x).shape == (4,)
    assert C.layers.Convolution((np.int64(3), 3), np.int64(2))(picture).shape == (2, 3, 3)
    pooled = C.pooling(
        picture, C.MAX_POOLING, np.array([2, 2]), strides=np.array([2, 2]), auto_padding=np.array([True])
    )
    assert pooled.shape == (1, 3, 3)
    assert C.convolution(np.ones((2, 1, 3, 3), F), picture, strides=np.array([2, 2])).shape == (2, 3, 3)
    assert C.Value.one_hot([np.int64(1), np.int64(2)], np.int64(3)).shape == (2, 3)
    assert C.sgd(C.layers.Dense(2)(x).parameters, np.float64(0.5)).learning_rate() == 0.5


@pytest.mark.parametrize("draw", [C.random.uniform, C.random.normal, C.random.gumbel, C.random.bernoulli])
@pytest.mark.sampled
def test_random_numbers_of_two_computations_are_those_of_a_larger_one(draw: Any) -> None:
    parts, whole = draw((3,), seed=9), draw((6,), seed=9)
    assert np.array_equal(np.concatenate([parts.eval(), parts.eval()]), whole.eval())


def test_assign_in_training_mode_happens_after_backward() -> None:
    w, x = C.parameter(2, init=1.0), C.input_variable(2, needs_gradient=True)
    f = C.combine([w * x, C.assign(w, C.constant(np.array([5, 6], np.float32)))])
    state, _ = f.forward({x: np.ones((1, 2), np.float32)}, f.outputs, f.outputs[:1])
    assert w.value.tolist() == [1, 1]
    gradients = f.backward(state, {f.outputs[0]: np.ones((1, 2), np.float32)}, [x])
    assert gradients[x].tolist() == [[1, 1]] and w.value.tolist() == [5, 6]


def test_a_layer_is_saved_without_what_it_was_applied_to(tmp_path: Path) -> None:
    """A layer takes the inputs of its call, also after it was applied to functions of others."""
    model = C.layers.Sequential([C.layers.Dense(3, activation=C.tanh), C.layers.Dense(2)])
    x = C.input_variable(4, name="pixels")
    z = model(x / 256)
    data = np.arange(8, dtype=F).reshape(2, 4)
    expected = z.eval({x: data * 256})
    np.testing.assert_allclose(model(data), expected, atol=1e-6)
    model.save(tmp_path / "m")
    np.testing.assert_allclose(C.load_model(tmp_path / "m").eval(data), expected, atol=1e-6)


def test_a_saved_layer_keeps_the_order_of_its_parameters(tmp_path: Path) -> None:
    @C.Function
    def model(history, words):
        last = C.sequence.last(C.layers.Dense(2)(history))
        return C.layers.Dense(2)(words) - C.sequence.broadcast_as(last, words)

    h, w = (C.sequence.input_variable(3, sequence_axis=C.Axis(name)) for name in ("h", "w"))
    z = model(C.sequence.slice(h, 1, 0), w * 2)
    histories, words = [np.arange(12, dtype=F).reshape(4, 3)], [np.ones((2, 3), F)]
    expected = z.eval({h: histories, w: words})[0]
    model.save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    assert [argument.name for argument in loaded.arguments] == ["history", "words"]
    values = loaded.eval(dict(zip(loaded.arguments, ([histories[0][1:]], [words[0] * 2]), strict=True)))
    np.testing.assert_allclose(values[0], expected, atol=1e-6)
    again = loaded(C.sequence.slice(h, 1, 0), w * 2)
    np.testing.assert_allclose(again.eval({h: histories, w: words})[0], expected, atol=1e-6)


def test_an_axis_may_be_called_as_a_function_is(tmp_path: Path) -> None:
    x = C.sequence.input_variable(2, sequence_axis=C.Axis("h"))
    z = C.sequence.last(C.layers.Label("h")(x * 2))
    z.save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    assert loaded.arguments[0].dynamic_axes[1].name == "h"
    assert loaded.eval([np.array([[1, 2], [3, 4]], F)]).tolist() == [[6, 8]]


@pytest.mark.parametrize("attends", [True, False])
def test_a_translator_that_was_read_writes_what_it_wrote(attends: bool, tmp_path: Path) -> None:
    layers = C.layers
    embed, encode = layers.Embedding(4), layers.Recurrence(layers.LSTM(3), return_full_state=True)
    look, cell, out = layers.AttentionModel(3), layers.LSTM(3), layers.Dense(5)
    start, one_hot = C.constant(np.eye(5, dtype=F)[0]), np.eye(5, dtype=F)

    @C.Function
    def model(history, words):
        encoded = encode(embed(words))
        if not attends:
            ends = [C.sequence.last(state) for state in encoded.outputs]
            return out(layers.RecurrenceFrom(cell)(*ends, embed(history)))

        @C.Function
        def step(h, c, x):
            return cell(h, c, C.splice(x, look(encoded.outputs[0], h)))

        return out(layers.Recurrence(step)(embed(history)))

    def written(translator: Any, sentence: Any) -> list[int]:
        w = C.sequence.input_variable(5, sequence_axis=C.Axis("w"))
        unfold = layers.UnfoldFrom(lambda history: translator(history, w) >> C.hardmax, length_increase=1.5)
        return unfold(start, w).eval({w: [sentence]})[0].argmax(axis=1).tolist()

    h, w = (C.sequence.input_variable(5, sequence_axis=C.Axis(name)) for name in ("h", "w"))
    model(layers.Delay(initial_state=start)(C.sequence.slice(h, 1, 0)), w)
    sentence = one_hot[[2, 3, 4, 1]]
    expected = written(model, sentence)
    assert len(expected) == 6
    model.save(tmp_path / "m")
    assert written(C.load_model(tmp_path / "m"), sentence) == expected


def test_a_step_looks_at_the_steps_of_another_sequence() -> None:
    """Attention in a step is broadcast as the state, which has the steps of the input of the recurrence."""
    e, x = (C.sequence.input_variable(2, sequence_axis=C.Axis(name)) for name in ("e", "x"))

    @C.Function
    def step(h, x):
        looked = C.sequence.broadcast_as(C.sequence.unpack(e, 0, True), h * 2)
        return h + x + C.reshape(C.reduce_sum(looked, axis=0), (2,))

    z = C.layers.Recurrence(step)(x)
    assert z.eval({e: [np.array([[1, 2], [3, 4]], F)], x: [np.zeros((3, 2), F)]})[0].tolist() == [
        [4, 6],
        [8, 12],
        [12, 18],
    ]


def test_a_vector_is_convolved_along_its_sequence_as_one_channel() -> None:
    x, start = C.sequence.input_variable(32), C.glorot_normal(seed=5)
    convolutions = [
        C.layers.SequentialConvolution((2, 2), 16, reduction_rank=rank, pad=True, init=start)(x) for rank in (0, 1)
    ]
    data = [np.arange(96, dtype=F).reshape(3, 32) / 96]
    assert [z.W.shape for z in convolutions] == [(16, 1, 2, 2)] * 2
    plain, by_channels = (z.eval({x: data})[0] for z in convolutions)
    assert plain.shape == (3, 16, 32)
    np.testing.assert_array_equal(plain, by_channels)


def test_names_of_betas_with_one_warning(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match=r"use cntk\.layers\.For"):
        stack = C.layers.LayerStack
    assert stack(2, lambda: C.layers.Dense(3))(C.input_variable(2)).shape == (3,)
    with pytest.warns(DeprecationWarning, match=r"use cntk\.layers\.Embedding"):
        assert C.Embedding is C.layers.Embedding
    z = C.layers.Dense(3)(C.input_variable(2))
    with pytest.warns(DeprecationWarning, match=r"Function\.save_model .* use save"):
        z.save_model(tmp_path / "m")
    w = z.W.value
    z.W.value = w * 0
    with pytest.warns(DeprecationWarning, match="use restore"):
        z.restore_model(tmp_path / "m")
    np.testing.assert_array_equal(z.W.value, w)


def test_a_layer_whose_placeholders_were_replaced_is_a_model() -> None:
    """Tutorials of 2.0 make a criterion of a layer and a placeholder, replace both, and train the layer."""
    data, labels = np.eye(3, 4, dtype=F), np.eye(3, dtype=F)
    model = C.layers.Dense(3, init=0.25)
    label = C.placeholder(name="labels")
    criterion = C.combine([C.cross_entropy_with_softmax(model, label), C.classification_error(model, label)])
    x, y = C.input_variable(4), C.input_variable(3)
    with pytest.raises(UserError, match="is a Function, not Dense"):
        C.Trainer(model, C.squared_error(model(x), y), C.sgd([C.parameter(1)], 0.5))
    criterion.replace_placeholders(
        {operand: y if operand.name == "labels" else x for operand in criterion.placeholders}
    )
    trainer = C.Trainer(model, criterion, C.sgd(model.parameters, C.learning_parameter_schedule_per_sample(0.5)))
    trainer.train_minibatch({x: data, y: labels})
    gradient = data.T @ (1 / 3 - labels)  # of a softmax of equal values
    np.testing.assert_allclose(model.W.value, 0.25 - 0.5 * gradient, rtol=1e-5)
    assert trainer.model.shape == (3,)


def test_defaults_that_betas_gave_layers() -> None:
    """`init=init_default_or_glorot_uniform`: that of `default_options`, else this."""
    with pytest.warns(DeprecationWarning, match="use .*default_override_or"):
        start, bias = C.layers.init_default_or_glorot_uniform, C.init_bias_default_or_0
    x = C.input_variable(2)
    assert C.layers.Dense(3, init=start, init_bias=bias)(x).b.value.tolist() == [0, 0, 0]
    with C.layers.default_options(init=0.5, init_bias=2):
        z = C.layers.Dense(3, init=start, init_bias=bias)(x)
    assert (z.W.value.tolist(), z.b.value.tolist()) == ([[0.5] * 3] * 2, [2, 2, 2])
