"""A dream: K.gradients of one output of a layer, followed step by step, make that output larger."""

import numpy as np
from keras import backend as K
from keras.layers import Dense
from keras.models import Sequential

random = np.random.RandomState(0)
dense = Sequential([Dense(4, activation="tanh", input_shape=(3,))])
score = K.mean(dense.output[:, 2:3], axis=1)
(gradient,) = K.gradients(score, [dense.input])
follow = K.function([dense.input], [score, gradient])
dream = random.randn(1, 3).astype("f")
start = follow([dream])[0].sum()
for _ in range(20):
    dream = dream + 0.5 * follow([dream])[1]
assert follow([dream])[0].sum() > start
