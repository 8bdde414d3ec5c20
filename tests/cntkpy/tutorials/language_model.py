"""A language model of words with sampled softmax: truncated sequences from a list, shared embeddings, perplexity."""

from __future__ import print_function

import math
import os

import cntk as C
import numpy as np
from cntk import sequence
from cntk.layers import LSTM, Dropout, Embedding, For, Recurrence, Sequential, Stabilizer
from cntk.learners import momentum_as_time_constant_schedule, momentum_sgd
from cntk.logging import ProgressPrinter
from cntk.train import Trainer

rng = np.random.RandomState(4)
C.cntk_py.set_fixed_random_seed(4)

WORDS, HIDDEN, SAMPLES, STEPS, BATCH = 60, 24, 20, 12, 16

# each word has a few that may follow it, the first of them most of the time
followers = np.stack([rng.permutation(WORDS)[:3] for _ in range(WORDS)])


def text(length):
    found = [0]
    while len(found) < length:
        found.append(followers[found[-1], rng.choice(3, p=[0.8, 0.15, 0.05])])
    return np.array(found)


corpus, held_out = text(8000), text(1500)
counts = np.bincount(corpus, minlength=WORDS).astype(np.float32)
frequency = ((counts + 1) / (counts + 1).sum()) ** 0.75
entropy = -(0.8 * math.log(0.8) + 0.15 * math.log(0.15) + 0.05 * math.log(0.05))


def sampled_cross_entropy(hidden, weights, bias, target):
    """The criterion over some words that are drawn, corrected by how often they are, and the right one."""
    draw = C.constant(frequency / frequency.sum())
    drawn = C.random_sample(draw, SAMPLES, True, seed=7)
    expected = C.random_sample_inclusion_frequency(draw, SAMPLES, True, seed=7)
    log_prior = C.log(expected)
    assert drawn.shape == (SAMPLES, WORDS) and log_prior.shape == (1, WORDS)
    scores = C.times_transpose(C.times(drawn, weights), hidden) + C.times(drawn, bias)
    scores = scores - C.times_transpose(drawn, log_prior)
    right = C.times_transpose(C.times(target, weights), hidden) + C.times(target, bias)
    right = right - C.times_transpose(target, log_prior)
    assert scores.shape == (SAMPLES, 1) and right.shape == (1,), (scores.shape, right.shape)
    together = C.log_add_exp(right, C.reshape(C.reduce_log_sum_exp(scores, axis=0), (1,)))
    return C.minus(together, right, name="sampled")


def network(layers):
    with C.layers.default_options(enable_self_stabilization=True):
        return Sequential(
            [
                Embedding(HIDDEN, name="embed"),
                Stabilizer(),
                For(range(layers), lambda: Sequential([Recurrence(LSTM(HIDDEN)), Dropout(0.0)])),
                Stabilizer(),
            ]
        )


word = sequence.input_variable(WORDS, is_sparse=True, name="word")
following = sequence.input_variable(WORDS, is_sparse=True, name="following")
hidden = network(1)(word)
weights = C.parameter((WORDS, HIDDEN), init=C.glorot_uniform(), name="output_weights")
bias = C.parameter((WORDS, 1), init=0, name="output_bias")
loss = sampled_cross_entropy(hidden, weights, bias, following)
scores = C.reshape(C.times_transpose(weights, hidden), (WORDS,)) + C.reshape(bias, (WORDS,))
full_loss = C.cross_entropy_with_softmax(scores, following)
error = C.classification_error(scores, following)
assert loss.shape == (1,) and scores.shape == (WORDS,), (loss.shape, scores.shape)


def minibatches(words):
    """BATCH pieces of STEPS words at a time, with the word that follows each."""
    pieces = (len(words) - 1) // STEPS
    for at in range(0, pieces - BATCH + 1, BATCH):
        starts = [one * STEPS for one in range(at, at + BATCH)]
        given = [words[start : start + STEPS].tolist() for start in starts]
        wanted = [words[start + 1 : start + STEPS + 1].tolist() for start in starts]
        yield C.Value.one_hot(given, WORDS), C.Value.one_hot(wanted, WORDS)


def perplexity(words):
    """By an evaluator of the full softmax."""
    evaluator = C.eval.Evaluator(full_loss)
    total = [evaluator.test_minibatch({word: given, following: wanted}) for given, wanted in minibatches(words)]
    return math.exp(np.mean(total))


learner = momentum_sgd(
    loss.parameters,
    lr=C.learning_parameter_schedule_per_sample([0.02] * 3 + [0.01]),
    momentum=momentum_as_time_constant_schedule(500),
    gradient_clipping_threshold_per_sample=5.0,
    gradient_clipping_with_truncation=True,
    unit_gain=True,
)
printer = ProgressPrinter(tag="sampled", num_epochs=6)
trainer = Trainer(scores, (loss, error), learner, printer)
print("perplexity before: {:.2f}".format(perplexity(held_out)))
for epoch in range(6):
    for given, wanted in minibatches(corpus):
        trainer.train_minibatch({word: given, following: wanted})
    trainer.summarize_training_progress()
    print("perplexity: {:.2f}".format(perplexity(held_out)))
best = math.exp(entropy)
print("perplexity ratio: {:.3f}".format(perplexity(held_out) / best))

# some words of it, by a function that gives the next word of any beginning
most_likely = C.sequence.last(C.hardmax(scores))
written = [0]
for _ in range(10):
    found = most_likely.eval({word: C.Value.one_hot([written], WORDS)})
    written.append(int(np.argmax(found)))
right = sum(b in followers[a] for a, b in zip(written, written[1:]))
print("unlikely words: {}".format(10 - right))
scores.save("words.model")
assert os.path.getsize("words.model") > 0
# similar words by the embedding
table = scores.embed.E.value
assert table.shape == (WORDS, HIDDEN)
