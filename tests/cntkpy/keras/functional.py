"""Two inputs of the functional API; a loss of the program by K; sparse labels; callbacks."""

import tempfile
from pathlib import Path

import numpy as np
from keras import backend as K
from keras.callbacks import EarlyStopping, ModelCheckpoint
from keras.layers import Dense, Input, Lambda, concatenate
from keras.models import Model, Sequential
from keras.optimizers import SGD

random = np.random.RandomState(0)
a, b = Input((4,)), Input((3,))
hidden = concatenate([Dense(5, activation="tanh")(a), Dense(5, activation="tanh")(b)])
model = Model([a, b], Dense(1)(hidden))
model.compile("adam", "mse")
left, right = random.randn(50, 4), random.randn(50, 3)
losses = model.fit([left, right], left[:, :1] + right[:, :1], epochs=10, verbose=0).history["loss"]
assert losses[-1] < losses[0] and model.predict([left, right]).shape == (50, 1)


def weighted(target, output):
    return K.mean(K.square(output - target) * K.exp(-K.abs(target)), axis=-1)


data = random.randn(100, 8).astype("f")
line = Sequential([Dense(4, activation="relu", input_shape=(8,)), Lambda(lambda v: K.relu(v) * 2), Dense(1)])
line.compile(SGD(0.02, momentum=0.9), weighted)
path = str(Path(tempfile.mkdtemp(), "best.h5"))
callbacks = [EarlyStopping(patience=5), ModelCheckpoint(path)]
losses = line.fit(data, data[:, :1], epochs=10, verbose=0, validation_split=0.1, callbacks=callbacks).history["loss"]
assert losses[-1] < 0.5 * losses[0] and Path(path).exists()
values = line.predict(data)
assert np.isclose(line.evaluate(data, data[:, :1], verbose=0),
                  np.mean((values - data[:, :1]) ** 2 * np.exp(-np.abs(data[:, :1]))), rtol=1e-3)  # fmt: skip

classifier = Sequential([Dense(2, activation="softmax", input_shape=(8,))])
classifier.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = classifier.fit(data, data[:, 0] > 0, epochs=5, verbose=0).history
assert history["loss"][-1] < history["loss"][0] and 0 < history["accuracy"][-1] <= 1
