"""Small programs in the way that people write them for CNTK 2, with another import line only."""

import math

import numpy as np
import pytest
import scipy.sparse

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.layers.typing import Sequence, Tensor
from cntkpy.compat.cntk.train.distributed import Communicator, data_parallel_distributed_learner
from cntkpy.compat.cntk.train.training_session import CheckpointConfig, CrossValidationConfig, training_session
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.workers import Workers

random = np.random.RandomState(0)
X = random.randn(60, 4).astype(np.float32)
Y = np.eye(3, dtype=np.float32)[(X @ random.randn(4, 3)).argmax(axis=1)]


def classifier():
    x, y = C.input_variable(4), C.input_variable(3)
    with C.layers.default_options(init=C.layers.glorot_uniform(seed=3), activation=C.ops.tanh):
        z = C.layers.Sequential([C.layers.Dense(5, name="hidden"), C.layers.Dense(3, activation=None, name="out")])(x)
    return x, y, z, C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)


def test_logistic_regression_on_arrays() -> None:
    x, y = C.input_variable(4, np.float32), C.input_variable(3, np.float32)
    w, b = C.parameter(shape=(x.shape[0], 3)), C.parameter(shape=(3))
    z = C.times(x, w) + b
    loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    trainer = C.Trainer(z, (loss, error), [C.sgd(z.parameters, C.learning_parameter_schedule(0.5))])
    for begin in range(0, 60, 20):
        trainer.train_minibatch({x: X[begin : begin + 20], y: Y[begin : begin + 20]})
        if begin == 0:  # parameters start with zeros
            assert trainer.previous_minibatch_loss_average == pytest.approx(math.log(3), rel=1e-6)
    scores = X @ w.value + b.value
    expected = np.log(np.exp(scores).sum(axis=1)) - (scores * Y).sum(axis=1)
    found = loss.eval({x: X, y: Y})
    assert found.shape == (60,)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    wrong = scores.argmax(axis=1) != Y.argmax(axis=1)
    np.testing.assert_array_equal(error.eval({x: X, y: Y}), wrong)
    assert trainer.test_minibatch({x: X, y: Y}) == pytest.approx(wrong.mean())
    evaluator = C.Evaluator(error)
    assert evaluator.test_minibatch({x: X, y: Y}) == pytest.approx(wrong.mean())
    probabilities = C.softmax(z).eval({x: X})
    np.testing.assert_allclose(loss.grad({x: X, y: Y}, wrt=[w]), X.T @ (probabilities - Y), rtol=1e-4, atol=1e-4)


def test_a_weighted_loss_has_the_weight_of_each_sample() -> None:
    x, y, z, loss, _ = classifier()
    weight = C.input_variable(1)
    w = np.arange(60, dtype=np.float32).reshape(60, 1)
    weighted = loss * weight
    np.testing.assert_allclose(
        weighted.eval({x: X, y: Y, weight: w})[:, 0], loss.eval({x: X, y: Y}) * w[:, 0], rtol=1e-5
    )
    trainer = C.Trainer(z, (weighted, None), C.sgd(z.parameters, 0.0))
    trainer.train_minibatch({x: X, y: Y, weight: w})
    expected = (loss.eval({x: X, y: Y}) * w[:, 0]).mean()
    assert trainer.previous_minibatch_loss_average == pytest.approx(expected, rel=1e-5)


def test_a_session_with_its_configurations(tmp_path) -> None:
    x, y, z, loss, error = classifier()
    source = C.io.MinibatchSourceFromData({"x": X, "y": Y}, max_samples=120)
    other = C.io.MinibatchSourceFromData({"x": X, "y": Y}, max_samples=60)
    rate = C.learning_parameter_schedule([0.1] * 2 + [0.05], minibatch_size=20, epoch_size=60)
    learner = C.momentum_sgd(z.parameters, rate, C.momentum_schedule(0.9, minibatch_size=20), unit_gain=False)
    log = C.logging.ProgressPrinter(tag="Training", log_to_file=str(tmp_path / "log"), rank=Communicator.rank())
    trainer = C.Trainer(z, (loss, error), data_parallel_distributed_learner(learner, num_quantization_bits=32), log)
    seen = []
    training_session(
        trainer=trainer,
        mb_source=source,
        mb_size=C.minibatch_size_schedule([10, 20], 60),
        model_inputs_to_streams={x: source.streams.x, y: source.streams.y},
        progress_frequency=60,
        checkpoint_config=CheckpointConfig(str(tmp_path / "net"), frequency=60, preserve_all=True),
        cv_config=CrossValidationConfig(
            other, frequency=60, minibatch_size=30, criterion=error, callback=lambda *given: seen.append(given)
        ),
    ).train()
    assert [one[0] for one in seen] == [0, 1]
    assert {"net0", "net0.ckp", "net1.ckp", "net"} <= {one.name for one in tmp_path.iterdir()}
    assert (tmp_path / "log").read_text().count("Finished Epoch") == 2
    loaded = C.load_model(str(tmp_path / "net"))
    np.testing.assert_allclose(loaded.out.eval({loaded.arguments[0]: X}), z.eval({x: X}), rtol=1e-5, atol=1e-6)


