"""Predict a sine wave with an LSTM: sequences of five steps, and the energy of solar panels by `Recurrence`."""

import cntk as C
import numpy as np

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)

N = 5  # steps that the model sees
M = 5  # steps that it looks ahead


def split_data(data, val_size=0.1, test_size=0.1):
    """Train, validation and test parts, in the order of time."""
    pos_test = int(len(data) * (1 - test_size))
    pos_val = int(len(data[:pos_test]) * (1 - val_size))
    return {"train": data[:pos_val], "val": data[pos_val:pos_test], "test": data[pos_test:]}


def generate_data(fct, x, time_steps, time_shift):
    data = fct(x).astype(np.float32)
    rnn_x = [data[at : at + time_steps].reshape(-1, 1) for at in range(len(data) - time_steps - time_shift + 1)]
    rnn_y = data[time_steps + time_shift - 1 :].reshape(-1, 1)
    return split_data(np.stack(rnn_x)), split_data(rnn_y)


X, Y = generate_data(np.sin, np.linspace(0, 100, 2000, dtype=np.float32), N, M)


def next_batch(x, y, ds, batch_size):
    """Slices of both."""
    for i in range(0, len(x[ds]) - batch_size, batch_size):
        yield x[ds][i : i + batch_size], y[ds][i : i + batch_size]


def create_model(x):
    """LSTM, the last step of it, dropout, dense."""
    with C.layers.default_options(initial_state=0.1):
        m = C.layers.Recurrence(C.layers.LSTM(N))(x)
        m = C.sequence.last(m)
        m = C.layers.Dropout(0.2, seed=1)(m)
        m = C.layers.Dense(1)(m)
        return m


x = C.sequence.input_variable(1)
z = create_model(x)
l = C.input_variable(1, dynamic_axes=z.dynamic_axes, name="y")  # noqa: E741

learning_rate = 0.02
lr_schedule = C.learning_parameter_schedule(learning_rate)
loss = C.squared_error(z, l)
error = C.squared_error(z, l)
momentum_schedule = C.momentum_schedule(0.9, minibatch_size=100)
learner = C.fsadagrad(z.parameters, lr=lr_schedule, momentum=momentum_schedule, unit_gain=True)
trainer = C.Trainer(z, (loss, error), [learner])

loss_summary = []
for epoch in range(60):
    for x1, y1 in next_batch(X, Y, "train", 100):
        trainer.train_minibatch({x: x1, l: y1})
    if epoch % 20 == 0:
        training_loss = trainer.previous_minibatch_loss_average
        loss_summary.append(training_loss)
        print("epoch: {}, loss: {:.5f}".format(epoch, training_loss))


def get_mse(X, Y, labeltxt):
    result = 0.0
    for x1, y1 in next_batch(X, Y, labeltxt, 100):
        eval_error = trainer.test_minibatch({x: x1, l: y1})
        result += eval_error
    return result / max(1, len(X[labeltxt]) // 100)


for labeltxt in ["train", "val", "test"]:
    print("mse for {}: {:.6f}".format(labeltxt, get_mse(X, Y, labeltxt)))

results = [z.eval({x: x1})[:, 0] for x1, _ in next_batch(X, Y, "test", 20)]
assert (
    np.corrcoef(np.concatenate(results), np.concatenate([y[:, 0] for _, y in next_batch(X, Y, "test", 20)]))[0, 1]
    > 0.97
)

# the whole sequence at once, a value for each step; variable lengths
days = [np.cumsum(np.random.rand(np.random.randint(6, 14), 1).astype(np.float32), 0) for _ in range(120)]
totals = [day / 10 for day in days]
steps = C.sequence.input_variable(1, name="panel")
targets = C.sequence.input_variable(1, name="total")
model = C.layers.Sequential([C.layers.Recurrence(C.layers.GRU(8)), C.layers.Dense(1)])(steps)
assert model.dynamic_axes == steps.dynamic_axes
series_loss = C.squared_error(model, targets)
series = C.Trainer(
    model,
    (series_loss, None),
    C.adam(model.parameters, 0.03, C.momentum_schedule(0.9), minibatch_size=C.learners.IGNORE),
)
for _ in range(25):
    for at in range(0, 120, 30):
        series.train_minibatch({steps: days[at : at + 30], targets: totals[at : at + 30]})
assert series.previous_minibatch_sample_count == sum(map(len, days[90:])), series.previous_minibatch_sample_count
print("series loss: {:.6f}".format(series.previous_minibatch_loss_average))
print("one day: {}".format(model(days[0])[0].shape == days[0].shape))
