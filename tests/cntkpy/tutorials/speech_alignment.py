"""Recognises sequences of sounds without knowing when each of them is said: CTC, edit distance, greedy decoding."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import LSTM, Dense, Recurrence, Sequential

rng = np.random.RandomState(2)
C.cntk_py.set_fixed_random_seed(2)

SOUNDS, BANDS, BATCH = 4, 6, 16
KINDS = SOUNDS + 1  # the last one is the blank
BLANK = SOUNDS
spectra = rng.randn(SOUNDS, BANDS) * 2


def utterance():
    """Frames, each sound over some of them, and the labels as rows: 2 where one begins, as long as the frames."""
    sounds = rng.randint(SOUNDS, size=rng.randint(2, 4))
    lengths = rng.randint(3, 5, size=len(sounds))
    while lengths.sum() < 12:
        lengths[rng.randint(len(lengths))] += 1
    frames = np.repeat(spectra[sounds], lengths, axis=0) + 0.5 * rng.randn(lengths.sum(), BANDS)
    labels = np.zeros((len(frames), KINDS), np.float32)
    begins = np.cumsum(lengths) - lengths
    labels[np.arange(len(frames)), np.repeat(sounds, lengths)] = 1
    labels[begins] *= 2
    return frames[:12].astype(np.float32), labels[:12], sounds


def utterances(count):
    frames, labels, sounds = zip(*[utterance() for _ in range(count)])
    return list(frames), list(labels), sounds


features = C.sequence.input_variable(BANDS, name="features")
labels = C.sequence.input_variable(KINDS, name="labels")
network = Sequential([Recurrence(LSTM(16)), Dense(KINDS)])(features)
graph = C.labels_to_graph(labels)
criterion = C.forward_backward(graph, network, blankTokenId=BLANK, delayConstraint=3)
errors = C.edit_distance_error(network, labels, squashInputs=True, tokensToIgnore=[BLANK])

rates = C.learning_parameter_schedule_per_sample([(60, 0.002), (1, 0.001)], epoch_size=BATCH * 12)
learner = C.fsadagrad(
    network.parameters,
    lr=rates,
    momentum=C.momentum_schedule_per_sample(0.99),
    gradient_clipping_threshold_per_sample=5,
    gradient_clipping_with_truncation=True,
)
printer = C.logging.ProgressPrinter(freq=40, tag="ctc", metric_is_pct=False)
trainer = C.Trainer(network, (criterion, errors), [learner], [printer])
for _ in range(160):
    frames, truth, _ = utterances(BATCH)
    trainer.train_minibatch({features: frames, labels: truth})
frames, truth, sounds = utterances(60)
print("edits: {:.4f}".format(trainer.test_minibatch({features: frames, labels: truth})))

# the best label of each frame, without repetitions and blanks
wrong = 0
for scores, spoken in zip(network.eval({features: frames}), sounds):
    best = scores.argmax(axis=1)
    kept = [int(one) for at, one in enumerate(best) if one != BLANK and (at == 0 or one != best[at - 1])]
    squashed = [int(one) for at, one in enumerate(spoken) if at == 0 or one != spoken[at - 1]]
    wrong += kept != squashed
print("utterance error: {:.4f}".format(wrong / len(sounds)))