def test_loss_train_and_test() -> None:
    x, y, z, loss, error = classifier()
    learner = C.adam(z.parameters, 0.05, momentum=C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
    done = C.combine([loss, error]).train((X, Y), parameter_learners=[learner], minibatch_size=20, max_epochs=3)
    assert (done.updates, [one.samples for one in done.epoch_summaries]) == (9, [60, 60, 60])
    assert done.epoch_summaries[2].loss < done.epoch_summaries[0].loss
    names = ["updates", "epoch_summaries", "cross_validation_summaries", "test_summary"]
    assert (list(done), done["updates"], done["test_summary"]) == (names, 9, None)
    last = done["epoch_summaries"][-1]
    assert (list(last), last["loss"], last["samples"]) == (["loss", "metric", "samples"], last.loss, 60)
    loss, metric, samples = last.values()
    assert dict(last) == {"loss": loss, "metric": metric, "samples": samples}
    with pytest.raises(KeyError):
        done["losses"]
    assert error.test((X, Y)).metric == pytest.approx(error.eval({x: X, y: Y}).mean())


def test_arrays_are_validated_and_tested_with_the_inputs_of_a_criterion() -> None:
    model = C.layers.Dense(3)

    @C.Function.with_signature(Tensor[4], Tensor[3])
    def criterion(x, y):
        z = model(x)
        return C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)

    learner, seen = C.sgd(model.parameters, 0.1), []

    def halve(number, metric, samples, minibatches):
        learner.reset_learning_rate(C.learning_parameter_schedule(learner.learning_rate() / 2))
        seen.append((number, metric, samples, minibatches))
        return number < 1

    done = criterion.train(
        (X, Y),
        minibatch_size=20,
        max_epochs=9,
        parameter_learners=[learner],
        callbacks=[
            C.CrossValidationConfig((X[:30], Y[:30]), 120, minibatch_size=20, callback=halve, criterion=criterion),
            C.TestConfig((X, Y), criterion=criterion),
        ],
    )
    assert [(number, samples, parts) for number, _, samples, parts in seen] == [(0, 30, 2), (1, 30, 2)]
    assert (len(done.epoch_summaries), learner.learning_rate()) == (4, 0.025)
    assert [one.metric for one in done.cross_validation_summaries] == [metric for _, metric, _, _ in seen]
    error = criterion.outputs[1]
    assert done.test_summary.metric == pytest.approx(error.eval(dict(zip(error.arguments, (X, Y), strict=True))).mean())
    with pytest.raises(ArgumentError, match="arrays are given to the inputs of a criterion"):
        C.TestConfig((X, Y))


def test_values_of_a_minibatch_may_be_asked_for_in_any_form() -> None:
    x, y, z, loss, _ = classifier()
    trainer = C.Trainer(z, loss, C.sgd(z.parameters, 0.1))
    for outputs in ({z}, z, (one for one in [z])):
        expected = z.eval({x: X})
        trained, values = trainer.train_minibatch({x: X, y: Y}, outputs)
        assert trained
        np.testing.assert_allclose(values[z], expected, rtol=1e-5)


def test_every_worker_has_the_summary(monkeypatch) -> None:
    """Writers of workers after the first write nothing."""
    monkeypatch.setattr(Workers, "main", False)
    _, _, z, loss, error = classifier()
    criterion = C.combine([loss, error])
    done = criterion.train(
        (X, Y), parameter_learners=[C.sgd(z.parameters, 0.1)], callbacks=[C.TestConfig((X, Y), criterion=criterion)]
    )
    assert [one.samples for one in (*done.epoch_summaries, done.test_summary)] == [60, 60]


def test_an_epoch_of_sequences_is_all_of_them() -> None:
    sentences = [np.ones((1 + k % 3, 2), np.float32) for k in range(10)]
    x, y = C.sequence.input_variable(2), C.input_variable(2)
    z = C.layers.Sequential([C.layers.Recurrence(C.layers.RNNStep(2)), C.sequence.last, C.layers.Dense(2)])(x)
    criterion, labels = C.cross_entropy_with_softmax(z, y), np.eye(2, dtype=np.float32)[[0, 1] * 5]
    done = criterion.train((sentences, labels), parameter_learners=[C.sgd(z.parameters, 0.1)], max_epochs=2)
    assert [one.samples for one in done.epoch_summaries] == [10, 10]
    assert criterion.test((sentences, labels)).samples == 10


def test_a_sparse_matrix_may_be_the_first_array() -> None:
    x, y = C.input_variable(4, is_sparse=True), C.input_variable(3)
    loss = C.cross_entropy_with_softmax(C.layers.Dense(3)(x), y)
    done = loss.train((scipy.sparse.csr_matrix(X), Y), parameter_learners=[C.sgd(loss.parameters, 0.1)])
    assert [one.samples for one in done.epoch_summaries] == [60]


def test_evaluations_take_older_names() -> None:
    x, y, z, loss, error = classifier()
    source, other = (C.io.MinibatchSourceFromData({"x": X, "y": Y}, max_samples=60) for _ in range(2))
    seen = []
    training_session(
        C.Trainer(z, (loss, error), C.sgd(z.parameters, 0.1)),
        source,
        20,
        {x: source.streams.x, y: source.streams.y},
        cv_config=C.CrossValidationConfig(
            source=other, mb_size=20, frequency=60, callback=lambda *given: seen.append(given[2:])
        ),
        test_config=C.TestConfig(source=C.io.MinibatchSourceFromData({"x": X, "y": Y}, max_samples=60), mb_size=30),
    ).train()
    assert seen == [(60, 3)]


