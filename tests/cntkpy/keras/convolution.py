"""A convolutional network learns which half of a picture is brighter."""

import numpy as np
from keras.layers import Conv2D, Dense, Flatten, MaxPooling2D
from keras.models import Sequential
from keras.utils import to_categorical

random = np.random.RandomState(0)
pictures = random.rand(80, 8, 8, 1).astype("f")
pictures[:40, :4] += 1
classes = to_categorical(np.arange(80) < 40, 2)
model = Sequential(
    [
        Conv2D(8, (3, 3), activation="relu", input_shape=(8, 8, 1)),
        MaxPooling2D((2, 2)),
        Flatten(),
        Dense(2, activation="softmax"),
    ]
)
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
history = model.fit(pictures, classes, epochs=40, batch_size=20, verbose=0).history
assert history["loss"][-1] < history["loss"][0]
assert (model.predict(pictures).argmax(1) == classes.argmax(1)).mean() > 0.9
