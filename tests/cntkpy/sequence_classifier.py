"""A program along the lines of CNTK's manual: a user's minibatch source, a sequence classifier, several workers.

Usage: sequence_classifier.py FILE [WORDS]: writes the trained parameters to FILE.
"""

import sys

import numpy as np

import cntkpy.compat.cntk as C
from cntkpy.compat.cntk.io import MinibatchData, StreamInformation, UserMinibatchSource

C.tests.test_utils.set_device_from_pytest_env()
C.cntk_py.set_fixed_random_seed(1)

SENTENCES = """\
0 |x 10 11 12 |y 0
1 |x 20 21 22 23 |y 1
2 |x 30 31 32 |y 2
3 |x 40 41 42 43 |y 3
4 |x 50 51 52 |y 4
5 |x 10 11 13 12 |y 0
6 |x 20 21 22 |y 1
7 |x 30 31 32 33 |y 2
8 |x 40 41 42 |y 3
9 |x 50 51 53 52 |y 4
"""


class Sentences(UserMinibatchSource):
    """Sequences of word indices, each with a class."""

    def __init__(self, words, classes):
        self.words, self.classes = words, classes
        self.fsi = StreamInformation("features", 0, "sparse", np.float32, (words,))
        self.lsi = StreamInformation("labels", 1, "dense", np.float32, (classes,))
        lines = [line.replace("|", "").split() for line in SENTENCES.splitlines()]
        self.data = [(list(map(int, one[2:-2])), int(one[-1])) for one in lines]
        self.next_sequence = 0
        super().__init__()

    def stream_infos(self):
        return [self.fsi, self.lsi]

    def next_minibatch(self, num_samples, number_of_workers, worker_rank, device=None):
        features, labels, sweep_end = [], [], False
        words = 0
        while words < num_samples:
            if self.next_sequence == len(self.data):
                self.next_sequence, sweep_end = 0, True
            sentence, kind = self.data[self.next_sequence]
            if features and words + len(sentence) > num_samples:
                break
            words += len(sentence)
            features.append(sentence)
            labels.append([np.eye(self.classes)[kind]])
            self.next_sequence += 1
        features, labels = features[worker_rank::number_of_workers], labels[worker_rank::number_of_workers]
        if not features:
            return {self.fsi: MinibatchData(None, 0, 0, sweep_end), self.lsi: MinibatchData(None, 0, 0, sweep_end)}
        count = len(features)
        x = C.Value.one_hot(batch=features, num_classes=self.words, device=device)
        y = C.Value(batch=np.asarray(labels, dtype=np.float32), device=device)
        return {
            self.fsi: MinibatchData(x, count, sum(map(len, features)), sweep_end),
            self.lsi: MinibatchData(y, count, count, sweep_end),
        }

    def get_checkpoint_state(self):
        return {"next": self.next_sequence}

    def restore_from_checkpoint(self, checkpoint):
        self.next_sequence = checkpoint["next"]


def main(output, words=1000):
    source = Sentences(words, 5)
    x = C.sequence.input_variable(shape=(words,))
    y = C.input_variable(shape=(5,))
    h = C.layers.Recurrence(C.layers.LSTM(20), go_backwards=False)(x)
    z = C.layers.Dense(5)(C.sequence.last(h))
    loss, errs = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    learner = C.sgd(z.parameters, C.learning_parameter_schedule_per_sample(0.5))
    learner = C.distributed.data_parallel_distributed_learner(learner)
    printer = C.logging.ProgressPrinter(tag="Training", num_epochs=10)
    trainer = C.Trainer(z, (loss, errs), [learner], [printer])
    session = C.training_session(
        trainer=trainer,
        mb_source=source,
        model_inputs_to_streams={x: source.fsi, y: source.lsi},
        mb_size=7,
        max_samples=80,
        progress_frequency=20,
    )
    session.train()
    if C.distributed.Communicator.rank() == 0:
        np.savez(output, *[one.value for one in z.parameters])
    C.distributed.Communicator.finalize()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