def test_a_printer_is_told_by_the_program(capsys) -> None:
    x, y, z, loss, error = classifier()
    by_hand, given = C.logging.ProgressPrinter(tag="hand", freq=2), C.logging.ProgressPrinter(tag="own", freq=2)
    trainer = C.Trainer(z, (loss, error), C.sgd(z.parameters, 0.1), given)
    expected = []
    for _ in range(2):
        for begin in (0, 20, 40):
            trainer.train_minibatch({x: X[begin : begin + 20], y: Y[begin : begin + 20]})
            expected.append(trainer.previous_minibatch_loss_average)
            by_hand.update_with_trainer(trainer, with_metric=True)
            given.update_with_trainer(trainer, with_metric=True)
        found, same = by_hand.epoch_summary(with_metric=True), given.epoch_summary(with_metric=True)
        assert found == pytest.approx(same)
        assert (found[0], found[2]) == (pytest.approx(np.mean(expected[-3:])), 60)
    by_hand.log("over")
    rate, *lines = capsys.readouterr().out.splitlines()
    assert rate == "Learning rate per minibatch: 0.1" and lines[-1] == "over"
    assert [line.split(";")[0].split(" metric")[0] for line in lines[0:2]] == [
        f" Minibatch[   1-   2]: loss = {np.mean(expected[:2]):.6f} * 40,"
    ] * 2
    assert [line.partition(" loss")[0] for line in lines if "Finished" in line] == [
        "Finished Epoch[1]: [hand]",
        "Finished Epoch[1]: [own]",
        "Finished Epoch[2]: [hand]",
        "Finished Epoch[2]: [own]",
    ]


def test_a_layer_is_logged_as_a_function_is(capsys) -> None:
    layer = C.layers.Sequential([C.layers.Dense(2, name="hidden"), C.layers.Dense(1)])
    assert layer(C.input_variable(3)).shape == (1,)
    C.logging.log_number_of_parameters(layer)
    assert capsys.readouterr().out == "Training 11 parameters in 4 parameter tensors.\n"
    assert C.logging.plot(layer).endswith(" -> (1,)\n")
    with pytest.raises(ArgumentError, match="a model is a"):
        C.logging.log_number_of_parameters(3)


def test_parameters_and_constants_are_instances() -> None:
    _, _, z, _, _ = classifier()
    (one,) = (z * C.Constant(2.0)).constants
    kinds = [(isinstance(v, C.Parameter), isinstance(v, C.Constant)) for v in (z.out.W, one, z)]
    assert kinds == [(True, False), (False, True), (False, False)]
    assert isinstance(C.Parameter((2,), init=1), C.Variable)
    leaves = [C.input_variable(2), C.placeholder(), C.constant(1.0), z.out.W]
    assert [isinstance(v, C.Function) for v in (*leaves, z, C.layers.Dense(2))] == [False] * 4 + [True] * 2


def test_a_function_of_placeholders_has_a_shape_and_elements() -> None:
    given = C.placeholder(4)
    assert given.shape == (4,)
    around = C.times(given, np.eye(4, dtype=np.float32))
    assert around.shape == (4,)
    coupled = C.splice(around[:2] * C.exp(C.layers.Dense(2)(around[2:])), around[2:])
    x = C.input_variable(4)
    np.testing.assert_allclose(coupled(x).eval({x: X})[:, 2:], X[:, 2:], rtol=1e-6)
    with pytest.raises(UserError, match="a placeholder is left"):
        _ = C.exp(C.placeholder()).shape


def test_a_model_says_its_format(tmp_path) -> None:
    _, _, z, _, _ = classifier()
    z.save(str(tmp_path / "m"), format=C.ModelFormat.CNTKv2)
    assert C.load_model(str(tmp_path / "m"), format=C.ModelFormat.CNTKv2).shape == (3,)
    z.save(str(tmp_path / "m.onnx"), format=C.ModelFormat.ONNX)
    again = C.Function.load(str(tmp_path / "m.onnx"), format=C.ModelFormat.ONNX)
    (mine,), (other,) = z.arguments, again.arguments
    assert [len(axis.dynamic_axes) for axis in (mine, other)] == [1, 1]
    data = np.random.default_rng(0).normal(size=(4, *mine.shape)).astype(np.float32)
    np.testing.assert_allclose(again.eval({other: data}).reshape(4, 3), z.eval({mine: data}), rtol=1e-5)


def test_a_metric_in_the_place_of_a_learner_is_told() -> None:
    _, _, z, loss, error = classifier()
    with pytest.raises(ArgumentError, match="a function is not a learner") as found:
        C.Trainer(z, loss, error, [C.sgd(z.parameters, 0.1)])
    assert "(loss, metric)" in str(found.value.hint)


def test_a_criterion_is_tested_by_its_metric_and_may_have_several_elements() -> None:
    x, y, z, loss, error = classifier()
    by_element = -(y * C.log(C.softmax(z)))  # the cross entropy, before it is summed up
    criterion = C.combine([by_element, error])
    assert criterion.arguments == by_element.arguments == (y, x)
    assert criterion.test((Y, X)).metric == pytest.approx(error.eval({x: X, y: Y}).mean())
    assert by_element.test((Y, X)).metric == pytest.approx(loss.eval({x: X, y: Y}).mean(), rel=1e-5)
    trainer = C.Trainer(z, (by_element, error), C.sgd(z.parameters, 0.1))
    expected = loss.eval({x: X, y: Y}).mean()
    trainer.train_minibatch({x: X, y: Y})
    assert trainer.previous_minibatch_loss_average == pytest.approx(expected, rel=1e-5)


