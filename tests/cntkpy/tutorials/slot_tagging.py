"""Tags the words of queries about flights and says what a query wants, from a CTF file of sparse sequences."""

from __future__ import print_function

import math

import cntk as C
import numpy as np
from cntk.layers import *

rng = np.random.RandomState(0)
C.cntk_py.set_fixed_random_seed(1)
C.cntk_py.force_deterministic_algorithms()

CITIES = ["boston", "denver", "seattle", "newark", "salt lake", "st louis"]
DAYS = ["monday", "friday", "sunday"]
OPENINGS = [["what", "are", "flights"], ["show", "me", "flights"]]
TAGS = ["O", "B-from", "I-from", "B-to", "I-to", "B-day"]
known = sorted(set(" ".join(CITIES + DAYS + sum(OPENINGS, []) + ["from to on BOS EOS"]).split()))
number_of = {word: number for number, word in enumerate(known)}
WORDS, INTENTS = len(known), len(OPENINGS)


def query():
    """Words with their tags, and the intent."""
    intent = rng.randint(INTENTS)
    tagged = [(word, "O") for word in ["BOS"] + OPENINGS[intent]]
    for clause in rng.permutation(["from", "to", "on"])[: rng.randint(1, 4)]:
        tagged.append((clause, "O"))
        slot = {"on": "day"}.get(clause, clause)
        value = rng.choice(DAYS if slot == "day" else CITIES).split()
        tagged.extend((word, "BI"[at > 0] + "-" + slot) for at, word in enumerate(value))
    return tagged + [("EOS", "O")], intent


def write(path, count):
    """A line for each word; the intent stands in the first one."""
    with open(path, "w") as out:
        for key in range(count):
            tagged, intent = query()
            for at, (word, tag) in enumerate(tagged):
                fields = ["|word %d:1" % number_of[word], "|# %s" % word, "|tag %d:1" % TAGS.index(tag)]
                fields += ["|intent %d:1" % intent] if at == 0 else []
                out.write("%d %s\n" % (key, " ".join(fields)))


write("train.ctf", 400)
write("test.ctf", 100)


def reader(path, sweeps=C.io.INFINITELY_REPEAT):
    sizes = {"word": WORDS, "tag": len(TAGS), "intent": INTENTS}
    streams = {name: C.io.StreamDef(field=name, shape=size, is_sparse=True) for name, size in sizes.items()}
    data = C.io.CTFDeserializer(path, C.io.StreamDefs(**streams))
    return C.io.MinibatchSource(data, randomize=sweeps != 1, max_sweeps=sweeps)


def one_way():
    with default_options(initial_state=0.1):
        return Sequential(
            [Embedding(16, name="embed"), Recurrence(LSTM(24), go_backwards=False), Dense(len(TAGS), name="classify")]
        )


def around(forward, backward):
    """Both directions side by side, as a function with a hole."""
    hole = C.placeholder(name="steps")
    return C.splice(Recurrence(forward)(hole), Recurrence(backward, go_backwards=True)(hole))


def with_next():
    """Each step with the one after it."""
    hole = C.placeholder()
    return C.splice(hole, C.sequence.future_value(hole), axis=0)


def two_ways():
    with default_options(initial_state=0.1):
        return Sequential(
            [
                Embedding(16, name="embed"),
                with_next(),
                BatchNormalization(normalization_time_constant=500),
                around(LSTM(12), LSTM(12)),
                BatchNormalization(normalization_time_constant=500),
                Dense(len(TAGS), name="classify"),
            ]
        )


words = C.sequence.input_variable(WORDS, is_sparse=True, name="words")
tags = C.sequence.input_variable(len(TAGS), is_sparse=True, name="tags")
SWEEP, BATCH = 2400, 200


