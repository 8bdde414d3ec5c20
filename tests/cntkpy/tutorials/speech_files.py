"""Phones of files in the formats of HTK: features with a window, labels of an MLF, frames and whole utterances."""

from __future__ import print_function

import os
import struct

import cntk as C
import numpy as np
from cntk.io import HTKFeatureDeserializer, HTKMLFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.layers import LSTM, Dense, Recurrence, Sequential

rng = np.random.RandomState(12)
C.cntk_py.set_fixed_random_seed(12)

PHONES = ["sil", "aa", "iy", "s"]
BANDS, PERIOD = 8, 100000
spectra = rng.randn(len(PHONES), BANDS) * 1.5


def write_features(path, frames):
    """Big-endian: number of frames, period, bytes of a frame, kind 9 (user), then the numbers."""
    with open(path, "wb") as out:
        out.write(struct.pack(">iihh", len(frames), PERIOD, 4 * frames.shape[1], 9))
        out.write(frames.astype(">f4").tobytes())


def write_set(name, count):
    os.makedirs(name)
    with open(name + ".scp", "w") as scp, open(name + ".mlf", "w") as mlf:
        mlf.write("#!MLF!#\n")
        for number in range(count):
            key = "%s%03d" % (name, number)
            phones = [0] + list(rng.randint(1, len(PHONES), size=rng.randint(2, 5))) + [0]
            lengths = rng.randint(3, 6, size=len(phones))
            frames = np.repeat(spectra[phones], lengths, axis=0)
            frames = frames + rng.randn(*frames.shape)
            path = os.path.join(name, key + ".mfc")
            write_features(path, frames)
            scp.write("%s.mfc=%s[0,%d]\n" % (key, path, len(frames) - 1))
            mlf.write('"%s.lab"\n' % key)
            begins = np.cumsum(lengths) - lengths
            for phone, begin, length in zip(phones, begins, lengths):
                mlf.write("%d %d %s\n" % (begin * PERIOD, (begin + length) * PERIOD, PHONES[phone]))
            mlf.write(".\n")


write_set("train", 60)
write_set("test", 12)
with open("phones.list", "w") as out:
    out.writelines(phone + "\n" for phone in PHONES)


def reader(name, frame_mode, endless, context=(0, 0), boundaries=False):
    width = BANDS * (1 + sum(context))
    features = HTKFeatureDeserializer(StreamDefs(features=StreamDef(shape=width, context=context, scp=name + ".scp")))
    labels = HTKMLFDeserializer(
        "phones.list", StreamDefs(labels=StreamDef(shape=len(PHONES), mlf=name + ".mlf")), boundaries
    )
    sweeps = C.io.INFINITELY_REPEAT if endless else 1
    return MinibatchSource([features, labels], frame_mode=frame_mode, randomize=endless, max_sweeps=sweeps)


def run(z, x, y, name, minibatches, size, rate, **options):
    criterion = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    learner = C.adam(
        z.parameters,
        C.learning_parameter_schedule(rate, minibatch_size=C.learners.IGNORE),
        0.9,
        minibatch_size=C.learners.IGNORE,
    )
    trainer = C.Trainer(z, criterion, [learner], C.logging.ProgressPrinter(freq=minibatches // 3, tag=name))
    source = reader("train", endless=True, **options)
    streams = {x: source.streams.features, y: source.streams.labels}
    for _ in range(minibatches):
        trainer.train_minibatch(source.next_minibatch(size, input_map=streams))
    source = reader("test", endless=False, **options)
    streams = {x: source.streams.features, y: source.streams.labels}
    wrong = seen = 0
    while True:
        minibatch = source.next_minibatch(100, input_map=streams)
        if not minibatch:
            break
        wrong += trainer.test_minibatch(minibatch) * minibatch[y].num_samples
        seen += minibatch[y].num_samples
    print("{} error: {:.4f}".format(name, wrong / seen))
    return seen


# each frame by itself, with the two before and after it
x, y = C.input_variable(BANDS * 5, name="x"), C.input_variable(len(PHONES), is_sparse=True, name="y")
z = Sequential([Dense(32, activation=C.relu), Dense(len(PHONES))])((x - 0.0) * 0.5)
frames = run(z, x, y, "frame", 120, 64, 0.01, frame_mode=True, context=(2, 2))

# whole utterances
x, y = C.sequence.input_variable(BANDS, name="x"), C.sequence.input_variable(len(PHONES), is_sparse=True, name="y")
z = Sequential([Recurrence(LSTM(16)), Dense(len(PHONES))])(x)
steps = run(z, x, y, "utterance", 90, 150, 0.02, frame_mode=False)
assert frames == steps

# where phones begin: 2 instead of 1, for criteria that align
source = reader("test", False, False, boundaries=True)
minibatch = source.next_minibatch(60)
(first, *_) = minibatch[source.streams.labels].as_sequences()
rows = np.asarray(first.todense()) if hasattr(first, "todense") else first
assert set(np.unique(rows)) == {0, 1, 2} and rows[0, 0] == 2 and (rows.max(axis=1) == 2).sum() >= 4
print("marked beginnings: {}".format(int((rows == 2).sum())))