def test_functions_and_layers_of_data_give_values() -> None:
    x, _, z, _, _ = classifier()
    np.testing.assert_array_equal(z(X), z.eval({x: X}))
    np.testing.assert_array_equal(z(list(X)), z.eval({x: X}))
    layer = C.layers.Dense(2)
    made = layer(x)
    np.testing.assert_array_equal(layer(X), made.eval({x: X}))
    assert isinstance(z(C.constant(X[0])), C.Function)
    step = C.layers.LSTM(2)
    h, c = step(C.constant(np.zeros(2, np.float32)), C.constant([0, 0]), x)
    assert (h.shape, c.shape, list(h)) == ((2,), (2,), [h])


def test_steps_of_recurrences_may_be_decorated() -> None:
    weights, states = C.Parameter((3, 2), init=0.5), C.Parameter((2, 2), init=0.25)

    @C.Function
    def step(before, x):
        return C.tanh(C.times(x, weights) + C.times(before, states))

    x = C.sequence.input_variable(3)
    data = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    (found,) = C.layers.Recurrence(step)(x).eval([data])
    before = np.zeros(2)
    for one, row in zip(found, data, strict=True):
        before = np.tanh(row @ weights.value + before @ states.value)
        np.testing.assert_allclose(one, before, rtol=1e-5)

    @C.Function
    def without_state(x):
        return x

    with pytest.raises(UserError, match="1 to 6 states and the input, not 1 parameters"):
        C.layers.Recurrence(without_state)


def test_sequences_of_numbers_are_lists_of_vectors(tmp_path) -> None:
    x = C.sequence.input_variable(1)
    total = C.sequence.reduce_sum(x)
    data = [np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)]
    np.testing.assert_array_equal(total.eval({x: data}), [[3], [10]])
    kept = C.sequence.last(C.layers.Recurrence(C.layers.LSTM(2))(x))
    kept.save(tmp_path / "kept", format=C.ModelFormat.CNTKv2)
    again = C.Function.load(tmp_path / "kept")
    np.testing.assert_array_equal(again.eval({again.arguments[0]: data}), kept.eval({x: data}))


def test_a_transposed_layer_makes_images_larger() -> None:
    image = C.input_variable((2, 5, 4))
    small = C.layers.ConvolutionTranspose2D((3, 2), 3, strides=2, pad=True)(image)
    assert small.shape == (3, 9, 7)
    options = {"strides": 2, "pad": True, "output_shape": (10, 8), "activation": C.relu, "bias": False}
    layer = C.layers.ConvolutionTranspose2D((3, 2), 3, **options, name="up")
    large, data = layer(image), np.random.default_rng(1).normal(size=(2, 2, 5, 4)).astype(np.float32)
    assert (large.shape, large.up.W.shape) == ((3, 10, 8), (2, 3, 3, 2))
    found = large.eval(data)
    assert found.min() == 0 < found.max()
    pooled = C.layers.MaxPooling((2, 2), strides=2)(image)
    assert C.layers.MaxUnpooling((2, 2), strides=2)(pooled, image).shape == (2, 5, 4)


def test_statistics_of_a_hand_written_normalisation_move() -> None:
    x = C.input_variable((2, 3, 3))
    scale, bias = C.Parameter(2, init=1.0), C.Parameter(2, init=0.0)
    mean, variance = C.Constant(np.zeros(2)), C.Constant(np.zeros(2))
    with pytest.warns(UserWarning, match=r"counts samples from 0; running_count=constant\(0\)"):
        normal = C.ops.batch_normalization(x, scale, bias, mean, variance, True, normalization_time_constant=0)
    loss = C.reduce_sum(C.square(normal - 1.0))
    data = np.random.default_rng(1).normal(3.0, 2.0, size=(8, 2, 3, 3)).astype(np.float32)
    trainer = C.Trainer(normal, loss, C.sgd(normal.parameters, 0.0))
    trainer.train_minibatch({x: data})
    np.testing.assert_allclose(mean.value.ravel(), data.mean(axis=(0, 2, 3)), rtol=1e-4)


def test_the_number_of_samples_that_running_statistics_are_of() -> None:
    """With it the first minibatch counts as one of many, without it as the only one."""
    x = C.input_variable(2)
    data = np.array([[1, 2], [3, 6]], np.float32)

    def mean_after(count) -> np.ndarray:
        mean, variance = C.constant(np.full(2, 7.0, np.float32)), C.constant(np.ones(2, np.float32))
        scale, bias = C.parameter(2, init=1.0), C.parameter(2, init=0.0)
        z = C.batch_normalization(x, scale, bias, mean, variance, False, 4, 0, 1e-5, False, False, "n", count)
        assert z.name == "n"
        z.forward({x: data}, None, z.outputs)
        return mean.value

    keep = np.exp(-2 / 4)
    np.testing.assert_allclose(mean_after(C.constant(0)), [2, 4], rtol=1e-6)
    for count in (C.constant(50), C.constant([50.0]), C.constant(50, shape=(1,)), 50):
        np.testing.assert_allclose(mean_after(count), keep * 7 + (1 - keep) * np.array([2, 4]), rtol=1e-6)
    for wrong in (C.constant([1, 2]), C.constant(-1), "5", x):
        with pytest.raises(UserError, match="running_count is a constant of one number from 0 on"):
            mean_after(wrong)


