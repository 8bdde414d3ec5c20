"""Gradients with respect to an input and to the output of a layer, and what is computed of them; optimizers train.

Of a function of the input by K, in a program after saliency maps and class activation maps.
"""

import numpy as np
from keras import backend as K
from keras.layers import LSTM, Conv2D, Dense, GlobalAveragePooling2D
from keras.models import Sequential

random = np.random.RandomState(0)
model = Sequential([Dense(3, activation="tanh", input_shape=(4,)), Dense(2)])
loss = K.sum(model.output * K.variable(np.array([0, 1])))
(slope,) = K.gradients(loss, [model.input])
scaled = slope / (K.sqrt(K.mean(K.square(slope))) + 1e-5)
values = K.function([model.input], [loss, slope, scaled])
x = random.randn(5, 4).astype("f")
_, found, normed = values([x])
w, b, u, _ = model.get_weights()
expected = ((1 - np.tanh(x @ w + b) ** 2) * u[:, 1]) @ w.T
assert np.allclose(found, expected, atol=1e-5)
assert np.allclose(normed, expected / (np.sqrt(np.mean(expected**2)) + 1e-5), atol=1e-4)
(alone,) = K.function([model.input], [slope])([x[:2]])
assert np.allclose(alone, expected[:2], atol=1e-5)

hidden = model.layers[0].output
(inner,) = K.gradients(loss, hidden)
inner_values, outputs = K.function([model.input], [inner, hidden])([x])
assert np.allclose(inner_values, np.tile(u[:, 1], (5, 1)), atol=1e-5)
assert np.allclose(outputs, np.tanh(x @ w + b), atol=1e-5)

model.compile("adam", "mse")  # optimizers take gradients with respect to parameters
losses = model.fit(x, x[:, :2], epochs=5, verbose=0).history["loss"]
assert losses[-1] < losses[0]

pictures = random.randn(3, 8, 8, 1).astype("f")
net = Sequential([Conv2D(4, 3, padding="same", activation="relu", input_shape=(8, 8, 1)), GlobalAveragePooling2D(),
                  Dense(2)])  # fmt: skip
maps = net.layers[0].output
(weights,) = K.gradients(net.output * K.variable(np.array([1, 0])), maps)
(seen,) = K.function([net.input], [weights])([pictures])
assert np.allclose(seen, np.broadcast_to(net.get_weights()[2][:, 0] / 64, (3, 8, 8, 4)), atol=1e-6)

steps = random.randn(20, 6, 4).astype("f")  # the number of steps is not said
for layers in ([LSTM(5, input_shape=(None, 4))], [LSTM(5, return_sequences=True, input_shape=(None, 4)), LSTM(3)]):
    recurrent = Sequential([*layers, Dense(1)])
    recurrent.compile("adam", "mse")
    losses = recurrent.fit(steps, steps[:, 0, :1], epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0] and recurrent.predict(steps[:3, :4]).shape == (3, 1)
