"""Vectors of words from their neighbours, with noise contrastive estimation; ratings by two embeddings and biases."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import Embedding

rng = np.random.RandomState(3)
C.cntk_py.set_fixed_random_seed(3)

# words of a topic stand together
TOPICS, EACH, SIZE, BATCH = 5, 8, 10, 64
WORDS = TOPICS * EACH
topics = np.arange(WORDS) // EACH


def pairs(count=BATCH):
    first = rng.randint(WORDS, size=count)
    second = topics[first] * EACH + rng.randint(EACH, size=count)
    return C.Value.one_hot(first.tolist(), WORDS), C.Value.one_hot(second.tolist(), WORDS)


word, neighbour = C.input_variable(WORDS, is_sparse=True), C.input_variable(WORDS, is_sparse=True)
vectors = Embedding(SIZE, init=C.uniform(0.5), name="vectors")(word)
weights = C.parameter((WORDS, SIZE), init=C.glorot_uniform(), name="output")
biases = C.parameter((WORDS, 1), init=0.0)
loss = C.nce_loss(weights, biases, vectors, neighbour, np.ones(WORDS, np.float32) / WORDS, num_samples=12, seed=5)
learner = C.adagrad(loss.parameters, C.learning_parameter_schedule_per_sample(0.3), need_ave_multiplier=False)
trainer = C.Trainer(vectors, (loss, None), [learner], C.logging.ProgressPrinter(100, tag="words"))
for _ in range(600):
    given, wanted = pairs()
    trainer.train_minibatch({word: given, neighbour: wanted})
table = vectors.vectors.E.value if vectors.name == "" else vectors.E.value
unit = table / np.linalg.norm(table, axis=1, keepdims=True)
near = unit.dot(unit.T) - 2 * np.eye(WORDS)
print("neighbour error: {:.4f}".format(np.mean(topics[near.argmax(1)] != topics)))
scores = C.times_transpose(weights, vectors) + biases
best = scores.eval({word: C.Value.one_hot([0, 39], WORDS)})
assert best.shape == (2, WORDS, 1)

# who likes what: factors of users and films
USERS, FILMS, FACTORS = 30, 20, 3
true = rng.randn(USERS, FACTORS).dot(rng.randn(FACTORS, FILMS)) / 2 + rng.randn(USERS, 1) + rng.randn(1, FILMS) + 3
known = rng.rand(USERS, FILMS) < 0.7
users, films = np.nonzero(known)
user = C.input_variable((1,), name="user")
film = C.input_variable((1,), name="film")
rating = C.input_variable((1,), name="rating")
factors = [C.parameter((count, FACTORS), init=C.normal(0.3), name=name) for count, name in ((USERS, "u"), (FILMS, "f"))]
offsets = [C.parameter((count, 1), init=0, name=name) for count, name in ((USERS, "bu"), (FILMS, "bf"))]
mean = C.constant(float(true[known].mean()))
of_user, of_film = (C.gather(table, index) for table, index in zip(factors, (user, film)))
plain = sum(C.gather(table, index) for table, index in zip(offsets, (user, film)))
predicted = C.reshape(C.reduce_sum(of_user * of_film, axis=-1) + plain, (1,)) + mean
assert predicted.shape == (1,)
loss = C.squared_error(predicted, rating)
learner = C.adam(
    loss.parameters,
    C.learning_parameter_schedule(0.03, minibatch_size=C.learners.IGNORE),
    C.momentum_schedule(0.9),
    l2_regularization_weight=0.002,
    minibatch_size=C.learners.IGNORE,
)
trainer = C.Trainer(predicted, (loss, loss), [learner])
for _ in range(60):
    order = rng.permutation(len(users))
    for at in range(0, len(order), 64):
        some = order[at : at + 64]
        values = (array[some].reshape(-1, 1).astype(np.float32) for array in (users, films, true[users, films]))
        trainer.train_minibatch(dict(zip((user, film, rating), values)))
users, films = np.nonzero(~known)
values = [array.reshape(-1, 1).astype(np.float32) for array in (users, films, true[users, films])]
mse = trainer.test_minibatch(dict(zip((user, film, rating), values)))
print("unexplained: {:.4f}".format(mse / true[~known].var()))
