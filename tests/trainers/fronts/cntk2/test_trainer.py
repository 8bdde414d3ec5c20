"""The trainer of Python programs: minibatches, results, tests, checkpoints."""

import gc
import re
import weakref

import numpy as np
import pytest
import scipy.sparse

from cntkpy.cntk_config import UserError
from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.functions.graph import set_seed
from cntkpy.networks.builders.python.functions.variables import input_variable, parameter, sequence_input
from cntkpy.networks.builders.python.operations import operators, sequences
from cntkpy.readers import MinibatchSourceFromData, Value
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2 import learners, schedules, values
from cntkpy.trainers.fronts.cntk2.progress import ProgressPrinter
from cntkpy.trainers.fronts.cntk2.tester import Tester
from cntkpy.trainers.fronts.cntk2.trainer import Trainer

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(240, 8)).astype(np.float32)
Y = np.eye(3, dtype=np.float32)[(X @ RANDOM.normal(size=(8, 3))).argmax(axis=1)]

assert values


def classifier(dropout: float = 0.0):
    x, y = input_variable(8, name="x"), input_variable(3, name="y")
    z = layers.Sequential(
        [layers.Dense(12, activation=operators.tanh), *([layers.Dropout(dropout)] if dropout else []), layers.Dense(3)]
    )(x)
    return x, y, z, operators.cross_entropy_with_softmax(z, y), operators.classification_error(z, y)


def trained(count: int, look: bool = False, **options):
    x, y, z, loss, errors = classifier(**options)
    for one, seed in zip(z.parameters, range(10), strict=False):
        one.value = np.random.default_rng(seed).normal(size=one.shape) * 0.3
    trainer = Trainer(z, (loss, errors), learners.adam(z.parameters, 0.02))
    for k in range(count):
        begin = 20 * k % 240
        trainer.train_minibatch({x: X[begin : begin + 20], y: Y[begin : begin + 20]})
        if look:
            assert trainer.previous_minibatch_sample_count == 20
    return trainer, x, y, z


def test_it_learns() -> None:
    trainer, x, y, z = trained(120)
    assert trainer.test_minibatch({x: X, y: Y}) < 0.05
    assert trainer.total_number_of_samples_seen == 2400
    assert (z.eval({x: X}).argmax(axis=1) == Y.argmax(axis=1)).mean() > 0.95
    assert trainer.previous_minibatch_loss_average < 0.3


@pytest.mark.thorough
@pytest.mark.optimised
def test_results_that_are_looked_at_change_nothing() -> None:
    one, *_, z = trained(30)
    other, *_, w = trained(30, look=True)
    for a, b in zip(z.parameters, w.parameters, strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-6, atol=1e-7)
    assert one.totals.samples == other.totals.samples == 600
    assert one.totals.loss == pytest.approx(other.totals.loss)


def test_data_of_every_kind_are_the_same_minibatch() -> None:
    x, y, _, loss, _ = classifier()
    source = MinibatchSourceFromData({"x": X[:20], "y": Y[:20]})
    found = source.next_minibatch(20)
    given = [
        {x: X[:20], y: Y[:20]},
        {x: list(X[:20]), y: Y[:20].tolist()},
        {x: scipy.sparse.csr_matrix(X[:20]), y: Value.one_hot(Y[:20].argmax(axis=1).tolist(), 3)},
        {x: X[:20, None], y: Value(Y[:20])},
        {x: found[source.streams.x], y: found[source.streams.y]},
        {"x": X[:20], "y": Y[:20]},
    ]
    results = [loss.eval(one) for one in given]
    assert all(result == pytest.approx(results[0], rel=1e-6) for result in results)


def test_arrays_may_be_reused_at_once() -> None:
    x, y, z, loss, errors = classifier()
    trainer = Trainer(z, (loss, errors), learners.sgd(z.parameters, 0.1))
    buffer = X[:20].copy()
    trainer.train_minibatch({x: buffer, y: Y[:20]})
    buffer[:] = np.nan
    assert np.isfinite(trainer.previous_minibatch_loss_average)


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path) -> None:
    set_seed(1)
    whole, *_, z = trained(40, dropout=0.3)
    set_seed(1)
    first, x, y, _ = trained(25, dropout=0.3)
    first.save_checkpoint(tmp_path / "m", {"place": 25})
    second, x, y, w = trained(0, dropout=0.3)
    assert second.restore_from_checkpoint(tmp_path / "m") == {"place": 25}
    for k in range(25, 40):
        begin = 20 * k % 240
        second.train_minibatch({x: X[begin : begin + 20], y: Y[begin : begin + 20]})
    for a, b in zip(z.parameters, w.parameters, strict=True):
        np.testing.assert_array_equal(a.value, b.value)
    assert second.totals.numbers() == whole.totals.numbers()
    assert second.total_number_of_samples_seen == 800


