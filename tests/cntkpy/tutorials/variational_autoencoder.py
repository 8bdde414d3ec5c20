"""A variational auto-encoder: noise inside of the network, two terms of a loss, annealing, samples of the decoder."""

import cntk as C
import numpy as np
from cntk.layers import Dense, Sequential
from cntk.ops.functions import Function, load_model

np.random.seed(8)
C.cntk_py.set_fixed_random_seed(8)

PIXELS, LATENT, BATCH = 36, 2, 50


def bars(count):
    """Pictures of 6 x 6 with one dark row and one dark column."""
    pictures = np.zeros((count, 6, 6), np.float32)
    pictures[np.arange(count), np.random.randint(6, size=count)] = 1
    pictures[np.arange(count), :, np.random.randint(6, size=count)] = 1
    return pictures.reshape(count, PIXELS)


with C.default_options(init=C.glorot_normal()):
    encoder = Sequential(
        [Dense(64, activation=C.tanh, name="enc"), (Dense(LATENT, name="mu"), Dense(LATENT, name="log_var"))]
    )
    decoder = Sequential([Dense(64, activation=C.tanh, name="dec"), Dense(PIXELS, activation=C.sigmoid, name="pixels")])


@Function
def sample(mu, log_var):
    noise = C.random.normal_like(mu, mean=0.0, scale=1.0, seed=98052)
    return mu + C.exp(0.5 * log_var) * noise


x = C.input_variable(PIXELS, name="x")
weight = C.input_variable((1,), name="weight")
mu, log_var = encoder(x).outputs
z = sample(mu, log_var)
decoded = decoder(z)
reconstruction = C.reduce_sum(C.binary_cross_entropy(decoded, x))
divergence = -0.5 * C.reduce_sum(1 + log_var - C.square(mu) - C.exp(log_var), axis=0)
loss = C.plus(reconstruction, weight * divergence, name="loss")
assert divergence.shape in ((1,), ()), divergence.shape

learner = C.adam(
    loss.parameters,
    lr=C.learning_parameter_schedule_per_sample(0.003),
    momentum=C.momentum_schedule(0.9),
    variance_momentum=C.momentum_schedule(0.999),
    gradient_clipping_threshold_per_sample=10,
)
printer = C.logging.ProgressPrinter(freq=100, tag="vae", metric_is_pct=False)
trainer = C.Trainer(decoded, (loss, divergence), [learner], [printer])
for step in range(600):
    data = {x: bars(BATCH), weight: np.full((BATCH, 1), min(1.0, step / 300.0), np.float32)}
    updated, outputs = trainer.train_minibatch(data, outputs=[reconstruction])
    assert updated
    if step in (0, 599):
        print("step {}: reconstruction {:.3f}".format(step, np.mean(list(outputs.values())[0])))
        if step == 0:
            first = np.mean(list(outputs.values())[0])
last = np.mean(list(outputs.values())[0])
trainer.summarize_training_progress()
print("reconstruction ratio: {:.4f}".format(last / first))

# another rate from here on
learner.reset_learning_rate(C.learning_parameter_schedule_per_sample(0.0003))
assert abs(learner.learning_rate() - 0.0003) < 1e-9
for step in range(100):
    trainer.train_minibatch({x: bars(BATCH), weight: np.ones((BATCH, 1), np.float32)})

# codes by the mean, pictures by the decoder alone
code = C.input_variable(LATENT)
pictures = bars(20)
codes = mu.eval({x: pictures}) if hasattr(mu, "eval") else C.combine([mu]).eval({x: pictures})
again = decoder(code).eval({code: codes})
assert again.shape == (20, PIXELS)
error = np.mean((again > 0.5) != (pictures > 0.5))
print("pixel error: {:.4f}".format(error))
decoder(code).save("decoder.model")
loaded = load_model("decoder.model")
np.testing.assert_allclose(loaded(codes), again, rtol=1e-5)
assert loaded.find_by_name("pixels") is not None and loaded.pixels.W.shape == (64, PIXELS)
# noise is drawn anew each time
one, other = (decoded.eval({x: pictures}) for _ in range(2))
assert np.abs(one - other).max() > 1e-4
