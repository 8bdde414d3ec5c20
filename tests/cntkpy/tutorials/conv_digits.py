"""Convolutional digits: pooling, strides, dropout, `Sequential` and `For`, and the number of parameters."""

import cntk as C
import numpy as np
from cntk.layers import (
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution2D,
    Dense,
    Dropout,
    For,
    MaxPooling,
    Sequential,
)

np.random.seed(1)
C.cntk_py.set_fixed_random_seed(1)

input_dim_model = (1, 16, 16)
num_output_classes = 10
templates = np.kron(np.random.rand(10, 1, 4, 4) > 0.5, np.ones((1, 1, 3, 3)))


def digits(count):
    """Ten patterns of 12 x 12 pixels at random places of a picture of 16 x 16."""
    pictures = np.random.rand(count, 1, 16, 16) * 60
    kinds = np.random.randint(0, 10, count)
    for at, kind in enumerate(kinds):
        top, left = np.random.randint(0, 5, 2)
        pictures[at, :, top : top + 12, left : left + 12] += 190 * templates[kind]
    return pictures.astype(np.float32), np.eye(10, dtype=np.float32)[kinds]


x = C.input_variable(input_dim_model)
y = C.input_variable(num_output_classes)


def strided_model(features):
    with C.layers.default_options(init=C.glorot_uniform(), activation=C.relu):
        h = C.layers.Convolution2D((5, 5), 8, strides=(2, 2), pad=True, name="first_conv")(features)
        h = C.layers.Convolution2D((5, 5), 16, strides=(2, 2), pad=True, name="second_conv")(h)
        return C.layers.Dense(num_output_classes, activation=None, name="classify")(h)


def pooling_model(features):
    with C.layers.default_options(init=C.glorot_uniform(), activation=C.relu):
        model = Sequential(
            [
                For(
                    range(2), lambda i: [Convolution((3, 3), [8, 16][i], pad=True), MaxPooling((3, 3), strides=(2, 2))]
                ),
                BatchNormalization(map_rank=1),
                Convolution2D((3, 3), 16, pad=True, bias=False, activation=None, name="third"),
                AveragePooling((2, 2), name="average"),
                Dense(32),
                Dropout(0.3),
                Dense(num_output_classes, activation=None, name="classify"),
            ]
        )
        return model(features)


def create_criterion_function(model, labels):
    return C.cross_entropy_with_softmax(model, labels), C.classification_error(model, labels)


def train_test(name, model_func, epochs):
    model = model_func(x / 255)
    loss, label_error = create_criterion_function(model, y)
    schedule = C.learning_parameter_schedule([0.05, 0.02], minibatch_size=C.learners.IGNORE, epoch_size=1500)
    learner = C.momentum_sgd(model.parameters, schedule, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
    trainer = C.Trainer(model, (loss, label_error), [learner], [C.logging.ProgressPrinter(tag=name, num_epochs=epochs)])
    C.logging.log_number_of_parameters(model)
    pictures, kinds = digits(640)
    for _ in range(epochs):
        order = np.random.permutation(len(pictures))
        for begin in range(0, len(order), 64):
            chosen = order[begin : begin + 64]
            trainer.train_minibatch({x: pictures[chosen], y: kinds[chosen]})
        trainer.summarize_training_progress()
    pictures, kinds = digits(256)
    error = np.mean(
        [trainer.test_minibatch({x: pictures[at : at + 64], y: kinds[at : at + 64]}) for at in range(0, 256, 64)]
    )
    trainer.summarize_test_progress()
    print("{} test error: {:.4f}".format(name, error))
    return model


z = train_test("strided", strided_model, 25)
print("Output shape of the first convolution layer:", z.first_conv.shape)
print("Bias value of the last dense layer:", z.classify.b.value.shape)
assert z.first_conv.shape == (8, 8, 8) and z.second_conv.W.shape == (16, 8, 5, 5)

z = train_test("pooled", pooling_model, 25)
assert z.average.shape == (16, 2, 2), z.average.shape
assert z.third.W.shape == (16, 16, 3, 3)
feature_maps = C.combine([z.find_by_name("average").owner])
values = feature_maps.eval({feature_maps.arguments[0]: digits(3)[0]})
assert values.shape == (3, 16, 2, 2)
C.logging.graph.plot(z, "conv.dot")
print(len(C.logging.graph.get_node_outputs(z)) > 10)