@pytest.mark.parametrize(
    "name",
    [
        "nesterov",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("momentum_sgd", "fsadagrad", "adam", "adamax")),
    ],
)
def test_unit_gain(name: str) -> None:
    """It is True where nobody says otherwise; without momentum it has no effect."""

    def trained(momentum: float, **options) -> np.ndarray:
        x, w = C.input_variable(2), C.parameter(2, init=1.0)
        learner = C.adam if name == "adamax" else getattr(C, name)
        more = {"adamax": True} if name == "adamax" else {}
        trainer = C.Trainer(x * w, C.reduce_sum(x * w), learner([w], 0.1, momentum, **options, **more))
        for _ in range(2):
            trainer.train_minibatch({x: np.array([[1, -2], [3, 1]], np.float32)})
        return w.value

    usual, gain, none = trained(0.5), trained(0.5, unit_gain=True), trained(0.5, unit_gain=False)
    np.testing.assert_array_equal(usual, gain)
    assert (np.abs(none - 1) > 1.1 * np.abs(gain - 1)).all()
    C.learners.set_default_unit_gain_value(False)
    try:
        np.testing.assert_array_equal(trained(0.5), none)
    finally:
        C.learners.set_default_unit_gain_value(True)
    np.testing.assert_array_equal(trained(0.0, unit_gain=False), trained(0.0, unit_gain=True))


def test_rmsprop_without_an_upper_bound() -> None:
    w = C.parameter(2, init=1.0)
    learner = C.rmsprop([w], 0.1, gamma=0.9, inc=1.2, dec=0.8, max=np.inf, min=0)
    for _ in range(40):
        learner.update({w: np.array([1.0, -1.0], np.float32)}, 1)
    assert np.isfinite(w.value).all()
    assert (np.sign(w.value - 1) == [-1, 1]).all()


def test_a_block_function_is_a_layer_and_a_noise_that_changes_is_refused() -> None:
    @C.ops.functions.BlockFunction("Twice", "twice")
    def twice(x):
        return C.plus(x, x, "sum")

    x = C.input_variable(2)
    made = twice(x)
    assert (made.name, made.eval([[1.0, 2.0]]).tolist()) == ("twice", [[2.0, 4.0]])
    weights = C.Parameter((2, 2))
    C.sgd([weights], 0.1, gaussian_noise_injection_std_dev=[0.0])
    with pytest.raises(UserError, match="the deviation of the noise is one number"):
        C.sgd([weights], 0.1, gaussian_noise_injection_std_dev=[0.1, 0.0])


def test_functions_behind_each_other_may_have_several_values() -> None:
    x = C.input_variable(2)
    both = C.layers.Sequential([lambda x: x + 1.0, (C.negate, C.layers.Label("more")), (C.relu, lambda x: 2.0 * x)])(x)
    assert (len(both.outputs), both[1].eval([[1.0, 2.0]]).tolist()) == (2, [[4.0, 6.0]])
    joined = both >> C.splice
    assert joined.eval([[1.0, 2.0]]).tolist() == [[0.0, 0.0, 4.0, 6.0]]
    assert [one.op_name for one in x >> (C.negate, C.exp)] == ["Negate", "Exp"]
    with C.layers.default_options(enable_self_stabilization=True):
        h = C.layers.Recurrence(C.layers.LSTM(2))(C.sequence.input_variable(2))
    plain = C.layers.Recurrence(C.layers.LSTM(2))(C.sequence.input_variable(2))
    assert len(h.parameters) > len(plain.parameters)


WORDS = 5


def translator():
    """A model that reads a sentence backwards, and writes one word after another, each from the words before."""
    start = C.Constant(np.eye(WORDS, dtype=np.float32)[0])
    embed = C.layers.Embedding(4)
    with C.layers.default_options(enable_self_stabilization=True, go_backwards=True):
        encode = C.layers.Sequential(
            [
                embed,
                C.layers.Stabilizer(),
                C.layers.Fold(C.layers.LSTM(6), return_full_state=True),
                (C.layers.Label("h"), C.layers.Label("c")),
            ]
        )
    cells, scores = C.layers.LSTM(6), C.layers.Dense(WORDS)

    @C.Function
    def decode(history, given):
        return scores(C.layers.RecurrenceFrom(cells)(*encode(given).outputs, embed(history)))

    @C.Function
    @C.layers.Signature(
        C.layers.SequenceOver[C.Axis("in")][Tensor[WORDS]], C.layers.SequenceOver[C.Axis("out")][Tensor[WORDS]]
    )
    def criterion(given, labels):
        wanted = C.sequence.slice(labels, 1, 0)
        z = decode(C.layers.Delay(initial_state=start)(wanted), given)
        return C.cross_entropy_with_softmax(z, wanted), C.classification_error(z, wanted)

    return criterion


def sentences(count: int):
    given = [random.randint(2, WORDS, random.randint(2, 4)) for _ in range(count)]
    eye = np.eye(WORDS, dtype=np.float32)
    return [eye[one] for one in given], [eye[[0, *one, 1]] for one in given]


