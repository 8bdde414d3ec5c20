"""An auto-encoder of pictures with one hidden layer and a deep one; the codes by name, and the nearest picture."""

from __future__ import print_function

import cntk as C
import numpy as np

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)

input_dim = 12 * 12
encoding_dim = 16
output_dim = input_dim
strokes = (np.random.rand(6, 12, 12) > 0.8).astype(np.float32)


def write_pictures(path, count):
    with open(path, "w") as out:
        for _ in range(count):
            kind = np.random.randint(3)
            mixed = np.clip(strokes[2 * kind] * np.random.rand() + strokes[2 * kind + 1] * np.random.rand(), 0, 1)
            pixels = " ".join("%d" % value for value in np.floor(255 * mixed).ravel())
            out.write("|labels %s |features %s\n" % (" ".join("1" if at == kind else "0" for at in range(3)), pixels))


def create_reader(path, is_training, input_dim, num_label_classes):
    return C.io.MinibatchSource(
        C.io.CTFDeserializer(
            path,
            C.io.StreamDefs(
                labels_viz=C.io.StreamDef(field="labels", shape=num_label_classes, is_sparse=False),
                features=C.io.StreamDef(field="features", shape=input_dim, is_sparse=False),
            ),
        ),
        randomize=is_training,
        max_sweeps=C.io.INFINITELY_REPEAT if is_training else 1,
    )


write_pictures("Train.txt", 640)
write_pictures("Test.txt", 128)


def create_model(features):
    with C.layers.default_options(init=C.glorot_uniform()):
        encode = C.layers.Dense(encoding_dim, activation=C.relu)(features)
        decode = C.layers.Dense(input_dim, activation=C.sigmoid)(encode)
    return decode


def create_deep_model(features):
    with C.layers.default_options(init=C.layers.glorot_uniform()):
        encode = C.element_times(C.constant(1.0 / 255.0), features)
        for encoding_dim in [48, 24]:
            encode = C.layers.Dense(encoding_dim, activation=C.relu)(encode)
        encoded_model = C.layers.Dense(8, activation=C.relu, name="code")(encode)
        decode = encoded_model
        for decoding_dim in [24, 48]:
            decode = C.layers.Dense(decoding_dim, activation=C.relu)(decode)
        decode = C.layers.Dense(input_dim, activation=C.sigmoid, name="decoded")(decode)
        return decode, encode


input = C.input_variable(input_dim)
label = C.input_variable(input_dim)


def train_and_test(reader_train, reader_test, model_func, name):
    model = model_func(input) if model_func is create_deep_model else model_func(input / 255)
    model = model[0] if isinstance(model, tuple) else model
    target = label / 255.0
    loss = -(target * C.log(model + 1e-7) + (1 - target) * C.log(1 - model + 1e-7))
    label_error = C.classification_error(model, target)

    epoch_size, minibatch_size, num_sweeps = 640, 64, 25
    num_minibatches_to_train = epoch_size * num_sweeps // minibatch_size
    lr_per_sample = [0.00009]
    lr_schedule = C.learning_parameter_schedule_per_sample(lr_per_sample, epoch_size)
    momentum_schedule = C.momentum_schedule(0.9126265014311797, minibatch_size)
    learner = C.fsadagrad(model.parameters, lr=lr_schedule, momentum=momentum_schedule)
    progress_printer = C.logging.ProgressPrinter(0)
    trainer = C.Trainer(model, (loss, label_error), [learner], progress_printer)

    input_map = {input: reader_train.streams.features, label: reader_train.streams.features}
    aggregate_metric = 0
    for i in range(num_minibatches_to_train):
        data = reader_train.next_minibatch(minibatch_size, input_map=input_map)
        trainer.train_minibatch(data)
        samples = trainer.previous_minibatch_sample_count
        aggregate_metric += trainer.previous_minibatch_evaluation_average * samples
    train_error = aggregate_metric / trainer.total_number_of_samples_seen
    print("{} training error: {:.2f}%".format(name, train_error * 100))
    trainer.summarize_training_progress()

    test_data = reader_test.next_minibatch(
        128, input_map={input: reader_test.streams.features, label: reader_test.streams.features}
    )
    trainer.test_minibatch(test_data)
    trainer.summarize_test_progress()
    return model


for name, func in [("simple", create_model), ("deep", create_deep_model)]:
    model = train_and_test(
        create_reader("Train.txt", True, input_dim, 3), create_reader("Test.txt", False, input_dim, 3), func, name
    )
    reader_eval = create_reader("Test.txt", False, input_dim, 3)
    data = reader_eval.next_minibatch(50, input_map={input: reader_eval.streams.features})
    pictures = data[input].asarray()
    decoded = model.eval({model.arguments[0]: data[input]})
    error = np.mean((pictures.reshape(50, -1) / 255 - decoded.reshape(50, -1)) ** 2)
    print("{} mean square: {:.4f}".format(name, error))

# codes of pictures and their nearest neighbours
reader_viz = create_reader("Test.txt", False, input_dim, 3)
data = reader_viz.next_minibatch(
    128, input_map={input: reader_viz.streams.features, label: reader_viz.streams.labels_viz}
)
labels = np.argmax(np.squeeze(data[label].asarray()), axis=1)
code_model = C.combine([model.find_by_name("code")])
codes = code_model.eval({code_model.arguments[0]: data[input]})
assert codes.shape == (128, 8)
units = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-6)
similar = units @ units.T - 2 * np.eye(128)
print("neighbours of another kind: {:.4f}".format(np.mean(labels[similar.argmax(1)] != labels)))

# the decoder alone, with an input in the place of the code
code = C.input_variable(8)
decoder = C.combine([model.decoded]).clone(C.CloneMethod.freeze, {model.code: code})
assert decoder.arguments == (code,) or list(decoder.arguments) == [code]
assert len(decoder.parameters) == 0
again = decoder.eval({code: codes})
np.testing.assert_allclose(again, model.eval({model.arguments[0]: data[input]}), rtol=1e-4, atol=1e-5)
