"""Tells benign tumours from malignant ones by age and size: one linear layer, made by hand."""

import cntk as C
import numpy as np

try:
    C.device.try_set_default_device(C.device.gpu(0))
except Exception:  # a computer without a GPU
    C.device.try_set_default_device(C.device.cpu())
C.cntk_py.set_fixed_random_seed(1)
np.random.seed(0)

input_dim = 2
num_output_classes = 2


def patients(sample_size, feature_dim, num_classes):
    """Two clouds of points, the second one further out and wider."""
    kinds = np.random.randint(size=(sample_size, 1), low=0, high=num_classes)
    points = (np.random.randn(sample_size, feature_dim) + 3) * (kinds + 1)
    labels = np.hstack([np.equal(kinds, kind) for kind in range(num_classes)])
    return points.astype(np.float32), labels.astype(np.float32)


feature = C.input_variable(input_dim, np.float32)
label = C.input_variable(num_output_classes, np.float32)
params = {"w": None, "b": None}


def linear_layer(input_var, output_dim):
    weight_param = C.parameter(shape=(input_var.shape[0], output_dim))
    bias_param = C.parameter(shape=(output_dim))
    params["w"], params["b"] = weight_param, bias_param
    return C.times(input_var, weight_param) + bias_param


z = linear_layer(feature, num_output_classes)
loss = C.cross_entropy_with_softmax(z, label)
eval_error = C.classification_error(z, label)

lr_schedule = C.learning_rate_schedule(0.5, C.UnitType.minibatch)
learner = C.sgd(z.parameters, lr_schedule)
trainer = C.Trainer(z, (loss, eval_error), [learner])


def moving_average(values, width=5):
    """The mean of each value and those before it."""
    return [sum(values[max(0, at - width + 1) : at + 1]) / min(width, at + 1) for at in range(len(values))]


def print_training_progress(trainer, minibatch, frequency):
    training_loss, eval_error = "NA", "NA"
    if minibatch % frequency == 0:
        training_loss = trainer.previous_minibatch_loss_average
        eval_error = trainer.previous_minibatch_evaluation_average
        print("Minibatch: {0}, Loss: {1:.4f}, Error: {2:.2f}".format(minibatch, training_loss, eval_error))
    return minibatch, training_loss, eval_error


minibatch_size = 25
losses = []
for number in range(int(20000 / minibatch_size)):
    features, labels = patients(minibatch_size, input_dim, num_output_classes)
    trainer.train_minibatch({feature: features, label: labels})
    _, training_loss, _ = print_training_progress(trainer, number, 50)
    if training_loss != "NA":
        losses.append(training_loss)
smooth = moving_average(losses)
assert smooth[-1] < smooth[0]

features, labels = patients(1000, input_dim, num_output_classes)
error = trainer.test_minibatch({feature: features, label: labels})

out = C.softmax(z)
result = out.eval({feature: features})
predicted = [np.argmax(row) for row in result]
expected = [np.argmax(row) for row in labels]
wrong = np.mean(np.array(predicted) != np.array(expected))
assert abs(wrong - error) < 1e-5, (wrong, error)

print("bias", params["b"].value)
print("weight", params["w"].value)
assert params["w"].value.shape == (2, 2)
assert z.parameters[0].name == "" and len(z.parameters) == 2
print("test error: {:.4f}".format(error))