@pytest.mark.thorough
def test_a_translator_learns_to_copy() -> None:
    criterion = translator()
    learner = C.adam(criterion.parameters, 0.02, momentum=0.9, minibatch_size=C.learners.IGNORE)
    trainer = C.Trainer(None, criterion, learner)
    given, labels = sentences(40)
    for _ in range(60):
        trainer.train_minibatch(dict(zip(criterion.arguments, (given, labels), strict=True)))
    assert trainer.previous_minibatch_sample_count == sum(map(len, labels))
    assert trainer.previous_minibatch_loss_average < 0.8  # ln 5 = 1.6 before


def test_a_translator_reads_and_writes_along_two_axes() -> None:
    criterion = translator()
    assert [one.dynamic_axes[1].name for one in criterion.arguments] == ["in", "out"]
    assert [one.name for one in criterion.arguments] == ["given", "labels"]


def test_a_printer_of_two_trainers(capsys) -> None:
    x, y, z, loss, _ = classifier()
    printer = C.logging.ProgressPrinter()
    for _ in range(2):
        trainer = C.Trainer(z, (loss, None), C.sgd(z.parameters, 0.1), printer)
        trainer.train_minibatch({x: X, y: Y})
        trainer.summarize_training_progress()
    lines = capsys.readouterr().out.splitlines()
    assert [" * 60 " in line for line in lines] == [False, True, False, True]  # the rate before each


@pytest.mark.thorough
def test_two_learners_train_as_they_do_alone() -> None:
    def after(choose):
        C.cntk_py.set_fixed_random_seed(1)
        x, y, z, loss, error = classifier()
        upper = [z.out.W, z.out.b]
        lower = [one for one in z.parameters if one not in upper]
        trainer = C.Trainer(z, (loss, error), choose(lower, upper))
        for begin in range(0, 60, 20):
            trainer.train_minibatch({x: X[begin : begin + 20], y: Y[begin : begin + 20]})
        return trainer, z, [one.value for one in z.parameters]

    rate, momentum = C.learning_parameter_schedule(0.1), C.momentum_schedule(0.9)
    make = {
        "sgd": lambda p: C.sgd(p, C.learning_parameter_schedule_per_sample(0.01)),
        "momentum": lambda p: C.momentum_sgd(p, rate, momentum, l2_regularization_weight=0.1),
    }
    _, _, one = after(lambda lower, upper: [make["momentum"](lower + upper)])
    _, z, two = after(lambda lower, upper: [make["momentum"](upper), make["momentum"](lower)])
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    _, _, mixed = after(lambda lower, upper: [make["sgd"](lower), make["momentum"](upper)])
    _, _, mixed_again = after(lambda lower, upper: [make["momentum"](upper), make["sgd"](lower)])
    for a, b, c in zip(mixed, mixed_again, one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert np.abs(a - c).max() > 1e-6
    with pytest.raises(UserError, match="others are not"):
        C.Trainer(z, z, [data_parallel_distributed_learner(make["sgd"]([z.out.W])), make["sgd"]([z.out.b])])


def test_a_tagger_as_a_python_function() -> None:
    words, tags = 7, 3
    model = C.layers.Sequential([C.layers.Embedding(4, name="embed"), C.layers.Dense(tags, name="classify")])

    @C.Function
    def criterion(x: Sequence[Tensor[words]], y: Sequence[Tensor[tags]]):
        z = model(x)
        return C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)

    x, y = criterion.arguments
    assert (x.name, y.name) == ("x", "y")
    trainer = C.Trainer(None, criterion, C.sgd(criterion.parameters, 0.1))
    sentences, answers = [[1, 2, 3], [4]], [[0, 1, 2], [1]]
    given = {x: C.Value.one_hot(sentences, words), y: C.Value.one_hot(answers, tags)}
    assert trainer.train_minibatch(given)
    assert trainer.previous_minibatch_sample_count == 4
    assert model.embed.E.shape == (words, 4)
    assert model.classify.b.value.shape == (tags,)
    assert [len(one) for one in criterion.outputs[0].eval(given)] == [3, 1]
    csr = [scipy.sparse.csr_matrix(np.eye(words, dtype=np.float32)[one]) for one in sentences]
    assert trainer.train_minibatch({x: csr, y: [np.eye(tags, dtype=np.float32)[one] for one in answers]})


def test_transfer_of_a_frozen_part(tmp_path) -> None:
    _, _, z, _, _ = classifier()
    z.save(str(tmp_path / "base"), format=None)
    base = C.load_model(str(tmp_path / "base"))
    hidden = C.logging.graph.find_by_name(base, "hidden")
    frozen = C.combine([hidden.owner]).clone(C.CloneMethod.freeze, {base.arguments[0]: C.placeholder()})
    x = C.input_variable(4)
    new = C.layers.Dense(2, name="new")(frozen(x * 2))
    assert {one.shape for one in new.parameters} == {(5, 2), (2,)}
    np.testing.assert_allclose(new.hidden.eval({x: X}), base.hidden.eval({base.arguments[0]: 2 * X}), rtol=1e-5)


A = [np.arange(6, dtype=np.float32).reshape(3, 2), np.array([[5, -7], [2, 3]], np.float32)]

