"""Tells benign tumours from malignant ones by age and size: one linear layer, made of parameters by hand."""

import cntk as C
import numpy as np

try:
    C.device.try_set_default_device(C.device.gpu(0))
except Exception:  # a computer without a GPU
    C.device.try_set_default_device(C.device.cpu())
C.cntk_py.set_fixed_random_seed(1)
rng = np.random.RandomState(0)

FEATURES, KINDS = 2, 2


def patients(count):
    """Two clouds of points, the second one further out and wider."""
    kinds = rng.randint(KINDS, size=count)
    points = (rng.randn(count, FEATURES) + 3) * (kinds[:, np.newaxis] + 1)
    return np.asarray(points, dtype=np.float32), np.eye(KINDS, dtype=np.float32)[kinds]


measured = C.input_variable(FEATURES, np.float32, name="measured")
kind = C.input_variable(KINDS, np.float32, name="kind")

weights = C.parameter(shape=(FEATURES, KINDS))
bias = C.parameter(shape=(KINDS), init=0)
scores = C.plus(C.times(measured, weights), bias, name="scores")

loss = C.cross_entropy_with_softmax(scores, kind)
metric = C.classification_error(scores, kind)
rate = C.learning_rate_schedule(0.5, C.UnitType.minibatch)
trainer = C.Trainer(scores, (loss, metric), [C.sgd(scores.parameters, rate)])

curve = []
for number in range(800):
    points, labels = patients(25)
    used = trainer.train_minibatch({measured: points, kind: labels})
    assert used is True
    if number % 40 == 39:
        curve.append((trainer.previous_minibatch_loss_average, trainer.previous_minibatch_evaluation_average))
        print("{:4d} loss {:.4f} error {:4.0%}".format(number + 1, *curve[-1]))
assert trainer.total_number_of_samples_seen == 20000
assert np.mean([one for one, _ in curve[10:]]) < np.mean([one for one, _ in curve[:10]])

points, labels = patients(1000)
error = trainer.test_minibatch({measured: points, kind: labels})
probabilities = C.softmax(scores).eval({measured: points})
np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
wrong = np.mean(probabilities.argmax(1) != labels.argmax(1))
assert abs(wrong - error) < 1e-5, (wrong, error)

# the line between both: where the two scores are equal
(w, b) = (weights.value, bias.value)
slope = -(w[0, 0] - w[0, 1]) / (w[1, 0] - w[1, 1])
offset = -(b[0] - b[1]) / (w[1, 0] - w[1, 1])
on_line = np.array([[x, slope * x + offset] for x in (1.0, 4.0)], np.float32)
tied = scores.eval({measured: on_line})
np.testing.assert_allclose(tied[:, 0], tied[:, 1], atol=1e-3)
print("test error: {:.4f}".format(error))
