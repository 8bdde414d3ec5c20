"""Takes the lower layers of a trained network, frozen, and trains a new top on few pictures; then all of it."""

from __future__ import print_function

import os

import cntk as C
import numpy as np
from cntk import load_model
from cntk.io import ImageDeserializer, MinibatchSource, StreamDef, StreamDefs
import cntk.io.transforms as xforms
from cntk.layers import BatchNormalization, Convolution2D, Dense, GlobalAveragePooling, Sequential
from cntk.logging.graph import find_by_name, get_node_outputs

rng = np.random.RandomState(2)
C.cntk_py.set_fixed_random_seed(1)

SIDE = 16


def picture(direction, width):
    """Stripes of a width, upright, lying, or slanting."""
    at = np.arange(SIDE)
    along = [at[:, None] + 0 * at, at[None] + 0 * at[:, None], at[:, None] + at[None], at[:, None] - at[None]][
        direction
    ]
    stripes = np.sin((along + rng.randint(20)) * np.pi / width)
    colour = rng.uniform(60, 120, (3, 1, 1))
    return (128 + colour * stripes + 10 * rng.randn(3, SIDE, SIDE)).clip(0, 255).astype(np.float32)


def stripes(kinds, count):
    """Pictures of some kinds (direction and width) with one-hot labels."""
    chosen = rng.randint(len(kinds), size=count)
    return np.stack([picture(*kinds[one]) for one in chosen]), np.eye(len(kinds), dtype=np.float32)[chosen]


def error_of(trainer, image, label, kinds):
    pictures, labels = stripes(kinds, 160)
    return np.mean([trainer.test_minibatch({image: pictures[at::4], label: labels[at::4]}) for at in range(4)])


def fit(z, image, label, kinds, count, sweeps, rate, parameters=None):
    learner = C.momentum_sgd(
        z.parameters if parameters is None else parameters,
        C.learning_parameter_schedule(rate, minibatch_size=C.learners.IGNORE),
        C.momentum_schedule(0.9),
        l2_regularization_weight=0.0005,
        minibatch_size=C.learners.IGNORE,
    )
    criterion = (C.cross_entropy_with_softmax(z, label), C.classification_error(z, label))
    trainer = C.Trainer(z, criterion, [learner], C.logging.ProgressPrinter(tag="fit", num_epochs=sweeps))
    pictures, labels = stripes(kinds, count)
    for _ in range(sweeps):
        for chosen in rng.permutation(count).reshape(-1, 20):
            trainer.train_minibatch({image: pictures[chosen], label: labels[chosen]})
        trainer.summarize_training_progress()
    return trainer


# a network of four kinds, kept in a file
WIDE = [(direction, 4) for direction in range(4)]
image = C.input_variable((3, SIDE, SIDE), name="features")
label = C.input_variable(4, name="labels")
with C.layers.default_options(activation=C.relu, pad=True):
    base = Sequential(
        [
            Convolution2D((5, 5), 8, name="conv1"),
            BatchNormalization(map_rank=1, normalization_time_constant=300, name="bn1"),
            Convolution2D((3, 3), 16, strides=2, name="conv2"),
            GlobalAveragePooling(name="poolingLayer"),
            Dense(4, activation=None, name="prediction"),
        ]
    )((image - 128) / 64)
trainer = fit(base, image, label, WIDE, 400, 8, 0.02)
print("base test error: {:.4f}".format(error_of(trainer, image, label, WIDE)))
base.save("base.model")

# the network without its top
loaded = load_model("base.model")
names = [one.name for one in get_node_outputs(loaded)]
assert {"conv1", "conv2", "poolingLayer", "prediction"} <= set(names), names
features = find_by_name(loaded, "features")
last = find_by_name(loaded, "poolingLayer")
assert features is not None and last.shape == (16, 1, 1)


def new_network(how, image, kinds):
    cloned = C.combine([last.owner]).clone(how, {features: C.placeholder(name="features")})
    return Dense(kinds, activation=None, name="top")(cloned((image)))


KINDS = [(0, 2), (1, 2), (0, 5), (1, 5)]
image = C.input_variable((3, SIDE, SIDE), name="image")
label = C.input_variable(len(KINDS), name="label")
frozen = new_network(C.CloneMethod.freeze, image, len(KINDS))
assert sorted(one.name for one in frozen.parameters) == ["W", "b"]
assert any(constant.shape == (8, 3, 5, 5) for constant in frozen.constants)
before = loaded.find_by_name("conv1").W.value.copy()
trainer = fit(frozen, image, label, KINDS, 80, 30, 0.05)
assert (loaded.find_by_name("conv1").W.value == before).all()
print("frozen test error: {:.4f}".format(error_of(trainer, image, label, KINDS)))

tuned = new_network(C.CloneMethod.clone, image, len(KINDS))
assert len(tuned.parameters) == 8
trainer = fit(tuned, image, label, KINDS, 160, 25, 0.01)
print("tuned test error: {:.4f}".format(error_of(trainer, image, label, KINDS)))
assert (loaded.find_by_name("conv1").W.value == before).all()
assert not (tuned.find_by_name("conv1").W.value == before).all()

# pictures of files, through the reader of pictures, for evaluation
try:
    import cv2
except ImportError:
    cv2 = None
if cv2 is not None:
    os.makedirs("pictures")
    pictures, labels = stripes(KINDS, 24)
    with open("map.txt", "w") as out:
        for number, (one, kind) in enumerate(zip(pictures, labels)):
            name = os.path.join("pictures", "%02d.png" % number)
            cv2.imwrite(name, one.transpose(1, 2, 0).astype(np.uint8))
            out.write("%s\t%d\n" % (name, kind.argmax()))
    deserializer = ImageDeserializer(
        "map.txt",
        StreamDefs(
            features=StreamDef(
                field="image", transforms=[xforms.scale(width=SIDE, height=SIDE, channels=3, interpolations="linear")]
            ),
            labels=StreamDef(field="label", shape=len(KINDS)),
        ),
    )
    source = MinibatchSource(deserializer, randomize=False, max_sweeps=1)
    minibatch = source.next_minibatch(24, {image: source.streams.features, label: source.streams.labels})
    print("files test error: {:.4f}".format(trainer.test_minibatch(minibatch)))
