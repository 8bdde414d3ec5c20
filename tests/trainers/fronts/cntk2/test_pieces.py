"""Sequences that a program cuts into pieces by itself: states are carried from one minibatch to the next."""

import numpy as np
import pytest
import scipy.sparse

from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.functions.variables import input_variable, parameter, sequence_input
from cntkpy.networks.builders.python.operations import operators, reductions
from cntkpy.readers import Value
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2 import learners, values
from cntkpy.trainers.fronts.cntk2.trainer import Trainer

assert values
RANDOM = np.random.default_rng(0)
X = [RANDOM.normal(size=(9, 3)).astype(np.float32) for _ in range(3)]
Y = [RANDOM.normal(size=(9, 2)).astype(np.float32) for _ in range(3)]


def network(sparse=False, rate=0.0):
    x, y = sequence_input(3, is_sparse=sparse, name="x"), sequence_input(2, name="y")
    z = layers.Dense(2, init=layers.glorot_uniform(seed=2))(
        layers.Recurrence(layers.LSTM(4, init=layers.glorot_uniform(seed=1)))(x)
    )
    loss = operators.squared_error(z, y)
    return x, y, loss, Trainer(z, loss, learners.sgd(z.parameters, rate))


def total(trainer, arguments):
    trainer.train_minibatch(arguments)
    return trainer.previous_minibatch_loss_average * trainer.previous_minibatch_sample_count


FORMS = {
    "all": lambda x, a, y, b, begins: ({x: a, y: b}, begins),
    "each": lambda x, a, y, b, begins: {x: (a, begins), y: (b, begins)},
    "values": lambda x, a, y, b, begins: {x: Value.create(x, a, begins), y: Value(b, begins)},
    "sparse": lambda x, a, y, b, begins: {x: ([scipy.sparse.csr_matrix(one) for one in a], begins), y: b},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled
def test_pieces_are_worth_the_whole(form) -> None:
    x, y, loss, trainer = network(form == "sparse")
    given = [scipy.sparse.csr_matrix(one) for one in X] if form == "sparse" else X
    whole = sum(one.sum() for one in loss.eval({x: given, y: Y}))
    found, place = 0.0, 0
    for steps in (3, 4, 1, 1):
        a, b = ([one[place : place + steps] for one in both] for both in (X, Y))
        found += total(trainer, FORMS[form](x, a, y, b, [place == 0] * 3))
        place += steps
    assert found == pytest.approx(whole, rel=1e-4)


def test_some_begin_anew() -> None:
    x, y, loss, trainer = network()
    found = total(trainer, ({x: [one[:4] for one in X], y: [one[:4] for one in Y]}, [True] * 3))
    found += total(trainer, ({x: [one[4:] for one in X], y: [one[4:] for one in Y]}, [False, True, False]))
    apart = {x: [X[0], X[2], X[1][:4], X[1][4:]], y: [Y[0], Y[2], Y[1][:4], Y[1][4:]]}
    assert found == pytest.approx(sum(one.sum() for one in loss.eval(apart)), rel=1e-4)


def test_a_checkpoint_keeps_what_goes_on(tmp_path) -> None:
    def trained(stop):
        x, y, _, trainer = network(rate=0.1)
        for step in range(9):
            if step == stop:
                trainer.save_checkpoint(tmp_path / "m")
                x, y, _, trainer = network(rate=0.1)
                trainer.restore_from_checkpoint(tmp_path / "m")
            trainer.train_minibatch(({x: [X[0][step : step + 1]], y: [Y[0][step : step + 1]]}, [step == 0]))
        return trainer.previous_minibatch_loss_average, [one.value for one in trainer.model.parameters]

    (loss, whole), (again, resumed) = trained(-1), trained(4)
    assert loss == again
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_cannot_go_on() -> None:
    x, y, loss, trainer = network()
    both = {x: X, y: Y}
    with pytest.raises(ArgumentError, match="3 sequences cannot resume from a minibatch of 0"):
        trainer.train_minibatch((both, [False] * 3))
    with pytest.raises(ArgumentError, match="in training and in eval only"):
        loss.grad((both, [False] * 3))
    with pytest.raises(ArgumentError, match="3 sequences cannot resume from a minibatch of 0"):
        loss.eval((both, [False] * 3))
    with pytest.raises(ArgumentError, match="2 truth values for 3 sequences"):
        trainer.train_minibatch((both, [True] * 2))
    with pytest.raises(ArgumentError, match="truth values after the data, not 'yes'"):
        trainer.train_minibatch((both, "yes"))
    trainer.train_minibatch(({x: [X[0], X[1][:3]], y: [Y[0], Y[1][:3]]}, [True, True]))
    with pytest.raises(ArgumentError, match="sequence 1 cannot continue: it was shorter"):
        trainer.train_minibatch(({x: X[:2], y: Y[:2]}, [False, False]))
    with pytest.raises(ArgumentError, match="seq_starts are truth values"):
        Value(X, [1, 0, 1])


def test_whole_sequences_may_follow_pieces() -> None:
    """Nothing is carried over into them, whatever their number."""
    x = sequence_input(3)
    before = operators.past_value(x)
    loss = reductions.reduce_sum(operators.element_times(parameter(3, init=1.0), before))
    trainer = Trainer(None, loss, learners.sgd(loss.parameters, 0.0))
    one = np.arange(6, dtype=np.float32).reshape(2, 3)
    for data, sums in (
        (([one], [True]), 3),
        ([one], 3),
        ([one] * 2, 6),
        (([one] * 3, [True] * 3), 9),
        (([one] * 3, [False] * 3), 45),
        ([one], 3),
    ):
        _, values = trainer.train_minibatch(data, outputs=[before])
        assert trainer.previous_minibatch_loss_average * trainer.previous_minibatch_sample_count == pytest.approx(sums)
        assert np.sum(values[before]) == pytest.approx(sums)


def test_what_looks_at_whole_sequences_takes_those_that_begin_here() -> None:
    x = sequence_input(3)
    data = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 3), np.float32)]
    last = operators.last(x)
    assert last.eval({x: (data, [True, True])}).tolist() == last.eval({x: data}).tolist() == [[3, 4, 5], [1, 1, 1]]
    with pytest.raises(ArgumentError, match=r"looks at whole sequences, as sequence\.last does"):
        last.eval({x: (data, [True, False])})