def train(layer, epochs):
    z = layer(words)
    criterion = C.combine([C.cross_entropy_with_softmax(z, tags), C.classification_error(z, tags)])
    learner = C.adam(
        parameters=z.parameters,
        lr=C.learning_parameter_schedule_per_sample([0.02] * 2 + [0.01] * 2 + [0.005], epoch_size=SWEEP),
        momentum=C.momentum_schedule(0.9, minibatch_size=BATCH),
        gradient_clipping_threshold_per_sample=15,
        gradient_clipping_with_truncation=True,
    )
    printer = C.logging.ProgressPrinter(tag="tags", num_epochs=epochs)
    trainer = C.Trainer(z, criterion, learner, printer)
    C.logging.log_number_of_parameters(z)
    source = reader("train.ctf")
    streams = {words: source.streams.word, tags: source.streams.tag}
    for epoch in range(epochs):
        while trainer.total_number_of_samples_seen < (epoch + 1) * SWEEP:
            trainer.train_minibatch(source.next_minibatch(BATCH, input_map=streams))
        trainer.summarize_training_progress()

    source = reader("test.ctf", sweeps=1)
    streams = {words: source.streams.word, tags: source.streams.tag}
    printer = C.logging.ProgressPrinter(tag="tests", num_epochs=0)
    evaluator = C.eval.Evaluator(C.classification_error(z, tags), printer)
    wrong = seen = 0
    for minibatch in iter(lambda: source.next_minibatch(500, input_map=streams), {}):
        wrong += evaluator.test_minibatch(minibatch) * minibatch[tags].num_samples
        seen += minibatch[tags].num_samples
    evaluator.summarize_test_progress()
    return z, wrong / seen


layer = one_way()
assert layer.embed.E.shape == (C.InferredDimension, 16) or layer.embed.E.shape == (-1, 16), layer.embed.E.shape
tagger, error = train(layer, 8)
assert tagger.embed.E.shape == (WORDS, 16) and tagger.classify.b.shape == (len(TAGS),)
print("one way tag error: {:.4f}".format(error))
print("two ways tag error: {:.4f}".format(train(two_ways(), 8)[1]))

# a criterion with a hole for the tags, filled afterwards
hole = C.placeholder(name="truth")
criterion = C.combine([C.cross_entropy_with_softmax(tagger, hole), C.classification_error(tagger, hole)])
criterion.replace_placeholders({criterion.placeholders[0]: tags})
assert not criterion.placeholders and set(criterion.arguments) == {words, tags}

text = "BOS show me flights from salt lake to denver on friday EOS".split()
given = C.Value.one_hot([[number_of[word] for word in text]], WORDS)
(scores,) = tagger.eval({words: given})
found = [TAGS[best] for best in scores.argmax(axis=1)]
print(list(zip(text, found)))
assert scores.shape == (len(text), len(TAGS))

# what the whole query wants
wanted = C.input_variable(INTENTS, is_sparse=True, name="wanted")
intent = Sequential([Embedding(16), Stabilizer(), Fold(LSTM(24)), Dense(INTENTS)])(words)
learner = C.fsadagrad(
    intent.parameters,
    lr=C.learning_rate_schedule(0.01, C.UnitType.sample),
    momentum=C.momentum_as_time_constant_schedule(100),
    unit_gain=True,
)
criterion = (C.cross_entropy_with_softmax(intent, wanted), C.classification_error(intent, wanted))
trainer = C.Trainer(intent, criterion, [learner], C.logging.ProgressPrinter(0, tag="intent"))
source = reader("train.ctf")
for _ in range(60):
    minibatch = source.next_minibatch(BATCH)
    trainer.train_minibatch({words: minibatch[source.streams.word], wanted: minibatch[source.streams.intent]})
assert math.isfinite(trainer.previous_minibatch_loss_average)
source = reader("test.ctf", sweeps=1)
minibatch = source.next_minibatch(2000, {words: source.streams.word, wanted: source.streams.intent})
print("intent error: {:.4f}".format(trainer.test_minibatch(minibatch)))
