"""Functions of what is not known yet, in the ways that programs for CNTK 2 make them (finding C8)."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.layers.typing import Sequence, Signature, Tensor

V = np.arange(6, dtype=np.float32).reshape(2, 3)
STEPS = [np.arange(6, dtype=np.float32).reshape(3, 2), np.array([[5, -7], [2, 3]], np.float32)]


@C.Function
def scaled(a, b):
    return a + 2 * b


def test_a_decorated_function_has_a_placeholder_for_each_parameter() -> None:
    x, y = C.input_variable(3), C.input_variable(3)
    assert [one.name for one in scaled.placeholders] == ["a", "b"]
    assert scaled(x, y).eval({x: V, y: V}).tolist() == (3 * V).tolist()
    assert scaled(b=y, a=x).eval({x: V, y: 2 * V}).tolist() == (5 * V).tolist()


def test_a_function_may_be_applied_to_one_argument_after_the_other() -> None:
    """The argument that is missing is a placeholder, the next one takes its place, whatever inputs there are."""
    x, y = C.input_variable(3), C.input_variable(3)
    a, b = C.placeholder(name="a"), C.placeholder(name="b")
    for f in (scaled, a + 2 * b):
        some = f(x)
        assert [one.name for one in some.placeholders] == ["b"]
        assert some(y).eval({x: V, y: 2 * V}).tolist() == (5 * V).tolist()
        assert f(b=y)(x).eval({x: V, y: 2 * V}).tolist() == (5 * V).tolist()
        assert f(C.placeholder(name="later"), x)(y).eval({x: V, y: V}).tolist() == (3 * V).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: scaled(x, x, x), r"'scaled' takes \(a, b\): too many positional arguments"),
        (lambda x: scaled(x, c=x), r"takes \(a, b\): got an unexpected keyword argument 'c'"),
        (lambda x: scaled(x, a=x), r"takes \(a, b\): multiple values for argument 'a'"),
        (lambda x: (C.placeholder() + 1)(x, x), "2 arguments for a function of 1 inputs"),
    ],
)
def test_other_arguments_are_an_error_that_names_the_parameters(call, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(C.input_variable(3))


def test_signatures() -> None:
    @C.Function
    @Signature(Tensor[3], Sequence[Tensor[2]])
    def typed(a, b):
        return a * 2, C.sequence.last(b)

    @C.Function.with_signature(Tensor[3])
    def doubled(a):
        return a * 2

    @C.layers.BlockFunction("Doubled", "block")
    def block(a):
        return C.reshape(a, (1,), begin_axis=0, end_axis=0)

    assert [one.name for one in typed.arguments] == ["a", "b"]
    assert [one.shape for one in typed.outputs] == [(3,), (2,)]
    assert [len(one.dynamic_axes) for one in typed.arguments] == [1, 2]
    assert doubled(V).tolist() == (2 * V).tolist()
    made = block(C.input_variable((2, 3)))
    assert (made.name, made.shape) == ("block", (1, 2, 3))


def test_functions_in_a_row() -> None:
    x = C.input_variable(3)
    double, more = C.placeholder() * 2, C.Function(lambda a: a + 1)
    for whole in (double >> more, C.layers.Sequential([double, more]), C.layers.identity):
        expected = V if whole is C.layers.identity else 2 * V + 1
        assert whole(x).shape == (3,)
        np.testing.assert_array_equal((whole(x) + 0.0).eval({x: V}), expected)
    assert (double(x) >> more >> C.layers.Dense(2)).shape == (2,)


def test_indices_of_placeholders() -> None:
    x = C.input_variable((2, 3))
    data = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    keys = [(slice(0, 2), 1), (..., -1), (0,), (slice(None), slice(None, None, 2)), (slice(None), [2, 0, 0])]
    keys += [(slice(None), slice(None, None, -1)), ([1, 0], ..., 0)]
    for key in keys:
        kept = tuple(slice(one, one + 1 or None) if isinstance(one, int) else one for one in key)
        expected = data[(slice(None), *kept)]
        later = C.placeholder()
        made = later[key]
        for one in (x[key], made(x), made.replace_placeholders({later: x})):
            assert one.shape == expected.shape[1:], key
            np.testing.assert_array_equal(one.eval({x: data}), expected, err_msg=str(key))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (5, r"an index: the elements 5 to 6 \(exclusive\) of the axis 0, which has 2, do not exist; .*\(2, 3\)"),
        ((0, 0, 0), r"the index is for 3 axes; the operand has the shape \(2, 3\)"),
        ((..., 0, ...), "the index has ... more than once"),
        (slice(0, 2, 0), r"with the stride 0 of the axis 0"),
        ([], r"\[\] is not an index"),
        (np.ones(2), "is not an index"),
    ],
)
def test_what_is_no_index(key, message: str) -> None:
    with pytest.raises(UserError, match=message):
        C.input_variable((2, 3))[key]
    with pytest.raises(UserError, match=message):
        later = C.placeholder()
        _ = later[key].replace_placeholders({later: C.input_variable((2, 3))}).shape


def test_what_is_no_output() -> None:
    x = C.input_variable(3)
    both = C.combine([x + 1, x * 2])
    assert (both[-1], both[0:1]) == (both.outputs[1], both.outputs[:1])
    for key in (2, -3, "a"):
        with pytest.raises(UserError, match="is not an output of this function, which has 2"):
            both[key]


def test_shapes_are_known_once_placeholders_are_replaced() -> None:
    """Asked for at once, without the values."""
    x = C.input_variable((2, 3))
    later = C.placeholder()
    made = C.reshape(later, (-1,), 0, 2)
    assert made(x).shape == (6,)
    assert made.clone("share", {later: x}).shape == (6,)
    chain = C.layers.Sequential([lambda a: C.reshape(a, (3, 2)), lambda a: a[0:2], lambda a: C.reduce_sum(a, axis=0)])
    assert chain(later).clone("share", {later: x}).shape == (1, 2)


def test_dynamic_axes_are_those_of_the_value() -> None:
    x, s = C.input_variable((2, 1)), C.sequence.input_variable(2)
    batch, named = (C.Axis.default_batch_axis(),), C.sequence.input_variable(2, sequence_axis=C.Axis("other"))
    every, of_batch, steps = C.Axis.all_axes(), C.Axis.default_batch_axis(), C.Axis.default_dynamic_axis()
    expected = {
        x * 2: batch,
        s * 2: s.dynamic_axes,
        named * 2: named.dynamic_axes,
        C.sequence.last(s): batch,
        C.reduce_sum(x, of_batch): (),
        C.reduce_max(s, every): (),
        C.reduce_sum(s, steps): batch,
        x - C.reduce_mean(x, of_batch): batch,
        C.squared_error(s, s): s.dynamic_axes,
        C.constant(1.0) + 2: (),
        C.squared_error(x, x): batch,
        C.squared_error(x, x) * 2: batch,
    }
    for function, axes in expected.items():
        assert function.dynamic_axes == axes, function
    assert C.reduce_sum(C.input_variable(1), of_batch).shape == (1,), "an axis of the sample, no criterion"


def test_a_condition_is_a_number_of_any_shape() -> None:
    """`is_first` has the shape (), a column of an input the shape (1,)."""
    s = C.sequence.input_variable(2)
    first = C.sequence.is_first(s)
    gathered = C.sequence.gather(s, first)
    assert [sequence.tolist() for sequence in gathered.eval({s: STEPS})] == [[[0, 1]], [[5, -7]]]
    put = C.sequence.scatter(C.sequence.first(s), first).eval({s: STEPS})
    assert [sequence.tolist() for sequence in put] == [[[0, 1], [0, 0], [0, 0]], [[5, -7], [0, 0]]]
    assert [sequence.tolist() for sequence in C.sequence.where(C.sequence.is_last(s)).eval({s: STEPS})] == [[2], [1]]


def test_zeros_and_ones_do_not_depend_on_the_operand() -> None:
    x = C.input_variable(3)
    data = np.array([[np.inf, -np.inf, np.nan]], np.float32)
    assert C.zeros_like(x).eval({x: data}).tolist() == [[0, 0, 0]]
    assert C.ones_like(x).eval({x: data}).tolist() == [[1, 1, 1]]
    assert C.ones_like(x).grad({x: data}).tolist() == [[0, 0, 0]]


def test_criteria_of_placeholders_have_the_shapes_of_their_operands() -> None:
    """Found by random expressions: along an axis, of samples of one axis, and of single numbers."""
    matrix, vector, number = C.input_variable((2, 3)), C.input_variable(3), C.input_variable(())
    a, b = C.placeholder(), C.placeholder()
    for criterion in (C.cross_entropy_with_softmax, C.classification_error):
        later = criterion(a, b)
        assert [later(x, x).shape for x in (matrix, vector, number)] == [(2, 1), (), ()]
        assert [criterion(x, x).shape for x in (matrix, vector, number)] == [(2, 1), (), ()]
        with pytest.raises(UserError, match=r"the output has the shape \(3,\), the target \(2, 3\)"):
            _ = later(vector, matrix).shape
    for x in (matrix, vector, number):
        assert (C.squared_error(x, x) * 2).shape == C.squared_error(a, b)(x, x).shape == ()
        assert C.reduce_sum(C.squared_error(a, a), keepdims=False)(x).shape == ()
    assert (C.squared_error(a, a) + 1)(C.constant([1.0, 2])).eval() == 1


def test_numbers_are_operands() -> None:
    """Of the shape (): along an axis that they do not have, and as a sample of each step."""
    number, steps = C.input_variable(()), C.sequence.input_variable((2, 3))
    a, b = C.placeholder(), C.placeholder()
    for made in (C.sequence.broadcast_as(number, steps), C.sequence.broadcast_as(a, b)(number, steps)):
        assert made.shape == ()
        found = made.eval({number: [5, 7], steps: [np.ones((3, 2, 3)), np.ones((1, 2, 3))]})
        assert [one.tolist() for one in found] == [[5, 5, 5], [7]]
    assert C.flatten(C.sequence.broadcast_as(a, b[0]))(number, steps).shape == (1, 1)
    assert C.log_softmax(number).eval({number: [3.0]}).tolist() == [0]
    assert C.log_softmax(C.reduce_sum(C.constant(3.0)), axis=0).eval() == 0
    with pytest.raises(UserError, match="the right operand of TransposeTimes is a number"):
        _ = C.times_transpose(number, C.constant(np.ones((2, 1), np.float32))).shape


def test_an_input_may_be_called_like_its_axis() -> None:
    words = C.sequence.input_variable(2, sequence_axis=C.Axis("words"), name="words")
    assert C.sequence.last(words * 2).eval({words: STEPS}).tolist() == [[8, 10], [4, 6]]


def test_a_list_is_an_initial_state() -> None:
    """Found by the table of operators: its elements were taken for further operands."""
    x = C.sequence.input_variable(2)
    found = C.sequence.past_value(x, [1.0, 2]).eval({x: STEPS})
    assert [one.tolist() for one in found] == [[[1, 2], [0, 1], [2, 3]], [[1, 2], [5, -7]]]


@pytest.mark.parametrize(("begin", "end"), [(-1, -1), (2, 1), (1, 1), (-1, -2)])
def test_a_slice_of_no_steps_is_an_error(begin: int, end: int) -> None:
    x = C.sequence.input_variable(2)
    for made in (C.sequence.slice, lambda x, *bounds: C.slice(x, C.Axis.default_dynamic_axis(), *bounds)):
        with pytest.raises(UserError, match=rf"slice: there are no steps from {begin} to {end} \(exclusive\)"):
            made(x, begin, end)
    with pytest.raises(UserError, match=r"sequence\.slice: an index is a whole number, not 0\.5"):
        C.sequence.slice(x, 0.5, 1)


def test_numbers_have_no_channels() -> None:
    number, picture = C.input_variable(()), C.input_variable((2, 3, 3))
    for made in (
        lambda x: C.local_response_normalization(x, 1, 1, 1, 1),
        C.mean_variance_normalization,
        lambda x: C.image_scaler(x, 1, [1]),
    ):
        with pytest.raises(UserError, match="a number has no channels"):
            made(number)
    with pytest.raises(UserError, match="needs an axis of channels, a number has none"):
        _ = C.layers.BatchNormalization(map_rank=1)(number).shape
    for perm in (None, "a", 0.5):
        with pytest.raises(UserError, match="transpose: perm is a list of axes, not"):
            C.transpose(picture, perm)
