"""A residual network of images with batch normalisation; an autoencoder removes noise; weights are saved and loaded."""

import tempfile
from pathlib import Path

import numpy as np
from keras.layers import (
    Activation,
    BatchNormalization,
    Conv2D,
    Conv2DTranspose,
    Cropping2D,
    Dense,
    GlobalAveragePooling2D,
    Input,
    UpSampling2D,
    add,
)
from keras.models import Model, Sequential

random = np.random.RandomState(0)
images = random.rand(60, 8, 8, 1).astype("f")
images[:30, :4] += 1
classes = np.eye(2)[[0] * 30 + [1] * 30]

inputs = Input((8, 8, 1))
x = BatchNormalization()(Conv2D(4, 3, padding="same")(inputs))
y = Activation("relu")(x)
y = BatchNormalization()(Conv2D(4, 3, padding="same", kernel_initializer="he_normal")(y))
y = Activation("relu")(add([x, y]))
model = Model(inputs, Dense(2, activation="softmax")(GlobalAveragePooling2D()(y)))
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
losses = model.fit(images, classes, epochs=8, batch_size=20, verbose=0).history["loss"]
assert losses[-1] < losses[0]
path = str(Path(tempfile.mkdtemp(), "weights.h5"))
model.save_weights(path)
expected = model.predict(images)
model.fit(images, classes, epochs=1, verbose=0)
model.load_weights(path)
assert np.allclose(model.predict(images), expected, atol=1e-5)

coder = Sequential([
    Conv2D(4, 3, strides=2, padding="same", activation="relu", input_shape=(8, 8, 1)), UpSampling2D(),
    Conv2DTranspose(1, 3, padding="same"),
])  # fmt: skip
coder.compile("adam", "mse")
noisy = images + 0.1 * random.randn(*images.shape)
losses = coder.fit(noisy, images, epochs=10, batch_size=20, verbose=0).history["loss"]
assert losses[-1] < losses[0] and coder.predict(noisy).shape == images.shape
assert np.array_equal(Sequential([Cropping2D(1, input_shape=(8, 8, 1))]).predict(images), images[:, 1:-1, 1:-1])