def test_a_small_minibatch_behind_a_checkpoint_is_padded_as_before(tmp_path) -> None:
    sizes = [23, 23, 23, 5]

    def last_shape(stop):
        trainer, x, y, _ = trained(0)
        for number, size in enumerate(sizes):
            if number == stop:
                trainer.save_checkpoint(tmp_path / "m")
                trainer, x, y, _ = trained(0)
                trainer.restore_from_checkpoint(tmp_path / "m")
            trainer.train_minibatch({x: X[:size], y: Y[:size]})
            trainer.queue.collect()
        return trainer.queue.size

    assert last_shape(-1) == last_shape(3) == 23


def test_a_checkpoint_of_another_network_is_refused(tmp_path) -> None:
    trained(1)[0].save_checkpoint(tmp_path / "m")
    x, y = input_variable(8), input_variable(3)
    z = layers.Dense(3)(x)
    trainer = Trainer(z, operators.cross_entropy_with_softmax(z, y), learners.sgd(z.parameters, 0.1))
    with pytest.raises(UserError, match="another network"):
        trainer.restore_from_checkpoint(tmp_path / "m")
    with pytest.raises(UserError, match="there is no checkpoint"):
        trainer.restore_from_checkpoint(tmp_path / "nothing")


def test_only_the_parameters_of_the_learner_are_trained() -> None:
    x, y, z, loss, errors = classifier()
    before = [one.value for one in z.parameters]
    trainer = Trainer(z, (loss, errors), learners.sgd(z.parameters[:1], 0.5))
    trainer.train_minibatch({x: X, y: Y})
    changed = [bool((one.value != value).any()) for one, value in zip(z.parameters, before, strict=True)]
    assert changed == [True, False, False, False]


@pytest.mark.parametrize("assigned", [False, True])
def test_two_trainers_of_the_same_parameters_keep_the_states_of_their_rules(assigned: bool) -> None:
    x = input_variable(1)
    p, q = parameter((1,), init=3.0), parameter((1,), init=-1.0)
    z = x * p + q
    targets, rates, parts = (1.0, 2.0), (0.1, 0.05), ((p, q), (p,))
    trainers = [
        Trainer(z, operators.squared_error(z, [target]), learners.momentum_sgd(part, lr=rate, momentum=0.5))
        for target, rate, part in zip(targets, rates, parts, strict=True)
    ]
    values, speeds = {p: 3.0, q: -1.0}, [{p: 0.0, q: 0.0}, {p: 0.0}]
    for turn in (0, 1, 1, 0, 1, 0, 0, 1):
        trainers[turn].train_minibatch({x: np.full((1, 1), 2.0, np.float32)})
        error = 2 * (2.0 * values[p] + values[q] - targets[turn])
        for one, slope in ((p, 2.0), (q, 1.0)):
            if one in speeds[turn]:
                speeds[turn][one] = 0.5 * speeds[turn][one] + rates[turn] * error * slope
                values[one] -= speeds[turn][one]
        if assigned and turn == 1:
            values[p] += 1.0
            p.value = p.value + 1.0
    assert (p.value[0], q.value[0]) == pytest.approx((values[p], values[q]), rel=1e-4)


@pytest.mark.thorough
def test_what_a_program_has_let_go_of_is_freed() -> None:
    trainer, x, _, z = trained(1)
    weights, kept = z.parameters[0].value, weakref.ref(trainer)
    del trainer
    gc.collect()
    np.testing.assert_array_equal(z.parameters[0].value, weights)  # the parameters know who has trained them
    del x, _, z
    gc.collect()
    assert kept() is None


def test_a_parameter_can_be_set_while_training() -> None:
    trainer, x, y, z = trained(3)
    z.parameters[0].value = np.zeros(z.parameters[0].shape)
    before = trainer.totals.minibatches
    trainer.train_minibatch({x: X[:20], y: Y[:20]})
    assert abs(z.parameters[0].value).max() < 0.05
    assert trainer.totals.minibatches == before + 1


