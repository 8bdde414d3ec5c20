"""Two towers that share layers: pairs with a contrastive loss, and queries with documents by their cosine."""

from __future__ import print_function

import cntk as C
import numpy as np
import scipy.sparse
from cntk.layers import Dense, Embedding, Fold, GRU, Sequential

rng = np.random.RandomState(9)
C.cntk_py.set_fixed_random_seed(9)

# pairs: near if they are of one kind
FEATURES, KINDS, BATCH = 12, 5, 40
centres = rng.randn(KINDS, FEATURES) * 2


def pairs(count=BATCH):
    left, right = rng.randint(KINDS, size=count), rng.randint(KINDS, size=count)
    right = np.where(rng.rand(count) < 0.5, left, right)
    points = [(centres[one] + rng.randn(count, FEATURES)).astype(np.float32) for one in (left, right)]
    return points[0], points[1], (left == right).astype(np.float32)[:, np.newaxis]


tower = Sequential([Dense(24, activation=C.relu, name="lower"), Dense(4, name="upper")])
a, b, same = C.input_variable(FEATURES), C.input_variable(FEATURES), C.input_variable(1)
left, right = tower(a), tower(b)
assert set(left.parameters) == set(right.parameters) and len(left.parameters) == 4
distance = C.sqrt(C.reduce_sum(C.square(left - right), axis=0) + 1e-6)
margin = C.constant(2.0)
loss = same * C.square(distance) + (1 - same) * C.square(C.element_max(margin - distance, 0))
near = C.less(distance, 1.0)
metric = C.not_equal(near, same)
learner = C.nesterov(
    loss.parameters,
    lr=C.learning_parameter_schedule_per_sample(0.002),
    momentum=C.momentum_schedule(0.9),
    unit_gain=False,
    l2_regularization_weight=1e-4,
)
trainer = C.Trainer(loss, (loss, metric), learner)
for _ in range(250):
    one, other, equal = pairs()
    trainer.train_minibatch({a: one, b: other, same: equal})
one, other, equal = pairs(400)
print("pair error: {:.4f}".format(trainer.test_minibatch({a: one, b: other, same: equal})))

# queries and documents as sequences of sparse words; other documents of the minibatch are wrong answers
WORDS, TOPICS, NEGATIVE = 40, 8, 3
topic_words = rng.permutation(WORDS).reshape(TOPICS, 5)


def texts(topics):
    """A CSR matrix for each text."""
    found = []
    for topic in topics:
        words = rng.choice(topic_words[topic], size=rng.randint(4, 6))
        found.append(
            scipy.sparse.csr_matrix((np.ones(len(words), np.float32), (range(len(words)), words)), (len(words), WORDS))
        )
    return found


query_axis, document_axis = C.Axis.new_unique_dynamic_axis("q"), C.Axis.new_unique_dynamic_axis("d")
query = C.sequence.input_variable(WORDS, is_sparse=True, sequence_axis=query_axis, name="query")
document = C.sequence.input_variable(WORDS, is_sparse=True, sequence_axis=document_axis, name="document")
embed = Embedding(12, name="embed")
with C.layers.default_options(enable_self_stabilization=False):
    of_query = Sequential([embed, Fold(GRU(16)), Dense(8, activation=C.tanh)])(query)
    of_document = Sequential([embed, Fold(GRU(16), go_backwards=True), Dense(8, activation=C.tanh)])(document)
cosines = C.cosine_distance_with_negative_samples(of_query, of_document, shift=1, num_negative_samples=NEGATIVE)
assert cosines.shape == (NEGATIVE + 1,)
right_one = C.constant(np.eye(NEGATIVE + 1, dtype=np.float32)[0])
criterion = C.cross_entropy_with_softmax(5 * cosines, right_one), C.classification_error(cosines, right_one)
model = C.combine([of_query, of_document], name="both")
assert sum(one.name == "E" for one in model.parameters) == 1
learner = C.adagrad(model.parameters, C.learning_rate_schedule(0.1, C.UnitType.minibatch), need_ave_multiplier=True)
trainer = C.Trainer(model, criterion, [learner], C.logging.ProgressPrinter(freq=40, tag="search"))
for _ in range(160):
    topics = rng.permutation(TOPICS)
    trainer.train_minibatch({query: texts(topics), document: texts(topics)})
errors = []
for _ in range(10):
    topics = rng.permutation(TOPICS)
    errors.append(trainer.test_minibatch({query: texts(topics), document: texts(topics)}))
print("search error: {:.4f}".format(np.mean(errors)))
answers = model.eval({query: texts(range(TOPICS)), document: texts(range(TOPICS))})
vectors = [answers[output] for output in model.outputs]
assert all(one.shape == (TOPICS, 8) for one in vectors)
cosine = C.cosine_distance(C.input_variable(8), C.input_variable(8))
values = cosine.eval(dict(zip(cosine.arguments, vectors)))
expected = (vectors[0] * vectors[1]).sum(1) / np.linalg.norm(vectors[0], axis=1) / np.linalg.norm(vectors[1], axis=1)
np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-3, atol=1e-5)
