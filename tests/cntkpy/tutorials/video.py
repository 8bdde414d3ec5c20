"""Clips of moving dots: convolution in each picture, LSTM over time, two tasks at once, the best model kept."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import *

rng = np.random.RandomState(4)
C.cntk_py.set_fixed_random_seed(4)

SIDE, WAYS, KINDS = 10, 4, 2
STEPS = [(1, 0), (-1, 0), (0, 1), (0, -1)]


def clip():
    """A dot or a bar that moves; the way, the kind, and where it is in each picture."""
    way, kind, length = rng.randint(WAYS), rng.randint(KINDS), rng.randint(4, 6)
    dy, dx = STEPS[way]
    y, x = (5 - 3 * dy, 5 - 3 * dx) if rng.rand() < 0.5 else (5 - 2 * dy, 5 - 2 * dx)
    frames, places = 0.2 * rng.randn(length, 1, SIDE, SIDE), []
    for frame in frames:
        frame[0, y, x] += 2
        if kind:
            frame[0, y, x - 1] += 2
        places.append([y / 10.0, x / 10.0])
        y, x = np.clip([y + dy, x + dx], 1, SIDE - 1)
    return frames.astype(np.float32), way, kind, np.array(places, np.float32)


def clips(count):
    frames, ways, kinds, places = zip(*[clip() for _ in range(count)])
    one_hot = [np.eye(size, dtype=np.float32)[list(one)] for size, one in ((WAYS, ways), (KINDS, kinds))]
    return {frame: list(frames), way: one_hot[0], kind: one_hot[1], place: list(places)}


frame = C.sequence.input_variable((1, SIDE, SIDE), name="frame")
way, kind = C.input_variable(WAYS, name="way"), C.input_variable(KINDS, name="kind")
place = C.sequence.input_variable(2, name="place")

with default_options(activation=C.relu, pad=True):
    see = Sequential(
        [
            Convolution2D((3, 3), 8),
            MaxPooling((2, 2), strides=2),
            Convolution2D((3, 3), 12, strides=2),
            Dense(24, name="seen"),
        ]
    )
seen = see(frame)
assert seen.shape == (24,) and seen.dynamic_axes == frame.dynamic_axes
moved = Recurrence(LSTM(24))(seen)
of_way = Dense(WAYS, name="way_scores")(C.sequence.last(moved))
of_kind = Dense(KINDS, name="kind_scores")(C.sequence.reduce_max(seen))
of_place = Dense(2, name="places")(seen)

way_loss = C.cross_entropy_with_softmax(of_way, way)
kind_loss = C.cross_entropy_with_softmax(of_kind, kind)
place_loss = C.sequence.reduce_sum(C.reduce_sum(C.square(of_place - place), axis=0))
loss = way_loss + 0.5 * kind_loss + C.reshape(place_loss, ())
error = C.element_max(C.classification_error(of_way, way), C.classification_error(of_kind, kind))
assert loss.dynamic_axes == way.dynamic_axes and loss.shape == ()


class Plateau(object):
    """Halves the rate where an error gets no better, and keeps the best model."""

    def __init__(self, learner, model, path):
        self.learner, self.model, self.path = learner, model, path
        self.best, self.bad = float("inf"), 0

    def __call__(self, error):
        if error < self.best:
            self.best, self.bad = error, 0
            self.model.save(self.path)
            return
        self.bad += 1
        if self.bad % 2 == 0:
            rate = self.learner.learning_rate() / 2
            self.learner.reset_learning_rate(C.learning_parameter_schedule(rate, minibatch_size=C.learners.IGNORE))


model = C.combine([of_way, of_kind, of_place], name="all")
rate = C.learning_parameter_schedule(0.005, minibatch_size=C.learners.IGNORE)
learner = C.adam(model.parameters, rate, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
trainer = C.Trainer(model, (loss, error), [learner], C.logging.ProgressPrinter(tag="clips", num_epochs=12))
plateau = Plateau(learner, model, "best.model")
held_out = clips(64)
for _ in range(12):
    for _ in range(20):
        trainer.train_minibatch(clips(32))
    trainer.summarize_training_progress()
    plateau(trainer.test_minibatch(held_out))
print("best error: {:.4f}".format(plateau.best))

# what each output says, alone and together, from the file
loaded = C.load_model("best.model")
assert [one.name for one in loaded.outputs] == ["way_scores", "kind_scores", "places"], loaded.outputs
data = clips(40)
(frames,) = loaded.arguments
found = loaded.eval({frames: data[frame]})
named = {output.name: value for output, value in found.items()}
assert named["way_scores"].shape == (40, WAYS) and len(named["places"]) == 40
assert all(one.shape == other.shape for one, other in zip(named["places"], data[place]))
wrong = (named["way_scores"].argmax(1) != data[way].argmax(1)) | (
    named["kind_scores"].argmax(1) != data[kind].argmax(1)
)
print("clip error: {:.4f}".format(wrong.mean()))
alone = C.combine([loaded.find_by_name("kind_scores")])
np.testing.assert_allclose(alone.eval(data[frame]), named["kind_scores"], rtol=1e-4, atol=1e-5)
evaluator = C.eval.Evaluator(error, [C.logging.ProgressPrinter(test_freq=1)])
print("evaluated: {:.4f}".format(evaluator.test_minibatch({key: data[key] for key in error.arguments})))
evaluator.summarize_test_progress()
