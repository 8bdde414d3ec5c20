"""Networks of half precision: values are float16, parameters are kept in float32."""

from pathlib import Path

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

HALF = np.float16
RANDOM = np.random.default_rng(3)
DATA = RANDOM.normal(size=(60, 4)).astype(np.float32)
LABELS = np.eye(3, dtype=np.float32)[(DATA @ RANDOM.normal(size=(4, 3))).argmax(axis=1)]


def classifier():
    x, y = C.input_variable(4, dtype=HALF), C.input_variable(3, dtype=HALF)
    with C.default_options(dtype=HALF):
        z = C.layers.Sequential([C.layers.Dense(8, activation=C.tanh), C.layers.Dense(3)])(x)
    return x, y, z


def test_leaves_and_values_are_of_half_precision() -> None:
    w, c = C.parameter((4, 2), init=1 / 3, dtype=HALF), C.constant(0.1, dtype=HALF)
    assert [w.dtype, w.value.dtype, c.dtype, c.value.dtype] == [HALF] * 4
    assert w.value[0, 0] == HALF(1 / 3)
    x = C.sequence.input_variable(4, HALF, needs_gradient=True)
    z = C.times(x, w) + c
    data = DATA[:6].astype(HALF)
    (found,) = z.eval({x: data})
    assert found.dtype == HALF
    exact = data.astype(np.float64) @ np.full((4, 2), float(HALF(1 / 3))) + 0.1
    np.testing.assert_allclose(found, exact, atol=4e-3)
    both = z.grad({x: data}, wrt=[x, w])
    assert both[x][0].dtype == both[w].dtype == HALF
    np.testing.assert_array_equal(both[x][0], np.full((6, 4), 2 * HALF(1 / 3), HALF))
    np.testing.assert_allclose(both[w], np.tile(data.sum(axis=0)[:, None], 2), rtol=2e-3, atol=2e-3)
    assert C.Value.create(x, [data]).dtype == C.asarray(data).dtype == C.NDArrayView((2,), HALF).dtype == HALF
    with pytest.raises(UserError, match="one precision, the input 'Input' is float16 and the input 'a' is float32"):
        _ = (C.input_variable(2, HALF) + C.input_variable(2, name="a")).dtype


def test_products_have_16_bits_and_sums_over_samples_32() -> None:
    """70,000 is infinite in float16; 2049 samples cannot be counted in it."""
    x = C.input_variable(1, HALF)
    assert np.isinf(C.times(x, C.parameter((1, 1), init=70.0, dtype=HALF)).eval({x: np.float32([[1000]])})).all()
    one = C.times(x, C.parameter((1, 1), init=1.0, dtype=HALF))
    loss = C.reduce_sum(one)
    trainer = C.Trainer(one, loss, C.sgd(loss.parameters, C.learning_parameter_schedule_per_sample(0.0)))
    trainer.train_minibatch({x: np.ones((5000, 1), HALF)})
    assert trainer.previous_minibatch_loss_average == 1


@pytest.mark.thorough
def test_small_updates_are_not_lost() -> None:
    """1 + 1e-4 is 1 in float16."""
    x, w = C.input_variable(1, HALF), C.parameter((1, 1), init=1.0, dtype=HALF)
    z = C.times(x, w)
    trainer = C.Trainer(z, C.reduce_sum(z), C.sgd([w], C.learning_parameter_schedule_per_sample(1e-4)))
    for _ in range(40):
        trainer.train_minibatch({x: [[-1]]})
    assert w.value.dtype == HALF
    assert w.value[0, 0] == HALF(1.004)
    learner = C.sgd([w], C.learning_parameter_schedule_per_sample(1e-4))
    for _ in range(40):
        learner.update({w: np.full((1, 1), -1, HALF)}, 1)
    assert w.value[0, 0] == HALF(1.008)


