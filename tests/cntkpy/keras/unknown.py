"""Steps and pictures of any size: embeddings, two directions, a loss on all steps, pictures; the best k classes."""

import numpy as np
from keras import backend as K
from keras.layers import LSTM, Bidirectional, Conv2D, Dense, Embedding, GlobalAveragePooling2D, SimpleRNN
from keras.models import Sequential

random = np.random.RandomState(0)
words = random.randint(0, 10, (8, 5))
reader = Sequential([Embedding(10, 4), SimpleRNN(3)])
vectors, w, u, b = reader.get_weights()
for text in (words, words[:, :3]):
    state = np.zeros((8, 3))
    for word in text.T:
        state = np.tanh(vectors[word] @ w + state @ u + b)
    np.testing.assert_allclose(reader.predict(text), state, atol=1e-5)

tagger = Sequential([Bidirectional(SimpleRNN(3, return_sequences=True), input_shape=(None, 2)), Dense(2)])
tagger.compile("sgd", "mse")
for steps in (5, 7):
    data, wanted = random.rand(4, steps, 2), random.rand(4, steps, 2)
    values = tagger.predict(data)
    halves = []
    for weights, back in ((tagger.get_weights()[:3], False), (tagger.get_weights()[3:6], True)):
        state, states = np.zeros((4, 3)), []
        for step in reversed(range(steps)) if back else range(steps):
            state = np.tanh(data[:, step] @ weights[0] + state @ weights[1] + weights[2])
            states.append(state)
        halves.append(np.stack(states[::-1] if back else states, 1))
    kernel, bias = tagger.get_weights()[6:]
    np.testing.assert_allclose(values, np.concatenate(halves, -1) @ kernel + bias, atol=1e-5)
    assert np.isclose(tagger.evaluate(data, wanted, verbose=0), np.mean((values - wanted) ** 2), rtol=1e-4)
    tagger.fit(data, wanted, verbose=0)
    assert tagger.evaluate(data, wanted, verbose=0) < np.mean((values - wanted) ** 2)

classes = Sequential([Embedding(10, 4), LSTM(3), Dense(6, activation="softmax")])
classes.compile("sgd", "categorical_crossentropy", metrics=["top_k_categorical_accuracy"])
classes.fit(words, np.eye(6)[random.randint(0, 6, 8)], verbose=0)

scores, targets = K.placeholder((None, 4)), K.placeholder((None,))
best = K.function([scores, targets], [K.in_top_k(scores, targets, 2)])
data, wanted = random.rand(5, 4), np.array([0, 1, 2, 3, 0])
expected = [target in np.argsort(-row)[:2] for target, row in zip(wanted, data, strict=True)]
assert np.array_equal(np.ravel(best([data, wanted])[0]), expected)

pictures = Sequential([Conv2D(4, 3, input_shape=(None, None, 1)), GlobalAveragePooling2D(), Dense(2)])
pictures.compile("adam", "mse")
pictures.fit(random.rand(6, 8, 8, 1), random.rand(6, 2), verbose=0)
assert pictures.predict(random.rand(2, 7, 9, 1)).shape == (2, 2)
