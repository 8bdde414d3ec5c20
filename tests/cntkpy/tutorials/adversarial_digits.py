"""Generative adversarial networks with two trainers on shared parameters: dense and convolutional."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.layers import BatchNormalization, Convolution2D, ConvolutionTranspose2D, Dense

np.random.seed(123)
C.cntk_py.set_fixed_random_seed(123)

g_input_dim = 10
d_input_dim = 64
pattern = np.zeros((8, 8), np.float32)
pattern[1:7, 2:6] = 1
pattern[3:5, 3:5] = 0


def pictures(count):
    """Rings in noise, from -1 to 1."""
    images = np.clip(pattern + 0.1 * np.random.randn(count, 8, 8), 0, 1)
    return (images.reshape(count, 64) * 2 - 1).astype(np.float32)


def noise_sample(num_samples):
    return np.random.uniform(low=-1.0, high=1.0, size=[num_samples, g_input_dim]).astype(np.float32)


def generator(z):
    with C.layers.default_options(init=C.xavier()):
        h1 = Dense(24, activation=C.relu)(z)
        return Dense(d_input_dim, activation=C.tanh)(h1)


def discriminator(x):
    with C.layers.default_options(init=C.xavier()):
        h1 = Dense(24, activation=C.relu)(x)
        return Dense(1, activation=C.sigmoid)(h1)


def bn_with_relu(x, activation=C.relu):
    h = BatchNormalization(map_rank=1)(x)
    return (
        C.param_relu(C.Constant((np.ones(h.shape) * 0.2).astype(np.float32)), h)
        if activation is None
        else activation(h)
    )


def convolutional_generator(z):
    with C.layers.default_options(init=C.normal(scale=0.1)):
        h0 = Dense([8, 2, 2], activation=None)(z)
        h0 = bn_with_relu(h0)
        h1 = ConvolutionTranspose2D(
            (3, 3), 4, strides=(2, 2), pad=True, bias=False, output_shape=(4, 4), activation=None
        )(h0)
        h1 = bn_with_relu(h1)
        h2 = ConvolutionTranspose2D(
            (3, 3), 1, strides=(2, 2), pad=True, bias=False, output_shape=(8, 8), activation=C.tanh
        )(h1)
        return C.reshape(h2, d_input_dim)


def convolutional_discriminator(x):
    with C.layers.default_options(init=C.normal(scale=0.1)):
        h0 = C.reshape(x, (1, 8, 8))
        h0 = Convolution2D((3, 3), 4, strides=(2, 2), pad=True, activation=None, bias=False)(h0)
        h0 = bn_with_relu(h0, activation=C.leaky_relu)
        h1 = Convolution2D((3, 3), 8, strides=(2, 2), pad=True, activation=None)(h0)
        h1 = bn_with_relu(h1, activation=lambda x: C.leaky_relu(x, alpha=0.2))
        return Dense(1, activation=C.sigmoid)(h1)


def build_graph(noise_shape, image_shape, generator, discriminator, lr, momentum):
    Z = C.input_variable(noise_shape, dynamic_axes=[C.Axis.default_batch_axis()])
    X_real = C.input_variable(image_shape, dynamic_axes=[C.Axis.default_batch_axis()])
    X_real_scaled = X_real / 1.0

    X_fake = generator(Z)
    D_real = discriminator(X_real_scaled)
    D_fake = D_real.clone(method="share", substitutions={X_real_scaled.output: X_fake.output})

    G_loss = 1.0 - C.log(D_fake)
    D_loss = -(C.log(D_real) + C.log(1.0 - D_fake))

    options = dict(
        lr=C.learning_parameter_schedule(lr, minibatch_size=C.learners.IGNORE),
        momentum=C.momentum_schedule(momentum),
        minibatch_size=C.learners.IGNORE,
        variance_momentum=C.momentum_schedule(0.999),
        unit_gain=False,
    )
    G_learner = C.adam(parameters=X_fake.parameters, **options)
    D_learner = C.adam(parameters=D_real.parameters, **options)
    G_trainer = C.Trainer(X_fake, (G_loss, None), G_learner)
    D_trainer = C.Trainer(D_real, (D_loss, None), D_learner)
    assert set(D_fake.parameters) == set(X_fake.parameters) | set(D_real.parameters)
    return X_real, X_fake, Z, G_trainer, D_trainer


def train(generator, discriminator, iterations, lr=0.004, k=2, minibatch_size=32):
    X_real, X_fake, Z, G_trainer, D_trainer = build_graph(g_input_dim, d_input_dim, generator, discriminator, lr, 0.5)
    print_frequency = iterations // 3
    pp_G = C.logging.ProgressPrinter(print_frequency, tag="generator")
    pp_D = C.logging.ProgressPrinter(print_frequency * k, tag="discriminator")
    print("First row is Generator loss, second row is Discriminator loss")
    for train_step in range(iterations):
        for gen_train_step in range(k):
            batch_inputs = {X_real: pictures(minibatch_size), Z: noise_sample(minibatch_size)}
            D_trainer.train_minibatch(batch_inputs)
            pp_D.update_with_trainer(D_trainer)
        Z_data = noise_sample(minibatch_size)
        batch_inputs = {Z: Z_data}
        G_trainer.train_minibatch(batch_inputs)
        pp_G.update_with_trainer(G_trainer)
        G_trainer_loss = G_trainer.previous_minibatch_loss_average
    print("generator loss", G_trainer_loss)
    return Z, X_fake


for name, G, D, steps in [
    ("dense", generator, discriminator, 400),
    ("convolutional", convolutional_generator, convolutional_discriminator, 400),
]:
    G_input, G_output = train(G, D, steps, *([] if name == "dense" else [0.002, 1]))
    images = G_output.eval({G_input: noise_sample(36)})
    assert images.shape == (36, 64)
    correlation = np.corrcoef(images.mean(0), pattern.ravel())[0, 1]
    print("{} distance: {:.4f}".format(name, 1 - correlation))
