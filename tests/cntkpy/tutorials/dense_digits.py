"""Digits of a CTF file, with a linear layer and with two hidden layers; predictions of single pictures."""

from __future__ import division, print_function

import cntk as C
import numpy as np
from cntk.io import INFINITELY_REPEAT, CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.layers import Dense, default_options

rng = np.random.RandomState(0)
C.cntk_py.set_fixed_random_seed(1)
C.cntk_py.force_deterministic_algorithms()

SIDE = 14
PIXELS, DIGITS = SIDE * SIDE, 10
TRAIN, TEST = 1200, 400
drawn = rng.rand(DIGITS, SIDE, SIDE) > 0.6


def write(path, count):
    """Noisy copies of ten pictures, shifted by at most one pixel."""
    with open(path, "w") as out:
        for _ in range(count):
            digit = rng.randint(DIGITS)
            picture = np.roll(drawn[digit], rng.randint(-1, 2, 2), (0, 1)) ^ (rng.rand(SIDE, SIDE) < 0.1)
            out.write("|labels %s " % " ".join("1" if digit == kind else "0" for kind in range(DIGITS)))
            out.write("|features %s\n" % " ".join("%d" % (255 * value) for value in picture.flat))


class Digits(object):
    """A reader with its map from variables to streams."""

    def __init__(self, path, endless, **variables):
        fields = StreamDefs(
            labels=StreamDef(field="labels", shape=DIGITS, is_sparse=False),
            features=StreamDef(field="features", shape=PIXELS, is_sparse=False),
        )
        sweeps = INFINITELY_REPEAT if endless else 1
        self.source = MinibatchSource(CTFDeserializer(path, fields), randomize=endless, max_sweeps=sweeps)
        self.map = {variable: self.source.streams[name] for name, variable in variables.items()}

    def __call__(self, size):
        return self.source.next_minibatch(size, input_map=self.map)


write("train.ctf", TRAIN)
write("test.ctf", TEST)

image = C.input_variable(PIXELS, name="image")
digit = C.input_variable(DIGITS, name="digit")
scaled = image / 255.0


def linear(picture):
    with C.layers.default_options(init=C.glorot_uniform()):
        return C.layers.Dense(DIGITS, activation=None)(picture)


def dense(picture):
    with default_options(init=C.layers.glorot_uniform(), activation=C.ops.relu):
        hidden = picture
        for width in (100, 100):
            hidden = Dense(width)(hidden)
        return Dense(DIGITS, activation=None, name="out")(hidden)


def fit(build, sweeps=4):
    tag = build.__name__
    scores = build(scaled)
    criterion = C.cross_entropy_with_softmax(scores, digit), C.classification_error(scores, digit)
    printer = C.logging.ProgressPrinter(freq=10, tag=tag, num_epochs=sweeps)
    learner = C.sgd(scores.parameters, C.learning_parameter_schedule(0.2))
    trainer = C.Trainer(scores, criterion, [learner], printer)

    train = Digits("train.ctf", True, features=image, labels=digit)
    for sweep in range(1, sweeps + 1):
        while trainer.total_number_of_samples_seen < sweep * TRAIN:
            trainer.train_minibatch(train(min(64, sweep * TRAIN - trainer.total_number_of_samples_seen)))
        trainer.summarize_training_progress()
    assert trainer.total_number_of_samples_seen == sweeps * TRAIN

    wrong, seen = 0, 0
    test = Digits("test.ctf", False, features=image, labels=digit)
    minibatch = test(96)
    while minibatch:
        count = minibatch[digit].num_samples
        wrong += count * trainer.test_minibatch(minibatch)
        seen += count
        minibatch = test(96)
    assert seen == TEST
    print("{} test error: {:.4f}".format(tag, wrong / seen))
    return scores


fit(linear)
best = fit(dense)

probability = C.softmax(best)
few = Digits("test.ctf", False, features=image, labels=digit)(25)
pictures, truth = few[image].asarray(), few[digit].asarray()
assert pictures.size == 25 * PIXELS and few[image].number_of_sequences == 25
found = [int(np.argmax(probability.eval(picture))) for picture in pictures]
expected = [int(np.argmax(one)) for one in truth]
print("{} of 25 are wrong".format(sum(a != b for a, b in zip(found, expected))))
