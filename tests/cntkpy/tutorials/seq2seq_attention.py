"""Writes words backwards: an encoder, a decoder that looks at all of it, greedy answers and a beam."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk import Axis, Trainer
from cntk.io import INFINITELY_REPEAT, CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.layers import *
from cntk.learners import fsadagrad
from cntk.logging import ProgressPrinter, log_number_of_parameters
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error

rng = np.random.RandomState(0)
C.cntk_py.set_fixed_random_seed(1)

LETTERS = ["<", ">"] + list("abcdef")
FIRST, LAST, SIZE = 0, 1, len(LETTERS)
HIDDEN, EMBEDDED, ATTENTION = 48, 16, 32
start = C.Constant(np.eye(SIZE, dtype=np.float32)[FIRST], name="start")
one_hot = np.eye(SIZE, dtype=np.float32)

source_axis, target_axis = Axis("source"), Axis("target")
Source, Target = SequenceOver[source_axis], SequenceOver[target_axis]


def write(path, count):
    """Each word with an end, and what it is backwards between a beginning and an end; as text in comments."""
    with open(path, "w") as out:
        for key in range(count):
            word = "".join(rng.choice(LETTERS[2:], rng.randint(3, 5)))
            given, wanted = word + ">", "<" + word[::-1] + ">"
            for at in range(len(wanted)):
                out.write("%d" % key)
                if at < len(given):
                    out.write("\t|given %d:1 |# %s" % (LETTERS.index(given[at]), given[at]))
                out.write("\t|wanted %d:1 |# %s\n" % (LETTERS.index(wanted[at]), wanted[at]))


def reader(path, endless):
    fields = StreamDefs(
        given=StreamDef(field="given", shape=SIZE, is_sparse=True),
        wanted=StreamDef(field="wanted", shape=SIZE, is_sparse=True),
    )
    sweeps = INFINITELY_REPEAT if endless else 1
    return MinibatchSource(CTFDeserializer(path, fields), randomize=endless, max_sweeps=sweeps)


class Translator(object):
    """The layers that training and answering share."""

    def __init__(self):
        self.embed = Embedding(EMBEDDED, name="embed")
        with default_options(enable_self_stabilization=True):
            self.encoder = Sequential(
                [
                    self.embed,
                    Stabilizer(),
                    Recurrence(LSTM(HIDDEN), go_backwards=True, return_full_state=True),
                    (Label("encoded_h"), Label("encoded_c")),
                ]
            )
            self.attention = AttentionModel(ATTENTION, name="attention")
            self.cell = LSTM(HIDDEN)
            self.before, self.after = Stabilizer(), Stabilizer()
            self.out = Dense(SIZE, name="out")

    def __call__(self, history, given):
        """Scores of the next letter after each letter of the history."""
        encoded = self.encoder(given)
        assert len(encoded.outputs) == 2

        @C.Function
        def step(h, c, x):
            return self.cell(h, c, C.splice(x, self.attention(encoded.outputs[0], h)))

        decoded = Recurrence(step)(self.before(self.embed(history)))
        return Label("scores")(self.out(self.after(decoded)))

    def criterion(self):
        @C.Function
        @Signature(given=Source[Tensor[SIZE]], wanted=Target[Tensor[SIZE]])
        def loss_and_error(given, wanted):
            truth = C.sequence.slice(wanted, 1, 0)
            scores = self(Delay(initial_state=start)(truth), given)
            return cross_entropy_with_softmax(scores, truth), classification_error(scores, truth)

        return loss_and_error

    def greedy(self):
        @C.Function
        @Signature(Source[Tensor[SIZE]])
        def answer(given):
            best = UnfoldFrom(
                lambda history: self(history, given) >> C.hardmax,
                until_predicate=lambda letter: letter[..., LAST],
                length_increase=2,
            )
            return best(start, given)

        return answer

    def beam(self, word, width=3):
        """The letters with the largest sum of log probabilities."""
        given = one_hot[[LETTERS.index(letter) for letter in word + ">"]]
        kept = [(0.0, [FIRST])]
        while any(letters[-1] != LAST for _, letters in kept) and len(kept[0][1]) < 8:
            grown = [one for one in kept if one[1][-1] == LAST]
            running = [one for one in kept if one[1][-1] != LAST]
            histories = [one_hot[letters] for _, letters in running]
            scores = self.log_probability.eval({self.history: histories, self.given: [given] * len(running)})
            for (total, letters), steps in zip(running, scores):
                best = np.argsort(-steps[-1])[:width]
                grown += [(total + steps[-1][letter], letters + [int(letter)]) for letter in best]
            kept = sorted(grown, reverse=True)[:width]
        return "".join(LETTERS[letter] for letter in kept[0][1][1:])

    def prepare_beam(self):
        self.history = C.sequence.input_variable(SIZE, sequence_axis=target_axis, name="history")
        self.given = C.sequence.input_variable(SIZE, sequence_axis=source_axis, name="given")
        self.log_probability = C.log_softmax(self(self.history, self.given))


def spelled(sequence):
    letters = "".join(LETTERS[letter] for letter in np.asarray(sequence).argmax(axis=1))
    return letters[: letters.find(">") + 1]


write("train.ctf", 600)
write("test.ctf", 60)
translator = Translator()
criterion, greedy = translator.criterion(), translator.greedy()

SWEEP, BATCH = 6000, 240
rates = C.learning_parameter_schedule_per_sample([0.005] * 2 + [0.0025] * 3 + [0.00125], SWEEP)
learner = fsadagrad(
    criterion.parameters,
    lr=rates,
    momentum=C.momentum_schedule(0.93, minibatch_size=BATCH),
    gradient_clipping_threshold_per_sample=2.3,
    gradient_clipping_with_truncation=True,
)
trainer = Trainer(None, criterion, learner)
log_number_of_parameters(criterion)
printer = ProgressPrinter(freq=15, tag="Training")
data = reader("train.ctf", True)
given, wanted = criterion.arguments
assert (given.name, wanted.name) == ("given", "wanted")
for epoch in range(9):
    while trainer.total_number_of_samples_seen < (epoch + 1) * SWEEP:
        minibatch = data.next_minibatch(BATCH)
        trainer.train_minibatch({given: minibatch[data.streams.given], wanted: minibatch[data.streams.wanted]})
        printer.update_with_trainer(trainer, with_metric=True)
    print("abcd ->", spelled(greedy([one_hot[[2, 3, 4, 5, LAST]]])[0]))
    loss, metric, samples = printer.epoch_summary(with_metric=True)
    trainer.save_checkpoint("epoch%d.model" % epoch)

data = reader("test.ctf", False)
minibatch = data.next_minibatch(1000)
pairs = [minibatch[stream].as_sequences() for stream in (data.streams.given, data.streams.wanted)]
answers = greedy(minibatch[data.streams.given])
assert len(answers) == len(pairs[0]) == 60
truth = [spelled(one.todense())[1:] for one in pairs[1]]
print("string error: {:.4f}".format(np.mean([spelled(one) != right for one, right in zip(answers, truth)])))

# where it looks while it writes: the weights of the letters for each letter of the answer
looking = C.combine([greedy, greedy.attention.attention_weights])
spoken, looks = looking([one_hot[[2, 3, 4, 5, LAST]]])
looks = np.squeeze(looks[0][: len(spoken[0])])
assert looks.shape == (len(spoken[0]), 5) and np.allclose(looks.sum(axis=1), 1, atol=1e-4)
print(looks.argmax(axis=1))

translator.prepare_beam()
words = ["abc", "fade", "bed", "dad"]
print([(word, translator.beam(word)) for word in words])
print("beam errors: {}".format(sum(translator.beam(word) != word[::-1] + ">" for word in words)))

# what was trained, out of a checkpoint, into other functions of the same layers
before = [parameter.value.copy() for parameter in criterion.parameters]
trainer.restore_from_checkpoint("epoch0.model")
assert any((one != other.value).any() for one, other in zip(before, criterion.parameters))
trainer.restore_from_checkpoint("epoch8.model")
assert all((one == other.value).all() for one, other in zip(before, criterion.parameters))
translator.log_probability.save("beam.model")
loaded = C.load_model("beam.model")
assert len(loaded.parameters) == len(translator.log_probability.parameters)
again = loaded.eval(dict(zip(loaded.arguments, ([one_hot[:3]], [one_hot[2:5]]))))
first = translator.log_probability.eval({translator.history: [one_hot[:3]], translator.given: [one_hot[2:5]]})
order = [one.name for one in loaded.arguments]
assert sorted(order) == ["given", "history"], order
if order == ["history", "given"]:
    np.testing.assert_allclose(again[0], first[0], rtol=1e-4)