OF_SEQUENCES = {
    "reduce_sum": (C.sequence.reduce_sum, lambda a: a.sum(axis=0)),
    "reduce_max": (C.sequence.reduce_max, lambda a: a.max(axis=0)),
    "softmax": (C.sequence.softmax, lambda a: np.exp(a) / np.exp(a).sum(axis=0)),
    "delay": (lambda x: C.sequence.delay(x, 7), lambda a: np.vstack([[7, 7], a[:-1]])),
    "fold": (C.layers.Fold(C.plus), lambda a: a.sum(axis=0)),
    "largest": (C.layers.Fold(C.element_max, initial_state=0), lambda a: np.maximum(a.max(axis=0), 0)),
    "backwards": (C.layers.Recurrence(C.plus, go_backwards=True), lambda a: a[::-1].cumsum(axis=0)[::-1]),
    "from": (lambda x: C.layers.RecurrenceFrom(C.plus)(C.sequence.last(x), x), lambda a: a[-1] + a.cumsum(axis=0)),
    "times": (lambda x: x * 2 + [1, 2], lambda a: a * 2 + [1, 2]),
}


@pytest.mark.parametrize("name", OF_SEQUENCES)
@pytest.mark.sampled
def test_sequences(name: str) -> None:
    function, expected = OF_SEQUENCES[name]
    x = C.sequence.input_variable(2)
    for found, one in zip(function(x).eval({x: A}), A, strict=True):
        np.testing.assert_allclose(found, expected(one), rtol=1e-5)


def test_a_recurrence_of_a_placeholder() -> None:
    x = C.sequence.input_variable(2)
    before = C.placeholder(shape=(2,), dynamic_axes=x.dynamic_axes)
    total = C.sequence.past_value(before) + x
    total.replace_placeholders({before: total.output})
    for found, one in zip(total.eval({x: A}), A, strict=True):
        np.testing.assert_allclose(found, one.cumsum(axis=0))


def test_defaults_of_learners() -> None:
    _, _, z, _, _ = classifier()
    assert C.learners.default_unit_gain_value()
    C.learners.set_default_unit_gain_value(False)
    try:
        assert not C.learners.default_unit_gain_value()
    finally:
        C.learners.set_default_unit_gain_value(True)
    learner = C.sgd(z.parameters, lr=[0.1, 0.2], minibatch_size=16, epoch_size=60)
    assert (learner.rate.minibatch_size, learner.rate[0], learner.rate[60]) == (16, 0.1, 0.2)
    mean = C.sgd(z.parameters, C.learning_parameter_schedule_per_sample(0.5), use_mean_gradient=True)
    assert mean.rate.minibatch_size == C.learners.IGNORE == 0


def test_a_model_without_an_input_yet() -> None:
    model = C.layers.Sequential([C.layers.Embedding(4, name="embed"), C.layers.Dense(3, name="classify")])
    assert model.embed.E.shape == (-1, 4), "the number of words is not known"
    assert model.classify.b.value.tolist() == [0, 0, 0]
    labels = C.placeholder(name="labels")
    criterion = C.combine([C.cross_entropy_with_softmax(model, labels), C.classification_error(model, labels)])
    assert [one.name for one in criterion.placeholders] == ["x", "labels"], "in the order in which they were made"
    x, y = C.sequence.input_variable(7), C.sequence.input_variable(3)
    criterion.replace_placeholders({criterion.placeholders[0]: x, criterion.placeholders[1]: y})
    assert set(criterion.parameters) == set(model(x).parameters)
    words = [np.eye(7, dtype=np.float32)[:5], np.eye(7, dtype=np.float32)[5:]]
    tags = [np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1]], np.eye(3, dtype=np.float32)[[2, 2]]]
    given = {x: words, y: tags}
    trainer = C.Trainer(None, criterion, C.sgd(criterion.parameters, C.learning_parameter_schedule(1.0)))
    before = model.embed.E.value
    assert before.shape == (7, 4)
    for _ in range(60):
        trainer.train_minibatch(given)
    assert trainer.previous_minibatch_evaluation_average == 0
    assert np.abs(model.embed.E.value - before).max() > 0.1
    with pytest.raises(AttributeError, match=r"call it with its inputs first"):
        C.layers.MaxUnpooling((2, 2)).W  # noqa: B018
    assert C.layers.LSTM(3).W.shape == (-1, 12), "a step is a function of a placeholder for each of its arguments"
    with pytest.raises(AttributeError, match="depends on none of that name"):
        C.layers.Dense(3).unknown  # noqa: B018


def recurrent(step=None):
    """A classifier of every step with a recurrence inside, and the labels of its steps."""
    x, y = C.sequence.input_variable(2, name="x"), C.sequence.input_variable(2, name="y")
    layers = [C.layers.Recurrence(step or C.layers.GRU(3), name="over"), C.layers.Dense(2, name="out")]
    return x, y, C.layers.Sequential(layers)(x)


LABELS = [np.eye(2, dtype=np.float32)[[0, 1, 1]], np.eye(2, dtype=np.float32)[[1, 0]]]


@pytest.mark.parametrize(
    "method",
    [
        C.CloneMethod.share,
        *(pytest.param(one, marks=pytest.mark.thorough) for one in (C.CloneMethod.clone, C.CloneMethod.freeze)),
    ],
)
def test_a_clone_of_a_recurrence(method) -> None:
    x, y, z = recurrent()
    other = C.sequence.input_variable(2)
    copy = z.clone(method, {x: other})
    for a, b in zip(z.eval({x: A}), copy.eval({other: A}), strict=True):
        np.testing.assert_array_equal(a, b)
    before = copy.eval({other: A})
    trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), C.sgd(z.parameters, 0.5))
    trainer.train_minibatch({x: A, y: LABELS})
    changed = np.abs(copy.eval({other: A})[0] - before[0]).max() > 1e-3
    assert changed == (method is C.CloneMethod.share)
    assert (set(copy.parameters) == set(z.parameters)) == (method is C.CloneMethod.share)
    assert len(copy.parameters) == (0 if method is C.CloneMethod.freeze else len(z.parameters))
    for a, b in zip(z.eval({x: A}), z.clone("clone").eval({x: A}), strict=True):
        np.testing.assert_array_equal(a, b, "as it is now, after training")


