"""Says what is in a picture: convolutional features start a decoder of words; also greedy, step by step, by values."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import *

rng = np.random.RandomState(6)
C.cntk_py.set_fixed_random_seed(6)

WORDS = ["<", ">", "small", "large", "bright", "dark", "square", "cross", "left", "right", "a", "at", "the"]
ID = {word: at for at, word in enumerate(WORDS)}
SIDE, STATE = 12, 32


def scene():
    """A picture and its sentence."""
    size, light, shape, place = rng.randint(2, size=4)
    picture = 0.1 * rng.randn(1, SIDE, SIDE)
    half = 1 + size
    y, x = rng.randint(3, 9), (3, 8)[place]
    value = (1.0, 0.4)[light]
    if shape == 0:
        picture[0, y - half : y + half + 1, x - half : x + half + 1] += value
    else:
        picture[0, y - half : y + half + 1, x] += value
        picture[0, y, x - half : x + half + 1] += value
    words = [
        "a",
        ("small", "large")[size],
        ("bright", "dark")[light],
        ("square", "cross")[shape],
        "at",
        "the",
        ("left", "right")[place],
    ]
    return picture.astype(np.float32), [ID[word] for word in ["<"] + words + [">"]]


def scenes(count):
    pictures, sentences = zip(*[scene() for _ in range(count)])
    return np.stack(pictures), list(sentences)


def one_hot(sentences):
    return C.Value.one_hot(sentences, len(WORDS))


with default_options(activation=C.relu, init=C.he_normal(), pad=True):
    see = Sequential(
        [
            Convolution2D((3, 3), 8),
            MaxPooling((2, 2), strides=2),
            Convolution2D((3, 3), 16),
            MaxPooling((2, 2), strides=2),
            Dense(STATE, activation=C.tanh),
        ]
    )
embed = Embedding(12)
cell = GRU(STATE)
to_words = Dense(len(WORDS), name="words")

picture = C.input_variable((1, SIDE, SIDE), name="picture")
given = C.sequence.input_variable(len(WORDS), is_sparse=True, name="given")
wanted = C.sequence.input_variable(len(WORDS), is_sparse=True, name="wanted")
seen = see(picture)
states = RecurrenceFrom(cell)(seen, embed(given))
scores = to_words(states)
assert scores.shape == (len(WORDS),) and set(scores.arguments) == {picture, given}
loss, error = C.cross_entropy_with_softmax(scores, wanted), C.classification_error(scores, wanted)
learner = C.adam(
    loss.parameters,
    C.learning_parameter_schedule(0.003, minibatch_size=C.learners.IGNORE),
    C.momentum_schedule(0.9),
    minibatch_size=C.learners.IGNORE,
)
trainer = C.Trainer(scores, (loss, error), [learner], C.logging.ProgressPrinter(freq=150, tag="captions"))
for _ in range(600):
    pictures, sentences = scenes(32)
    trainer.train_minibatch(
        {
            picture: pictures,
            given: one_hot([one[:-1] for one in sentences]),
            wanted: one_hot([one[1:] for one in sentences]),
        }
    )
assert trainer.previous_minibatch_sample_count == 32 * 8

# word by word: one step of the cell, whose state goes out and in as a value
state, word = C.input_variable(STATE, name="state"), C.input_variable(len(WORDS), is_sparse=True, name="word")
stepped = cell(state, embed(word))
step = C.combine([stepped, C.hardmax(to_words(stepped), name="best")])
start = C.combine([seen])
pictures, sentences = scenes(100)
values = start.eval({picture: pictures}, as_numpy=False)
assert isinstance(values, C.Value) and values.shape == (100, STATE)
current, said = [0] * 100, [[] for _ in range(100)]
for _ in range(8):
    found = step.eval({state: values, word: one_hot(current)}, as_numpy=False)
    values = found[step.outputs[0]]
    current = found[step.outputs[1]].asarray().argmax(axis=1).tolist()
    for sentence, one in zip(said, current):
        sentence.append(one)
wrong = sum(one != expected[1:] for one, expected in zip(said, sentences))
print(" ".join(WORDS[one] for one in said[0]))
print("caption error: {:.4f}".format(wrong / 100.0))

# all words at once, unfolded from the picture alone
like = C.sequence.input_variable(1, name="like")


def generate(history):
    before, previous = history[0:STATE], history[STATE:]
    after = cell(before, embed(previous))
    return C.splice(after, C.hardmax(to_words(after)))


initial = C.splice(seen, C.constant(np.eye(len(WORDS), dtype=np.float32)[0]))
unfolded = UnfoldFrom(generate, until_predicate=lambda one: one[STATE + 1])(initial, like)
found = unfolded.eval({picture: pictures[:20], like: [np.zeros((8, 1), np.float32)] * 20})
again = [one[:, STATE:].argmax(axis=1).tolist() for one in found]
print("unfolded differently: {}".format(sum(one != other[: len(one)] for one, other in zip(again, said))))
