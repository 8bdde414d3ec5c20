"""Recurrences of a program: steps in Python, folds, delays, windows, unfolding, and what selects steps."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import *
from cntk.layers.sequence import PastValueWindow

rng = np.random.RandomState(3)
C.cntk_py.set_fixed_random_seed(3)

x = C.sequence.input_variable(2, name="x")
data = [rng.randn(length, 2).astype(np.float32) for length in (3, 5, 1)]


def check(function, expected, **options):
    """Values of a function of `x` against a NumPy function of each sequence."""
    found = function.eval({x: data})
    wanted = [expected(one) for one in data]
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(one).reshape(np.shape(other)), other, rtol=1e-4, atol=1e-5, **options)


# sums, products and a decaying mean, forwards and backwards
check(Recurrence(C.plus)(x), lambda s: s.cumsum(0))
check(Recurrence(C.plus, go_backwards=True)(x), lambda s: s[::-1].cumsum(0)[::-1])
check(Fold(C.plus)(x), lambda s: s.sum(0))
check(Fold(C.element_max, initial_state=-10)(x), lambda s: s.max(0))
check(
    Recurrence(lambda h, v: 0.5 * h + v, initial_state=1)(x),
    lambda s: np.array(
        [sum([0.5 ** (t + 1) + sum(0.5 ** (t - k) * s[k] for k in range(t + 1))]) for t in range(len(s))]
    ),
)


@C.Function
def two_states(total, steps, v):
    return total + v * steps, steps + C.ones_like(v)


def weighted(s):
    return (s * np.arange(len(s))[:, np.newaxis]).cumsum(0)


check(Recurrence(two_states)(x), weighted)
full = Recurrence(two_states, return_full_state=True)(x)
assert len(full.outputs) == 2
check(
    C.combine([full.outputs[1]]),
    lambda s: (
        np.broadcast_to(np.arange(1, len(s) + 1)[:, np.newaxis], s.shape)
        if full.outputs[1].shape == (2,)
        else np.arange(1, len(s) + 1)
    ),
)
check(Fold(two_states)(x), lambda s: weighted(s)[-1])

# by hand, with a placeholder
hole = C.placeholder(name="state")
state = C.element_times(0.9, C.sequence.past_value(hole)) + x
state.replace_placeholders({hole: state})
check(state, lambda s: np.array([sum(0.9 ** (t - k) * s[k] for k in range(t + 1)) for t in range(len(s))]))

# a recurrence that begins with what another one ended with
first = C.layers.Fold(C.plus)(x)
check(RecurrenceFrom(lambda h, v: h + v)(first, x), lambda s: s.sum(0) + s.cumsum(0))
lstm = LSTM(4, name="cell")
encoded = Fold(lstm, return_full_state=True)(x)
assert len(encoded.outputs) == 2
decoded = RecurrenceFrom(lstm)(*(encoded.outputs + (x,)))
assert decoded.shape == (4,) and len(decoded.parameters) == 3
assert [one.shape for one in decoded.eval({x: data})] == [(3, 4), (5, 4), (1, 4)]

# steps before and after
check(Delay()(x), lambda s: np.vstack([np.zeros((1, 2)), s[:-1]]))
check(Delay(-1, initial_state=7)(x), lambda s: np.vstack([s[1:], np.full((1, 2), 7)]))
check(C.sequence.past_value(x, initial_state=3, time_step=2), lambda s: np.vstack([np.full((2, 2), 3), s])[: len(s)])
check(C.sequence.delay(x, time_step=0), lambda s: s)
check(C.sequence.first(x) - C.sequence.last(x), lambda s: s[0] - s[-1])
check(C.sequence.slice(x, -1, 0), lambda s: s[-1:])
check(
    C.sequence.is_first(x) + 2 * C.sequence.is_last(x),
    lambda s: [(t == 0) + 2.0 * (t == len(s) - 1) for t in range(len(s))],
)
check(C.sequence.reduce_sum(x) + C.sequence.reduce_max(x), lambda s: s.sum(0) + s.max(0))
check(C.sequence.broadcast_as(C.sequence.last(x), x) * 1, lambda s: np.broadcast_to(s[-1], s.shape))
check(C.sequence.softmax(x), lambda s: np.exp(s) / np.exp(s).sum(0))
positive = C.greater(C.slice(x, 0, 0, 1), -5)
check(C.sequence.gather(x, positive), lambda s: s)
check(
    C.sequence.scatter(C.sequence.gather(x, C.sequence.is_first(x)), C.sequence.is_first(x)),
    lambda s: np.vstack([s[:1], np.zeros((len(s) - 1, 2))]),
)
window = PastValueWindow(3, -2)(x)
values, mask = window.outputs
assert values.shape == (3, 2) and mask.shape[0] == 3, (values.shape, mask.shape)
check(C.reduce_sum(values, axis=0), lambda s: s[-1:-4:-1].sum(0))

# attention over a window: weights of the last steps
scores = C.times(values, C.parameter((2, 1), init=C.glorot_uniform(), name="score")) + (mask - 1) * 1e4
weights = C.softmax(scores, axis=0)
check(C.reduce_sum(weights, axis=0), lambda s: 1.0)

# writing a sequence: doubled at each step, until it is large
start = C.constant(np.ones(1, np.float32))
doubled = UnfoldFrom(lambda h: h * 2, until_predicate=lambda h: C.greater(h[0], 15))(start, x)
assert [one.ravel().tolist() for one in doubled.eval({x: data})] == [[2, 4, 8], [2, 4, 8, 16], [2]]
longer = UnfoldFrom(lambda h: h * 2, length_increase=2)(start, x)
assert [len(one) for one in longer.eval({x: data})] == [6, 10, 2]

# cells: each of them learns which of the last two steps is larger
errors = []
for cell in (
    LSTM(6),
    LSTM(6, use_peepholes=True, enable_self_stabilization=True),
    GRU(6),
    RNNStep(6, activation=C.relu),
):
    s = C.sequence.input_variable(1)
    y = C.input_variable(1)
    with default_options(init=C.glorot_normal()):
        z = Sequential([Fold(cell), Dense(1, activation=C.sigmoid)])(s)
    loss = C.binary_cross_entropy(z, y)
    learner = C.adam(z.parameters, 0.02, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
    trainer = C.Trainer(z, (loss, C.not_equal(C.round(z), y)), learner)
    for _ in range(150):
        steps = rng.rand(32, 4, 1).astype(np.float32)
        trainer.train_minibatch({s: steps, y: (steps[:, 2] > steps[:, 3]).astype(np.float32)})
    steps = rng.rand(200, 4, 1).astype(np.float32)
    answer = (steps[:, 2] > steps[:, 3]).astype(np.float32)
    errors.append(trainer.test_minibatch({s: steps, y: answer}))
print(errors)
print("cell error: {:.4f}".format(max(errors)))
