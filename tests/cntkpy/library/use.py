import math

import cntk as C
import kitx as Cx
import numpy as np


def near(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


x = C.input_variable(3)
data = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
near(Cx.ops.cumsum(x).eval({x: data}), data.cumsum(1))
assert Cx.ops.cumsum(x, name="c").name == "c"
a, b = C.input_variable((2, 3, 4)), C.input_variable((2, 4, 5))
da, db = np.random.RandomState(1).rand(1, 2, 3, 4).astype("f"), np.random.RandomState(2).rand(1, 2, 4, 5).astype("f")
near(Cx.ops.batchmatmul(a, b).eval({a: da, b: db}), da @ db)
near(Cx.ops.swish(x).eval({x: data}), data / (1 + np.exp(-data)))
p = C.input_variable((1, 2, 2))
near(
    Cx.ops.upsample(p).eval({p: np.arange(4).reshape(1, 1, 2, 2).astype("f")})[0, 0],
    np.arange(4).reshape(2, 2).repeat(2, 0).repeat(2, 1),
)
near(Cx.ops.maxed(x).eval({x: data}).ravel(), [3, 6])
q = C.input_variable((1, 4, 4))
near(
    Cx.ops.centre_crop(q, p).eval(
        {
            q: np.arange(16).reshape(1, 1, 4, 4).astype("f"),
            **({p: np.zeros((1, 1, 2, 2), "f")} if p in Cx.ops.centre_crop(q, p).arguments else {}),
        }
    )[0, 0],
    [[5, 6], [9, 10]],
)
near(Cx.ops.element_average(x, x, x).eval({x: data}), data)
s = C.sequence.input_variable(2)
seqs = [np.array([[1, 2], [3, 4], [5, 6]], "f"), np.array([[7, 8]], "f")]
near(Cx.ops.sequence.position(s).eval({s: seqs})[0].ravel(), [0, 1, 2])
near(Cx.ops.sequence.window(s, 2).eval({s: seqs})[0], [[0, 0, 1, 2], [1, 2, 3, 4], [3, 4, 5, 6]])
near(Cx.ops.sequence.length(s).eval({s: seqs}).ravel(), [3, 1])
near(Cx.ops.sequence.reduce_mean(s).eval({s: seqs}), [[3, 4], [7, 8]])
near(Cx.ops.scalar(C.input_variable(1)).eval([[2.0]]), [[2]])
m = Cx.layers.QuasiRNN(4)(s)
assert m.eval({s: seqs})[0].shape == (3, 4), m.shape
r = Cx.layers.Recurrence(Cx.layers.IndRNNStep(4, name="ind"), name="rec")(s)
assert r.shape == (4,) and r.name == "rec"
r.eval({s: seqs})
assert {q.name for q in r.parameters} == {"b", "W", "u"}, r.parameters
l = Cx.layers.Recurrence(Cx.layers.WeightMaskedLSTM(3))(s)
assert l.eval({s: seqs})[0].shape == (3, 3)
e = Cx.layers.LayerNormDense(5)(x)
assert e.eval({x: data}).shape == (2, 5)
assert sorted(q.name for q in e.parameters) == ["W", "bias", "scale"]
with C.default_options(activation=C.relu):
    near((Cx.layers.LayerNormDense(5)(x).eval({x: data}) >= 0), True)
pe = Cx.layers.PositionalEmbedding(5, 3, name="pos")(s)
near(pe.eval({s: seqs})[0], pe.parameters[0].value[:3])
at = Cx.layers.ScaledDotProductAttention()(s, s, s)
v = at.eval({s: seqs})
S = seqs[0] @ seqs[0].T / math.sqrt(2)
W = np.exp(S - S.max(1, keepdims=True))
W /= W.sum(1, keepdims=True)
near(v[0], W @ seqs[0])
near(v[1], seqs[1])
py = Cx.layers.PyramidalBiRecurrence(2, 3, name="py")(s)
assert py.eval({s: seqs})[1].shape == (1, 6)
se = Cx.layers.SqueezeExcite()(C.input_variable((4, 3, 3)))
assert se.shape == (4, 3, 3)
se.eval([np.ones((4, 3, 3), "f")])
assert Cx.layers.is_overridden(C.default_override_or(1)) and not Cx.layers.is_overridden(1)
y = C.input_variable(3)
t = np.eye(3, dtype="f")[[0, 2]]
near(
    Cx.losses.focal_loss(x, y).eval({x: data, y: t}).ravel(),
    [-((1 - 0.09003057) ** 2) * math.log(0.09003057), -((1 - 0.66524096) ** 2) * math.log(0.66524096)],
)
near(Cx.losses.generalised_robust_barron_loss(x, y, a=1.5).eval({x: data, y: data}).ravel(), [0, 0])
f1 = Cx.metrics.f1_score(x, y).eval({x: t, y: t})
near(f1.ravel(), [1, 1])
h = C.layers.Dense(4)(x)
w = C.input_variable(6, is_sparse=True)
ce = Cx.losses.cross_entropy_with_sampled_softmax(h, w, 3, True, np.ones(6, "f") / 6)
assert len(ce.outputs) == 2
labels = C.Value.one_hot([0, 5], 6)
learner = Cx.learners.SignSGD(ce.parameters, C.learning_parameter_schedule(0.1))
tr = C.Trainer(ce.outputs[0], ce.outputs[1], [learner])
tr.train_minibatch({x: data, w: labels})
print(tr.previous_minibatch_loss_average)
for make in (
    lambda ps: Cx.learners.SignSGD(ps, C.learning_parameter_schedule(0.1)),
    lambda ps: Cx.learners.Momentum(ps, 0.05),
    lambda ps: Cx.learners.adam_like(ps, 0.5),
):
    z = C.layers.Dense(3)(x)
    loss = C.cross_entropy_with_softmax(z, y)
    tr = C.Trainer(z, (loss, C.classification_error(z, y)), [make(z.parameters)])
    losses = []
    for _ in range(20):
        tr.train_minibatch({x: data, y: t})
        losses.append(tr.previous_minibatch_loss_average)
    print(losses[0], losses[-1])
    assert losses[-1] < losses[0]
z = C.layers.Dense(3)(x)
tr = C.Trainer(z, C.squared_error(z, y), [C.sgd(z.parameters, C.learning_parameter_schedule(0.1))])
c = Cx.learners.CyclicalLearningRate(tr, 0.0, 0.1, 2)
near([c.batch_step() for _ in range(4)], [0.05, 0.1, 0.05, 0.0])
assert tr.parameter_learners[0].learning_rate() == 0
net = C.relu(C.layers.Dense(2, C.relu)(x))
assert Cx.misc.count(net, "ReLU") == 2, Cx.misc.count(net, "ReLU")
other = Cx.misc.converter(net, "ReLU", C.sigmoid)
assert Cx.misc.count(other, "ReLU") == 1, Cx.misc.count(other, "ReLU")
assert set(Cx.misc.parameters_by_name(net)) == {"W", "b"}
u = C.user_function(Cx.misc.Argmax(x))
near(u.eval({x: data}).ravel(), [2, 2])
import os
import tempfile

d = tempfile.mkdtemp()
m.save(os.path.join(d, "m"))
near(C.load_model(os.path.join(d, "m")).eval(seqs)[0], m.eval({s: seqs})[0])
print("done")
