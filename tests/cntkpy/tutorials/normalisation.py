"""Batch normalisation in training and after it, defaults of layers, and what of both is kept in files and copies."""

from __future__ import print_function

import warnings

import cntk as C
import numpy as np
from cntk.layers import *

rng = np.random.RandomState(10)
C.cntk_py.set_fixed_random_seed(10)

# the running statistics, by hand
CONSTANT, BATCH = 100, 20
x = C.input_variable(3, name="x")
y = C.input_variable(1, name="y")
normal = BatchNormalization(normalization_time_constant=CONSTANT, name="bn")(x)
kinds = {one.name: one for one in normal.parameters}
assert set(kinds) == {"scale", "bias"} and all(one.shape == (3,) for one in kinds.values())
assert {"aggregate_mean", "aggregate_variance"} <= {one.name for one in normal.constants}
z = Dense(1, bias=False, init=C.initializer.uniform(1))(normal)
loss = C.squared_error(z, y)
trainer = C.Trainer(z, (loss, loss), C.sgd(z.parameters, C.learning_parameter_schedule_per_sample(0.0)))
mean, variance, share = np.zeros(3), np.zeros(3), 1.0
for step in range(30):
    batch = (rng.randn(BATCH, 3) * [1, 2, 3] + [5, 0, -5]).astype(np.float32)
    trainer.train_minibatch({x: batch, y: np.zeros((BATCH, 1), np.float32)})
    mean = share * batch.mean(0) + (1 - share) * mean
    variance = share * batch.var(0, ddof=1) + (1 - share) * variance
    share = 1 - np.exp(-BATCH / CONSTANT)
np.testing.assert_allclose(normal.aggregate_mean.value, mean, rtol=1e-4)
np.testing.assert_allclose(normal.bn.aggregate_variance.value, variance, rtol=1e-4)
found = normal.eval({x: batch})
expected = (batch - mean) / np.sqrt(variance + 1e-5)
np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
error = np.abs(found - expected).max()

# in training the minibatch itself counts
with_training = C.combine([normal]).forward({x: batch}, [normal.output], keep_for_backward=[normal.output])[1]
np.testing.assert_allclose(with_training[normal.output].mean(0), 0, atol=1e-4)
np.testing.assert_allclose(with_training[normal.output].std(0), 1, rtol=1e-3)

# a file and a frozen copy have the statistics, too
before = normal.eval({x: batch})
normal.save("normal.model")
np.testing.assert_allclose(C.load_model("normal.model").eval(batch), before, rtol=1e-5)
frozen = normal.clone(C.CloneMethod.freeze)
assert len(frozen.parameters) == 0
np.testing.assert_allclose(frozen.eval(batch), before, rtol=1e-5)

# pictures: one pair of numbers for each channel
picture = C.input_variable((4, 5, 6))
spatial = Sequential([BatchNormalization(map_rank=1), C.relu])(picture)
assert sorted(one.shape for one in spatial.parameters) == [(4,), (4,)]
raw = C.batch_normalization(
    picture,
    scale=C.parameter((4,), init=2.0),
    bias=C.parameter((4,), init=1.0),
    running_mean=C.constant(3.0, (4,)),
    running_inv_std=C.constant(4.0, (4,)),
    running_count=C.constant(0),
    spatial=True,
    epsilon=0,
)
pictures = rng.randn(2, 4, 5, 6).astype(np.float32)
np.testing.assert_allclose(raw.eval({picture: pictures}), 2 * (pictures - 3) / 2 + 1, rtol=1e-3, atol=1e-4)

# defaults inside of defaults, and those of some layers only
with C.layers.default_options(init=C.normal(0.5), activation=C.relu, bias=False):
    outer = Dense(50)
    with C.default_options(activation=C.tanh, init_bias=3.0, bias=True):
        inner = Dense(50)
    with C.layers.default_options_for(Dense, activation=None):
        linear = Dense(50)
        image = Convolution2D((3, 3), 2)
v = C.input_variable(40)
a, b, c, d = outer(v), inner(v), linear(v), image(picture)
assert [len(one.parameters) for one in (a, b, c, d)] == [1, 2, 1, 1]
assert (b.parameters[0].value == 3.0).all() or (b.parameters[1].value == 3.0).all()
assert abs(outer.W.value.std() - 0.5) < 0.05
data = rng.randn(9, 40).astype(np.float32)
assert a.eval(data).min() >= 0 and c.eval(data).min() < 0 and np.abs(b.eval(data)).max() <= 1
assert d.eval(pictures).min() >= 0
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    C.layers.default_options(activations=C.relu).__enter__()
print(caught[0].message)

# other layers that normalise
layer = LayerNormalization(initial_scale=2, initial_bias=1)(v)
normed = layer.eval(data)
np.testing.assert_allclose(normed.mean(1), 1, atol=1e-4)
np.testing.assert_allclose(normed.std(1), 2, rtol=1e-2)
stable = Stabilizer(steepness=4)(v)
np.testing.assert_allclose(stable.eval(data), data, rtol=1e-3)
assert len(stable.parameters) == 1
mvn = C.mean_variance_normalization(picture, use_stats_across_channels=False)
np.testing.assert_allclose(mvn.eval(pictures).mean((2, 3)), 0, atol=1e-4)
lrn = C.local_response_normalization(picture, 2, 1.0, 1e-4, 0.75)
assert lrn.eval(pictures).shape == pictures.shape
dropped = Dropout(0.5)(v)
np.testing.assert_allclose(dropped.eval(data), data)
kept = dropped.forward({v: data}, [dropped.output], keep_for_backward=[dropped.output])[1][dropped.output]
assert set(np.round(np.unique(kept / data), 3)) <= {0.0, 2.0}
print("statistics error: {:.4f}".format(error))
