"""Tag the words of queries about flights: CTF files of sparse sequences, LSTM in both directions, look-ahead."""

from __future__ import print_function

import math

import numpy as np
import cntk as C
from cntk.layers import *

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)
C.cntk_py.force_deterministic_algorithms()

CITIES = ["boston", "denver", "seattle", "newark", "salt lake", "st louis"]
DAYS = ["monday", "friday", "sunday"]
SLOTS = ["O", "B-from", "I-from", "B-to", "I-to", "B-day"]
words = "BOS EOS flights from to on show me the please what are " + " ".join(CITIES + DAYS)
query_wl = sorted(set(words.split()))
query_dict = {word: at for at, word in enumerate(query_wl)}
slots_dict = {slot: at for at, slot in enumerate(SLOTS)}
intents = ["question", "order"]


def query():
    """Words with their slots, and the intent."""
    intent = np.random.randint(2)
    found = [("BOS", "O")]
    found += [(word, "O") for word in ("what are flights".split() if intent == 0 else "show me flights".split())]
    clauses = ["from", "to", "on"]
    np.random.shuffle(clauses)
    for clause in clauses[: np.random.randint(1, 4)]:
        found.append((clause, "O"))
        slot = {"on": "day"}.get(clause, clause)
        value = np.random.choice(DAYS if clause == "on" else CITIES).split()
        found += [(word, ("I-" if at else "B-") + slot) for at, word in enumerate(value)]
    return found + [("EOS", "O")], intent


def write_ctf(path, count):
    with open(path, "w") as out:
        for number in range(count):
            tagged, intent = query()
            for at, (word, slot) in enumerate(tagged):
                line = "{} |S0 {}:1 |# {} ".format(number, query_dict[word], word)
                if at == 0:
                    line += "|S1 {}:1 ".format(intent)
                out.write(line + "|S2 {}:1\n".format(slots_dict[slot]))


write_ctf("atis.train.ctf", 400)
write_ctf("atis.test.ctf", 100)

vocab_size, num_labels, num_intents = len(query_wl), len(SLOTS), 2
emb_dim, hidden_dim = 16, 24

x = C.sequence.input_variable(vocab_size)
y = C.sequence.input_variable(num_labels)


def create_reader(path, is_training):
    return C.io.MinibatchSource(
        C.io.CTFDeserializer(
            path,
            C.io.StreamDefs(
                query=C.io.StreamDef(field="S0", shape=vocab_size, is_sparse=True),
                intent=C.io.StreamDef(field="S1", shape=num_intents, is_sparse=True),
                slot_labels=C.io.StreamDef(field="S2", shape=num_labels, is_sparse=True),
            ),
        ),
        randomize=is_training,
        max_sweeps=C.io.INFINITELY_REPEAT if is_training else 1,
    )


def create_criterion_function(model):
    labels = C.placeholder(name="labels")
    ce = C.cross_entropy_with_softmax(model, labels)
    errs = C.classification_error(model, labels)
    return C.combine([ce, errs])


def create_criterion_function_preferred(model, labels):
    ce = C.cross_entropy_with_softmax(model, labels)
    errs = C.classification_error(model, labels)
    return ce, errs


def create_model():
    with C.layers.default_options(initial_state=0.1):
        return C.layers.Sequential(
            [
                C.layers.Embedding(emb_dim, name="embed"),
                C.layers.Recurrence(C.layers.LSTM(hidden_dim), go_backwards=False),
                C.layers.Dense(num_labels, name="classify"),
            ]
        )


def BiRecurrence(fwd, bwd):
    F = C.layers.Recurrence(fwd)
    G = C.layers.Recurrence(bwd, go_backwards=True)
    x = C.placeholder()
    apply_x = C.splice(F(x), G(x))
    return apply_x


def OneWordLookahead():
    x = C.placeholder()
    apply_x = C.splice(x, C.sequence.future_value(x))
    return apply_x


