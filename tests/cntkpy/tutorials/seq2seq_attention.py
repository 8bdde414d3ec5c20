"""Write a word backwards with an encoder, a decoder with attention, and greedy and beam decoding."""

from __future__ import print_function

import os

import numpy as np
import cntk as C
from cntk import Trainer, Axis
from cntk.io import MinibatchSource, CTFDeserializer, StreamDef, StreamDefs, INFINITELY_REPEAT
from cntk.layers import *
from cntk.learners import fsadagrad
from cntk.logging import ProgressPrinter, log_number_of_parameters
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)

letters = ["<s>", "</s>"] + list("abcdef")
vocab = {letter: at for at, letter in enumerate(letters)}
i2w = {at: letter for letter, at in vocab.items()}
input_vocab_dim = label_vocab_dim = len(letters)
sentence_end_index = vocab["</s>"]


def write_pairs(path, count):
    with open(path, "w") as out:
        for number in range(count):
            word = [np.random.choice(list("abcdef")) for _ in range(np.random.randint(3, 5))]
            source, target = word + ["</s>"], ["<s>"] + word[::-1] + ["</s>"]
            for at in range(max(len(source), len(target))):
                line = str(number)
                if at < len(source):
                    line += " |S0 {}:1".format(vocab[source[at]])
                if at < len(target):
                    line += " |S1 {}:1".format(vocab[target[at]])
                out.write(line + "\n")


def create_reader(path, is_training):
    assert os.path.exists(path)
    return MinibatchSource(
        CTFDeserializer(
            path,
            StreamDefs(
                features=StreamDef(field="S0", shape=input_vocab_dim, is_sparse=True),
                labels=StreamDef(field="S1", shape=label_vocab_dim, is_sparse=True),
            ),
        ),
        randomize=is_training,
        max_sweeps=INFINITELY_REPEAT if is_training else 1,
    )


write_pairs("train.ctf", 600)
write_pairs("valid.ctf", 60)

hidden_dim = 48
num_layers = 1
attention_dim = 32
use_attention = True
embedding_dim = 16

inputAxis = Axis("inputAxis")
labelAxis = Axis("labelAxis")
InputSequence = SequenceOver[inputAxis]
LabelSequence = SequenceOver[labelAxis]


def create_model():
    embed = C.layers.Embedding(embedding_dim, name="embed")

    with C.layers.default_options(enable_self_stabilization=True, go_backwards=False):
        LastRecurrence = C.layers.Fold if not use_attention else C.layers.Recurrence
        encode = C.layers.Sequential(
            [
                embed,
                C.layers.Stabilizer(),
                C.layers.For(range(num_layers - 1), lambda: C.layers.Recurrence(C.layers.LSTM(hidden_dim))),
                LastRecurrence(C.layers.LSTM(hidden_dim), return_full_state=True),
                (C.layers.Label("encoded_h"), C.layers.Label("encoded_c")),
            ]
        )

    with default_options(enable_self_stabilization=True):
        stab_in = Stabilizer()
        rec_blocks = [LSTM(hidden_dim) for i in range(num_layers)]
        stab_out = Stabilizer()
        proj_out = Dense(label_vocab_dim, name="out_proj")
        if use_attention:
            attention_model = AttentionModel(attention_dim, name="attention_model")

        @C.Function
        def decode(history, input):
            encoded_input = encode(input)
            r = history
            r = embed(r)
            r = stab_in(r)
            for i in range(num_layers):
                rec_block = rec_blocks[i]
                if use_attention:
                    if i == 0:

                        @C.Function
                        def lstm_with_attention(dh, dc, x):
                            h_att = attention_model(encoded_input.outputs[0], dh)
                            x = C.splice(x, h_att)
                            return rec_block(dh, dc, x)

                        r = Recurrence(lstm_with_attention)(r)
                    else:
                        r = Recurrence(rec_block)(r)
                else:
                    r = RecurrenceFrom(rec_block)(*(encoded_input.outputs + (r,)))
            r = stab_out(r)
            r = proj_out(r)
            r = Label("out_proj_out")(r)
            return r

    return decode


def create_model_train(s2smodel):
    @C.Function
    def model_train(input, labels):
        past_labels = C.layers.Delay(initial_state=sentence_start)(labels)
        return s2smodel(past_labels, input)

    return model_train


def create_model_greedy(s2smodel):
    @C.Function
    @C.layers.Signature(InputSequence[C.layers.Tensor[input_vocab_dim]])
    def model_greedy(input):
        unfold = C.layers.UnfoldFrom(
            lambda history: s2smodel(history, input) >> C.hardmax,
            until_predicate=lambda w: w[..., sentence_end_index],
            length_increase=2,
        )
        return unfold(initial_state=sentence_start, dynamic_axes_like=input)

    return model_greedy


def create_criterion_function(model):
    @C.Function
    @C.layers.Signature(
        input=InputSequence[C.layers.Tensor[input_vocab_dim]], labels=LabelSequence[C.layers.Tensor[label_vocab_dim]]
    )
    def criterion(input, labels):
        postprocessed_labels = C.sequence.slice(labels, 1, 0)
        z = model(input, postprocessed_labels)
        ce = cross_entropy_with_softmax(z, postprocessed_labels)
        errs = classification_error(z, postprocessed_labels)
        return ce, errs

    return criterion


