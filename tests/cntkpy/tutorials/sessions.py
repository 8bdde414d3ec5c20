"""A training that is interrupted and continued: sessions, checkpoints, validation that ends it, workers, writers."""

from __future__ import print_function

import glob
import os
import sys

import cntk as C
import numpy as np
from cntk.logging import ProgressPrinter, ProgressWriter
from cntk.train import (
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    TestConfig,
    Trainer,
    minibatch_size_schedule,
    training_session,
)
from cntk.train.distributed import Communicator, block_momentum_distributed_learner, data_parallel_distributed_learner

rng = np.random.RandomState(6)
INPUTS, KINDS, SWEEP = 10, 4, 640
hidden_truth = rng.randn(INPUTS, KINDS)


def write(path, count):
    with open(path, "w") as out:
        for row in rng.randn(count, INPUTS):
            kind = (np.tanh(row).dot(hidden_truth) + 0.3 * rng.randn(KINDS)).argmax()
            out.write("|x %s |y %d:1\n" % (" ".join("%.4f" % one for one in row), kind))


write("train.txt", SWEEP)
write("validation.txt", 160)


def source(path, randomize):
    streams = C.io.StreamDefs(x=C.io.StreamDef("x", shape=INPUTS), y=C.io.StreamDef("y", shape=KINDS, is_sparse=True))
    sweeps = C.io.INFINITELY_REPEAT if randomize else C.io.FULL_DATA_SWEEP
    data = C.io.CTFDeserializer(path, streams)
    return C.io.MinibatchSource([data], randomize=randomize, max_samples=sweeps, multithreaded_deserializer=False)


class Watcher(ProgressWriter):
    """Keeps what a trainer says."""

    def __init__(self):
        super(Watcher, self).__init__(freq=5, first=0)
        self.updates, self.summaries, self.tests = [], [], []

    def on_write_training_update(self, samples, updates, aggregate_loss, aggregate_metric):
        self.updates.append((samples[1] - samples[0], aggregate_loss[1] - aggregate_loss[0]))

    def on_write_training_summary(self, samples, updates, summaries, aggregate_loss, aggregate_metric, milliseconds):
        self.summaries.append((samples, aggregate_loss / samples))

    def on_write_test_summary(self, samples, updates, summaries, aggregate_metric, milliseconds):
        self.tests.append(aggregate_metric / samples)


class Job(object):
    """A network, its trainer and its inputs; each time made anew, as by a new process."""

    def __init__(self, wrap=data_parallel_distributed_learner, **options):
        C.cntk_py.set_fixed_random_seed(3)
        self.x, self.y = C.input_variable(INPUTS, name="x"), C.input_variable(KINDS, is_sparse=True, name="y")
        layer = C.layers.Sequential([C.layers.Dense(24, activation=C.tanh, name="hidden"), C.layers.Dense(KINDS)])
        self.z = layer(self.x)
        self.loss, self.error = C.cross_entropy_with_softmax(self.z, self.y), C.classification_error(self.z, self.y)
        learner = C.adam(
            self.z.parameters,
            lr=C.learning_parameter_schedule([0.32, 0.16], minibatch_size=32, epoch_size=4 * SWEEP),
            momentum=C.momentum_schedule(0.9),
            unit_gain=True,
            minibatch_size=32,
        )
        self.watcher = Watcher()
        self.board = C.logging.TensorBoardProgressWriter(
            freq=10, log_dir="board", rank=Communicator.rank(), model=self.z
        )
        printer = ProgressPrinter(tag="session", rank=Communicator.rank(), num_epochs=8, log_to_file="session.log")
        self.trainer = Trainer(
            self.z, (self.loss, self.error), wrap(learner, **options), [printer, self.watcher, self.board]
        )

    def streams(self, data):
        return {self.x: data.streams.x, self.y: data.streams.y}

    def session(self, sweeps, name, validation=None, test=False):
        train = source("train.txt", True)
        config = CheckpointConfig(filename=name, frequency=(1, DataUnit.sweep), restore=True, preserve_all=True)
        held_out = source("validation.txt", False)
        return training_session(
            trainer=self.trainer,
            mb_source=train,
            mb_size=minibatch_size_schedule([16, 32, 64], epoch_size=SWEEP),
            model_inputs_to_streams=self.streams(train),
            max_samples=sweeps * SWEEP,
            progress_frequency=SWEEP,
            checkpoint_config=config,
            cv_config=validation,
            test_config=TestConfig(held_out, minibatch_size=64, model_inputs_to_streams=self.streams(held_out))
            if test
            else None,
        )


# in one go
whole = Job()
whole.session(6, "whole.model", test=True).train(device=C.cpu())
assert whole.trainer.total_number_of_samples_seen == 6 * SWEEP, whole.trainer.total_number_of_samples_seen
assert len(whole.watcher.summaries) == 6 and len(whole.watcher.tests) == 1
assert whole.watcher.updates and np.isfinite([loss for _, loss in whole.watcher.updates]).all()
print("session test error: {:.4f}".format(whole.watcher.tests[0]))

# in two parts: the second one begins where the first one ended
Job().session(3, "parts.model").train()
kept = sorted(glob.glob("parts.model*"))
assert any(name.endswith(".ckp") for name in kept), kept
again = Job()
again.session(6, "parts.model").train()
for one, other in zip(whole.z.parameters, again.z.parameters):
    np.testing.assert_array_equal(one.value, other.value)
print("parts are the same: True")

# validation that ends the training when it does not get better
held_out = source("validation.txt", False)
job = Job(distributed_after=SWEEP)
history = []


def watch(index, average_error, samples, minibatches):
    history.append(average_error)
    assert (index, samples) == (len(history) - 1, 160) and minibatches == 5
    return len(history) < 3 or min(history[-2:]) < min(history[:-2])


validation = CrossValidationConfig(
    minibatch_source=held_out,
    frequency=SWEEP,
    minibatch_size=32,
    callback=watch,
    model_inputs_to_streams=job.streams(held_out),
)
job.session(40, "stopped.model", validation).train()
print("validated {} times: {}".format(len(history), " ".join("{:.3f}".format(one) for one in history)))
assert 3 <= len(history) < 40 and job.trainer.total_number_of_samples_seen == len(history) * SWEEP

# blocks of samples instead, and the loss of arrays
blocks = Job(block_momentum_distributed_learner, block_size=320)
blocks.session(2, "blocks.model").train()
assert blocks.trainer.total_number_of_samples_seen == 2 * SWEEP
assert Communicator.num_workers() == 1 and Communicator.is_main()
Communicator.finalize()

log = open("session.log").read()
assert log.count("Finished Epoch") >= 2
assert glob.glob(os.path.join("board", "*tfevents*")), os.listdir("board")
print("lines of the log: {}".format(len(log.splitlines())), file=sys.stderr)
