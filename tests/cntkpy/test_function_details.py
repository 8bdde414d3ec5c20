"""Details of functions in which programs for CNTK 2.7 count: types of gradients, texts, shapes, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntkpy.compat.cntk as C

F = np.float32
DATA = np.array([[1, 2], [3, 4]], F)


@pytest.mark.parametrize("into", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gradient_has_the_precision_of_its_variable(dtype: Any, into: Any) -> None:
    x = C.input_variable(2, dtype=dtype, needs_gradient=True)
    w = C.parameter(init=np.array([2, 3], dtype))
    z = C.cast(x * w, into)
    slopes = z.grad({x: DATA.astype(dtype)}, [x, w])
    assert z.eval({x: DATA.astype(dtype)}).dtype == into
    assert (slopes[x].dtype, slopes[w].dtype) == (dtype, dtype)
    np.testing.assert_allclose(slopes[x], [[2, 3], [2, 3]])
    np.testing.assert_allclose(slopes[w], [4, 6])


def test_leaves_and_outputs_are_written_alike_by_repr_and_str() -> None:
    x = C.input_variable((2, 3), name="x")
    w = C.parameter((3, 4), name="w")
    z = C.times(x, w, name="z")
    assert repr(x) == str(x) == "Input('x', [#], [2 x 3])"
    assert repr(z.parameters) == "(Parameter('w', [], [3 x 4]),)"
    assert repr(z.output) == "Output('z', [#], [2 x 4])"
    assert repr(C.constant([1, 2], name="c")) == "Constant('c', [], [2])"
    assert str(C.placeholder((1, 2), name="p")) == "Placeholder('p', [???], [1 x 2])"
    assert str(C.placeholder(name="p")) == "Placeholder('p', [???], [???])"


def test_flatten_gives_two_axes() -> None:
    x = np.arange(24, dtype=F).reshape(2, 3, 4)
    assert [C.flatten(x, axis).shape for axis in (None, 0, 1, -1, 3)] == [(1, 24), (1, 24), (2, 12), (6, 4), (24, 1)]


@pytest.mark.parametrize(
    ("criterion", "loss"),
    [
        (lambda z: C.squared_error(z, [0, 1]), 1 + 1 + 9 + 9),
        (lambda z: C.squared_error([0, 1], z), 1 + 1 + 9 + 9),
        (lambda z: C.cross_entropy_with_softmax(z, [0, 1]), 2 * np.log(1 + np.exp(-1))),
    ],
)
def test_a_criterion_with_a_constant_target_is_a_model_that_trains(
    criterion: Callable[[Any], Any], loss: float
) -> None:
    x, w = C.input_variable(2), C.parameter(init=np.ones(2, F))
    f = criterion(x * w)
    trainer = C.Trainer(f, (f, f), [C.sgd(f.parameters, C.learning_parameter_schedule_per_sample(0.1))])
    assert trainer.train_minibatch({x: DATA})
    assert trainer.previous_minibatch_loss_average * 2 == pytest.approx(loss, rel=1e-5)
    assert not np.allclose(w.value, 1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: C.optimized_rnnstack(C.sequence.input_variable(2), C.parameter((4, 2)), 2, 1, recurrent_op="a"),
            "lstm",
        ),
        (lambda: C.random.uniform((2,), low=2, high=1), "2 is not below 1"),
        (lambda: C.random.gumbel((2,), scale=-1), "scale"),
    ],
)
def test_arguments_that_no_function_has_are_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_an_index_is_a_number_a_slice_or_numbers() -> None:
    x = C.input_variable((2, 3))
    data = np.arange(6, dtype=F).reshape(1, 2, 3)
    np.testing.assert_array_equal(x[:, (0, 2)].eval({x: data}), data[:, :, [0, 2]])
    for key in ("a", 1.5, None, (0, 0, 0)):
        with pytest.raises(IndexError):
            _ = x[key]


def test_views_of_arrays() -> None:
    view = C.NDArrayView.from_dense(np.arange(6, dtype=F).reshape(2, 3))
    clone = view.deep_clone()
    clone.asarray()[0, 0] = 7
    assert (view.asarray()[0, 0], view.slice_view((1, 0), (3,)).asarray().tolist()) == (0, [3, 4, 5])
    for offset, extent in [((2, 0), (1, 3)), ((0, 0), (2, 4)), ((0,), (2,)), ((-1, 0), (1, 3))]:
        with pytest.raises(ValueError, match="is outside of the shape"):
            view.slice_view(offset, extent)
    with pytest.raises(TypeError, match="sparse matrix"):
        C.NDArrayView.from_dense(csr_matrix(np.eye(2)))
    with pytest.raises(TypeError, match="not data"):
        C.NDArrayView.from_data("text")


def test_functions_have_the_operators_of_the_mixin() -> None:
    assert isinstance(C.input_variable(2), C.tensor.TensorOpsMixin)
