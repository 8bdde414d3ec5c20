"""Digits of a CTF file, with a linear layer and with two hidden layers; some pictures by name of the stream."""

from __future__ import print_function

import os

import cntk as C
import numpy as np
from cntk.io import INFINITELY_REPEAT, CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.layers import Dense, default_options

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)
C.cntk_py.force_deterministic_algorithms()

input_dim = 14 * 14
num_output_classes = 10
templates = np.random.rand(10, 14, 14) > 0.6


def write_digits(path, count):
    """Noisy copies of ten pictures, shifted by at most one pixel."""
    with open(path, "w") as out:
        for _ in range(count):
            digit = np.random.randint(10)
            picture = np.roll(templates[digit], np.random.randint(-1, 2, 2), (0, 1)) ^ (np.random.rand(14, 14) < 0.1)
            pixels = " ".join(str(int(255 * value)) for value in picture.ravel())
            label = " ".join(str(int(digit == kind)) for kind in range(10))
            out.write("|labels {} |features {}\n".format(label, pixels))


def create_reader(path, is_training, input_dim, num_label_classes):
    assert os.path.isfile(path)
    streams = StreamDefs(
        labels=StreamDef(field="labels", shape=num_label_classes, is_sparse=False),
        features=StreamDef(field="features", shape=input_dim, is_sparse=False),
    )
    return MinibatchSource(
        CTFDeserializer(path, streams), randomize=is_training, max_sweeps=INFINITELY_REPEAT if is_training else 1
    )


write_digits("train.ctf", 1200)
write_digits("test.ctf", 400)

features = C.input_variable(input_dim)
labels = C.input_variable(num_output_classes)
scaled = features / 255.0


def linear_model(features):
    with C.layers.default_options(init=C.glorot_uniform()):
        return C.layers.Dense(num_output_classes, activation=None)(features)


def dense_model(features):
    with default_options(init=C.layers.glorot_uniform(), activation=C.ops.relu):
        h = features
        for _ in range(2):
            h = Dense(100)(h)
        return Dense(num_output_classes, activation=None)(h)


def train_and_test(model, name):
    z = model(scaled)
    loss = C.cross_entropy_with_softmax(z, labels)
    label_error = C.classification_error(z, labels)
    lr_schedule = C.learning_parameter_schedule(0.2)
    printer = C.logging.ProgressPrinter(freq=10, tag=name, num_epochs=4)
    trainer = C.Trainer(z, (loss, label_error), [C.sgd(z.parameters, lr_schedule)], printer)

    reader = create_reader("train.ctf", True, input_dim, num_output_classes)
    input_map = {labels: reader.streams.labels, features: reader.streams.features}
    for _ in range(4):
        seen = 0
        while seen < 1200:
            data = reader.next_minibatch(min(64, 1200 - seen), input_map=input_map)
            trainer.train_minibatch(data)
            seen += data[labels].num_samples
        trainer.summarize_training_progress()
    assert trainer.total_number_of_samples_seen == 4800

    reader_test = create_reader("test.ctf", False, input_dim, num_output_classes)
    input_map = {labels: reader_test.streams.labels, features: reader_test.streams.features}
    error, count = 0.0, 0
    while True:
        data = reader_test.next_minibatch(100, input_map=input_map)
        if not data:
            break
        error += trainer.test_minibatch(data) * data[labels].number_of_samples
        count += data[labels].number_of_samples
    assert count == 400
    print("{} test error: {:.4f}".format(name, error / count))
    return z


train_and_test(linear_model, "linear")
z = train_and_test(dense_model, "dense")

out = C.softmax(z)
reader_eval = create_reader("test.ctf", False, input_dim, num_output_classes)
data = reader_eval.next_minibatch(
    25, input_map={features: reader_eval.streams.features, labels: reader_eval.streams.labels}
)
img_label = data[labels].asarray()
img_data = data[features].asarray()
assert img_data.shape in ((25, input_dim), (25, 1, input_dim)), img_data.shape
predicted_label_prob = [out.eval(img_data[i]) for i in range(len(img_data))]
pred = [np.argmax(predicted_label_prob[i]) for i in range(len(predicted_label_prob))]
gtlabel = [np.argmax(img_label[i]) for i in range(len(img_label))]
print("right: {} of 25".format(np.sum(np.equal(pred, gtlabel))))
