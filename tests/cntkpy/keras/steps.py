"""Layers for each step of a sequence, with a loss on all steps; two directions, embeddings, convolutions in time."""

import numpy as np
from keras.layers import (
    GRU,
    LSTM,
    Activation,
    Bidirectional,
    Conv1D,
    Conv2D,
    Dense,
    Embedding,
    Flatten,
    GlobalMaxPooling1D,
    RepeatVector,
    TimeDistributed,
)
from keras.models import Sequential
from keras.optimizers import Adam

random = np.random.RandomState(0)
data = random.rand(64, 6, 4).astype("float32")
classes = np.eye(3)[(data[:, :, :3]).argmax(-1)]

tagger = Sequential(
    [LSTM(12, return_sequences=True, input_shape=(6, 4)), TimeDistributed(Dense(3, activation="softmax"))]
)
tagger.compile(Adam(0.03), "categorical_crossentropy")
before = tagger.evaluate(data, classes, verbose=0)
tagger.fit(data, classes, epochs=30, batch_size=16, verbose=0)
assert tagger.evaluate(data, classes, verbose=0) < 0.5 * before

hidden = Sequential(tagger.layers[:1]).predict(data[:5])
weight, bias = tagger.layers[1].get_weights()
scores = np.exp(hidden @ weight + bias)
np.testing.assert_allclose(tagger.predict(data[:5]), scores / scores.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)

answer = Sequential(
    [
        GRU(6, input_shape=(6, 4)),
        RepeatVector(3),
        GRU(6, return_sequences=True),
        TimeDistributed(Dense(2)),
        Activation("softmax"),
    ]
)
answer.compile("rmsprop", "categorical_crossentropy")
answer.fit(data, np.eye(2)[random.randint(0, 2, (64, 3))], epochs=1, verbose=0)
assert answer.predict(data[:4]).shape == (4, 3, 2)

film = Sequential(
    [TimeDistributed(Conv2D(2, (3, 3)), input_shape=(3, 6, 6, 1)), TimeDistributed(Flatten()), LSTM(4), Dense(1)]
)
film.compile("sgd", "mse")
film.fit(random.rand(8, 3, 6, 6, 1), random.rand(8, 1), verbose=0)
assert film.predict(random.rand(2, 3, 6, 6, 1)).shape == (2, 1)

words, kinds = random.randint(0, 20, (32, 12)), random.randint(0, 2, 32)
for layers in ([Bidirectional(LSTM(5))], [Conv1D(6, 3, activation="relu"), GlobalMaxPooling1D()]):
    model = Sequential([Embedding(20, 8, input_length=12), *layers, Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy")
    before = model.evaluate(words, kinds, verbose=0)
    model.fit(words, kinds, epochs=5, batch_size=8, verbose=0)
    assert model.evaluate(words, kinds, verbose=0) < before
