"""Classify texts by an embedding and a convolution along words; padding, early stopping and checkpoints of Keras."""

import tempfile
from pathlib import Path

import numpy as np
from keras.callbacks import EarlyStopping, ModelCheckpoint
from keras.layers import Conv1D, Dense, Dropout, Embedding, GlobalMaxPooling1D
from keras.models import Sequential, load_model
from keras.preprocessing.sequence import pad_sequences

random = np.random.RandomState(0)
texts = [list(random.randint(2, 20, random.randint(3, 9))) for _ in range(120)]
labels = np.array([index % 2 for index in range(120)], "f")
for text, label in zip(texts, labels, strict=True):
    text[1] = 1 if label else text[1]
words = pad_sequences(texts, maxlen=8)
assert words.shape == (120, 8)

model = Sequential([
    Embedding(20, 8, input_length=8), Conv1D(8, 3, activation="relu"), GlobalMaxPooling1D(), Dropout(0.1),
    Dense(1, activation="sigmoid"),
])  # fmt: skip
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
path = str(Path(tempfile.mkdtemp(), "best.h5"))
callbacks = [ModelCheckpoint(path, save_best_only=True), EarlyStopping(patience=3)]
history = model.fit(
    words[:90], labels[:90], epochs=25, batch_size=30, verbose=0, validation_data=(words[90:], labels[90:]),
    callbacks=callbacks,
).history  # fmt: skip
assert history["val_loss"][-1] < history["val_loss"][0]
best = load_model(path).evaluate(words[90:], labels[90:], verbose=0)[0]
assert np.isclose(best, min(history["val_loss"]), atol=1e-4)
