"""Functions, learners and writers of a program's own inside of a training."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk import output_variable
from cntk.learners import UserLearner
from cntk.ops.functions import UserFunction

rng = np.random.RandomState(1)
C.cntk_py.set_fixed_random_seed(1)


class Swish(UserFunction):
    """x sigmoid(b x), with a backward pass by hand."""

    def __init__(self, x, steepness=1.0, name="Swish"):
        self.steepness = steepness
        super(Swish, self).__init__([x], name=name)

    def forward(self, argument, device=None, outputs_to_retain=None):
        gate = 1 / (1 + np.exp(-self.steepness * argument))
        return (argument, gate), argument * gate

    def backward(self, state, root_gradients):
        x, gate = state
        return root_gradients * (gate + self.steepness * x * gate * (1 - gate))

    def infer_outputs(self):
        x = self.inputs[0]
        return [output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def serialize(self):
        return {"steepness": self.steepness}

    @staticmethod
    def deserialize(inputs, name, state):
        return Swish(inputs[0], state["steepness"], name)


class Split(UserFunction):
    """The positive and the negative part."""

    def __init__(self, x, name="Split"):
        super(Split, self).__init__([x], name=name)

    def forward(self, argument, outputs, device=None, outputs_to_retain=None):
        for output, sign in zip(self.outputs, (1, -1)):
            outputs[output] = np.maximum(sign * argument, 0)
        return argument

    def backward(self, state, root_gradients):
        up, down = (root_gradients[output] for output in self.outputs)
        gradient = np.zeros_like(state)
        gradient += (state > 0) * (0 if up is None else up)
        gradient -= (state < 0) * (0 if down is None else down)
        return gradient

    def infer_outputs(self):
        x = self.inputs[0]
        return [output_variable(x.shape, x.dtype, x.dynamic_axes, name=name) for name in ("up", "down")]

    @staticmethod
    def deserialize(inputs, name, state):
        return Split(inputs[0], name)


class Signs(UserLearner):
    """Steps of one size in the direction of the mean of some gradients."""

    def __init__(self, parameters, lr_schedule, decay=0.8):
        super(Signs, self).__init__(parameters, lr_schedule)
        self.decay = decay
        self.means = {parameter: np.zeros(parameter.shape, np.float32) for parameter in parameters}
        self.calls = 0

    def update(self, gradient_values, training_sample_count, sweep_end):
        self.calls += 1
        for parameter, gradient in gradient_values.items():
            mean = self.means[parameter]
            mean *= self.decay
            mean += (1 - self.decay) * gradient / training_sample_count
            parameter.value = parameter.value - self.learning_rate() * np.sign(mean)
        return True


class Curve(C.logging.ProgressWriter):
    """Keeps the losses of the epochs."""

    def __init__(self):
        super(Curve, self).__init__(freq=None)
        self.epochs = []

    def on_write_training_summary(self, samples, updates, summaries, aggregate_loss, aggregate_metric, elapsed):
        self.epochs.append(aggregate_loss / samples)


def points(count):
    """Two interleaved half moons."""
    kinds = rng.randint(2, size=count)
    turns = rng.rand(count) * np.pi
    x = np.where(kinds, 1 - np.cos(turns), np.cos(turns))
    y = np.where(kinds, 0.5 - np.sin(turns), np.sin(turns))
    return np.stack([x, y], 1).astype(np.float32) + 0.1 * rng.randn(count, 2).astype(np.float32), np.eye(
        2, dtype=np.float32
    )[kinds]


x, y = C.input_variable(2, needs_gradient=True, name="x"), C.input_variable(2, name="y")
hidden = C.user_function(Swish(C.layers.Dense(12)(x), 1.5))
up, down = C.user_function(Split(C.layers.Dense(6)(hidden))).outputs
z = C.layers.Dense(2, name="scores")(C.splice(up, 0.3 * down))
loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)

# its gradient is that of finite differences
data, kinds = points(5)
gradient = loss.grad({x: data, y: kinds}, wrt=[x])
shift = 1e-2 * rng.randn(*data.shape).astype(np.float32)
difference = loss.eval({x: data + shift, y: kinds}) - loss.eval({x: data - shift, y: kinds})
np.testing.assert_allclose(difference.ravel(), 2 * (gradient * shift).sum(1), rtol=0.05, atol=1e-3)

learner, curve = Signs(z.parameters, C.learning_parameter_schedule([0.01] * 10 + [0.003], epoch_size=400)), Curve()
trainer = C.Trainer(z, (loss, error), [learner], [curve, C.logging.ProgressPrinter(tag="moons", num_epochs=15)])
data, kinds = points(400)
for _ in range(15):
    for at in range(0, 400, 40):
        trainer.train_minibatch({x: data[at : at + 40], y: kinds[at : at + 40]})
    trainer.summarize_training_progress()
assert learner.calls == 150 and len(curve.epochs) == 15 and curve.epochs[-1] < curve.epochs[0]
data, kinds = points(400)
print("moons error: {:.4f}".format(trainer.test_minibatch({x: data, y: kinds})))

# in a file
z.save("moons.model")
loaded = C.Function.load("moons.model")
np.testing.assert_allclose(loaded.eval(data), z.eval({x: data}), rtol=1e-4, atol=1e-5)