def test_what_is_not_a_number_is_an_error() -> None:
    x, y, z, loss, errors = classifier()
    trainer = Trainer(z, (loss, errors), learners.sgd(z.parameters, 0.1))
    trainer.train_minibatch({x: X[:20], y: Y[:20]})
    trainer.train_minibatch({x: X[:20] * np.inf, y: Y[:20]})
    with pytest.raises(UserError, match=r"not a number \(minibatch 2\)"):
        _ = trainer.previous_minibatch_loss_average


def test_wrong_arguments() -> None:
    x, y, z, loss, errors = classifier()
    trainer = Trainer(z, (loss, errors), learners.sgd(z.parameters, 0.1))
    with pytest.raises(ArgumentError, match="no data for the input 'y'"):
        trainer.train_minibatch({x: X})
    with pytest.raises(ArgumentError, match=r"data of shape \(20, 7\) for the input 'x'"):
        trainer.train_minibatch({x: X[:20, :7], y: Y[:20]})
    with pytest.raises(ArgumentError, match="in this minibatch, input 'y' has 19"):
        trainer.train_minibatch({x: X[:20], y: Y[:19]})
    with pytest.raises(
        ArgumentError, match=r"a sequence of 3 steps .* for the input 'x', whose samples have the shape"
    ):
        trainer.train_minibatch({x: [X[:3], X[:4]], y: Y[:2]})
    with pytest.raises(
        ArgumentError, match=r"an item of shape \(1,\) for the input 'x', whose samples have the shape \(8,\)"
    ):
        trainer.train_minibatch({x: [[1.0] * 8, [2.0]], y: Y[:2]})
    with pytest.raises(ArgumentError, match="is_sweep_end is True or False, not 'yes'"):
        trainer.train_minibatch({x: X, y: Y}, is_sweep_end="yes")  # pyright: ignore[reportArgumentType]
    for evaluated in (trainer.test_minibatch, loss.eval):
        with pytest.raises(ArgumentError, match="the data have no sample"):
            evaluated({x: X[:0], y: Y[:0]})
    with pytest.raises(ArgumentError, match="there was no minibatch before"):
        _ = trainer.previous_minibatch_loss_average


def test_axes_of_data_are_those_of_the_input() -> None:
    image, steps, column = input_variable((3, 4, 2)), sequence_input((2, 3)), input_variable((5, 1))
    data = RANDOM.normal(size=(6, 3, 4, 2)).astype(np.float32)
    for same in (data, data.reshape(6, 1, 3, 4, 2)):
        np.testing.assert_array_equal((image + 0).eval({image: same}), data)
    for flat in (data.reshape(6, 24), data.reshape(6, 3, 8)):
        with pytest.raises(ArgumentError, match=rf"data of shape {re.escape(str(flat.shape))} .* \(3, 4, 2\)"):
            (image + 0).eval({image: flat})
    with pytest.raises(ArgumentError, match=r"data of shape \(7, 5\) for the input '.*', whose samples .* \(5, 1\)"):
        (column + 0).eval({column: np.ones((7, 5), np.float32)})
    with pytest.raises(
        ArgumentError, match=r"data of shape \(6, 4, 2, 3\) for the input '.*', whose samples have the shape"
    ):
        (image + 0).eval({image: data.transpose(0, 2, 3, 1)})
    with pytest.raises(ArgumentError, match=r"data of shape \(6, 3, 5\) for the input '.*', whose samples .* \(5, 1\)"):
        (column + 0).eval({column: np.ones((6, 3, 5), np.float32)})
    with pytest.raises(ArgumentError, match=r"is not data for the input '.*'"):
        (column + 0).eval({column: [["a"] * 5]})
    sequences = [np.ones((n, 2, 3), np.float32) for n in (4, 5)]
    assert [len(one) for one in (steps + 0).eval({steps: sequences})] == [4, 5]
    for wrong in (sequences, sequences[:1]):
        with pytest.raises(ArgumentError, match=r"whose samples have the shape \(2, 3\)"):
            (steps + 0).eval({steps: [one.transpose(0, 2, 1) for one in wrong]})


OF_SEQUENCES = {
    "summed": (lambda x, w: sequences.reduce_sum(operators.element_times(w, x)), 6 + 7),
    "last": (lambda x, w: operators.squared_error(w * operators.last(x), operators.last(x)), -9 - 49),
    "both ends": (lambda x, w: operators.squared_error(operators.last(x), operators.first(x) + w), -5 + 1),
}


