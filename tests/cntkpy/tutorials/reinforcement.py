"""Balances a pole: values of actions with a target network; a policy whose gradients are applied by hand."""

from __future__ import print_function

import math

import cntk as C
import numpy as np
from cntk import *
from cntk.layers import Dense, Sequential

rng = np.random.RandomState(1)
C.cntk_py.set_fixed_random_seed(1)

STATE, ACTIONS, LONGEST = 4, 2, 100


class Pole(object):
    """The usual equations of a pole on a cart, 50 times per second; it has fallen at 12 degrees."""

    def __init__(self):
        self.state = rng.uniform(-0.05, 0.05, STATE)
        self.age = 0

    def push(self, right):
        x, speed, angle, turning = self.state
        sine, cosine = math.sin(angle), math.cos(angle)
        force = ((10.0 if right else -10.0) + 0.05 * turning**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * force) / (0.5 * (4.0 / 3 - 0.1 * cosine**2 / 1.1))
        push = force - 0.05 * turn * cosine / 1.1
        self.state = self.state + 0.02 * np.array([speed, push, turning, turn])
        self.age += 1
        return self.fallen or self.age >= LONGEST

    @property
    def fallen(self):
        return bool(np.fabs(self.state[0]) > 2.4 or np.fabs(self.state[2]) > 0.2095)

    @property
    def seen(self):
        return self.state.astype(np.float32)


class Values(object):
    """What each action is worth, learned from transitions kept in an array."""

    def __init__(self):
        self.state = C.input_variable(STATE, name="state")
        self.taken = C.input_variable(ACTIONS, is_sparse=True, name="taken")
        self.worth = C.input_variable(1, name="worth")
        self.q = Sequential([Dense(32, activation=C.relu), Dense(ACTIONS)])(self.state)
        self.refresh()
        of_taken = C.times_transpose(self.q, self.taken)
        difference = of_taken - self.worth
        huber = C.element_select(C.less(C.abs(difference), 1), 0.5 * C.square(difference), C.abs(difference) - 0.5)
        rate = C.learning_parameter_schedule(0.01, minibatch_size=C.learners.IGNORE)
        learner = C.adam(self.q.parameters, rate, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
        self.trainer = C.Trainer(self.q, (huber, None), [learner])
        self.kept = []
        self.explore = 1.0

    def refresh(self):
        self.target = self.q.clone(CloneMethod.freeze)

    def choose(self, state):
        self.explore = max(0.03, self.explore * 0.995)
        if rng.rand() < self.explore:
            return rng.randint(ACTIONS)
        return int(np.argmax(self.q.eval(state)))

    def learn(self, *transition):
        self.kept = (self.kept + [transition])[-1500:]
        if len(self.kept) < 64:
            return
        before, actions, after, ends = zip(*(self.kept[at] for at in rng.randint(len(self.kept), size=32)))
        values = self.target.eval({self.target.arguments[0]: C.Value(np.stack(after))}, as_numpy=False)
        assert values.shape == (32, ACTIONS) and isinstance(values, C.Value)
        worth = 1 + 0.95 * np.where(ends, 0, values.asarray().max(axis=1))
        self.trainer.train_minibatch(
            {
                self.state: C.Value.create(self.state, np.stack(before)),
                self.taken: C.Value.one_hot(list(actions), ACTIONS),
                self.worth: worth[:, np.newaxis].astype(np.float32),
            }
        )


def age(choose, games=4):
    """How long the pole stands, on average, if nothing is left to chance."""
    poles = [Pole() for _ in range(games)]
    for pole in poles:
        while not pole.push(choose(pole.seen)):
            pass
    return np.mean([pole.age for pole in poles])


player = Values()
ages, best, pushes = [], 0, 0
while pushes < 3000 and best < 80:
    pole, over = Pole(), False
    while not over:
        before = pole.seen
        action = player.choose(before)
        over = pole.push(action == 1)
        player.learn(before, action, pole.seen, pole.fallen)
        pushes += 1
        if pushes % 100 == 0:
            player.refresh()
        if pushes % 200 == 0:
            best = max(best, age(lambda seen: player.q.eval(seen).argmax()))
    ages.append(pole.age)
print("values: {:.1f} steps at first, {:.1f} at best".format(np.mean(ages[:10]), best))
print("values ratio: {:.3f}".format(np.mean(ages[:10]) / best))

# a policy: the gradient of five games together
state = C.sequence.input_variable(STATE, np.float32, name="state")
action = C.sequence.input_variable(1, np.float32, name="action")
better = C.sequence.input_variable(1, np.float32, name="better")
W1 = C.parameter(shape=(STATE, 10), init=C.glorot_uniform(), name="W1")
W2 = C.parameter(shape=(10, 1), init=C.glorot_uniform(), name="W2")
b2 = C.parameter(shape=1, name="b2")
right = C.sigmoid(C.times(C.relu(C.times(state, W1)), W2) + b2, name="right")
chance = action * right + (1 - action) * (1 - right)
loss = -C.reduce_sum(C.log(chance + 1e-4) * better, axis=0)
learner = C.adam(
    loss.parameters,
    C.learning_parameter_schedule_per_sample(0.02),
    momentum=C.momentum_schedule(0.9),
    variance_momentum=C.momentum_schedule(0.999),
)
assert {one.name for one in learner.parameters} == {"W1", "W2", "b2"}
collected = {parameter: np.zeros(parameter.shape, np.float32) for parameter in learner.parameters}
ages, best = [], 0
for game in range(60):
    pole, over, states, pushes = Pole(), False, [], []
    while not over:
        states.append(pole.seen)
        pushes.append(rng.rand() < right.eval({state: states[-1].reshape(1, 1, STATE)})[0][0, 0])
        over = pole.push(pushes[-1])
    ages.append(pole.age)
    returns = np.array([(0.97 ** np.arange(pole.age - at)).sum() for at in range(pole.age)])
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    data = {
        state: np.stack(states),
        action: np.array(pushes, np.float32)[:, np.newaxis],
        better: advantage.astype(np.float32)[:, np.newaxis],
    }
    kept, values = loss.forward(data, outputs=loss.outputs, keep_for_backward=loss.outputs)
    ones = {output: np.ones_like(value) for output, value in values.items()}
    for parameter, gradient in loss.backward(kept, ones, variables=set(learner.parameters)).items():
        collected[parameter] += gradient
    if game % 5 == 4:
        assert learner.update({parameter: C.NDArrayView.from_data(one) for parameter, one in collected.items()}, 5)
        for one in collected.values():
            one[:] = 0
    if game % 15 == 14:
        best = max(best, age(lambda seen: right.eval({state: seen.reshape(1, 1, STATE)})[0][0, 0] > 0.5))
print("policy: {:.1f} steps at first, {:.1f} at best".format(np.mean(ages[:10]), best))
print("policy ratio: {:.3f}".format(np.mean(ages[:10]) / best))
