"""Single and double precision: leaves have it, a network has that of its leaves."""

from pathlib import Path

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntk_config import UserError

DATA = np.random.default_rng(3).normal(size=(5, 4))


def test_leaves_keep_their_precision() -> None:
    double = [
        C.parameter((2,), init=0.0, dtype=np.float64), C.parameter(init=np.zeros(2)), C.constant(np.zeros(2)),
        C.parameter((2, 3), init=C.glorot_uniform(), dtype=np.float64), C.constant(1, dtype=np.float64),
        C.input_variable(2, dtype=np.float64), C.sequence.input_variable(2, np.float64),
        C.Constant(1, dtype=np.float64), C.Parameter((2,), init=1, dtype=np.float64),
        C.parameter((0, 2), init=1.0, dtype=np.float64), C.random.uniform((2,), dtype=np.float64),
    ]  # fmt: skip
    assert [one.dtype.name for one in double] == ["float64"] * len(double)
    single = [
        C.parameter((2,), init=0.0), C.constant(1), C.constant(np.zeros(2, np.float32)), C.constant([1, 2]),
        C.constant(np.arange(2)), C.input_variable(2), C.Constant(np.zeros(2)), C.Parameter(init=np.zeros(2)),
        C.constant(np.zeros(2), dtype=np.float32),
    ]  # fmt: skip
    assert [one.dtype.name for one in single] == ["float32"] * len(single)
    for one in (*double, *single):
        if (one.is_constant or one.is_parameter) and -1 not in one.shape:
            assert one.value.dtype == one.dtype


def test_values_are_exact_in_double_precision() -> None:
    third = C.parameter((2,), init=1 / 3, dtype=np.float64)
    third.value = np.array([1 / 3, 1e-300])
    assert third.value.tolist() == [1 / 3, 1e-300]
    found = (third + C.constant(np.full(2, 1e-12))).eval()
    assert (found.dtype, found.tolist()) == (np.float64, [1 / 3 + 1e-12, 1e-300 + 1e-12])
    x = C.input_variable(4, dtype=np.float64)
    found = C.exp(0.1 * x + 1 / 3).eval({x: DATA})
    np.testing.assert_allclose(found, np.exp(0.1 * DATA + 1 / 3), rtol=1e-15)


def test_numbers_and_arrays_adopt_the_precision_of_the_other_operand() -> None:
    single, double = C.input_variable(2), C.input_variable(2, dtype=np.float64)
    data = np.array([[0.1, 0.7]])
    for operand in (0.1, 3, [0.1, 0.2], np.arange(2), np.array([0.1, 0.2]), np.float32(0.1), np.float64(0.1)):
        for x, dtype in ((single, np.float32), (double, np.float64)):
            found = (x * operand).eval({x: data.astype(dtype)})
            assert found.dtype == dtype
            expected = data.astype(dtype) * np.asarray(operand, dtype)
            np.testing.assert_allclose(found, expected, rtol=np.finfo(dtype).eps)
    assert C.softmax(np.ones((4, 1)), axis=0).eval().dtype == np.float64
    assert C.softmax(np.ones((4, 1), np.float32), axis=0).eval().dtype == np.float32
    assert C.abs([-1.0, 2.0]).eval().dtype == np.float32


def test_one_constant_in_networks_of_both_precisions() -> None:
    """A network in single precision does not take digits away from the number."""
    single, double = C.input_variable(1), C.input_variable(1, dtype=np.float64)
    shared = C.plus(0.1, 0.2)
    assert float(np.ravel((shared * single).eval({single: np.ones((1, 1), np.float32)}))[0]) == np.float32(0.3)
    assert (shared * double).eval({double: np.ones((1, 1))}).ravel().tolist() == [0.1 + 0.2]


MIXED = {
    r"the input 'x' is float32 and the parameter 'w' is float64": lambda: (
        C.input_variable(2, name="x") * C.parameter(2, init=1.0, dtype=np.float64, name="w")
    ),
    r"the input 'x' is float64 and the constant 'c' is float32": lambda: (
        C.input_variable(2, dtype=np.float64, name="x") + C.constant(1, name="c")
    ),
    r"the input 'x' is float64 and the input 'y' is float32": lambda: (
        C.input_variable(2, dtype=np.float64, name="x") + C.input_variable(2, name="y")
    ),
}


@pytest.mark.parametrize("message", MIXED)
def test_leaves_of_both_precisions_are_refused(message: str) -> None:
    z = MIXED[message]()
    with pytest.raises(UserError, match=f"a network has one precision, {message}") as error:
        z.eval({one: np.ones((1, 2)) for one in z.arguments})
    assert "dtype=numpy.float64" in str(error.value.diagnostic.hint)
    with pytest.raises(UserError, match=message):
        _ = z.dtype


def test_default_options() -> None:
    with C.default_options(dtype=np.float64):
        x = C.input_variable(4)
        layers = [
            C.layers.Dense(3, activation=C.relu), C.layers.LayerNormalization(), C.layers.BatchNormalization(),
            C.layers.Dropout(0.5), C.layers.Dense(2),
        ]  # fmt: skip
        z = C.layers.Sequential(layers)(x)
        assert (C.parameter(2).dtype, C.constant(1).dtype, C.random.normal(2).dtype) == (np.float64,) * 3
    assert (x.dtype, z.dtype) == (np.float64, np.float64)
    assert {one.dtype.name for one in z.parameters} == {"float64"}
    assert {one.value.dtype.name for one in z.parameters} == {"float64"}
    assert z.eval({x: DATA}).dtype == np.float64
    assert C.input_variable(2).dtype == np.float32
    with C.default_options_for(C.input_variable, dtype=np.float64):
        assert (C.input_variable(2).dtype, C.constant(1).dtype) == (np.float64, np.float32)
    with pytest.raises(UserError, match=r"a dtype is numpy.float32 or numpy.float64"), C.default_options(dtype="x"):
        pass


