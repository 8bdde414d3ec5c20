"""Single and double precision: leaves have it, a network has that of its leaves."""

from pathlib import Path

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

DATA = np.random.default_rng(3).normal(size=(5, 4))


def test_leaves_keep_their_precision() -> None:
    double = [
        C.parameter((2,), init=0.0, dtype=np.float64),
        C.parameter(init=np.zeros(2)),
        C.constant(np.zeros(2)),
        C.parameter((2, 3), init=C.glorot_uniform(), dtype=np.float64),
        C.constant(1, dtype=np.float64),
        C.input_variable(2, dtype=np.float64),
        C.sequence.input_variable(2, np.float64),
        C.Constant(1, dtype=np.float64),
        C.Parameter((2,), init=1, dtype=np.float64),
        C.parameter((0, 2), init=1.0, dtype=np.float64),
        C.random.uniform((2,), dtype=np.float64),
    ]
    assert [one.dtype.name for one in double] == ["float64"] * len(double)
    single = [
        C.parameter((2,), init=0.0),
        C.constant(1),
        C.constant(np.zeros(2, np.float32)),
        C.constant([1, 2]),
        C.constant(np.arange(2)),
        C.input_variable(2),
        C.Constant(np.zeros(2)),
        C.Parameter(init=np.zeros(2)),
        C.constant(np.zeros(2), dtype=np.float32),
    ]
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
    with pytest.raises(UserError, match=f"a network has one precision, {message}") as error:
        MIXED[message]()
    assert "dtype=numpy.float64" in str(error.value.diagnostic.hint)


def test_leaves_of_both_precisions_that_meet_late_are_refused() -> None:
    x, w = C.input_variable(2, dtype=np.float64, name="x"), C.parameter((2, 2), init=C.normal(1), name="w")
    z = C.times(x, w)
    for look in (lambda: z.eval({x: np.ones((1, 2))}), lambda: z.dtype):
        with pytest.raises(UserError, match="the parameter 'w' is float32 and the input 'x' is float64"):
            look()


def test_default_options() -> None:
    with C.default_options(dtype=np.float64):
        x = C.input_variable(4)
        layers = [
            C.layers.Dense(3, activation=C.relu),
            C.layers.LayerNormalization(),
            C.layers.BatchNormalization(),
            C.layers.Dropout(0.5),
            C.layers.Dense(2),
        ]
        z = C.layers.Sequential(layers)(x)
        assert (C.parameter(2).dtype, C.constant(1).dtype, C.random.normal(2).dtype) == (np.float64,) * 3
    assert (x.dtype, z.dtype) == (np.float64, np.float64)
    assert {one.dtype.name for one in z.parameters} == {"float64"}
    assert {one.value.dtype.name for one in z.parameters} == {"float64"}
    assert z.eval({x: DATA}).dtype == np.float64
    assert C.input_variable(2).dtype == np.float32
    with C.default_options_for(C.input_variable, dtype=np.float64):
        assert (C.input_variable(2).dtype, C.constant(1).dtype) == (np.float64, np.float32)
    with pytest.raises(UserError, match=r"numpy.float32 or numpy.float64"), C.default_options(dtype="x"):
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
    with pytest.raises(UserError, match=r"numpy.float16, numpy.float32 or numpy.float64, not <class 'numpy.int32'>"):
        C.cast(x, np.int32)
    with pytest.raises(UserError, match="a network has one precision, the cast 'Pass' is float64 and the input"):
        _ = (C.cast(x, np.float64) + x).dtype


# ------------------------------------------------------------------------------------------- computations


def slopes(function, *at: np.ndarray) -> list[np.ndarray]:
    """The derivatives of a real function, exact to the last digits: a step of 1e-30 in the imaginary direction."""
    found = []
    for place, array in enumerate(at):
        slope = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            moved = [one.astype(complex) for one in at]
            moved[place][index] += 1e-30j
            slope[index] = function(*moved).imag / 1e-30
        found.append(slope)
    return found


