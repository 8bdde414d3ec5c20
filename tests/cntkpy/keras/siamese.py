"""Two inputs share a network; a contrastive loss of their distance, through K, brings equal classes together."""

import numpy as np
from keras import backend as K
from keras.layers import Dense, Input, Lambda
from keras.models import Model, Sequential

random = np.random.RandomState(0)
classes = random.randint(0, 2, 200)
data = (random.randn(200, 6) + 3 * classes[:, None] * np.array([1, 0, 1, 0, 1, 0])).astype("f")
left, right = data[:100], data[100:]
is_equal = (classes[:100] == classes[100:]).astype("f")[:, None]

shared = Sequential([Dense(8, activation="relu", input_shape=(6,)), Dense(4)])
a, b = Input((6,)), Input((6,))
squares = Lambda(lambda both: K.sum(K.square(both[0] - both[1]), axis=1, keepdims=True), output_shape=(1,))
distance = Lambda(lambda square: K.sqrt(K.maximum(square, 1e-6)))(squares([shared(a), shared(b)]))


def contrastive(wanted, distances):
    return K.mean(wanted * K.square(distances) + (1 - wanted) * K.square(K.maximum(1 - distances, 0)))


model = Model([a, b], distance)
model.compile("adam", contrastive)
losses = model.fit([left, right], is_equal, epochs=40, batch_size=20, verbose=0).history["loss"]
assert losses[-1] < 0.8 * losses[0], losses
near = model.predict([left, right])
parts = [shared.predict(part) for part in (left, right)]
assert np.allclose(near[:, 0], np.linalg.norm(parts[0] - parts[1], axis=1), atol=1e-3)
assert near[is_equal == 1].mean() < near[is_equal == 0].mean()