def test_inputs_agree_on_where_sequences_begin() -> None:
    x, y = sequence_input(3, name="x"), sequence_input(3, name="y")
    function, one = operators.past_value(x) + y, np.ones((1, 2, 3), np.float32)
    with pytest.raises(ArgumentError, match=r"truth values \[(True|False)\], another \["):
        function.eval({x: (one, [True]), y: (one, [False])})
    for given in ({x: (one, [True] * 2), y: one}, ({x: one, y: one}, [True] * 2)):
        with pytest.raises(ArgumentError, match="2 truth values for 1 sequences"):
            function.eval(given)
    for flags in (True, False):  # of sequences, and of a value for each of them
        label = input_variable(3, name="label")
        both = operators.last(x) + label
        given = ({x: one, label: one[0, :1]}, [True]) if flags else {x: one, label: (one[0, :1], [True])}
        if flags:
            assert both.eval(given).tolist() == [[2, 2, 2]]
        else:
            with pytest.raises(ArgumentError, match="truth values for the input 'label', which has no sequence axis"):
                both.eval(given)


def test_whole_sequences_may_say_that_they_begin() -> None:
    x, y = sequence_input(3), input_variable(2)
    z = layers.Dense(2)(operators.last(layers.Recurrence(layers.LSTM(4))(x)))
    loss = operators.squared_error(z, y)
    trainer = Trainer(z, loss, learners.sgd(z.parameters, 0.0))
    data = {x: X[:2], y: np.array([Y[0][0], Y[1][0]])}
    assert total(trainer, (data, [True, True])) == pytest.approx(loss.eval(data).sum(), rel=1e-4)
