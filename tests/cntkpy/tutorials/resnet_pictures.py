"""Residual and plain convolutional networks of pictures in colour; one of them trained by `Function.train`."""

from __future__ import print_function

import math

import cntk as C
import numpy as np
from cntk.initializer import he_normal
from cntk.layers import *
from cntk.learners import UnitType, learning_rate_schedule, momentum_as_time_constant_schedule, momentum_sgd
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error
from cntk.ops import element_times, input_variable, relu
from cntk.train import CrossValidationConfig, TestConfig, Trainer

rng = np.random.RandomState(3)
C.cntk_py.set_fixed_random_seed(1)

KINDS, SIDE, SWEEP, BATCH = 5, 12, 384, 32
colours = rng.rand(KINDS, 3, 1, 1)
shapes = np.kron(rng.rand(KINDS, 3, 4, 4) > 0.5, np.ones((1, 1, 3, 3)))


def pictures(count):
    """Patterns of each class, mirrored or not, in its colours and noise."""
    kinds = rng.randint(KINDS, size=count)
    images = shapes[kinds] * colours[kinds] * 120 + 80
    mirrored = rng.rand(count) < 0.5
    images[mirrored] = images[mirrored][..., ::-1]
    images += rng.randn(*images.shape) * 25
    return images.astype(np.float32), np.eye(KINDS, dtype=np.float32)[kinds]


def normalised(width, stride=1, kernel=3, last=None):
    """Convolution, batch normalisation, and maybe something."""
    steps = [
        Convolution2D((kernel, kernel), width, strides=stride, init=he_normal(), pad=True, bias=False),
        BatchNormalization(map_rank=1, normalization_time_constant=512),
    ]
    return Sequential(steps + ([last] if last else []))


def residual(width, widen=False):
    """Two convolutions around which the input goes; where the picture shrinks, through a small convolution."""
    around = normalised(width, 2, 1) if widen else identity
    through = Sequential([normalised(width, 2 if widen else 1, last=relu), normalised(width)])

    def block(x):
        return relu(through(x) + around(x))

    return block


def resnet():
    return Sequential(
        [
            normalised(8, last=relu),
            residual(8),
            residual(16, widen=True),
            residual(16),
            AveragePooling((6, 6), strides=(1, 1), name="pooled"),
            Dense(KINDS, init=C.he_normal()),
        ]
    )


def plain():
    with default_options(activation=C.relu, init=C.glorot_uniform(), pad=True):
        return Sequential(
            [
                For(
                    [8, 12],
                    lambda width: [For(range(2), lambda: Convolution2D((3, 3), width)), MaxPooling((3, 3), strides=2)],
                ),
                GlobalAveragePooling(),
                Dense(32),
                Dropout(0.1),
                Dense(KINDS, activation=None),
            ]
        )


def train(build, sweeps):
    image, kind = input_variable((3, SIDE, SIDE), name="image"), input_variable((KINDS), name="kind")
    z = build()(element_times(image - C.constant(114.0), 1 / 256))
    criterion = (cross_entropy_with_softmax(z, kind), classification_error(z, kind))
    learner = momentum_sgd(
        z.parameters,
        lr=learning_rate_schedule([0.1] * 4 + [0.03] * 4 + [0.01], UnitType.minibatch, SWEEP),
        momentum=momentum_as_time_constant_schedule(-BATCH / math.log(0.9)),
        l2_regularization_weight=1e-4,
    )
    assert learner.learning_rate() == 0.1 / BATCH or learner.learning_rate() == 0.1
    trainer = Trainer(z, criterion, [learner], [C.logging.ProgressPrinter(tag="Training", num_epochs=sweeps)])
    C.logging.log_number_of_parameters(z)
    images, kinds = pictures(SWEEP)
    for _ in range(sweeps):
        for at in range(0, SWEEP, BATCH):
            trainer.train_minibatch({image: images[at : at + BATCH], kind: kinds[at : at + BATCH]})
        trainer.summarize_training_progress()
    images, kinds = pictures(128)
    errors = [
        trainer.test_minibatch({image: images[at : at + 16], kind: kinds[at : at + 16]}) for at in range(0, 128, 16)
    ]
    print("{} test error: {:.4f}".format(build.__name__, sum(errors) / len(errors)))
    return C.softmax(z)


probability = train(resnet, 8)
image, kind = pictures(1)
found = probability.eval({probability.arguments[0]: [image[0]]})
assert found.shape == (1, KINDS) and abs(found.sum() - 1) < 1e-5
train(plain, 24)


# a function of two arguments, which become inputs when it is applied
@C.Function
def block_network(picture, kind):
    with C.layers.default_options(activation=C.relu, pad=True):
        z = Sequential(
            [
                Convolution2D((3, 3), 8),
                ResNetBlock(Sequential([Convolution2D((3, 3), 8), Convolution2D((3, 3), 8, activation=None)])),
                C.relu,
                GlobalMaxPooling(),
                Dense(KINDS, activation=None),
            ]
        )((picture - 114) / 256)
    return cross_entropy_with_softmax(z, kind), classification_error(z, kind)


criterion = block_network(C.input_variable((3, SIDE, SIDE)), C.input_variable(KINDS))
assert len(criterion.outputs) == 2 and len(criterion.arguments) == 2
validated = []
done = criterion.train(
    pictures(SWEEP),
    parameter_learners=[C.adam(criterion.parameters, 0.01, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)],
    callbacks=[
        C.logging.ProgressPrinter(tag="block"),
        CrossValidationConfig(
            pictures(96),
            frequency=SWEEP,
            minibatch_size=32,
            criterion=criterion,
            callback=lambda index, error, samples, minibatches: validated.append(error) or True,
        ),
        TestConfig(pictures(96), criterion=criterion),
    ],
    minibatch_size=BATCH,
    max_epochs=8,
)
losses = [one.loss for one in done.epoch_summaries]
assert len(losses) == 8 and losses[-1] < losses[0] and len(validated) >= 8
print("block test error: {:.4f}".format(criterion.test(pictures(96)).metric))