def test_a_classifier_is_exact_to_twelve_digits() -> None:
    """Batch normalisation in training mode among it."""
    x, y = C.input_variable(4, dtype=np.float64, needs_gradient=True), C.input_variable(3, dtype=np.float64)
    w, b = C.parameter((4, 5), init=C.glorot_uniform(), dtype=np.float64), C.parameter(5, init=0.1, dtype=np.float64)
    scale, bias = C.parameter(5, init=1.5, dtype=np.float64), C.parameter(5, init=-0.2, dtype=np.float64)
    u = C.parameter((5, 3), init=C.he_normal(), dtype=np.float64)
    mean, variance = C.constant(np.zeros(5)), C.constant(np.zeros(5))
    hidden = C.tanh(C.times(x, w) + b)
    normal = C.batch_normalization(
        hidden, scale, bias, mean, variance, False, epsilon=1e-5, running_count=C.constant(0)
    )
    loss = C.cross_entropy_with_softmax(C.times(normal, u), y)
    labels = np.eye(3)[[0, 1, 2, 1, 0]]

    def by_hand(x, w, b, scale, bias, u):
        h = np.tanh(x @ w + b)
        h = scale * (h - h.mean(axis=0)) / np.sqrt(((h - h.mean(axis=0)) ** 2).mean(axis=0) + 1e-5) + bias
        z = h @ u
        return (np.log(np.exp(z).sum(axis=1)) - (z * labels).sum(axis=1)).sum()

    leaves = (x, w, b, scale, bias, u)
    found, values = loss.grad({x: DATA, y: labels}, wrt=list(leaves), outputs=[loss])
    at = [DATA, *(one.value for one in leaves[1:])]
    assert values.dtype == np.float64
    np.testing.assert_allclose(values.sum(), by_hand(*at), rtol=1e-12)
    for one, slope in zip(leaves, slopes(by_hand, *at), strict=True):
        assert found[one].dtype == np.float64
        np.testing.assert_allclose(found[one], slope, rtol=1e-10, atol=1e-13, err_msg=repr(one))


def test_a_recurrence_is_exact_to_twelve_digits() -> None:
    x = C.sequence.input_variable(4, dtype=np.float64, needs_gradient=True)
    w, u = (C.parameter(shape, init=C.glorot_uniform(), dtype=np.float64) for shape in ((4, 3), (3, 3)))
    h = C.layers.Recurrence(lambda before, x: C.sigmoid(C.times(x, w) + C.times(before, u)), initial_state=1 / 3)(x)
    z = C.reduce_sum(C.sequence.last(h))

    def by_hand(x, w, u):
        state = np.full(3, 1 / 3)
        for step in x:
            state = 1 / (1 + np.exp(-(step @ w + state @ u)))
        return state.sum()

    found, values = z.grad({x: [DATA]}, wrt=[x, w, u], outputs=[z])
    at = DATA, w.value, u.value
    np.testing.assert_allclose(np.ravel(values), [by_hand(*at)], rtol=1e-12)
    for one, slope in zip((x, w, u), slopes(by_hand, *at), strict=True):
        np.testing.assert_allclose(np.squeeze(found[one]), slope, rtol=1e-11, atol=1e-14)


def test_every_kind_of_function_keeps_double_precision() -> None:
    x = C.input_variable((3, 4), dtype=np.float64)
    sequence = C.sequence.input_variable(4, dtype=np.float64)
    data = np.random.default_rng(5).normal(size=(2, 3, 4))
    largest = C.argmax(x, axis=1)
    made = [
        largest, C.one_hot(largest, 4), C.hardmax(x), C.transpose(x, (1, 0)), C.slice(x, 1, 0, 2),
        C.splice(x, x, axis=0), C.gather(x, [0, 2]), C.top_k(x, 2).outputs[0], C.greater(x, 0),
        C.random.normal_like(x), C.reshape(x, 12),
        C.reduce_mean(x, axis=0), C.layers.Dropout(0.5)(x), C.layers.LayerNormalization()(x), C.layers.Dense(2)(x),
        C.layers.BatchNormalization()(x), C.layers.Embedding(weights=np.eye(4))(x), C.layers.Stabilizer()(x),
    ]  # fmt: skip
    for one, value in C.combine(made).eval({x: data}).items():
        assert value.dtype == np.float64, one
    picture = C.input_variable((1, 5, 5), dtype=np.float64)
    pooled = C.layers.Sequential([C.layers.Convolution2D((3, 3), 2), C.layers.MaxPooling((2, 2))])(picture)
    assert pooled.eval({picture: np.ones((1, 1, 5, 5))}).dtype == np.float64
    for one in (
        C.sequence.last(sequence),
        C.sequence.past_value(sequence),
        C.layers.Recurrence(C.layers.GRU(2))(sequence),
    ):
        assert [each.dtype for each in one.eval({sequence: [DATA]})] == [np.float64]
    assert (x * 2).eval({x: data}, as_numpy=False).dtype == np.float64


