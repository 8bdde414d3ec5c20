"""Data of every kind: text of CNTK, pictures with transforms, two files joined, arrays, own deserializers, values."""

from __future__ import print_function

import os

import cntk as C
import cntk.io.transforms as xforms
import numpy as np
from cntk.io import (
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    CTFDeserializer,
    ImageDeserializer,
    MinibatchSource,
    MinibatchSourceFromData,
    StreamDef,
    StreamDefs,
    UserDeserializer,
    sequence_to_cntk_text_format,
)

rng = np.random.RandomState(7)

# sequences written by the package itself, sparse and dense ones with a label for each
sentences = [[0, 2, 1], [3], [1, 1, 2, 0]]
with open("words.ctf", "w") as out:
    for number, words in enumerate(sentences):
        sparse = [{word: 1} for word in words]
        dense = np.array(words, np.float32).reshape(-1, 1)
        label = np.array([[len(words)]], np.float32)
        out.write(sequence_to_cntk_text_format(number, {"W": sparse, "D": dense, "L": label}) + "\n")
print(open("words.ctf").read().splitlines()[:2])
streams = StreamDefs(
    words=StreamDef(field="W", shape=4, is_sparse=True), dense=StreamDef("D", shape=1), label=StreamDef("L", shape=1)
)
source = MinibatchSource(CTFDeserializer("words.ctf", streams), randomize=False, max_sweeps=1)
assert sorted(source.streams) == ["dense", "label", "words"] and source.streams.label.name == "label"
words, dense, label = C.sequence.input_variable(4, is_sparse=True), C.sequence.input_variable(1), C.input_variable(1)
mapping = {words: source.streams.words, dense: source.streams["dense"], label: source.streams.label}
minibatch = source.next_minibatch(100, input_map=mapping)
assert minibatch[words].num_sequences == 3 and minibatch[words].num_samples == 8 and minibatch[label].num_samples == 3
assert minibatch[words].is_sparse and not minibatch[dense].is_sparse and minibatch[words].end_of_sweep
assert [len(one.toarray()) for one in minibatch[words].as_sequences(words)] == [3, 1, 4]
assert [one.ravel().tolist() for one in minibatch[dense].as_sequences(dense)] == [[0, 2, 1], [3], [1, 1, 2, 0]]
counted = C.sequence.reduce_sum(C.times(words, C.constant(np.ones((4, 1), np.float32))))
np.testing.assert_allclose(counted.eval({words: minibatch[words]}), [[3], [1], [4]])
assert not source.next_minibatch(100)

# the order of a source, where it stands, and where it goes on
with open("numbers.ctf", "w") as out:
    out.writelines("|n %d |m %d\n" % (number, -number) for number in range(50))


def numbers(**options):
    data = CTFDeserializer("numbers.ctf", StreamDefs(n=StreamDef("n", shape=1), m=StreamDef("m", shape=1)))
    return MinibatchSource(data, **options)


source = numbers(randomize=True, randomization_seed=4, max_sweeps=INFINITELY_REPEAT)
first = [source.next_minibatch(20)[source.streams.n].asarray().ravel() for _ in range(2)]
state = source.get_checkpoint_state()
later = source.next_minibatch(20)[source.streams.n].asarray().ravel()
again = numbers(randomize=True, randomization_seed=4, max_sweeps=INFINITELY_REPEAT)
again.restore_from_checkpoint(state)
assert (again.next_minibatch(20)[again.streams.n].asarray().ravel() == later).all()
assert len(set(np.concatenate(first))) == 40
source = numbers(randomize=False, max_samples=120)
seen = 0
while True:
    minibatch = source.next_minibatch(32)
    if not minibatch:
        break
    seen += minibatch[source.streams.n].number_of_samples
assert seen == 120
shares = [numbers(randomize=False, max_samples=FULL_DATA_SWEEP) for _ in range(2)]
found = [one.next_minibatch(50, num_data_partitions=2, partition_index=at) for at, one in enumerate(shares)]
parts = [set(one[source.streams.n].asarray().ravel()) for one, source in zip(found, shares)]
assert not parts[0] & parts[1]

# pictures of files with transforms, joined with numbers by their keys
try:
    import cv2
except ImportError:
    cv2 = None
