"""A loss of all elements of a minibatch by K.flatten, and the best k classes of whole numbers."""

import numpy as np
from keras import backend as K
from keras.layers import Dense, Conv2D
from keras.models import Sequential

random = np.random.RandomState(0)


def dice(y, p):
    y, p = K.flatten(y), K.flatten(p)
    return 1 - (2 * K.sum(y * p) + 1) / (K.sum(y) + K.sum(p) + 1)


model = Sequential([Conv2D(1, 3, padding="same", activation="sigmoid", input_shape=(4, 4, 2))])
model.compile("sgd", dice)
x, y = random.rand(6, 4, 4, 2), (random.rand(6, 4, 4, 1) > 0.5).astype("f")
values = model.predict(x)
want = 1 - (2 * (y * values).sum() + 1) / (y.sum() + values.sum() + 1)
got = model.evaluate(x, y, verbose=0, batch_size=6)

assert np.isclose(got, want, rtol=1e-4)
assert model.train_on_batch(x, y) > model.train_on_batch(x, y)
classes = Sequential([Dense(6, activation="softmax", input_shape=(3,))])
classes.compile("sgd", "sparse_categorical_crossentropy", metrics=["sparse_top_k_categorical_accuracy"])
labels = random.randint(0, 6, (4, 1))
assert np.isfinite(classes.train_on_batch(random.rand(4, 3), labels)).all()
