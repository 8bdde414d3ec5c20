"""Marks discs in pictures: two halves with shortcuts, an overlap loss, and a source of pictures in Python."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.io import MinibatchData, StreamInformation, UserMinibatchSource
from cntk.layers import BatchNormalization, Convolution2D, ConvolutionTranspose2D, Dropout, MaxPooling, Sequential

C.cntk_py.set_fixed_random_seed(11)
SIDE, BATCH, SWEEP = 16, 16, 160


class Discs(UserMinibatchSource):
    """Pictures drawn when they are asked for, with a mask of each."""

    def __init__(self, seed, samples):
        self.rng = np.random.RandomState(seed)
        self.seed, self.samples, self.given = seed, samples, 0
        self.picture = StreamInformation("picture", 0, "dense", np.float32, (1, SIDE, SIDE))
        self.mask = StreamInformation("mask", 1, "dense", np.float32, (1, SIDE, SIDE))
        super(Discs, self).__init__()

    def stream_infos(self):
        return [self.picture, self.mask]

    def draw(self, count):
        at = np.arange(SIDE)
        masks = np.zeros((count, 1, SIDE, SIDE), np.float32)
        for mask in masks:
            y, x, r = self.rng.randint(4, 12), self.rng.randint(4, 12), self.rng.uniform(2, 4)
            mask[0] = (at[:, None] - y) ** 2 + (at[None] - x) ** 2 < r * r
        noise = self.rng.randn(*masks.shape)
        return (masks + 0.7 * noise).astype(np.float32), masks

    def next_minibatch(self, num_samples, number_of_workers, worker_rank, device=None):
        count = min(num_samples, self.samples - self.given)
        if count <= 0:
            return {}
        self.given += count
        pictures, masks = self.draw(count)
        end = self.given >= self.samples
        return {
            self.picture: MinibatchData(C.Value(pictures), count, count, end),
            self.mask: MinibatchData(C.Value(masks), count, count, end),
        }

    def get_checkpoint_state(self):
        return {"given": self.given}

    def restore_from_checkpoint(self, state):
        self.rng = np.random.RandomState(self.seed)
        self.given = 0
        if state["given"]:
            self.draw(state["given"])
            self.given = state["given"]


def block(width):
    return Sequential(
        [
            Convolution2D((3, 3), width, pad=True, activation=None),
            BatchNormalization(map_rank=1, normalization_time_constant=200),
            C.relu,
        ]
    )


def network(x):
    with C.default_options(init=C.he_normal(), bias=True):
        one = block(8)(x)
        two = block(16)(MaxPooling((2, 2), strides=(2, 2))(one))
        three = block(16)(MaxPooling((2, 2), strides=2, pad=False)(two))
        up = ConvolutionTranspose2D((2, 2), 16, strides=(2, 2), pad=False, output_shape=(8, 8), activation=C.relu)(
            three
        )
        up = block(16)(C.splice(up, two, axis=0))
        up = ConvolutionTranspose2D((2, 2), 8, strides=2, pad=False, output_shape=(SIDE, SIDE))(Dropout(0.1)(up))
        up = block(8)(C.splice(C.relu(up), one, axis=0))
        return Convolution2D((1, 1), 1, activation=C.sigmoid, name="mask")(up)


def overlap(found, mask):
    """Twice the common area by both areas."""
    common = C.reduce_sum(found * mask, axis=(0, 1, 2), keepdims=False)
    both = C.reduce_sum(found, axis=(0, 1, 2), keepdims=False) + C.reduce_sum(mask, axis=(0, 1, 2), keepdims=False)
    return 2 * (common + 1) / (both + 2)


picture, mask = C.input_variable((1, SIDE, SIDE), name="picture"), C.input_variable((1, SIDE, SIDE), name="mask")
found = network(picture)
assert found.shape == (1, SIDE, SIDE)
dice = overlap(found, mask)
kept = C.clip(found, 1e-6, 1 - 1e-6)
entropy = -C.reduce_mean(
    (1 + 2 * mask) * (mask * C.log(kept) + (1 - mask) * C.log(1 - kept)), axis=(0, 1, 2), keepdims=False
)
loss = 1 - dice + entropy
metric = 1 - overlap(C.greater(found, 0.5), mask)
learner = C.adam(
    found.parameters,
    C.learning_parameter_schedule([0.01, 0.003], minibatch_size=C.learners.IGNORE, epoch_size=8 * SWEEP),
    C.momentum_schedule(0.9),
    l1_regularization_weight=1e-6,
    gaussian_noise_injection_std_dev=1e-4,
    minibatch_size=C.learners.IGNORE,
)
printer = C.logging.ProgressPrinter(tag="masks", num_epochs=12)
trainer = C.Trainer(found, (loss, metric), [learner], [printer])
train, held_out = Discs(1, 12 * SWEEP), Discs(2, 80)
session = C.train.training_session(
    trainer=trainer,
    mb_source=train,
    mb_size=BATCH,
    model_inputs_to_streams={picture: train.picture, mask: train.mask},
    max_samples=12 * SWEEP,
    progress_frequency=SWEEP,
    checkpoint_config=C.train.CheckpointConfig("masks.model", frequency=4 * SWEEP, restore=True),
    cv_config=C.train.CrossValidationConfig(
        held_out,
        frequency=6 * SWEEP,
        minibatch_size=BATCH,
        model_inputs_to_streams={picture: held_out.picture, mask: held_out.mask},
    ),
)
session.train()
assert trainer.total_number_of_samples_seen == 12 * SWEEP
pictures, masks = Discs(3, 64).draw(64)
print("overlap error: {:.4f}".format(trainer.test_minibatch({picture: pictures, mask: masks})))

# the mask of one picture, and which pixels of it the first maps look at most
(one,) = found.eval({picture: pictures[:1]})
assert one.shape == (1, SIDE, SIDE)
sensitivity = dice.grad({picture: pictures[:4], mask: masks[:4]}, wrt=[picture]) if picture.needs_gradient else None
asking = C.input_variable((1, SIDE, SIDE), needs_gradient=True)
value = C.reduce_sum(found.clone("share", {picture: asking}))
slope = value.grad({asking: pictures[:4]}, wrt=[asking])
assert slope.shape == (4, 1, SIDE, SIDE) and np.abs(slope).max() > 0