if cv2 is not None:
    with open("pictures.map", "w") as pictures, open("extra.ctf", "w") as extra:
        for number in range(12):
            picture = np.zeros((20, 30, 3), np.uint8)
            picture[:, :, number % 3] = 50 + 10 * number
            cv2.imwrite("picture%d.png" % number, picture)
            pictures.write("%d\tpicture%d.png\t%d\n" % (number, number, number % 3))
            extra.write("%d |brightness %d\n" % (number, 50 + 10 * number))
    transforms = [
        xforms.crop(crop_type="center", side_ratio=0.8),
        xforms.scale(width=8, height=8, channels=3, interpolations="linear"),
        xforms.color(brightness_radius=0.0),
    ]
    images = ImageDeserializer(
        "pictures.map",
        StreamDefs(picture=StreamDef("image", transforms=transforms), kind=StreamDef("label", shape=3)),
    )
    numbers_of = CTFDeserializer("extra.ctf", StreamDefs(brightness=StreamDef("brightness", shape=1)))
    source = MinibatchSource([images, numbers_of], randomize=False, max_sweeps=1)
    minibatch = source.next_minibatch(12)
    values = minibatch[source.streams.picture].asarray().reshape(12, 3, 8, 8)
    brightness = minibatch[source.streams.brightness].asarray().ravel()
    np.testing.assert_allclose(values.max(axis=(1, 2, 3)), brightness)
    kinds = minibatch[source.streams.kind].as_sequences()
    assert [int(np.asarray(one.todense()).argmax()) for one in kinds] == [number % 3 for number in range(12)]
    assert (values.sum((2, 3)).argmax(1) == np.arange(12) % 3).all()


class Squares(UserDeserializer):
    """Chunks of numbers with their squares."""

    def __init__(self, chunks, size):
        super(Squares, self).__init__()
        self.chunks, self.size = chunks, size
        self.infos = [
            C.io.StreamInformation("number", 0, "dense", np.float32, (1,)),
            C.io.StreamInformation("square", 1, "dense", np.float32, (1,)),
        ]

    def stream_infos(self):
        return self.infos

    def num_chunks(self):
        return self.chunks

    def get_chunk(self, chunk_id):
        numbers = np.arange(chunk_id * self.size, (chunk_id + 1) * self.size, dtype=np.float32)[:, np.newaxis]
        return {"number": numbers, "square": numbers**2}


source = MinibatchSource([Squares(4, 8)], randomize=True, max_sweeps=1, randomization_window_in_chunks=2)
got = []
while True:
    minibatch = source.next_minibatch(10)
    if not minibatch:
        break
    number, square = (minibatch[source.streams[name]].asarray().ravel() for name in ("number", "square"))
    assert (number**2 == square).all()
    got += number.tolist()
assert sorted(got) == list(range(32)) and got != list(range(32))

# arrays
pairs = rng.randn(90, 2).astype(np.float32)
lists = [rng.randn(length, 3).astype(np.float32) for length in (2, 3, 1)]
source = MinibatchSourceFromData(dict(pairs=pairs), max_samples=90)
total = 0
minibatch = source.next_minibatch(40)
while minibatch:
    total += minibatch[source.streams["pairs"]].num_samples
    minibatch = source.next_minibatch(40)
assert total == 90
x, s = C.input_variable(2), C.sequence.input_variable(3)
value = C.Value(pairs[:4])
assert value.shape == (4, 2) and value.is_sparse is False and value.dtype == np.float32
np.testing.assert_allclose((x * 2).eval({x: value}), 2 * pairs[:4])
value = C.Value.create(s, lists)
assert [len(one) for one in value.as_sequences(s)] == [2, 3, 1]
np.testing.assert_allclose(C.sequence.last(s).eval({s: value}), np.stack([one[-1] for one in lists]))
one_hot = C.Value.one_hot([[1, 0], [2]], 3)
assert one_hot.is_sparse and [one.toarray().argmax(1).tolist() for one in one_hot.as_sequences()] == [[1, 0], [2]]
view = C.NDArrayView.from_dense(pairs[:3])
assert view.shape == (3, 2) and (C.asarray(view) == pairs[:3]).all()
print("done: 1", os.getcwd() != "")
