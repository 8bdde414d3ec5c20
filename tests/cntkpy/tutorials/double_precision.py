"""A network in double precision: exact gradients, routing by agreement, a fit, and a minimum found by Newton."""

from __future__ import print_function

import cntk as C
import numpy as np

rng = np.random.RandomState(2)
C.cntk_py.set_fixed_random_seed(2)

with open("points.ctf", "w") as out:
    for _ in range(120):
        a, b = rng.rand(2)
        out.write("|x %.8f %.8f |y %.10f\n" % (a, b, 1 + 2 * a - 3 * b + 0.5 * a * b))
data = C.io.CTFDeserializer(
    "points.ctf", C.io.StreamDefs(x=C.io.StreamDef("x", shape=2), y=C.io.StreamDef("y", shape=1))
)
source = C.io.MinibatchSource(data, randomize=False, max_sweeps=C.io.INFINITELY_REPEAT)

with C.default_options(dtype=np.float64):
    x, y = C.input_variable(2, np.float64, name="x"), C.input_variable(1, np.float64, name="y")
    weights = C.parameter((3, 1), init=0.0, name="weights")
    bias = C.parameter((1,), init=0.0, name="bias")
assert weights.dtype == np.float64
product = C.slice(x, 0, 0, 1) * C.slice(x, 0, 1, 2)
predicted = C.times(C.splice(x, product), weights) + bias
loss = C.squared_error(predicted, y)
learner = C.momentum_sgd([weights, bias], C.learning_parameter_schedule(0.5), C.momentum_schedule(0.9), unit_gain=False)
trainer = C.Trainer(predicted, (loss, loss), [learner])
for _ in range(400):
    minibatch = source.next_minibatch(60)
    trainer.train_minibatch({x: minibatch[source.streams.x], y: minibatch[source.streams.y]})
found = np.append(weights.value.ravel(), bias.value)
print("coefficients", found)
print("coefficient error: {:.6f}".format(np.abs(found - [2, -3, 0.5, 1]).max()))

# gradients of a deeper function against differences, to eight digits
with C.default_options(dtype=np.float64, init=C.glorot_normal()):
    v = C.input_variable(4, np.float64, needs_gradient=True)
    deep = C.layers.Sequential(
        [C.layers.Dense(5, activation=C.tanh), C.layers.LayerNormalization(), C.layers.Dense(3, activation=C.softplus)]
    )(v)
total = C.reduce_log_sum_exp(deep * C.constant(np.array([1.0, -2.0, 0.5])), axis=0)
point = rng.randn(1, 4)
gradient = total.grad({v: point}, wrt=[v])
assert gradient.dtype == np.float64
worst = 0
for at in range(4):
    shift = np.zeros((1, 4))
    shift[0, at] = 1e-6
    slope = (total.eval({v: point + shift}) - total.eval({v: point - shift})).item() / 2e-6
    worst = max(worst, abs(slope - gradient[0, at]) / (abs(slope) + 1e-3))
print("gradient error: {:.10f}".format(worst))

# capsules: votes that agree are weighted more, in three rounds
CHILDREN, PARENTS, SIZE = 6, 3, 4
votes = C.input_variable((CHILDREN, PARENTS, SIZE), np.float64, name="votes")


def squash(s):
    norm = C.reduce_sum(C.square(s), axis=2)
    return s * (norm / (1 + norm)) / C.sqrt(norm + 1e-9)


logits = C.constant(np.zeros((CHILDREN, PARENTS, 1)))
for _ in range(3):
    shares = C.softmax(logits, axis=1)
    parents = squash(C.reduce_sum(shares * votes, axis=0))
    logits = logits + C.reduce_sum(votes * parents, axis=2)
assert parents.shape == (1, PARENTS, SIZE) and shares.shape == (CHILDREN, PARENTS, 1)
lengths = C.reshape(C.sqrt(C.reduce_sum(C.square(parents), axis=2)), (PARENTS,))
given = rng.randn(2, CHILDREN, PARENTS, SIZE)
given[:, :, 1] = given[:, :1, 1] * 1.5  # all children agree on the second parent
answer = lengths.eval({votes: given})


def by_hand(votes):
    logits = np.zeros((CHILDREN, PARENTS, 1))
    for _ in range(3):
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        s = (shares * votes).sum(0)
        norm = (s**2).sum(-1, keepdims=True)
        parents = s * norm / (1 + norm) / np.sqrt(norm + 1e-9)
        logits = logits + (votes * parents).sum(-1, keepdims=True)
    return np.sqrt((parents**2).sum(-1))


np.testing.assert_allclose(answer, [by_hand(one) for one in given], rtol=1e-10)
assert (answer.argmax(1) == 1).all()

# Newton's method on one number by two gradients
z = C.input_variable((), np.float64, needs_gradient=True)
f = C.exp(z) - 3 * z
at = 0.0
for _ in range(8):
    slope = f.grad({z: np.array([at])}, wrt=[z]).item()
    ahead = f.grad({z: np.array([at + 1e-5])}, wrt=[z]).item()
    at -= slope / ((ahead - slope) / 1e-5)
print("minimum error: {:.8f}".format(abs(at - np.log(3))))
