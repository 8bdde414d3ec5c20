"""Codes of pictures: a shallow and a deep auto-encoder, neighbours by their codes, and the decoder alone."""

from __future__ import print_function

import cntk as C
import numpy as np

rng = np.random.RandomState(0)
C.cntk_py.set_fixed_random_seed(1)

SIDE, KINDS, TRAIN, BATCH = 12, 3, 640, 64
PIXELS = SIDE * SIDE
strokes = (rng.rand(2 * KINDS, PIXELS) > 0.8).astype(float)


def write(path, count):
    """Two strokes of a kind, each as bright as chance has it, as bytes."""
    with open(path, "w") as out:
        for _ in range(count):
            kind = rng.randint(KINDS)
            picture = np.clip(rng.rand(2).dot(strokes[2 * kind : 2 * kind + 2]), 0, 1)
            out.write("|pixels %s |kind %d:1\n" % (" ".join(str(int(one)) for one in picture * 255), kind))


def reader(path, **options):
    pixels = C.io.StreamDef(field="pixels", shape=PIXELS, is_sparse=False)
    kind = C.io.StreamDef(field="kind", shape=KINDS, is_sparse=True)
    return C.io.MinibatchSource(C.io.CTFDeserializer(path, C.io.StreamDefs(pixels=pixels, kind=kind)), **options)


write("train.ctf", TRAIN)
write("test.ctf", 128)


def shallow(x):
    code = C.layers.Dense(16, activation=C.relu, name="code")(x)
    return C.layers.Dense(PIXELS, activation=C.sigmoid, name="decoded")(code)


def deep(x):
    with C.layers.default_options(init=C.glorot_uniform(), activation=C.relu):
        down = C.layers.For([48, 24], lambda size: C.layers.Dense(size))
        up = C.layers.For([24, 48], lambda size: C.layers.Dense(size))
        code = C.layers.Dense(8, name="code")(down(x))
        return C.layers.Dense(PIXELS, activation=C.sigmoid, name="decoded")(up(code))


class Autoencoder(object):
    """A network that is trained to give its input."""

    def __init__(self, build):
        self.name = build.__name__
        self.x = C.input_variable(PIXELS, name="x")
        self.scaled = C.element_times(self.x, C.constant(1.0 / 255))
        self.z = build(self.scaled)
        kept = C.clip(self.z, 1e-6, 1 - 1e-6)
        self.loss = C.negate(
            C.reduce_sum(self.scaled * C.log(kept) + (1 - self.scaled) * C.log(1 - kept), axis=0), name="entropy"
        )
        self.error = C.reduce_mean(C.square(self.z - self.scaled), name="error")

    def train(self, sweeps):
        learner = C.fsadagrad(
            self.z.parameters,
            lr=C.learning_parameter_schedule_per_sample([9e-5], TRAIN),
            momentum=C.momentum_schedule(0.9, BATCH),
        )
        printer = C.logging.ProgressPrinter(0, tag=self.name, metric_is_pct=False)
        trainer = C.Trainer(self.z, (self.loss, self.error), [learner], printer)
        source = reader("train.ctf", randomize=True, max_samples=sweeps * TRAIN)
        minibatch = source.next_minibatch(BATCH)
        while minibatch:
            trainer.train_minibatch({self.x: minibatch[source.streams.pixels]})
            minibatch = source.next_minibatch(BATCH)
        assert trainer.total_number_of_samples_seen == sweeps * TRAIN
        trainer.summarize_training_progress()
        test = reader("test.ctf", randomize=False, max_sweeps=1).next_minibatch(128, None)
        (pixels,) = [data for stream, data in test.items() if stream.name == "pixels"]
        print("{} mean square: {:.4f}".format(self.name, trainer.test_minibatch({self.x: pixels})))
        trainer.summarize_test_progress()


Autoencoder(shallow).train(25)
model = Autoencoder(deep)
model.train(25)

source = reader("test.ctf", randomize=False, max_sweeps=1)
minibatch = source.next_minibatch(128)
pixels = minibatch[source.streams.pixels]
kinds = minibatch[source.streams.kind].asarray().reshape(128, KINDS).argmax(axis=1)
codes = C.combine([model.z.find_by_name("code")]).eval({model.x: pixels})
assert codes.shape == (128, 8)
unit = codes / np.maximum(np.sqrt((codes**2).sum(axis=1, keepdims=True)), 1e-6)
near = unit.dot(unit.T)
np.fill_diagonal(near, -1)
print("neighbours of another kind: {:.4f}".format(np.mean(kinds[near.argmax(axis=1)] != kinds)))

# the decoder alone: an input in the place of the code, and nothing to train
code = C.input_variable(8, name="given")
decoder = model.z.clone(C.CloneMethod.freeze, {model.z.code: code})
assert [one.name for one in decoder.arguments] == ["given"] and not decoder.parameters
np.testing.assert_allclose(decoder.eval({code: codes}), model.z.eval({model.x: pixels}), rtol=1e-4, atol=1e-5)
between = decoder(code).eval({code: (codes[:1] + codes[1:2]) / 2})
assert between.shape == (1, PIXELS) and 0 <= between.min() and between.max() <= 1