sentence_start = C.Constant(np.array([w == "<s>" for w in letters], dtype=np.float32))


def dense(sequences):
    return [one.todense().A if hasattr(one, "todense") else one for one in sequences]


def format_sequences(sequences, i2w):
    return [" ".join([i2w[np.argmax(w)] for w in s]) for s in sequences]


def beam_search(model, source, width=3, longest=7):
    """The best words by the sum of their log probabilities; the model is asked with every history."""
    beams = [(0.0, [vocab["<s>"]])]
    for _ in range(longest):
        if all(words[-1] == sentence_end_index for _, words in beams):
            break
        grown = []
        open_ones = [(score, words) for score, words in beams if words[-1] != sentence_end_index]
        histories = [np.eye(label_vocab_dim, dtype=np.float32)[words] for _, words in open_ones]
        values = model.eval({model.arguments[0]: histories, model.arguments[1]: [source] * len(histories)})
        for (score, words), value in zip(open_ones, values):
            log_probabilities = value[-1]
            for word in np.argsort(log_probabilities)[-width:]:
                grown.append((score + log_probabilities[word], words + [int(word)]))
        grown += [one for one in beams if one[1][-1] == sentence_end_index]
        beams = sorted(grown, key=lambda one: -one[0])[:width]
    return beams[0][1][1:]


def train(train_reader, valid_reader, s2smodel, max_epochs, epoch_size):
    model_train = create_model_train(s2smodel)
    criterion = create_criterion_function(model_train)
    model_greedy = create_model_greedy(s2smodel)

    minibatch_size = 240
    lr = 0.005
    learner = fsadagrad(
        model_train.parameters,
        lr=C.learning_parameter_schedule_per_sample([lr] * 2 + [lr / 2] * 3 + [lr / 4], epoch_size),
        momentum=C.momentum_schedule(0.9366416204111472, minibatch_size=minibatch_size),
        gradient_clipping_threshold_per_sample=2.3,
        gradient_clipping_with_truncation=True,
    )
    trainer = Trainer(None, criterion, learner)
    log_number_of_parameters(model_train)
    progress_printer = ProgressPrinter(freq=10, tag="Training")

    total_samples = 0
    for epoch in range(max_epochs):
        while total_samples < (epoch + 1) * epoch_size:
            mb_train = train_reader.next_minibatch(minibatch_size)
            trainer.train_minibatch(
                {
                    criterion.arguments[0]: mb_train[train_reader.streams.features],
                    criterion.arguments[1]: mb_train[train_reader.streams.labels],
                }
            )
            progress_printer.update_with_trainer(trainer, with_metric=True)
            total_samples += mb_train[train_reader.streams.labels].num_samples
        mb_valid = valid_reader.next_minibatch(60)
        e = model_greedy(mb_valid[valid_reader.streams.features])
        print(format_sequences(dense(mb_valid[valid_reader.streams.features].as_sequences())[:1], i2w), "->")
        print(format_sequences(e[:1], i2w))
        progress_printer.epoch_summary(with_metric=True)
        trainer.save_checkpoint("model_%d.cmf" % epoch)
    return criterion


def evaluate_decoding(reader, model_greedy):
    right = total = 0
    while True:
        mb = reader.next_minibatch(120)
        if not mb:
            break
        features = mb[reader.streams.features]
        labels = [one.argmax(1).tolist()[1:] for one in dense(mb[reader.streams.labels].as_sequences())]
        for found, expected in zip(model_greedy(features), labels):
            words = np.argmax(found, axis=1).tolist()
            if sentence_end_index in words:
                words = words[: words.index(sentence_end_index) + 1]
            right += words == expected
            total += 1
    return 1 - right / total


model = create_model()
train_reader = create_reader("train.ctf", True)
valid_reader = create_reader("valid.ctf", True)
criterion = train(train_reader, valid_reader, model, 9, 6000)
model_greedy = create_model_greedy(model)
error = evaluate_decoding(create_reader("valid.ctf", False), model_greedy)
print("string error: {:.4f}".format(error))

# beam search asks the model itself, with a history of any length
history = LabelSequence[Tensor[label_vocab_dim]]
given = InputSequence[Tensor[input_vocab_dim]]
beam_model = C.log_softmax(
    model(
        C.sequence.input_variable(label_vocab_dim, sequence_axis=labelAxis, name="history"),
        C.sequence.input_variable(input_vocab_dim, sequence_axis=inputAxis, name="raw_input"),
    )
)
wrong = 0
words = ["abc", "fade", "bed", "dad"]
for word in words:
    source = np.eye(input_vocab_dim, dtype=np.float32)[[vocab[letter] for letter in word] + [sentence_end_index]]
    found = "".join(i2w[at] for at in beam_search(beam_model, source))
    print(word, "->", found)
    wrong += found != word[::-1] + "</s>"
print("beam errors: {}".format(wrong))

model.save("model.cmf")
reloaded = C.Function.load("model.cmf")
print(len(reloaded.parameters) == len(model.parameters))
