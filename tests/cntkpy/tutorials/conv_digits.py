"""Convolutional digits: strides, pooling, dropout, `Sequential` and `For`, and the graph of the network."""

import cntk as C
import numpy as np
from cntk.layers import (
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution2D,
    Dense,
    Dropout,
    For,
    MaxPooling,
    Sequential,
)

rng = np.random.RandomState(1)
C.cntk_py.set_fixed_random_seed(1)

SHAPE, KINDS, BATCH = (1, 16, 16), 10, 64
drawn = np.kron(rng.rand(KINDS, 1, 4, 4) > 0.5, np.ones((1, 1, 3, 3)))


def digits(count):
    """Ten patterns of 12 x 12 pixels at random places of a picture of 16 x 16."""
    pictures = rng.rand(count, *SHAPE) * 60
    kinds = rng.randint(KINDS, size=count)
    for picture, digit in zip(pictures, kinds):
        top, left = rng.randint(0, 5, 2)
        picture[:, top : top + 12, left : left + 12] += 190 * drawn[digit]
    return pictures.astype(np.float32), np.eye(KINDS, dtype=np.float32)[kinds]


x, y = C.input_variable(SHAPE, name="picture"), C.input_variable(KINDS, name="digit")


def strided():
    with C.layers.default_options(init=C.glorot_uniform(), activation=C.relu):
        return Sequential(
            [
                Convolution2D((5, 5), 8, strides=(2, 2), pad=True, name="lower"),
                Convolution2D((5, 5), 16, strides=2, pad=True, name="upper"),
                Dense(KINDS, activation=None, name="classify"),
            ]
        )


def pooled():
    widths = [8, 16]
    with C.layers.default_options(init=C.glorot_uniform(), activation=C.relu):
        return Sequential(
            [
                For(range(2), lambda i: [Convolution((3, 3), widths[i], pad=True), MaxPooling((3, 3), strides=(2, 2))]),
                BatchNormalization(map_rank=1),
                Convolution2D((3, 3), 16, pad=True, bias=False, activation=None, name="third"),
                AveragePooling((2, 2), name="average"),
                Dense(32),
                Dropout(0.3),
                Dense(KINDS, activation=None, name="classify"),
            ]
        )


def train(build, sweeps):
    name = build.__name__
    z = build()(x / 255)
    rates = C.learning_parameter_schedule([0.05, 0.02], minibatch_size=C.learners.IGNORE, epoch_size=1500)
    learner = C.momentum_sgd(z.parameters, rates, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
    writers = [C.logging.ProgressPrinter(tag=name, num_epochs=sweeps)]
    trainer = C.Trainer(z, (C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)), [learner], writers)
    C.logging.log_number_of_parameters(z)
    pictures, labels = digits(640)
    for _ in range(sweeps):
        for chosen in rng.permutation(640).reshape(-1, BATCH):
            trainer.train_minibatch({x: pictures[chosen], y: labels[chosen]})
        trainer.summarize_training_progress()
    pictures, labels = digits(256)
    errors = [trainer.test_minibatch({x: pictures[at::4], y: labels[at::4]}) for at in range(4)]
    trainer.summarize_test_progress()
    print("{} test error: {:.4f}".format(name, np.mean(errors)))
    return z


z = train(strided, 25)
assert z.lower.shape == (8, 8, 8) and z.upper.W.shape == (16, 8, 5, 5)
assert z.classify.b.value.shape == (KINDS,) and z.upper.b.shape == (16, 1, 1)

z = train(pooled, 25)
assert z.average.shape == (16, 2, 2) and z.third.W.shape == (16, 16, 3, 3)
maps = C.combine([z.find_by_name("average").owner])
values = maps.eval({maps.arguments[0]: digits(3)[0]})
assert values.shape == (3, 16, 2, 2)

text = C.logging.graph.plot(z, "conv.dot")
assert "Convolution" in text and open("conv.dot").read().startswith("digraph")
parts = C.logging.graph.depth_first_search(z, lambda one: True)
assert len(C.logging.graph.get_node_outputs(z)) > 10 and len(parts) > len(z.parameters)
