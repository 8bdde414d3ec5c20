"""Slices count the batch: x[:, 1], the output of a model, states of K.rnn, unrolled layers are those of formulas."""

import numpy as np
from keras import backend as K
from keras.layers import GRU, Dense, LocallyConnected1D
from keras.models import Sequential

random = np.random.RandomState(0)
steps = random.rand(4, 3, 2).astype("f")
x = K.placeholder((None, 3, 2))
for part, expected in (
    (x[:, 1], steps[:, 1:2]), (x[:, 1:], steps[:, 1:]), (x[:, :, 1], steps[:, :, 1:]), (x[:, -1], steps[:, 2:])
):  # fmt: skip
    assert np.array_equal(np.ravel(K.function([x], [part])([steps])[0]), np.ravel(expected))

model = Sequential([Dense(5, input_shape=(2,))])
unit = K.function([model.input], [model.output[:, 1]])([steps[:, 0]])[0]
assert np.allclose(np.ravel(unit), model.predict(steps[:, 0])[:, 1], atol=1e-6)


def summed(step, states):
    return step + states[0], [step + states[0]]


zero = K.squeeze(K.zeros_like(x[:, 0]), 1)
for options in ({"input_length": 3}, {"unroll": True, "input_length": 3}):
    last, all_steps, _ = K.rnn(summed, x, [zero], **options)
    values = K.function([x], [last, all_steps])([steps])
    assert np.allclose(values[0], steps.sum(1), atol=1e-5) and np.allclose(values[1], steps.cumsum(1), atol=1e-5)

unrolled, rolled = (Sequential([GRU(2, unroll=unroll, input_shape=(3, 2))]) for unroll in (True, False))
unrolled.set_weights(rolled.get_weights())
assert np.allclose(unrolled.predict(steps), rolled.predict(steps), atol=1e-5)

local = Sequential([LocallyConnected1D(2, 2, input_shape=(3, 2))])
kernel, bias = local.get_weights()
windows = np.stack([steps[:, start : start + 2].reshape(4, 4) @ kernel[start] for start in range(2)], 1) + bias
assert np.allclose(local.predict(steps), windows, atol=1e-5)