def test_a_clone_inside_of_a_recurrence() -> None:
    """A step made of a function that is cloned for the states: every application has the same parameters."""
    state, data = C.placeholder(), C.placeholder()
    cell = C.tanh(C.layers.Dense(3, name="W")(data) + C.layers.Dense(3, bias=False, name="R")(state))
    step = C.layers.Recurrence(lambda h, x: cell.clone("share", {state: h, data: x}))
    x = C.sequence.input_variable(2)
    z = step(x)
    w, b, r = (next(one.value for one in z.parameters if one.shape == shape) for shape in ((2, 3), (3,), (3, 3)))
    assert len(z.parameters) == 3
    for found, one in zip(z.eval({x: A}), A, strict=True):
        h = np.zeros(3, np.float32)
        for row, result in zip(one, found, strict=True):
            h = np.tanh(row @ w + b + h @ r)
            np.testing.assert_allclose(result, h, rtol=1e-4, atol=1e-5)
    copies = [z.clone("clone"), z.clone("freeze", {x: C.sequence.input_variable(2)})]
    for one in copies:
        for a, b in zip(one.eval({one.arguments[0]: A}), z.eval({x: A}), strict=True):
            np.testing.assert_array_equal(a, b)
    assert [len(one.parameters) for one in copies] == [3, 0]


def test_a_function_without_inputs_has_gradients() -> None:
    w = C.parameter((2, 3), init=np.arange(6).reshape(2, 3))
    total = C.reduce_sum(C.square(w))
    for nothing in ({}, None):
        np.testing.assert_array_equal(total.grad(nothing, wrt=[w]), 2 * np.arange(6).reshape(2, 3))
    found, values = total.grad({}, wrt=[w], outputs=[total])
    assert (found.shape, float(np.ravel(values)[0])) == ((2, 3), 55)


def test_gradients_stop() -> None:
    x = C.input_variable(2)
    w = C.parameter((2,), init=[2.0, 3.0])
    through, around = C.stop_gradient(x * w) * w, x * w * w
    data = np.array([[1, 2], [3, -1]], np.float32)
    np.testing.assert_array_equal(through.eval({x: data}), around.eval({x: data}))
    np.testing.assert_allclose(C.reduce_sum(through).grad({x: data}, wrt=[w]), (data * [2, 3]).sum(axis=0))
    np.testing.assert_allclose(C.reduce_sum(around).grad({x: data}, wrt=[w]), 2 * (data * [2, 3]).sum(axis=0))
    v = C.parameter((2,), init=[1.0, 1.0])
    y = C.input_variable(2)
    loss = C.squared_error(C.stop_gradient(x * w) + v, y)
    trainer = C.Trainer(None, loss, C.sgd([w, v], C.learning_parameter_schedule(0.1)))
    trainer.train_minibatch({x: data, y: data})
    assert w.value.tolist() == [2, 3]
    assert np.abs(v.value - 1).min() > 0.1


def test_the_last_steps_as_one_sample(tmp_path) -> None:
    x = C.sequence.input_variable(2)
    value, valid = C.layers.PastValueWindow(3, axis=-2)(x).outputs
    assert (value.shape, valid.shape) == ((3, 2), (3, 1))
    found, known = np.asarray(value.eval({x: A})), np.asarray(valid.eval({x: A}))
    np.testing.assert_array_equal(found[0], A[0][::-1])
    np.testing.assert_array_equal(found[1], [*A[1][::-1], [0, 0]])
    np.testing.assert_array_equal(known[:, :, 0], [[1, 1, 1], [1, 1, 0]])
    z = C.layers.Dense(2)(value)
    y = C.input_variable(2)
    loss = C.cross_entropy_with_softmax(z, y)
    trainer = C.Trainer(z, loss, C.sgd(z.parameters, C.learning_parameter_schedule(0.1)))
    assert trainer.train_minibatch({x: A, y: np.eye(2, dtype=np.float32)})
    with pytest.raises(UserError, match="an axis is a number below 0, not 0"):
        C.layers.PastValueWindow(3, axis=0)


@pytest.mark.parametrize(("axis", "shape"), [(-1, (6,)), (-2, (3, 2)), (-3, (3, 1, 2))])
@pytest.mark.sampled
def test_a_window_may_lie_along_any_axis_and_begin_at_the_first_step(axis, shape) -> None:
    x = C.sequence.input_variable(2)
    for backwards, order in ((False, -1), (True, 1)):
        value, valid = C.layers.PastValueWindow(3, axis=axis, go_backwards=backwards)(x).outputs
        found, known = value.eval({x: A}), valid.eval({x: A})
        assert (value.shape, valid.shape) == (shape, (3,) + (1,) * (-axis - 1))
        np.testing.assert_array_equal(found[0].reshape(3, 2), A[0][::order])
        np.testing.assert_array_equal(found[1].reshape(3, 2), [*A[1][::order], [0, 0]])
        np.testing.assert_array_equal(known.reshape(2, 3), [[1, 1, 1], [1, 1, 0]])
