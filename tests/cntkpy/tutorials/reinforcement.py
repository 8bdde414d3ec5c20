"""Balance a pole with Q learning and with a policy gradient: gradients by hand, `Value`s, an own loop of updates."""

from __future__ import print_function

import cntk as C
from cntk import *
from cntk.layers import *
import math
import numpy as np
import random

np.random.seed(1)
random.seed(1)
C.cntk_py.set_fixed_random_seed(1)


class CartPole:
    """The usual equations of a cart with a pole; an episode ends when it falls, or after 100 steps."""

    def reset(self):
        self.s = np.random.uniform(-0.05, 0.05, 4)
        self.steps = 0
        return self.s.astype(np.float32)

    def step(self, action):
        x, v, angle, turning = self.s
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        temp = (force + 0.05 * turning**2 * sin) / 1.1
        spin = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        acceleration = temp - 0.05 * spin * cos / 1.1
        self.s = self.s + 0.02 * np.array([v, acceleration, turning, spin])
        self.steps += 1
        done = bool(np.abs(self.s[0]) > 2.4 or np.abs(self.s[2]) > 0.2095 or self.steps >= 100)
        return self.s.astype(np.float32), 1.0, done, {}


STATE_COUNT, ACTION_COUNT = 4, 2
env = CartPole()
BATCH_SIZE_BASELINE = 40
H = 32


class Brain:
    """The value of each action."""

    def __init__(self):
        self.params = {}
        self.model, self.trainer, self.loss = self._create()

    def _create(self):
        observation = C.sequence.input_variable(STATE_COUNT, np.float32, name="s")
        q_target = C.sequence.input_variable(ACTION_COUNT, np.float32, name="q")
        l1 = Dense(H, activation=relu)
        l2 = Dense(ACTION_COUNT)
        unbound_model = Sequential([l1, l2])
        model = unbound_model(observation)
        self.params = dict(W1=l1.W, b1=l1.b, W2=l2.W, b2=l2.b)

        loss = reduce_mean(square(model - q_target), axis=0)
        meas = reduce_mean(square(model - q_target), axis=0)
        lr = 0.01
        lr_schedule = learning_parameter_schedule(lr, minibatch_size=C.learners.IGNORE)
        learner = sgd(
            model.parameters,
            lr_schedule,
            gradient_clipping_threshold_per_sample=10,
            minibatch_size=C.learners.IGNORE,
        )
        trainer = Trainer(model, (loss, meas), learner)
        self.observation, self.q_target = observation, q_target
        return model, trainer, loss

    def train(self, x, y):
        arguments = dict(zip(self.loss.arguments, [x, y]))
        self.trainer.train_minibatch(arguments, outputs=[self.loss.output])

    def predict(self, s):
        return self.model.eval([s])[0]


class Memory:
    """A ring of transitions."""

    def __init__(self, capacity):
        self.samples = []
        self.capacity = capacity

    def add(self, sample):
        self.samples = (self.samples + [sample])[-self.capacity :]

    def sample(self, n):
        return random.sample(self.samples, min(n, len(self.samples)))


class Agent:
    """Epsilon greedy, with replay."""

    def __init__(self):
        self.brain = Brain()
        self.memory = Memory(2000)
        self.steps, self.epsilon = 0, 1.0

    def act(self, s):
        if random.random() < self.epsilon:
            return random.randint(0, ACTION_COUNT - 1)
        return np.argmax(self.brain.predict(s))

    def observe(self, sample):
        self.memory.add(sample)
        self.steps += 1
        self.epsilon = 0.02 + 0.98 * math.exp(-0.002 * self.steps)

    def replay(self):
        batch = self.memory.sample(BATCH_SIZE_BASELINE)
        if len(batch) < BATCH_SIZE_BASELINE:
            return
        no_state = np.zeros(STATE_COUNT, dtype=np.float32)
        states = np.array([o[0] for o in batch], dtype=np.float32)
        states_ = np.array([(no_state if o[3] is None else o[3]) for o in batch], dtype=np.float32)
        p = self.brain.predict(states)
        p_ = self.brain.predict(states_)
        x = np.zeros((len(batch), STATE_COUNT), np.float32)
        y = np.zeros((len(batch), ACTION_COUNT), np.float32)
        for i, (s, a, r, s_) in enumerate(batch):
            t = p[i].copy()
            t[a] = r if s_ is None else r + 0.95 * np.amax(p_[i])
            x[i], y[i] = s, t
        self.brain.train(x, y)


