"""Predicts a wave with an LSTM, which sees five values; then sums along days of different length."""

import cntk as C
import numpy as np

rng = np.random.RandomState(0)
C.cntk_py.set_fixed_random_seed(1)

SEEN, AHEAD = 5, 5

wave = np.sin(np.linspace(0, 100, 2000)).astype(np.float32)
count = len(wave) - SEEN - AHEAD + 1
windows = np.stack([wave[at : at + SEEN, np.newaxis] for at in range(count)])
values = wave[SEEN + AHEAD - 1 :, np.newaxis]
assert len(windows) == len(values)
parts = {"train": slice(0, 1600), "validation": slice(1600, 1800), "test": slice(1800, count)}


def batches(part, size):
    """Windows with the values to predict, so many at once."""
    given, wanted = windows[parts[part]], values[parts[part]]
    for at in range(0, len(given) - size + 1, size):
        yield given[at : at + size], wanted[at : at + size]


window = C.sequence.input_variable(1, name="window")
with C.layers.default_options(initial_state=0.1):
    predict = C.layers.Sequential(
        [
            C.layers.Recurrence(C.layers.LSTM(SEEN)),
            C.sequence.last,
            C.layers.Dropout(0.2, seed=1),
            C.layers.Dense(1),
        ]
    )
predicted = predict(window)
assert len(predicted.dynamic_axes) == 1
value = C.input_variable(1, dynamic_axes=predicted.dynamic_axes, name="value")

mse = C.squared_error(predicted, value)
learner = C.fsadagrad(
    predicted.parameters,
    lr=C.learning_parameter_schedule(0.02),
    momentum=C.momentum_schedule(0.9, minibatch_size=100),
    unit_gain=True,
)
trainer = C.Trainer(predicted, (mse, mse), [learner])
for sweep in range(60):
    for given, wanted in batches("train", 100):
        trainer.train_minibatch({window: given, value: wanted})
    if sweep % 20 == 0:
        print("sweep {}: {:.5f}".format(sweep, trainer.previous_minibatch_loss_average))

for part in ("train", "validation", "test"):
    errors = [trainer.test_minibatch({window: given, value: wanted}) for given, wanted in batches(part, 95)]
    print("mse for {}: {:.6f}".format(part, np.mean(errors)))
found = np.concatenate([predicted.eval({window: given}) for given, _ in batches("test", 19)])
wanted = np.concatenate([wanted for _, wanted in batches("test", 19)])
assert np.corrcoef(found[:, 0], wanted[:, 0])[0, 1] > 0.9

# a value for each hour of days of different length
days = [np.cumsum(rng.rand(rng.randint(6, 14), 1), axis=0).astype(np.float32) for _ in range(120)]
totals = [day / 10 for day in days]
power = C.sequence.input_variable(1, name="power")
total = C.sequence.input_variable(1, name="total")
running = C.layers.Sequential([C.layers.Recurrence(C.layers.GRU(8)), C.layers.Dense(1)])(power)
assert running.dynamic_axes == power.dynamic_axes
adam = C.adam(running.parameters, 0.03, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE)
series = C.Trainer(running, (C.squared_error(running, total), None), adam)
for _ in range(25):
    for at in range(0, 120, 30):
        series.train_minibatch({power: days[at : at + 30], total: totals[at : at + 30]})
assert series.previous_minibatch_sample_count == sum(map(len, days[90:]))
print("series loss: {:.6f}".format(series.previous_minibatch_loss_average))
(day,) = running(days[0])
assert day.shape == days[0].shape
