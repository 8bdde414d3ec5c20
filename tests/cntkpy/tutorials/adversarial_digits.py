"""Two networks against each other, each with a trainer of its own on parameters that both use."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import BatchNormalization, Convolution2D, ConvolutionTranspose2D, Dense, Sequential, default_options

rng = np.random.RandomState(12)
C.cntk_py.set_fixed_random_seed(12)

NOISE, SIDE, BATCH = 10, 8, 32
PIXELS = SIDE * SIDE
ring = np.zeros((SIDE, SIDE))
ring[1:7, 2:6] = 1
ring[3:5, 3:5] = 0


def real(count=BATCH):
    """Rings in noise, from -1 to 1."""
    return (2 * np.clip(ring.ravel() + 0.1 * rng.randn(count, PIXELS), 0, 1) - 1).astype(np.float32)


def noise(count=BATCH):
    return rng.uniform(-1, 1, (count, NOISE)).astype(np.float32)


def dense():
    with default_options(init=C.xavier()):
        forger = Sequential([Dense(24, activation=C.relu), Dense(PIXELS, activation=C.tanh)])
        critic = Sequential([Dense(24, activation=C.relu), Dense(1, activation=C.sigmoid)])
    return forger, critic


def leaky(x):
    return C.leaky_relu(x, alpha=0.2)


def convolutional():
    up = dict(strides=(2, 2), pad=True, bias=False)
    with default_options(init=C.normal(scale=0.1)):
        forger = Sequential(
            [
                Dense((8, 2, 2)),
                BatchNormalization(map_rank=1),
                C.relu,
                ConvolutionTranspose2D((3, 3), 4, output_shape=(4, 4), **up),
                BatchNormalization(map_rank=1),
                C.relu,
                ConvolutionTranspose2D((3, 3), 1, output_shape=(8, 8), activation=C.tanh, **up),
                lambda picture: C.reshape(picture, PIXELS),
            ]
        )
        critic = Sequential(
            [
                lambda x: C.reshape(x, (1, SIDE, SIDE)),
                Convolution2D((3, 3), 4, strides=2, pad=True, activation=leaky),
                Convolution2D((3, 3), 8, strides=2, pad=True, activation=leaky),
                Dense(1, activation=C.sigmoid),
            ]
        )
    return forger, critic


class Game(object):
    """The functions, trainers and printers of both sides."""

    def __init__(self, networks, rates):
        forger, critic = networks()
        self.noise = C.input_variable(NOISE, dynamic_axes=[C.Axis.default_batch_axis()], name="noise")
        self.real = C.input_variable(PIXELS, dynamic_axes=[C.Axis.default_batch_axis()], name="real")
        seen = C.alias(self.real, name="seen")
        self.forged = forger(self.noise)
        on_real = critic(seen)
        on_forged = on_real.clone(method="share", substitutions={seen.output: self.forged.output})
        assert set(on_forged.parameters) == set(self.forged.parameters) | set(on_real.parameters)
        assert set(on_forged.arguments) == {self.noise}

        forger_loss = 1.0 - C.log(on_forged)
        critic_loss = -(C.log(on_real) + C.log(1.0 - on_forged))
        self.forger = self.trainer(self.forged, forger_loss, rates[0])
        self.critic = self.trainer(on_real, critic_loss, rates[1])
        self.printers = [C.logging.ProgressPrinter(freq=100, tag=tag) for tag in ("critic", "forger")]

    def trainer(self, model, loss, rate):
        learner = C.adam(
            model.parameters,
            lr=C.learning_parameter_schedule(rate, minibatch_size=C.learners.IGNORE),
            momentum=C.momentum_schedule(0.5),
            variance_momentum=C.momentum_schedule(0.999),
            unit_gain=False,
            minibatch_size=C.learners.IGNORE,
        )
        return C.Trainer(model, (loss, None), learner)

    def play(self, rounds, turns):
        for _ in range(rounds):
            for _ in range(turns):
                self.critic.train_minibatch({self.real: real(), self.noise: noise()})
                self.printers[0].update_with_trainer(self.critic)
            self.forger.train_minibatch({self.noise: noise()})
            self.printers[1].update_with_trainer(self.forger)
        return self.forger.previous_minibatch_loss_average, self.critic.previous_minibatch_loss_average


for networks, rounds, turns, rates in [(dense, 300, 2, (0.004, 0.004)), (convolutional, 300, 1, (0.005, 0.0005))]:
    game = Game(networks, rates)
    losses = game.play(rounds, turns)
    assert np.isfinite(losses).all()
    pictures = game.forged.eval({game.noise: noise(36)})
    assert pictures.shape == (36, PIXELS) and abs(pictures).max() <= 1
    alike = np.corrcoef(pictures.mean(axis=0), ring.ravel())[0, 1]
    print("{} distance: {:.4f}".format(networks.__name__, 1 - alike))
