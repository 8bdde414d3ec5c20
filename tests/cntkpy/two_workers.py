"""A session of several workers with checkpoints that may be killed.

Usage: two_workers.py FOLDER data|block [MINIBATCH WORKER]: that worker is killed when it asks for that minibatch.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import cntkpy.compat.cntk as C

random = np.random.RandomState(0)
X = random.randn(240, 6).astype(np.float32)
Y = np.eye(3, dtype=np.float32)[(X @ random.randn(6, 3)).argmax(axis=1)]


class Source(C.io.UserMinibatchSource):
    """Rows in order, a share for each worker."""

    def __init__(self, killed_at, killed):
        self.place, self.asked, self.killed_at, self.killed = 0, 0, killed_at, killed
        self.x = C.io.StreamInformation("x", 0, "dense", np.float32, (6,))
        self.y = C.io.StreamInformation("y", 1, "dense", np.float32, (3,))
        super().__init__()

    def stream_infos(self):
        return [self.x, self.y]

    def next_minibatch(self, num_samples, number_of_workers, worker_rank, device=None):
        self.asked += 1
        if self.asked == self.killed_at and worker_rank == self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        rows = np.arange(self.place, min(240, self.place + num_samples))[worker_rank::number_of_workers]
        self.place += num_samples
        ends = self.place >= 240
        self.place = 0 if ends else self.place
        value = {self.x: X[rows], self.y: Y[rows]}
        return {one: C.io.MinibatchData(C.Value(batch=data), len(rows), len(rows), ends) for one, data in value.items()}

    def get_checkpoint_state(self):
        return {"place": self.place}

    def restore_from_checkpoint(self, checkpoint):
        self.place = checkpoint["place"]


def main(folder, which, killed_at=0, killed=1):
    x, y = C.input_variable(6), C.input_variable(3)
    z = C.layers.Sequential([C.layers.Dense(8, activation=C.tanh), C.layers.Dense(3)])(x)
    loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    momentum = C.momentum_schedule(0.9, minibatch_size=20)
    learner = C.momentum_sgd(z.parameters, C.learning_parameter_schedule_per_sample(0.02), momentum)
    if which == "block":
        learner = C.block_momentum_distributed_learner(learner, block_size=60)
    else:
        learner = C.data_parallel_distributed_learner(learner)
    source = Source(killed_at, killed)
    trainer = C.Trainer(z, (loss, error), learner, C.logging.ProgressPrinter(tag=which))
    C.training_session(
        trainer=trainer,
        mb_source=source,
        mb_size=20,
        max_samples=960,
        progress_frequency=240,
        model_inputs_to_streams={x: source.x, y: source.y},
        checkpoint_config=C.CheckpointConfig(str(folder / "net"), frequency=120),
    ).train()
    if C.Communicator.rank() == 0:
        np.savez(folder / "end.npz", *[one.value for one in z.parameters])
    C.Communicator.finalize()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
