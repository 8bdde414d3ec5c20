"""More small programs in the way that people write them for CNTK 2, with another import line only."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntk_config import UserError
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


def test_the_state_of_a_recurrence_is_one_step() -> None:
    x = C.sequence.input_variable(2)
    with pytest.raises(UserError, match=r"one step of 'x' goes with each sequence.*sequence\.last"):
        C.sequence.last(C.layers.RecurrenceFrom(C.plus)(C.alias(x, name="x"), x)).eval({x: A})
