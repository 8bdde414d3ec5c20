"""A model of characters, trained on pieces of one long text; it writes on with the state that it has kept."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import LSTM, Dense, For, Recurrence, Sequential, Stabilizer

rng = np.random.RandomState(1)
C.cntk_py.set_fixed_random_seed(1)

# brackets that are open when a piece ends are closed in the next one
OPEN, CLOSED = "([{<", ")]}>"
letters = sorted(set(OPEN + CLOSED + "."))
ID = {letter: at for at, letter in enumerate(letters)}


def text(words):
    found = []
    for _ in range(words):
        opened = [rng.randint(4) for _ in range(rng.randint(1, 4))]
        found += [OPEN[one] for one in opened] + [CLOSED[one] for one in reversed(opened)] + ["."]
    return "".join(found)


corpus = text(1500)
PIECE, SIZE = 20, len(letters)
one_hot = np.eye(SIZE, dtype=np.float32)


def encoded(some):
    return one_hot[[ID[letter] for letter in some]]


given = C.sequence.input_variable(SIZE, name="given")
wanted = C.sequence.input_variable(SIZE, name="wanted")
model = Sequential(
    [
        For(range(1), lambda: Sequential([Stabilizer(), Recurrence(LSTM(40), go_backwards=False)])),
        Stabilizer(),
        Dense(SIZE),
    ]
)(given)
criterion = C.cross_entropy_with_softmax(model, wanted), C.classification_error(model, wanted)
learner = C.momentum_sgd(
    model.parameters,
    C.learning_parameter_schedule_per_sample([(400, 0.02), (200, 0.01), (1, 0.005)], epoch_size=20),
    C.momentum_as_time_constant_schedule(200),
    gradient_clipping_threshold_per_sample=5.0,
    gradient_clipping_with_truncation=True,
)
trainer = C.Trainer(model, criterion, [learner], C.logging.ProgressPrinter(freq=150, tag="letters"))

lanes = 8  # texts that are read side by side, each with a state of its own
length = (len(corpus) - 1) // lanes // PIECE * PIECE
for sweep in range(6):
    for at in range(0, length, PIECE):
        begins = [lane * length + at for lane in range(lanes)]
        pieces = [encoded(corpus[begin : begin + PIECE]) for begin in begins]
        answers = [encoded(corpus[begin + 1 : begin + PIECE + 1]) for begin in begins]
        trainer.train_minibatch(({given: pieces, wanted: answers}, [at == 0] * lanes))
trainer.summarize_training_progress()
print("letter error: {:.4f}".format(trainer.previous_minibatch_evaluation_average))

# written one letter at a time: the first call begins, the others go on
best = C.softmax(model)


def write(start, count):
    written = start
    probabilities = best.eval(({given: [encoded(start)]}, [True]))[0][-1]
    for _ in range(count):
        written += letters[int(probabilities.argmax())] if written[-1] != "." else OPEN[rng.randint(4)]
        probabilities = best.eval(({given: [encoded(written[-1])]}, [False]))[0][-1]
    return written


written = write("([", 60)
print(written)
stack, wrong = [], 0
for letter in written:
    if letter in OPEN:
        stack.append(letter)
    elif letter in CLOSED:
        wrong += not stack or OPEN.index(stack.pop()) != CLOSED.index(letter)
print("wrong brackets: {}".format(wrong))

# the same as with everything at once
whole = best.eval({given: [encoded(written)]})[0]
first = best.eval(({given: [encoded(written[:30])]}, [True]))[0]
second = best.eval(({given: [encoded(written[30:])]}, [False]))[0]
np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-3, atol=1e-5)