def create_model_both_ways():
    with C.layers.default_options(initial_state=0.1):
        return C.layers.Sequential(
            [
                C.layers.Embedding(emb_dim, name="embed"),
                OneWordLookahead(),
                C.layers.BatchNormalization(normalization_time_constant=500),
                BiRecurrence(C.layers.LSTM(hidden_dim // 2), C.layers.LSTM(hidden_dim // 2)),
                C.layers.BatchNormalization(normalization_time_constant=500),
                C.layers.Dense(num_labels, name="classify"),
            ]
        )


def train(reader, model_func, max_epochs=5):
    model = model_func(x)
    loss, label_error = create_criterion_function_preferred(model, y)
    epoch_size = 2400
    minibatch_size = 200
    lr_per_sample = [1e-4] * 2 + [5e-5] * 2 + [2.5e-5]
    lr_per_minibatch = [lr * minibatch_size for lr in lr_per_sample]
    lr_schedule = C.learning_parameter_schedule(lr_per_minibatch, epoch_size=epoch_size)
    momentums = C.momentum_schedule(0.9048374180359595, minibatch_size=minibatch_size)
    learner = C.adam(
        parameters=model.parameters,
        lr=lr_schedule,
        momentum=momentums,
        gradient_clipping_threshold_per_sample=15,
        gradient_clipping_with_truncation=True,
        minibatch_size=minibatch_size,
    )
    progress_printer = C.logging.ProgressPrinter(tag="Training", num_epochs=max_epochs)
    trainer = C.Trainer(model, (loss, label_error), learner, progress_printer)
    C.logging.log_number_of_parameters(model)

    t = 0
    for epoch in range(max_epochs):
        epoch_end = (epoch + 1) * epoch_size
        while t < epoch_end:
            data = reader.next_minibatch(
                minibatch_size, input_map={x: reader.streams.query, y: reader.streams.slot_labels}
            )
            trainer.train_minibatch(data)
            t += data[y].num_samples
        trainer.summarize_training_progress()


def evaluate(reader, model_func):
    model = model_func(x)
    loss, label_error = create_criterion_function_preferred(model, y)
    progress_printer = C.logging.ProgressPrinter(tag="Evaluation", num_epochs=0)
    evaluator = C.eval.Evaluator(label_error, progress_printer)
    total = 0.0
    count = 0
    while True:
        data = reader.next_minibatch(500, input_map={x: reader.streams.query, y: reader.streams.slot_labels})
        if not data:
            break
        total += evaluator.test_minibatch(data) * data[y].num_samples
        count += data[y].num_samples
    evaluator.summarize_test_progress()
    return total / count


z = create_model()
print(z.embed.E.shape, z.classify.b.value)
assert z.embed.E.shape in ((-1, emb_dim), (C.InferredDimension, emb_dim)), z.embed.E.shape
z = z(x)
assert z.embed.E.shape == (vocab_size, emb_dim)
criterion = create_criterion_function(create_model())
criterion.replace_placeholders({criterion.placeholders[0]: C.sequence.input_variable(num_labels)})

for name, create in [
    ("plain", create_model),
    ("both ways", create_model_both_ways),
]:
    model = create()
    train(create_reader("atis.train.ctf", True), model, 8)
    error = evaluate(create_reader("atis.test.ctf", False), model)
    print("{} tag error: {:.4f}".format(name, error))
    if name == "plain":
        z = model

seq = "BOS show me flights from salt lake to denver on friday EOS"
w = [query_dict[word] for word in seq.split()]
onehot = np.zeros([len(w), len(query_dict)], np.float32)
for t in range(len(w)):
    onehot[t, w[t]] = 1
z = z(x)
pred = z.eval({x: [onehot]})[0]
print(pred.shape)
best = np.argmax(pred, axis=1)
print(list(zip(seq.split(), [SLOTS[s] for s in best])))


# the intent of a whole query, by Fold
def create_intent_model():
    return Sequential(
        [Embedding(emb_dim), Stabilizer(), Fold(LSTM(hidden_dim), go_backwards=False), Dense(num_intents)]
    )


intent_x = C.sequence.input_variable(vocab_size, is_sparse=True, name="query")
intent_y = C.input_variable(num_intents, is_sparse=True, name="intent")
intent_model = create_intent_model()(intent_x)
ce = C.cross_entropy_with_softmax(intent_model, intent_y)
pe = C.classification_error(intent_model, intent_y)
learner = C.fsadagrad(
    intent_model.parameters,
    lr=C.learning_rate_schedule(0.01, C.UnitType.sample),
    momentum=C.momentum_as_time_constant_schedule(100),
    unit_gain=True,
)
trainer = C.Trainer(intent_model, (ce, pe), [learner], C.logging.ProgressPrinter(0, tag="intent"))
reader = create_reader("atis.train.ctf", True)
for i in range(60):
    data = reader.next_minibatch(200, input_map={intent_x: reader.streams.query, intent_y: reader.streams.intent})
    trainer.train_minibatch(data)
reader = create_reader("atis.test.ctf", False)
data = reader.next_minibatch(2000, input_map={intent_x: reader.streams.query, intent_y: reader.streams.intent})
print("intent error: {:.4f}".format(trainer.test_minibatch(data)))
assert math.isfinite(trainer.previous_minibatch_loss_average)
