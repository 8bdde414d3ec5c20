"""Criterion functions with types, trained without a trainer: arrays, sources, checkpoints, tests, schedules."""

from __future__ import print_function

import glob

import cntk as C
import cntk.io
import cntk.train
import numpy as np
import scipy.sparse
from cntk.layers.typing import Sequence, SequenceOver, Signature, SparseTensor, Tensor

rng = np.random.RandomState(5)
C.cntk_py.set_fixed_random_seed(5)

# arrays: who reads which of two magazines, by age and income
INPUTS, KINDS = 2, 2
people = rng.randn(500, INPUTS).astype(np.float32)
kinds = ((people[:, 0] * people[:, 1]) > 0).astype(int)
one_hot = np.eye(KINDS, dtype=np.float32)[kinds]
rows = scipy.sparse.csr_matrix(one_hot)

with C.layers.default_options(activation=C.tanh):
    model = C.layers.Sequential([C.layers.Dense(12), C.layers.Dense(12), C.layers.Dense(KINDS, activation=None)])


@C.Function.with_signature(Tensor[INPUTS], SparseTensor[KINDS])
def criterion(data, label):
    z = model(data)
    return C.cross_entropy_with_softmax(z, label), C.classification_error(z, label)


assert [one.name for one in criterion.arguments] == ["data", "label"]
assert [one.is_sparse for one in criterion.arguments] == [False, True]
learner = C.sgd(model.parameters, C.learning_parameter_schedule([0.3] * 15 + [0.1], minibatch_size=16, epoch_size=400))
summary = criterion.train(
    (people[:400], rows[:400]),
    parameter_learners=[learner],
    minibatch_size=16,
    max_epochs=30,
    callbacks=[C.logging.ProgressPrinter(freq=None, tag="arrays", num_epochs=30)],
)
assert len(summary.epoch_summaries) == 30 and summary.updates == 30 * 25
tested = criterion.test((people[400:], rows[400:]), minibatch_size=50)
print("arrays test error: {:.4f}".format(tested.metric))
assert tested.samples == 100

# a file: the same with a source, its streams in the order of the arguments, and files of the state
with open("people.ctf", "w") as out:
    for person, kind in zip(people, kinds):
        out.write("|p %.5f %.5f |k %d:1\n" % (person[0], person[1], kind))


def source(randomize, **options):
    streams = cntk.io.StreamDefs(
        person=cntk.io.StreamDef(field="p", shape=INPUTS, is_sparse=False),
        kind=cntk.io.StreamDef(field="k", shape=KINDS, is_sparse=True),
    )
    return cntk.io.MinibatchSource(cntk.io.CTFDeserializer("people.ctf", streams), randomize=randomize, **options)


with C.layers.default_options(activation=C.relu, init=C.he_normal()):
    model = C.layers.Sequential(
        [C.layers.Dense(16), C.layers.LayerNormalization(), C.layers.Dense(16), C.layers.Dense(KINDS, activation=None)]
    )


@C.Function
def untyped(data, label):
    z = model(data)
    return (C.cross_entropy_with_softmax(z, label), C.classification_error(z, label))


criterion = untyped(C.input_variable(INPUTS), C.input_variable(KINDS, is_sparse=True))
train, held_out, test = source(True), source(False, max_samples=500), source(False, max_samples=500)
checkpoint = cntk.train.CheckpointConfig(frequency=500, filename="people.model", preserve_all=False)
validated = []
validation = cntk.train.CrossValidationConfig(
    minibatch_source=held_out,
    frequency=1000,
    minibatch_size=100,
    criterion=criterion,
    callback=lambda *said: validated.append(said[1]),
    model_inputs_to_streams=dict(zip(criterion.arguments, (held_out.streams.person, held_out.streams.kind))),
)
testing = cntk.train.TestConfig(
    minibatch_source=test,
    criterion=criterion,
    model_inputs_to_streams=dict(zip(criterion.arguments, (test.streams.person, test.streams.kind))),
)
printer = C.logging.ProgressPrinter(tag="file", log_to_file="people.log")
progress = criterion.train(
    train,
    streams=(train.streams.person, train.streams.kind),
    minibatch_size=cntk.train.minibatch_size_schedule([10] * 2 + [25], epoch_size=500),
    parameter_learners=[C.adam(criterion.parameters, 0.01, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)],
    callbacks=[printer, checkpoint, validation, testing],
    epoch_size=500,
    max_epochs=10,
)
print("validated", ["{:.3f}".format(one) for one in validated])
assert len(progress.epoch_summaries) == 10 and len(progress.cross_validation_summaries) == len(validated) >= 5
assert progress.epoch_summaries[-1].samples == 500
print("file test error: {:.4f}".format(progress.test_summary.metric))
assert glob.glob("people.model*") and open("people.log").read().count("Finished Epoch") == 10
assert progress["updates"] == progress.updates

# sequences: is there an 'a' after the last 'b'?
LETTERS = 4
sentences = [rng.randint(LETTERS, size=rng.randint(3, 7)) for _ in range(300)]


def answer(letters):
    last = np.flatnonzero(letters == 1)
    return float(0 in (letters[last[-1] :] if len(last) else letters))


tagged = [scipy.sparse.csr_matrix(np.eye(LETTERS, dtype=np.float32)[one]) for one in sentences]
answers = np.array([[answer(one)] for one in sentences], np.float32)
recurrent = C.layers.Sequential([C.layers.Fold(C.layers.GRU(12)), C.layers.Dense(1, activation=C.sigmoid)])


@C.Function
@Signature(Sequence[SparseTensor[LETTERS]], Tensor[1])
def sequence_criterion(sentence, wanted):
    z = recurrent(sentence)
    return C.binary_cross_entropy(z, wanted), C.not_equal(C.greater(z, 0.5), wanted)


progress = sequence_criterion.train(
    (tagged[:240], answers[:240]),
    minibatch_size=120,
    max_epochs=60,
    parameter_learners=[C.adam(recurrent.parameters, 0.02, 0.9, minibatch_size=C.learners.IGNORE)],
)
print("sequences test error: {:.4f}".format(sequence_criterion.test((tagged[240:], answers[240:])).metric))
axis = C.Axis("sentences")
over = SequenceOver[axis][SparseTensor[LETTERS]]
given = C.sequence.input_variable(**{"shape": LETTERS, "is_sparse": True, "sequence_axis": axis})
assert [one.name for one in given.dynamic_axes] == ["defaultBatchAxis", "sentences"]
