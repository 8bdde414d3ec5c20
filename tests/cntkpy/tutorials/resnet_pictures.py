"""A small residual network on pictures in colour, and one of VGG's kind; training with `Function.train`."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.initializer import he_normal
from cntk.layers import (
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution2D,
    Dense,
    Dropout,
    For,
    GlobalAveragePooling,
    MaxPooling,
    Sequential,
    default_options,
)
from cntk.learners import UnitType, learning_rate_schedule, momentum_as_time_constant_schedule, momentum_sgd
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error
from cntk.ops import element_times, input_variable, relu
from cntk.train import CrossValidationConfig, TestConfig, Trainer

np.random.seed(3)
C.cntk_py.set_fixed_random_seed(1)
image_height, image_width, num_channels, num_classes = 12, 12, 3, 5
colours = np.random.rand(num_classes, 3, 1, 1)
shapes = np.kron(np.random.rand(num_classes, 3, 4, 4) > 0.5, np.ones((1, 1, 3, 3)))


def pictures(count):
    """Patterns of each class, mirrored or not, in its colours and noise."""
    kinds = np.random.randint(0, num_classes, count)
    images = shapes[kinds] * colours[kinds] * 120 + 80
    mirrored = np.random.rand(count) < 0.5
    images[mirrored] = images[mirrored][..., ::-1]
    images += np.random.randn(*images.shape) * 25
    return images.astype(np.float32), np.eye(num_classes, dtype=np.float32)[kinds]


def convolution_bn(input, filter_size, num_filters, strides=(1, 1), init=he_normal(), activation=relu):
    if activation is None:
        activation = lambda x: x
    r = Convolution(filter_size, num_filters, strides=strides, init=init, activation=None, pad=True, bias=False)(input)
    r = BatchNormalization(map_rank=1, normalization_time_constant=512)(r)
    return activation(r)


def resnet_basic(input, num_filters):
    c1 = convolution_bn(input, (3, 3), num_filters)
    c2 = convolution_bn(c1, (3, 3), num_filters, activation=None)
    return relu(c2 + input)


def resnet_basic_inc(input, num_filters):
    c1 = convolution_bn(input, (3, 3), num_filters, strides=(2, 2))
    c2 = convolution_bn(c1, (3, 3), num_filters, activation=None)
    s = convolution_bn(input, (1, 1), num_filters, strides=(2, 2), activation=None)
    return relu(c2 + s)


def resnet_basic_stack(input, num_filters, num_stack):
    assert num_stack > 0
    r = input
    for _ in range(num_stack):
        r = resnet_basic(r, num_filters)
    return r


def create_resnet_model(input, out_dims):
    conv = convolution_bn(input, (3, 3), 8)
    r1_1 = resnet_basic_stack(conv, 8, 1)
    r2_1 = resnet_basic_inc(r1_1, 16)
    r2_2 = resnet_basic_stack(r2_1, 16, 1)
    pool = AveragePooling(filter_shape=(6, 6), strides=(1, 1), name="pool")(r2_2)
    return Dense(out_dims, init=C.he_normal(), activation=None)(pool)


def create_vgg_model(input, out_dims):
    with default_options(activation=C.relu, init=C.glorot_uniform()):
        model = Sequential(
            [
                For(
                    range(2),
                    lambda i: [
                        Convolution2D((3, 3), [8, 12][i], pad=True),
                        Convolution2D((3, 3), [8, 12][i], pad=True),
                        MaxPooling((3, 3), strides=(2, 2), pad=True),
                    ],
                ),
                GlobalAveragePooling(),
                For(range(1), lambda i: [Dense([32][i]), Dropout([0.1][i])]),
                Dense(out_dims, activation=None),
            ]
        )
    return model(input)


def train_and_evaluate(create_model, max_epochs):
    input_var = input_variable((num_channels, image_height, image_width))
    label_var = input_variable((num_classes))
    feature_scale = 1.0 / 256.0
    input_var_norm = element_times(C.minus(input_var, C.constant(114)), feature_scale)
    z = create_model(input_var_norm, out_dims=num_classes)
    ce = cross_entropy_with_softmax(z, label_var)
    pe = classification_error(z, label_var)

    epoch_size, minibatch_size = 384, 32
    lr_per_minibatch = learning_rate_schedule([0.1] * 4 + [0.03] * 4 + [0.01], UnitType.minibatch, epoch_size)
    momentum_time_constant = momentum_as_time_constant_schedule(-minibatch_size / np.log(0.9))
    learner = momentum_sgd(
        z.parameters, lr=lr_per_minibatch, momentum=momentum_time_constant, l2_regularization_weight=0.0001
    )
    progress_printer = C.logging.ProgressPrinter(tag="Training", num_epochs=max_epochs)
    trainer = Trainer(z, (ce, pe), [learner], [progress_printer])
    C.logging.log_number_of_parameters(z)
    print()

    images, labels = pictures(epoch_size)
    for _ in range(max_epochs):
        for at in range(0, epoch_size, minibatch_size):
            trainer.train_minibatch(
                {input_var: images[at : at + minibatch_size], label_var: labels[at : at + minibatch_size]}
            )
        trainer.summarize_training_progress()
    images, labels = pictures(128)
    metric_numer, metric_denom = 0, 0
    for at in range(0, 128, 16):
        metric_numer += trainer.test_minibatch({input_var: images[at : at + 16], label_var: labels[at : at + 16]}) * 16
        metric_denom += 16
    print("{} test error: {:.4f}".format(create_model.__name__, metric_numer / metric_denom))
    return C.softmax(z)


pred = train_and_evaluate(create_resnet_model, 8)
image, label = pictures(1)
result = np.squeeze(pred.eval({pred.arguments[0]: [image[0]]}))
top = np.argsort(result)[::-1]
print("best:", top[:3], "sum: {:.4f}".format(result.sum()))
train_and_evaluate(create_vgg_model, 24)


# the same kind of network as a criterion function, trained on arrays
@C.Function
def criterion(features, labels):
    with C.layers.default_options(activation=C.relu, pad=True):
        z = C.layers.Sequential(
            [
                Convolution2D((3, 3), 8),
                C.layers.ResNetBlock(Sequential([Convolution2D((3, 3), 8), Convolution2D((3, 3), 8, activation=None)])),
                C.relu,
                C.layers.GlobalMaxPooling(),
                Dense(num_classes, activation=None),
            ]
        )((features - 114) / 256)
    return C.cross_entropy_with_softmax(z, labels), C.classification_error(z, labels)


features, kinds = C.input_variable((3, 12, 12)), C.input_variable(num_classes)
criterion = criterion(features, kinds)
learner = C.adam(criterion.parameters, 0.01, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
progress = criterion.train(
    pictures(384),
    parameter_learners=[learner],
    callbacks=[
        C.logging.ProgressPrinter(tag="block"),
        CrossValidationConfig(pictures(96), minibatch_size=32, criterion=criterion),
        TestConfig(pictures(96), criterion=criterion),
    ],
    minibatch_size=32,
    max_epochs=8,
)
losses = [summary.loss for summary in progress.epoch_summaries]
assert len(losses) == 8 and losses[-1] < losses[0]
metric = criterion.test(pictures(96), callbacks=[C.logging.ProgressPrinter(tag="test")]).metric
print("block test error: {:.4f}".format(metric))