def test_data_of_the_other_precision_are_converted() -> None:
    single, double = C.input_variable(4), C.input_variable(4, dtype=np.float64)
    for given in (DATA, DATA.astype(np.float32), C.Value(DATA), C.Value(DATA.astype(np.float32)), DATA.tolist()):
        assert (2 * single).eval({single: given}).dtype == np.float32
        found = (2 * double).eval({double: given})
        assert found.dtype == np.float64
        exact = given.asarray() if isinstance(given, C.Value) else np.asarray(given)
        np.testing.assert_array_equal(found, 2 * exact.astype(np.float64))


RESUMED = {
    "fsadagrad": lambda p: C.fsadagrad(p, 0.01, 0.9, unit_gain=False),
    "noise": lambda p: C.sgd(p, 0.1, gaussian_noise_injection_std_dev=0.01, l1_regularization_weight=1e-3),
}


@pytest.mark.parametrize("name", ["fsadagrad", pytest.param("noise", marks=pytest.mark.thorough)])
def test_a_training_in_double_precision_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    data, labels = np.random.default_rng(6).normal(size=(24, 4)), np.random.default_rng(7).normal(size=(24, 2))

    def parts():
        C.cntk_py.set_fixed_random_seed(1)
        x, y = C.input_variable(4, dtype=np.float64), C.input_variable(2, dtype=np.float64)
        layers = [C.layers.Dense(5, activation=C.tanh), C.layers.BatchNormalization(), C.layers.Dropout(0.3)]
        z = C.layers.Sequential([*layers, C.layers.Dense(2)])(x)
        return C.Trainer(z, C.squared_error(z, y), RESUMED[name](z.parameters)), x, y, z

    def train(trainer, x, y, begin, end):
        for at in range(begin, end, 4):
            trainer.train_minibatch({x: data[at : at + 4], y: labels[at : at + 4]})

    whole, x, y, z = parts()
    train(whole, x, y, 0, 12)
    whole.save_checkpoint(str(tmp_path / "m"))
    train(whole, x, y, 12, 24)
    resumed, x, y, again = parts()
    resumed.restore_from_checkpoint(str(tmp_path / "m"))
    train(resumed, x, y, 12, 24)
    assert resumed.previous_minibatch_loss_average == whole.previous_minibatch_loss_average
    for one, same in zip((*z.parameters, *z.constants), (*again.parameters, *again.constants), strict=True):
        np.testing.assert_array_equal(one.value, same.value)
    rounded = z.parameters[0].value.astype(np.float32)
    assert (z.parameters[0].value != rounded).any()


def test_a_loaded_model_of_double_precision_goes_on_in_it(tmp_path: Path) -> None:
    x = C.input_variable(4, dtype=np.float64, name="x")
    C.layers.Dense(2)(x).save(tmp_path / "z")
    loaded = C.load_model(tmp_path / "z")
    wider = C.layers.Dense(3)(loaded)
    assert (wider.dtype, {one.dtype.name for one in wider.parameters}) == (np.float64, {"float64"})
    assert wider.eval(DATA).dtype == np.float64
    single = C.input_variable(3, name="single")
    message = "a network has one precision, the .* is float(32|64) and the .* is float(32|64)"
    for mixed in (wider + single, C.squared_error(wider, single)):
        with pytest.raises(UserError, match=message):
            mixed.eval({one: DATA[:, : one.shape[0]] for one in mixed.arguments})
    with pytest.raises(UserError, match=message):
        C.Trainer(wider, C.squared_error(wider, single), C.sgd(wider.parameters, 0.1))