def run(agent):
    s = env.reset()
    R = 0
    while True:
        a = agent.act(s)
        s_, r, done, info = env.step(a)
        agent.observe((s, a, r, None if done else s_))
        agent.replay()
        s = s_
        R += r
        if done:
            return R


agent = Agent()
rewards = [run(agent) for _ in range(60)]
early, late = np.mean(rewards[:15]), np.mean(rewards[-15:])
print("q learning: {:.1f} steps at first, {:.1f} at last".format(early, late))
print("q ratio: {:.3f}".format(early / late))
weights = agent.brain.params["W1"].value
assert weights.shape == (STATE_COUNT, H)

# a policy gradient: gradients are kept for a while, then a learner updates
observations = C.sequence.input_variable(STATE_COUNT, np.float32, name="obs")
W1 = C.parameter(shape=(STATE_COUNT, 10), init=C.glorot_uniform(), name="W1")
b1 = C.parameter(shape=10, name="b1")
layer1 = C.relu(C.times(observations, W1) + b1)
W2 = C.parameter(shape=(10, 1), init=C.glorot_uniform(), name="W2")
b2 = C.parameter(shape=1, name="b2")
layer2 = C.times(layer1, W2) + b2
output = C.sigmoid(layer2, name="output")

label = C.sequence.input_variable(1, np.float32, name="label")
advt = C.sequence.input_variable(1, np.float32, name="advt")
loss = -C.reduce_mean(C.log(C.square(label - output) + 1e-4) * advt, axis=0, name="loss")

lr_schedule = C.learning_parameter_schedule_per_sample(0.02)
m_schedule = C.momentum_schedule(0.9)
vm_schedule = C.momentum_schedule(0.999)
optimizer = C.adam([W1, W2], lr_schedule, momentum=m_schedule, variance_momentum=vm_schedule)
gradBuffer = dict(
    (var.name, np.zeros(shape=var.shape)) for var in loss.parameters if var.name in ["W1", "W2", "b1", "b2"]
)


def discount_rewards(r, gamma=0.99):
    discounted, running = np.zeros_like(r), 0
    for t in reversed(range(0, r.size)):
        running = running * gamma + r[t]
        discounted[t] = running
    return discounted


xs, hs, drs = [], [], []
reward_sum, episodes, lengths = 0, 0, []
observation = env.reset()
while episodes < 60:
    x = np.reshape(observation, [1, STATE_COUNT]).astype(np.float32)
    prob = output.eval(arguments={observations: x})[0][0][0]
    action = 1 if np.random.uniform() < prob else 0
    xs.append(x)
    hs.append(1 if action == 0 else 0)
    observation, reward, done, info = env.step(action)
    reward_sum += float(reward)
    drs.append(float(reward))
    if not done:
        continue
    episodes += 1
    lengths.append(reward_sum)
    epx = np.vstack(xs)
    epl = np.vstack(hs).astype(np.float32)
    epr = np.vstack(drs).astype(np.float32)
    xs, hs, drs = [], [], []
    discounted_epr = discount_rewards(epr)
    discounted_epr -= np.mean(discounted_epr)
    discounted_epr /= np.std(discounted_epr)
    arguments = {observations: epx, label: epl, advt: discounted_epr}
    state, outputs_map = loss.forward(arguments, outputs=loss.outputs, keep_for_backward=loss.outputs)
    root_gradients = {v: np.ones_like(o) for v, o in outputs_map.items()}
    vargrads_map = loss.backward(state, root_gradients, variables=set([W1, W2]))
    for var, grad in vargrads_map.items():
        gradBuffer[var.name] += grad
    if episodes % 5 == 0:
        grads = {W1: gradBuffer["W1"].astype(np.float32), W2: gradBuffer["W2"].astype(np.float32)}
        updated = optimizer.update(grads, 5)
        gradBuffer = dict((name, np.zeros_like(g)) for name, g in gradBuffer.items())
        print("Episode: %d. Average reward for episode %f." % (episodes, np.mean(lengths[-5:])))
    observation = env.reset()
    reward_sum = 0
print("policy ratio: {:.3f}".format(np.mean(lengths[:15]) / np.mean(lengths[-15:])))