@pytest.mark.thorough
def test_training_checkpoint_and_file(tmp_path: Path) -> None:
    x, y, z = classifier()
    loss = C.cross_entropy_with_softmax(z, y)
    rate = C.learning_parameter_schedule_per_sample(0.2)  # of sums of gradients, as 2.7 has it
    trainer = C.Trainer(z, (loss, C.classification_error(z, y)), C.adam(z.parameters, rate, C.momentum_schedule(0.9)))
    data = {x: DATA.astype(HALF), y: LABELS}
    for number in range(30):
        if number == 20:
            trainer.save_checkpoint(str(tmp_path / "c"))
        trainer.train_minibatch(data)
    last = z.parameters[0].value
    assert trainer.test_minibatch(data) < 0.05
    trainer.restore_from_checkpoint(str(tmp_path / "c"))
    assert (z.parameters[0].value != last).any()
    for _ in range(10):
        trainer.train_minibatch(data)
    np.testing.assert_array_equal(z.parameters[0].value, last)
    z.save(tmp_path / "z")
    again = C.load_model(tmp_path / "z")
    assert {one.dtype for one in (again, *again.parameters, *again.arguments)} == {np.dtype(HALF)}
    np.testing.assert_array_equal(again.eval({again.arguments[0]: DATA}), z.eval({x: DATA}))
    copy = z.clone("clone")
    assert copy.dtype == HALF
    np.testing.assert_array_equal(copy.eval({copy.arguments[0]: DATA}), z.eval({x: DATA}))


def test_casts_join_parts_of_half_and_single_precision() -> None:
    """As programs for CNTK have it: data, labels and the criterion in single precision, the model in half."""
    x, y = C.input_variable(4), C.input_variable(3)
    with C.default_options(dtype=HALF):
        z = C.layers.Dense(3, name="inner")(C.cast(x, HALF))
    out = C.cast(z, np.float32)
    loss = C.cross_entropy_with_softmax(out, y)
    assert [one.dtype for one in (z, out, loss)] == [HALF, np.float32, np.float32]
    trainer = C.Trainer(out, loss, C.sgd(loss.parameters, C.learning_parameter_schedule(0.5)))
    for _ in range(20):
        trainer.train_minibatch({x: DATA, y: LABELS})
    assert trainer.previous_minibatch_loss_average < 0.7
    assert [one.value.dtype for one in z.parameters] == [HALF, HALF]
    found = out.eval({x: DATA})
    assert (z.eval({x: DATA}).dtype, found.dtype) == (HALF, np.float32)
    np.testing.assert_array_equal(found, found.astype(HALF))  # computed in half precision
    wide = C.cast(z, np.float64).eval({x: DATA})
    assert wide.dtype == np.float64


class Twice(C.ops.functions.UserFunction):
    """2 x; it keeps the types of what it gets."""

    def __init__(self, x, name="twice"):
        super().__init__([x], name=name)
        self.seen = set()

    def forward(self, x, device=None, outputs_to_retain=None):
        self.seen.add(x.dtype)
        return None, 2 * x

    def backward(self, state, gradient):
        self.seen.add(gradient.dtype)
        return 2 * gradient

    def infer_outputs(self):
        (x,) = self.inputs
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]


def test_user_functions_get_half_precision() -> None:
    x = C.input_variable(2, HALF, needs_gradient=True)
    twice = Twice(C.times(x, C.parameter(init=np.eye(2, dtype=HALF))))
    z = C.user_function(twice)
    assert z.eval({x: [[1, 2]]}).tolist() == [[2, 4]]
    assert z.grad({x: [[1, 2]]}).tolist() == [[2, 2]]
    assert twice.seen == {np.dtype(HALF)}


def test_onnx_models_are_of_single_precision(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    x, _, z = classifier()
    z.save(tmp_path / "z.onnx", format=C.ModelFormat.ONNX)
    again = C.Function.load(tmp_path / "z.onnx", format=C.ModelFormat.ONNX)
    found = again.eval({again.arguments[0]: DATA})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, z.eval({x: DATA}), atol=5e-3)