def test_layers_adopt_the_precision_of_their_input() -> None:
    x = C.input_variable(4, dtype=np.float64)
    z = C.layers.Dense(3, init=np.full((4, 3), 0.1), init_bias=0.1)(x)
    np.testing.assert_allclose(z.eval({x: DATA}), DATA.sum(axis=1, keepdims=True) * 0.1 + np.full(3, 0.1), rtol=1e-12)
    assert {one.dtype.name for one in z.parameters} == {"float64"}
    layer = C.layers.Dense(3)
    _ = layer(C.input_variable(4)).parameters
    with pytest.raises(UserError, match="a network has one precision"):
        layer(x).eval({x: DATA})


@pytest.mark.parametrize("cell", [C.layers.LSTM, C.layers.GRU, C.layers.RNNStep])
def test_recurrent_layers(cell) -> None:
    with C.default_options(dtype=np.float64):
        x = C.sequence.input_variable(4)
        z = C.sequence.last(C.layers.Recurrence(cell(3))(x))
    assert {one.dtype.name for one in z.parameters} == {"float64"}
    (found,) = z.eval([DATA])
    assert found.dtype == np.float64


def test_training_and_files_in_double_precision(tmp_path: Path) -> None:
    x, y = C.input_variable(4, np.float64, name="x"), C.input_variable(2, np.float64)
    w, b = C.parameter((4, 2), init=0.1, dtype=np.float64, name="w"), C.parameter(2, init=0.2, dtype=np.float64)
    z = C.times(x, w) + b
    loss = C.squared_error(z, y)
    labels = np.random.default_rng(4).normal(size=(5, 2))
    rate, momentum = C.learning_parameter_schedule(0.1), C.momentum_schedule(0.9)
    trainer = C.Trainer(z, loss, C.momentum_sgd(z.parameters, rate, momentum, unit_gain=False))
    expected, bias = np.full((4, 2), 0.1), np.full(2, 0.2)
    velocity, slow = np.zeros((4, 2)), np.zeros(2)
    for number in range(5):
        if number == 3:
            trainer.save_checkpoint(str(tmp_path / "m"))
            trainer.train_minibatch({x: DATA, y: labels})
            trainer.restore_from_checkpoint(str(tmp_path / "m"))
        error = 2 * (DATA @ expected + bias - labels) / 5
        velocity, slow = 0.9 * velocity + DATA.T @ error, 0.9 * slow + error.sum(axis=0)
        expected, bias = expected - 0.1 * velocity, bias - 0.1 * slow
        trainer.train_minibatch({x: DATA, y: labels})
    np.testing.assert_allclose(w.value, expected, rtol=1e-12)
    np.testing.assert_allclose(b.value, bias, rtol=1e-12)
    gradient = loss.grad({x: DATA, y: labels}, wrt=[w])
    np.testing.assert_allclose(gradient, DATA.T @ (2 * (DATA @ expected + bias - labels)), rtol=1e-11)
    for copy in (z.clone("clone"), z.clone("freeze")):
        assert copy.dtype == np.float64
        np.testing.assert_array_equal(copy.eval({x: DATA}), z.eval({x: DATA}))
    z.save(tmp_path / "z")
    again = C.load_model(tmp_path / "z")
    assert (again.dtype, again.parameters[0].dtype, again.arguments[0].dtype) == (np.float64,) * 3
    np.testing.assert_array_equal(again.eval({again.arguments[0]: DATA}), z.eval({x: DATA}))
    w.value = np.zeros((4, 2))
    z.restore(tmp_path / "z")
    np.testing.assert_array_equal(w.value, again.find_by_name("w").value)
    with pytest.raises(UserError, match="a network has one precision"):
        again(C.input_variable(4)).eval(DATA)


def test_learners_update_in_double_precision() -> None:
    w = C.parameter(2, init=1.0, dtype=np.float64)
    C.sgd([w], C.learning_parameter_schedule(0.1)).update({w: np.array([1 / 3, 1e-9])}, 1)
    assert w.value.tolist() == [1 - 0.1 / 3, 1 - 1e-10]


def test_cast() -> None:
    x = C.input_variable(4)
    wide = C.cast(x, np.float64) * C.parameter(4, init=1 / 3, dtype=np.float64)
    assert wide.dtype == np.float64
    data = DATA.astype(np.float32)
    np.testing.assert_allclose(wide.eval({x: data}), data.astype(np.float64) / 3, rtol=1e-15)
    assert wide.clone("clone").dtype == np.float64
    y = C.input_variable(4, dtype=np.float64)
    narrow = C.cast(y, "float32") + C.input_variable(4)
    assert narrow.dtype == np.float32
    assert C.cast(x, np.float32).eval({x: data}).dtype == np.float32
    with pytest.raises(UserError, match=r"a dtype is numpy.float32 or numpy.float64, not <class 'numpy.float16'>"):
        C.cast(x, np.float16)
    with pytest.raises(UserError, match="a network has one precision, the cast 'Pass' is float64 and the input"):
        _ = (C.cast(x, np.float64) + x).dtype


def test_half_precision_is_refused() -> None:
    for make in (C.input_variable, C.parameter):
        with pytest.raises(UserError, match=r"not <class 'numpy.float16'>") as error:
            make(2, dtype=np.float16)
        assert error.value.diagnostic.hint == "networks compute in single or in double precision"
