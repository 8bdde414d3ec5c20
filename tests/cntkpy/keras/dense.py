"""A step of SGD is that of its formula; a classifier learns, is saved, loaded, and predicts the same."""

import tempfile
from pathlib import Path

import numpy as np
from keras.layers import Dense, Dropout
from keras.models import Sequential, load_model
from keras.optimizers import Adam
from keras.utils import to_categorical

x, y = np.float32([[1, 2], [3, 4]]), np.float32([[1], [0]])
line = Sequential([Dense(1, input_shape=(2,), use_bias=False)])
line.compile("sgd", "mse")
(before,) = line.get_weights()
error = x @ before - y
assert np.isclose(line.train_on_batch(x, y), (error**2).mean())
assert np.allclose(line.get_weights()[0], before - 0.01 * 2 * x.T @ error / 2, atol=1e-6)

random = np.random.RandomState(0)
data = random.randn(200, 8).astype("f")
classes = to_categorical((data.sum(1) > 0).astype(int), 2)
model = Sequential([Dense(16, activation="relu", input_shape=(8,)), Dropout(0.1), Dense(2, activation="softmax")])
model.compile(optimizer=Adam(lr=0.01), loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(data, classes, epochs=15, batch_size=32, verbose=0, validation_split=0.1).history
assert history["loss"][-1] < 0.8 * history["loss"][0] and history["accuracy"][-1] > 0.7
loss, accuracy = model.evaluate(data, classes, verbose=0)
assert accuracy > 0.8

path = str(Path(tempfile.mkdtemp(), "model.h5"))
model.save(path)
again = load_model(path)
assert np.allclose(again.predict(data), model.predict(data), atol=1e-6)
assert np.isclose(again.evaluate(data, classes, verbose=0)[0], loss, atol=1e-5)
again.fit(data, classes, epochs=1, verbose=0)
model.load_weights(path)