@pytest.mark.parametrize("which", OF_SEQUENCES)
@pytest.mark.sampled
def test_a_loss_of_each_sequence_counts_sequences(which: str) -> None:
    make, gradient = OF_SEQUENCES[which]
    x, w = sequence_input(1), parameter(1, init=0.5)
    data = {x: [np.arange(4, dtype=np.float32)[:, None], np.full((1, 1), 7, np.float32)]}
    loss = make(x, w)
    trainer = Trainer(None, loss, learners.sgd([w], 1.0))
    mean = np.mean(loss.eval(data))
    assert Tester(loss).test_minibatch(data) == pytest.approx(trainer.test_minibatch(data)) == mean
    trainer.train_minibatch(data)
    assert (trainer.previous_minibatch_sample_count, trainer.total_number_of_samples_seen) == (2, 2)
    assert trainer.previous_minibatch_loss_average == pytest.approx(mean)
    assert w.value[0] == pytest.approx(0.5 - gradient / 2)


def test_wrong_trainers(tmp_path) -> None:
    _, y, z, loss, _ = classifier()
    learner = learners.sgd(z.parameters, 0.1)
    weight = parameter(2, init=0.0)
    wrong = {
        "depends on no input": lambda: Trainer(None, weight * weight, learners.sgd([weight], 0.1)),
        "not a learner": lambda: Trainer(z, loss, "sgd"),
        "the model of a trainer is a Function, not ": lambda: Trainer((z, loss), loss, learner),  # pyright: ignore
        "a progress writer is a ProgressWriter, not 'x'": lambda: Trainer(z, loss, learner, "x"),
        "a progress writer is a ProgressWriter, not <class": lambda: Trainer(z, loss, learner, ProgressPrinter),
        r"computed from others, Input\('y', .*\) is not": lambda: Trainer(z, y, learner),
        "a text or a path, not None": lambda: Trainer(z, loss, learner).save_checkpoint(None),  # pyright: ignore
        "stored as JSON: .*float32": lambda: Trainer(z, loss, learner).save_checkpoint(
            tmp_path / "m", {"a": np.float32(1)}
        ),
    }
    for message, make in wrong.items():
        with pytest.raises(ArgumentError, match=message):
            make()


@pytest.mark.thorough
def test_sequences_with_a_label_for_every_step() -> None:
    x, y = sequence_input(4, name="x"), sequence_input(2, name="y")
    z = layers.Dense(2)(layers.Recurrence(layers.LSTM(6))(x))
    loss, errors = operators.cross_entropy_with_softmax(z, y), operators.classification_error(z, y)
    trainer = Trainer(z, (loss, errors), learners.adam(z.parameters, 0.05))
    lengths = [3, 5, 2, 7]
    data = [RANDOM.normal(size=(n, 4)).astype(np.float32) for n in lengths]
    labels = [np.eye(2, dtype=np.float32)[(np.cumsum(one[:, 0]) > 0).astype(int)] for one in data]
    for _ in range(60):
        trainer.train_minibatch({x: data, y: labels})
    assert trainer.previous_minibatch_sample_count == sum(lengths)
    assert trainer.previous_minibatch_evaluation_average < 0.2
    assert [one.shape for one in z.eval({x: data})] == [(n, 2) for n in lengths]


def test_progress_lines(capsys) -> None:
    x, y, z, loss, errors = classifier()
    printer = ProgressPrinter(freq=2, first=1, tag="Training", num_epochs=4)
    trainer = Trainer(z, (loss, errors), learners.sgd(z.parameters, schedules.learning_rate(0.1)), [printer])
    for _ in range(2):
        for k in range(4):
            trainer.train_minibatch({x: X[20 * k : 20 * k + 20], y: Y[20 * k : 20 * k + 20]})
        trainer.summarize_training_progress()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == [
        " Minibatch[   1-   1]",
        " Minibatch[   2-   2]",
        " Minibatch[   3-   4]",
        "Finished Epoch[1 of 4]",
    ]
    shape = r"Finished Epoch\[2 of 4\]: \[Training\] loss = \d\.\d{6} \* 80, metric = \d+\.\d\d% \* 80 "
    shape += r"\d\.\d{3}s \( *\d+\.\d samples/s\);"

    assert re.fullmatch(shape, lines[-1])


def test_the_geometric_schedule(capsys) -> None:
    x, y, z, loss, errors = classifier()
    trainer = Trainer(z, (loss, errors), learners.sgd(z.parameters, 0.1), ProgressPrinter(freq=0))
    for _ in range(9):
        trainer.train_minibatch({x: X[:10], y: Y[:10]})
    rows = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[3:]]
    assert rows == ["10", "20", "40", "80"]
