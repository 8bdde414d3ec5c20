"""More small programs in the way that people write them for CNTK 2, with another import line only."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.layers.models.attention import AttentionModel
from cntkpy.compat.cntk.layers.typing import SequenceOver, Signature, Tensor

A = [np.arange(6, dtype=np.float32).reshape(3, 2), np.array([[5, -7], [2, 3]], np.float32)]
B = [np.array([[1.0], [0.5]], np.float32), np.array([[2.0], [-1.0], [0.25]], np.float32)]


def softmax(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()


# ---------------------------------------------------------------------------------- models that write sequences


@pytest.mark.parametrize("span", [None, 2])
def test_attention_is_a_weighted_mean_of_a_sequence(span) -> None:
    x, y = C.sequence.input_variable(2), C.sequence.input_variable(1, sequence_axis=C.Axis("other"))
    layer = AttentionModel(3, span, None if span is None else -3, enable_self_stabilization=False, name="look")
    z = layer(x, y)
    v, w, u = (next(one.value for one in z.parameters if one.shape == shape) for shape in ((3, 1), (2, 3), (1, 3)))
    assert (len(z.parameters), z.name) == (3, "look")
    for a, b, found in zip(A, B, z.eval({x: A, y: B}), strict=True):
        seen = a if span is None else a[-span:]
        expected = [softmax((np.tanh(seen @ w + s @ u) @ v)[:, 0]) @ seen for s in b]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_weights_of_attention_have_a_name() -> None:
    x, y = C.sequence.input_variable(2), C.sequence.input_variable(1, sequence_axis=C.Axis("other"))
    z = AttentionModel(3, enable_self_stabilization=False, name="look")(x, y)
    weights = z.look.attention_weights
    v, w, u = (next(one.value for one in z.parameters if one.shape == shape) for shape in ((3, 1), (2, 3), (1, 3)))
    found = C.combine([z, weights]).eval({x: A, y: B})
    assert {one.name for one in found} == {"look", "attention_weights"}
    for a, b, mean, one in zip(A, B, *(found[output] for output in (z.output, weights.output)), strict=True):
        assert one.shape == (len(b), max(map(len, A)), 1)
        expected = [softmax((np.tanh(a @ w + s @ u) @ v)[:, 0]) for s in b]
        np.testing.assert_allclose(one[:, : len(a), 0], expected, rtol=1e-4)
        assert (one[:, len(a) :] == 0).all()
        np.testing.assert_allclose(one[:, : len(a), 0] @ a, mean, rtol=1e-4, atol=1e-5)
    assert z.find_by_name("attention_weights").name == "attention_weights"
    assert (x + 1).find_by_name("attention_weights") is None
    with pytest.raises(AttributeError, match="no attribute 'attention_weights'"):
        _ = (x + 1).attention_weights
    with pytest.raises(UserError, match="nothing is computed from it"):
        _ = C.argmax(weights, axis=0).shape


def test_attention_says_what_is_wrong_with_its_arguments() -> None:
    with pytest.raises(UserError, match="an attention_axis without attention_span says nothing"):
        AttentionModel(3, attention_axis=-3)
    with pytest.raises(UserError, match="an attention_span is 1 or more, not 0"):
        AttentionModel(3, 0, -3)
    with pytest.raises(UserError, match="attention_dim is a number"):
        AttentionModel((3, 2))


GENERATED = {
    "as long": (1, None, lambda n: n),
    "longer": (1.5, None, lambda n: int(np.ceil(1.5 * n))),
    "until": (2, lambda h: C.greater(h[..., -1], 11), lambda n: 3),  # 3, 6, 12
}


@pytest.mark.parametrize("how", GENERATED)
def test_a_function_generates_a_sequence(how: str) -> None:
    increase, until, steps = GENERATED[how]
    start = C.Constant(np.array([1.0, 1.5], np.float32))
    unfold = C.layers.UnfoldFrom(lambda h: h * 2, until_predicate=until, length_increase=increase)
    x = C.sequence.input_variable(2)
    for a, found in zip(A, unfold(initial_state=start, dynamic_axes_like=x).eval({x: A}), strict=True):
        np.testing.assert_array_equal(found, [[2.0**k, 1.5 * 2**k] for k in range(1, steps(len(a)) + 1)])


def test_a_sequence_is_generated_from_a_value_of_each_sequence() -> None:
    x = C.sequence.input_variable(2)
    start = C.sequence.last(x)
    for increase, steps in ((1, lambda n: n), (2, lambda n: 2 * n)):
        unfold = C.layers.UnfoldFrom(lambda h: h * 2, length_increase=increase)
        for a, found in zip(A, unfold(start, x).eval({x: A}), strict=True):
            np.testing.assert_allclose(found, [a[-1] * 2**k for k in range(1, steps(len(a)) + 1)])


def test_a_generator_may_have_a_state_of_its_own() -> None:
    x = C.sequence.input_variable(2)
    numbers = C.layers.UnfoldFrom(lambda state: (state * state, state + 1.0))(C.Constant([3.0]), x)
    assert [one[:, 0].tolist() for one in numbers.eval({x: A})] == [[9, 16, 25], [9, 16]]
    with pytest.raises(UserError, match="a generator gives a value, or value and state, not 3"):
        C.layers.UnfoldFrom(lambda h: (h, h, h))(C.Constant([3.0]), x)


def writer():
    """A model that tells the next word from those before, and looks at all words of a sentence at each of them."""
    words = SequenceOver[C.Axis("in")][Tensor[4]]
    start = C.Constant(np.eye(4, dtype=np.float32)[0])
    encode, cell, scores = C.layers.Recurrence(C.layers.GRU(3)), C.layers.LSTM(3), C.layers.Dense(4)
    above = C.layers.RecurrenceFrom(C.layers.GRU(3))
    look = AttentionModel(2)

    @C.Function
    def model(history, given):
        read = encode(given)

        @C.Function
        def step(h, c, x):
            return cell(h, c, C.splice(x, look(read, h)))

        first = C.layers.Recurrence(step)(history)
        return scores(above(C.sequence.last(read), first))

    @C.Function
    @Signature(words)
    def greedy(given):
        unfold = C.layers.UnfoldFrom(lambda history: model(history, given) >> C.hardmax, lambda w: w[..., 1], 2)
        return unfold(initial_state=start, dynamic_axes_like=given)

    return model, greedy, start


@pytest.mark.thorough
def test_words_are_written_that_the_model_finds_most_probable() -> None:
    model, greedy, start = writer()
    sentences = [np.eye(4, dtype=np.float32)[[2, 3, 3]], np.eye(4, dtype=np.float32)[[3]]]
    history = C.sequence.input_variable(4, sequence_axis=C.Axis("out"))
    given = greedy.arguments[0]
    scores = model(history, given)
    assert set(scores.parameters) == set(greedy.parameters)
    found = greedy.eval({given: sentences})
    before = [np.vstack([start.value, one[:-1]]) for one in found]
    told = scores.eval({history: before, given: sentences})
    for one, expected, sentence in zip(found, told, sentences, strict=True):
        np.testing.assert_array_equal(one, np.eye(4)[expected.argmax(axis=1)])
        assert len(one) == 2 * len(sentence) or one[-1, 1] == 1
        assert not one[:-1, 1].any()


def test_the_state_of_a_recurrence_has_one_step_or_those_of_its_input() -> None:
    x, y = C.sequence.input_variable(2), C.sequence.input_variable(2, sequence_axis=C.Axis("y"), name="y")
    with pytest.raises(UserError, match=r"one step of 'y' goes with each sequence.*sequence\.last"):
        C.sequence.last(C.layers.RecurrenceFrom(C.plus)(y, x)).eval({x: A, y: A})
    doubled = C.sequence.first(C.layers.RecurrenceFrom(C.plus)(x, x))
    np.testing.assert_allclose(doubled.eval({x: A}), [2 * np.asarray(sequence)[0] for sequence in A], rtol=1e-6)


# ---------------------------------------------------------------------------------------- random numbers, means

X = np.random.RandomState(0).randn(500, 2).astype(np.float32)
DRAWS = {
    "uniform": (lambda x: C.random.uniform_like(x, -1, 3), 1.0, np.sqrt(16 / 12)),
    "normal": (lambda x: C.random.normal_like(x, mean=2, scale=0.5), 2.0, 0.5),
    "gumbel": (lambda x: C.random.gumbel_like(x, 1, 2), 1 + 2 * np.euler_gamma, 2 * np.pi / np.sqrt(6)),
    "bernoulli": (lambda x: C.random.bernoulli_like(x, 0.25), 0.25, np.sqrt(0.25 * 0.75)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.sampled
def test_random_numbers_are_others_for_every_element_and_minibatch(name: str) -> None:
    make, mean, deviation = DRAWS[name]
    x = C.input_variable(2)
    both = C.combine([make(x), make(x)])
    first, second = both.eval({x: X}).values()
    (again, _) = both.eval({x: X}).values()
    for one in (first, second, again):
        np.testing.assert_allclose(one.mean(axis=0), mean, atol=5 * deviation / np.sqrt(500))
        np.testing.assert_allclose(one.std(axis=0), deviation, rtol=0.2)
    assert (first != second).any()
    assert (first != again).any()


def test_an_array_of_random_numbers_is_that_of_all_samples() -> None:
    drawn = C.random.uniform((2, 3), low=5, high=6, seed=4)
    found = drawn.eval()
    assert found.shape == (2, 3)
    assert (5 <= found.min() < found.max() < 6, (drawn.eval() != found).any()) == (True, True)
    with pytest.raises(UserError, match="the mean of bernoulli lies from 0 to 1, it is not 2"):
        C.random.bernoulli(3, mean=2)


def test_a_mean_over_the_minibatch() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    batch, every = C.Axis.default_batch_axis(), C.Axis.all_axes()
    many = C.combine(
        [C.reduce_mean(x, batch), C.reduce_sum(x, batch), C.reduce_mean(x, every), x - C.reduce_mean(x, batch)]
    )
    means, sums, mean, centred = many.eval({x: X}).values()
    np.testing.assert_allclose(means, X.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(sums, X.sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(mean, [X.mean()], atol=1e-6)
    np.testing.assert_allclose(centred, X - X.mean(axis=0), atol=1e-6)
    w = C.parameter(2, init=[1.0, 2.0])
    loss = C.reduce_mean(C.square(x * w - y), axis=every)
    expected = 2 * ((X * [1, 2] - 1) * X).mean(axis=0) / 2
    np.testing.assert_allclose(loss.grad({x: X, y: np.ones_like(X)}, wrt=[w]), expected, rtol=1e-3)
    np.testing.assert_array_equal(C.reduce_max(x, batch).eval({x: X}), X.max(axis=0))


# ------------------------------------------------------------------------------------------------- pictures

PICTURES = np.random.RandomState(1).rand(2, 4, 3, 2).astype(np.float32)


def response(d):
    squares = np.pad(d**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    return d / (1 + 0.5 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])) ** 0.75


def normalised(d, axes):
    centred = d - d.mean(axis=axes, keepdims=True)
    return centred / (centred.std(axis=axes, keepdims=True) + 0.01)


def padding(mode, **more):
    return lambda d: np.pad(d, [(0, 0), (1, 0), (2, 1), (0, 1)], mode=mode, **more)


PATTERN = [(1, 0), (2, 1), (0, 1)]
OF_PICTURES = {
    "constant": (lambda x: C.pad(x, PATTERN, constant_value=7), padding("constant", constant_values=7)),
    "reflect": (lambda x: C.pad(x, PATTERN, C.ops.REFLECT_PAD), padding("reflect")),
    "symmetric": (lambda x: C.pad(x, PATTERN, C.ops.SYMMETRIC_PAD), padding("symmetric")),
    "depth": (lambda x: C.space_to_depth(C.depth_to_space(x, 2), 2), lambda d: d),
    "space": (
        lambda x: C.depth_to_space(x, 2),
        lambda d: np.stack([[d[:, 2 * (i % 2) + j % 2, i // 2, j // 2] for j in range(4)] for i in range(6)]).transpose(
            2, 0, 1
        )[:, None],
    ),
    "response": (lambda x: C.local_response_normalization(x, 1, 1.0, 0.5, 0.75), response),
    "each channel": (lambda x: C.mean_variance_normalization(x, 0.01), lambda d: normalised(d, (2, 3))),
    "all channels": (lambda x: C.mean_variance_normalization(x, 0.01, True), lambda d: normalised(d, (1, 2, 3))),
    "scaler": (lambda x: C.image_scaler(x, 2, [1, 2, 3, 4]), lambda d: 2 * d + np.arange(1, 5).reshape(1, 4, 1, 1)),
    "strides": (lambda x: C.slice(x, [0, 1], [0, 0], [4, 0], [2, -1]), lambda d: d[:, ::2, ::-1]),
    "dots": (lambda x: x[..., -1], lambda d: d[..., -1:]),
    "dots between": (lambda x: x[1, ..., 0], lambda d: d[:, 1:2, :, :1]),
}


def test_pictures() -> None:
    x = C.input_variable((4, 3, 2))
    functions = {name: make(x) for name, (make, _) in OF_PICTURES.items()}
    found = C.combine(list(functions.values())).eval({x: PICTURES})
    for name, (_, expected) in OF_PICTURES.items():
        wanted = expected(PICTURES)
        assert functions[name].shape == wanted.shape[1:], name
        np.testing.assert_allclose(found[functions[name]], wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    with pytest.raises(UserError, match="a pattern of 1 pairs for 3 axes"):
        C.pad(x, [(1, 1)])
    with pytest.raises(UserError, match="3 rows and 2 columns are not multiples of 2"):
        C.space_to_depth(x, 2)
    with pytest.raises(UserError, match="3 elements cannot be mirrored of 3"):
        C.pad(x, [(0, 0), (3, 0), (0, 0)], C.ops.REFLECT_PAD)


# ------------------------------------------------------------------------------------------- what functions offer


def test_forward_and_backward() -> None:
    x, s = C.input_variable(2), C.sequence.input_variable(2)
    w = C.parameter((2, 3), init=np.arange(6).reshape(2, 3))
    z = C.times(x, w)
    data, weights = np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 0, 2], [0, 1, 1]], np.float32)
    state, values = z.forward({x: data}, [z.output], {z.output})
    np.testing.assert_array_equal(values[z.output], data @ w.value)
    found = z.backward(state, {z.output: weights}, {w, x})
    np.testing.assert_array_equal(found[w], data.T @ weights)
    np.testing.assert_array_equal(found[x], weights @ w.value.T)
    along = C.times(s, w)
    state, _ = along.forward({s: A}, None, along.outputs)
    found = along.backward(state, [a @ w.value for a in A], [w])
    np.testing.assert_allclose(found[w], sum(a.T @ a @ w.value for a in A), rtol=1e-5)


def test_values_instead_of_arrays() -> None:
    x = C.input_variable(2)
    found = (x * 2).eval({x: A[0]}, as_numpy=False)
    assert isinstance(found, C.Value)
    np.testing.assert_array_equal((x + 1).eval({x: found}), 2 * A[0] + 1)


def test_parameters_of_layers_have_names() -> None:
    x = C.sequence.input_variable(2)
    z = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(3)), C.layers.Dense(2, name="out")])(x)
    assert {(one.name, one.shape) for one in z.out.parameters if one.shape in ((2,), (3, 2))} == {
        ("b", (2,)),
        ("W", (3, 2)),
    }
    assert [C.Parameter(2).name, C.Parameter(2, name="p").name, C.constant(1).name] == ["", "p", ""]
    h, c = step = C.layers.LSTM(3)(C.placeholder(3), C.placeholder(3), x)
    assert step.outputs == (h, c)


def test_reductions_may_take_their_axes_away() -> None:
    x = C.input_variable((4, 3, 2))
    both = [C.reduce_sum(x, axis=1, keepdims=False), C.reduce_mean(x, (0, -1), keepdims=False), C.reduce_max(x, 0)]
    assert [one.shape for one in both] == [(4, 2), (3,), (1, 3, 2)]
    first, second, third = C.combine(both).eval({x: PICTURES}).values()
    np.testing.assert_allclose(first, PICTURES.sum(axis=2), rtol=1e-5)
    np.testing.assert_allclose(second, PICTURES.mean(axis=(1, 3)), rtol=1e-5)
    np.testing.assert_array_equal(third, PICTURES.max(axis=1, keepdims=True))


def test_a_writer_of_ones_own() -> None:
    told = []

    class Writer(C.logging.ProgressWriter):
        def __init__(self):
            super().__init__(1, 0, 1, 0, 1, 0)

        def on_write_training_update(self, samples, updates, aggregate_loss, aggregate_metric):
            told.append((samples, updates, aggregate_loss[1] - aggregate_loss[0]))

        def on_write_training_summary(self, samples, updates, summaries, loss, metric, milliseconds):
            told.append((samples, updates, summaries, loss))

        def on_write_test_update(self, samples, updates, aggregate_metric):
            told.append((samples, updates))

        def on_write_test_summary(self, samples, updates, summaries, metric, milliseconds):
            told.append((samples, updates, summaries, metric))

    x, w = C.input_variable(2), C.parameter(2, init=1)
    loss = C.reduce_sum(x * w)
    trainer = C.Trainer(None, (loss, loss), C.sgd([w], 0.0), [Writer()])
    for data in A:
        trainer.train_minibatch({x: data})
    trainer.summarize_training_progress()
    trainer.test_minibatch({x: A[0]})
    trainer.summarize_test_progress()
    assert told == [((0, 3), (0, 1), 15), ((3, 5), (1, 2), 3), (5, 2, 1, 18), ((0, 3), (0, 1)), (3, 1, 1, 15)]


# ------------------------------------------------------------------------------------------- networks of several parts


def test_a_network_looks_at_sequences_in_both_directions() -> None:
    step = C.layers.GRU(3)
    x = C.sequence.input_variable(2)
    both = C.layers.Sequential([(C.layers.Recurrence(step), C.layers.Recurrence(step, go_backwards=True)), C.splice])(x)
    assert (both.shape, len(both.parameters)) == ((6,), 4)
    found, mirrored = both.eval({x: A}), both.eval({x: [a[::-1] for a in A]})
    for one, other in zip(found, mirrored, strict=True):
        np.testing.assert_allclose(one[:, 3:], other[::-1, :3], rtol=1e-5)
        assert np.abs(one[:, 3:] - one[:, :3]).max() > 1e-3


def test_words_are_weighted_before_they_are_summed_up() -> None:
    x = C.sequence.input_variable(6, is_sparse=True)
    words = C.layers.Embedding(4, name="embed")(x)
    pooled = C.sequence.reduce_sum(words * C.sequence.softmax(C.layers.Dense(1, name="score")(words)))
    table, w, b = pooled.embed.E.value, pooled.score.W.value, pooled.score.b.value
    found = pooled.eval({x: C.Value.one_hot([[1, 2, 3], [5]], 6)})
    for one, sentence in zip(found, ([1, 2, 3], [5]), strict=True):
        rows = table[sentence]
        np.testing.assert_allclose(one, softmax((rows @ w + b)[:, 0]) @ rows, rtol=1e-4, atol=1e-6)


def test_residual_blocks_of_a_for() -> None:
    def normal(count):
        return C.layers.Sequential(
            [C.layers.Convolution2D(3, count, pad=True, bias=False), C.layers.BatchNormalization(map_rank=1)]
        )

    model = C.layers.Sequential(
        [
            C.layers.For(
                range(2), lambda i: [C.layers.ResNetBlock(C.layers.Sequential([normal(4), C.relu, normal(4)])), C.relu]
            ),
            C.layers.GlobalAveragePooling(),
            C.layers.Dense(3),
        ]
    )
    x = C.input_variable((4, 6, 6))
    z = model(x)
    assert (z.shape, len(z.parameters), z.eval({x: np.ones((2, 4, 6, 6))}).shape) == ((3,), 4 * 3 + 2, (2, 3))


def test_classes_are_drawn() -> None:
    weights = np.arange(1, 9, dtype=np.float32)
    drawn, often = (make(weights, 5, False) for make in (C.random_sample, C.random_sample_inclusion_frequency))
    x = C.input_variable(2)
    table = C.parameter((8, 2), init=np.arange(16).reshape(8, 2))
    found, frequency, scores = (
        C.combine([drawn, often, C.times(x, C.transpose(C.times(drawn, table)))]).eval({x: [[1.0, 2.0]]}).values()
    )
    np.testing.assert_array_equal(found.sum(axis=1), 1)
    assert found.sum(axis=0).max() == 1, "no class is drawn twice"
    assert (frequency.shape, abs(frequency.sum() - 5) < 0.5) == ((1, 8), True)
    np.testing.assert_array_equal(scores, [table.value[found.argmax(axis=1)] @ [1, 2]])


def adversaries():
    z, x = C.input_variable(3), C.input_variable(4)
    fake = C.layers.Sequential([C.layers.Dense(5, activation=C.relu), C.layers.Dense(4, activation=C.tanh)])(z)
    real = C.layers.Sequential([C.layers.Dense(5, activation=C.relu), C.layers.Dense(1, activation=C.sigmoid)])(x)
    judged = real.clone(C.CloneMethod.share, {x.output: fake.output})
    return z, x, fake, real, judged


def test_two_networks_against_each_other_share_one() -> None:
    z, x, fake, real, judged = adversaries()
    assert set(judged.parameters) == {*fake.parameters, *real.parameters}
    data = np.random.RandomState(2).rand(6, 3).astype(np.float32)
    np.testing.assert_allclose(judged.eval({z: data}), real.eval({x: fake.eval({z: data})}), rtol=1e-5)


@pytest.mark.thorough
def test_two_networks_train_against_each_other() -> None:
    z, x, fake, real, judged = adversaries()
    rate = C.learning_parameter_schedule(0.05)
    for_fake = C.Trainer(fake, (-C.log(judged), None), C.adam(fake.parameters, rate, 0.5))
    for_real = C.Trainer(real, (-(C.log(real) + C.log(1.0 - judged)), None), C.adam(real.parameters, rate, 0.5))
    random = np.random.RandomState(2)
    before = [[one.value for one in part.parameters] for part in (fake, real)]
    for_real.train_minibatch({x: random.rand(6, 4).astype("f4"), z: random.rand(6, 3).astype("f4")})
    for part, values, changed in ((fake, before[0], False), (real, before[1], True)):
        assert any((one.value != v).any() for one, v in zip(part.parameters, values, strict=True)) == changed
    after = [one.value for one in real.parameters]
    for_fake.train_minibatch({z: random.rand(6, 3).astype("f4")})
    assert all((one.value == v).all() for one, v in zip(real.parameters, after, strict=True))
    assert any((one.value != v).any() for one, v in zip(fake.parameters, before[0], strict=True))


@pytest.mark.thorough
def test_an_autoencoder_with_noise_learns() -> None:
    x = C.input_variable(6)
    h = C.layers.Dense(8, activation=C.relu)(x)
    mean, logarithm = C.layers.Dense(2)(h), C.layers.Dense(2)(h)
    code = mean + C.exp(0.5 * logarithm) * C.random.normal_like(mean)
    y = C.layers.Sequential([C.layers.Dense(8, activation=C.relu), C.layers.Dense(6, activation=C.sigmoid)])(code)
    divergence = -0.5 * C.reduce_sum(1 + logarithm - C.square(mean) - C.exp(logarithm))
    loss = divergence + C.reduce_sum(C.binary_cross_entropy(y, x))
    trainer = C.Trainer(y, (loss, None), C.adam(y.parameters, C.learning_parameter_schedule_per_sample(0.02), 0.9))
    data = np.repeat(np.eye(2, dtype=np.float32), 3, axis=1)[np.random.RandomState(3).randint(0, 2, 100)]
    losses = []
    for _ in range(200):
        trainer.train_minibatch({x: data})
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses[0] > 4
    assert np.mean(losses[-20:]) < 2.5
    assert len(set(losses[-20:])) == 20, "the noise is another in every minibatch"


def test_the_overlap_of_pictures_is_a_loss() -> None:
    x, y = C.input_variable((1, 4, 4)), C.input_variable((2, 4, 4))
    h = C.layers.Convolution((3, 3), 3, pad=True, activation=C.relu)(x)
    up = C.layers.ConvolutionTranspose((2, 2), 3, strides=2)(C.layers.MaxPooling((2, 2), (2, 2))(h))
    p = C.softmax(C.layers.Convolution((1, 1), 2)(C.splice(up, h, axis=0)), axis=0)
    loss = 1 - 2 * C.reduce_sum(p * y) / (C.reduce_sum(p) + C.reduce_sum(y))
    random = np.random.RandomState(4)
    data = {x: random.rand(3, 1, 4, 4).astype("f4"), y: random.randint(0, 2, (3, 2, 4, 4)).astype("f4")}
    found, parts = C.combine([loss, p]).eval(data).values()
    axes = (1, 2, 3)
    expected = 1 - 2 * (parts * data[y]).sum(axis=axes) / (parts.sum(axis=axes) + data[y].sum(axis=axes))
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-4)
    np.testing.assert_allclose(parts.sum(axis=1), 1, rtol=1e-5)


def test_what_convolutions_cannot_do_is_told() -> None:
    with pytest.raises(UserError, match="sharing is True, transpose_weight is False"):
        C.layers.Convolution((3, 3), 4, transpose_weight=True)
    with pytest.raises(UserError, match="a filter has 2 axes"):
        C.layers.Convolution2D((3, 3, 3), 4)
    assert C.layers.Convolution2D((3, 3), 4, dilation=1, groups=1)(C.input_variable((1, 5, 5))).shape == (4, 3, 3)


def test_a_loaded_model_of_sequences_is_trained_on_with_new_labels(tmp_path) -> None:
    s = C.sequence.input_variable(2, name="s")
    C.sequence.last(C.layers.Recurrence(C.layers.RNNStep(3))(s)).save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    (given,) = loaded.arguments
    copy = loaded.clone("freeze")
    assert copy.arguments == loaded.arguments
    np.testing.assert_array_equal(copy.eval({given: A}), loaded.eval({given: A}))
    kind = C.input_variable(2)
    z = C.layers.Dense(2)(copy)
    loss = C.cross_entropy_with_softmax(z, kind)
    trainer = C.Trainer(z, loss, C.sgd(z.parameters, 0.1))
    trainer.train_minibatch({given: A, kind: np.eye(2, dtype=np.float32)})
    assert trainer.previous_minibatch_sample_count == 2
