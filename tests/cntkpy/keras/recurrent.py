"""An LSTM along steps, and an embedding with a GRU, train and predict.

On CNTK Keras 2.3.1 takes the last one of the states for the output of a recurrent layer: of an LSTM that is c, not h.
"""

import numpy as np
from keras.layers import GRU, LSTM, Bidirectional, Dense, Embedding
from keras.models import Sequential

random = np.random.RandomState(0)
steps = random.randn(60, 6, 3).astype("f")
signs = (steps.sum((1, 2)) > 0).astype("f")[:, None]
model = Sequential([LSTM(8, input_shape=(6, 3)), Dense(1, activation="sigmoid")])
model.compile("rmsprop", "binary_crossentropy", metrics=["accuracy"])
losses = model.fit(steps, signs, epochs=10, batch_size=20, verbose=0).history["loss"]
assert losses[-1] < losses[0] and model.predict(steps[:5]).shape == (5, 1)

w, u, b = model.layers[0].get_weights()  # the last state c is that of the formula
h, c = np.zeros((5, 8)), np.zeros((5, 8))
for step in range(6):
    i, f, g, o = np.split(steps[:5, step] @ w + h @ u + b, 4, axis=1)
    i, f, o = (np.clip(0.2 * gate + 0.5, 0, 1) if "hard" in model.layers[0].recurrent_activation.__name__
               else 1 / (1 + np.exp(-gate)) for gate in (i, f, o))  # fmt: skip
    c = f * c + i * np.tanh(g)
    h = o * np.tanh(c)
kernel, bias = model.layers[1].get_weights()
assert np.allclose(model.predict(steps[:5]), 1 / (1 + np.exp(-(c @ kernel + bias))), atol=1e-4)

words = random.randint(0, 20, (60, 5))
tagger = Sequential([Embedding(20, 8, input_length=5), GRU(8), Dense(1, activation="sigmoid")])
tagger.compile("adam", "binary_crossentropy")
losses = tagger.fit(words, (words[:, 0] > 9).astype("f")[:, None], epochs=10, verbose=0).history["loss"]
assert losses[-1] < losses[0]

both = Sequential([Bidirectional(LSTM(4), input_shape=(6, 3)), Dense(1)])
both.compile("adam", "mse")
assert np.isfinite(both.fit(steps, steps[:, 0, :1], epochs=2, verbose=0).history["loss"]).all()
