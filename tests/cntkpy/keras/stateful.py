"""Recurrent layers that keep their states from one minibatch to the next: values, training, and forgetting."""

import numpy as np
from keras.layers import GRU, LSTM, Dense, SimpleRNN
from keras.models import Sequential

random = np.random.RandomState(0)
data = random.rand(2, 6, 2).astype("float32")

plain = Sequential([SimpleRNN(4, stateful=True, return_sequences=True, batch_input_shape=(2, 3, 2))])
w, u, b = plain.get_weights()
state, expected = np.zeros((2, 4)), []
for step in range(6):
    state = np.tanh(data[:, step] @ w + state @ u + b)
    expected.append(state)
halves = [plain.predict(data[:, :3], batch_size=2), plain.predict(data[:, 3:], batch_size=2)]
np.testing.assert_allclose(np.concatenate(halves, 1), np.stack(expected, 1), atol=1e-5)
plain.reset_states()
np.testing.assert_allclose(plain.predict(data[:, :3], batch_size=2), halves[0], atol=1e-6)

both = Sequential(
    [GRU(4, stateful=True, return_sequences=True, batch_input_shape=(2, 3, 2)), LSTM(3, stateful=True), Dense(1)]
)
both.compile("sgd", "mse")
both.fit(random.rand(4, 3, 2), random.rand(4, 1), batch_size=2, epochs=2, shuffle=False, verbose=0)
first, second = (both.predict(data[:, :3], batch_size=2) for _ in range(2))
assert np.abs(first - second).max() > 1e-6
