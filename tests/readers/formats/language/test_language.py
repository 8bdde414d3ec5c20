"""SequenceReader and LUSequenceReader: what they deliver, in which order, and that positions can be restored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.readers import create_reader
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.formats.language.corpus import LineCorpus
from cntkpy.readers.minibatch import Layout, Minibatch, one_sequence

CORPUS = """</s> a b c a </s>
</s> b </s>
</s> c c b </s>
</s> a </s>
</s> b a b </s>
</s> </s>
</s> a c b a b c a b c a </s>
</s> d a </s>
</s> zzz b c a </s>
"""
CLASSES = "0 9 </s> 0\n1 12 a 0\n2 10 b 1\n3 8 c 1\n4 2 <unk> 2\n5 1 d 2\n"
TAGGED = "w1 T1\nw2 T2\nw3 T1\n\nw2 T2\nw1 T3\n\n\nw5 T1\nw4 T2\nw1 T1\nw2 T2\n\nzzz T3\n\nx\nw3 T1\nw3 T2\nw5 w1 T1"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, text in {
        "corpus.txt": CORPUS,
        "classes.txt": CLASSES,
        "corpus.tags": TAGGED,
        "words": "w1\nw2\nw3\nw4\nw5\n<unk>\n",
        "tags": "T1\nT2\nT3\n",
        "map": "w1 w1\nw2 w2\nw3 w2\n<unk> <unk>\n",
        "tag.classes": "T1 0\nT2 0\nT3 1\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def sequence_reader(data: Path, mode: str = "class", out: str = "NextWord", **options: Any) -> Any:
    given = "".join(f"{name}={value};" for name, value in options.items())
    return create_reader(
        f'readerType=LMSequenceReader;wordclass="{data}/classes.txt";file="{data}/corpus.txt";mode={mode};{given}'
        'features=[dim=0];labelIn=[labelType=Category;labelDim=6;labelMappingFile=none;endSequence="</s>"];'
        f"labels=[labelType={out};labelDim=6;labelMappingFile=none]",
        "double",
    )


def lu_reader(data: Path, tags: str = "tags", inside: str = "", outside: str = "", **options: Any) -> Any:
    given = "".join(f"{name}={value};" for name, value in options.items())
    return create_reader(
        f'readerType=LUSequenceReader;file="{data}/corpus.tags";{given}features=[dim=0];'
        f'labelIn=[labelType=Category;token="{data}/words";{inside}];'
        f'labels=[labelType=Category;token="{data}/{tags}";{outside}]',
        "double",
    )


def epoch(reader: Any, size: int = 20, number: int = 0, samples: int | None = None) -> list[Minibatch]:
    reader.start_minibatch_loop(size, number, samples)
    return list(iter(reader.get_minibatch, None))


def words(minibatch: Minibatch) -> list[list[list[int]]]:
    """Indices of every cell, by time step and slot."""
    rows, layout = minibatch.streams["features"], minibatch.layout
    cells = [rows.indices[rows.indptr[i] : rows.indptr[i + 1]].tolist() for i in range(rows.shape[0])]
    return [cells[t * layout.S : (t + 1) * layout.S] for t in range(layout.T)]


def keys(minibatches: list[Minibatch]) -> list[list[int]]:
    return [[int(key) for key in one.keys] for one in minibatches]


# ---- SequenceReader


def test_every_word_is_labelled_with_the_next_one(data: Path) -> None:
    first, *rest = epoch(sequence_reader(data, randomize="none"))
    assert words(first) == [[[0]], [[1]], [[2]], [[3]], [[1]]]
    assert first.streams["labels"][:, 0].tolist() == [
        [1, 0, 0, 2],
        [2, 1, 2, 4],
        [3, 1, 2, 4],
        [1, 0, 0, 2],
        [0, 0, 0, 2],
    ]
    assert [one.num_samples for one in rest] == [2, 4, 2, 4, 11, 3, 5]
    assert words(rest[-1])[1] == [[4]]  # zzz is unknown
    assert [one.end_of_epoch for one in rest] == [False] * 6 + [True]


def test_softmax_and_nce_labels(data: Path) -> None:
    (first, *_) = epoch(sequence_reader(data, mode="softmax", randomize="none"))
    assert first.streams["labels"][:, 0, 0].tolist() == [1, 2, 3, 1, 1e-6]
    reader = sequence_reader(data, mode="nce", noise_number=3, randomize="none")
    first, again = epoch(reader)[0].streams["labels"], epoch(reader)[0].streams["labels"]
    assert first.shape == (5, 1, 8)
    np.testing.assert_allclose(first[:, 0, 1], np.log(np.array([12, 10, 8, 12, 9]) / 42))
    noise = first[:, 0, 2::2].astype(int)
    np.testing.assert_allclose(first[:, 0, 3::2], -np.log(np.array([9, 12, 10, 8, 2, 1])[noise] / 42))
    assert first.shape == again.shape


@pytest.mark.parametrize("slots", [0, 1, 3])
@pytest.mark.parametrize("mode", ["class", "softmax"])
def test_who_changes_a_minibatch_changes_no_other(data: Path, mode: str, slots: int) -> None:
    options = {"nbruttsineachrecurrentiter": slots} if slots else {}
    reader = sequence_reader(data, mode=mode, randomize="none", **options)

    def content(minibatches: list[Minibatch]) -> list[Any]:
        return [
            (words(one), one.streams["features"].data.tolist(), one.streams["labels"].tolist()) for one in minibatches
        ]

    read = epoch(reader)
    before = content(read)
    for one in read:
        rows = one.streams["features"]
        rows.indices[:], rows.data[:], one.streams["labels"][:] = 0, 7, 9
    assert content(epoch(reader)) == before
    for one in read:
        one.streams["features"].indptr[:] = 0
    assert content(epoch(reader)) == before


def test_without_labels_every_word_counts(data: Path) -> None:
    first, *_ = epoch(sequence_reader(data, out="None", randomize="none"))
    assert list(first.streams) == ["features"]
    assert first.num_samples == 6


def test_sentences_of_equal_length_share_a_minibatch(data: Path) -> None:
    found = epoch(sequence_reader(data, randomize="none", nbruttsineachrecurrentiter=2))
    assert keys(found) == [[0, 7], [1, 3], [2, 4], [5], [6]]
    assert words(found[1]) == [[[0], [0]], [[2], [1]]]
    assert found[1].streams["labels"][..., 0].tolist() == [[2, 1], [0, 0]]


def test_filling_by_words(data: Path) -> None:
    found = epoch(sequence_reader(data, randomize="none", nbruttsineachrecurrentiter=0), 10)
    assert keys(found) == [[0], [1, 3], [2], [4], [5], [6], [7]]
    assert keys(epoch(sequence_reader(data, randomize="none", nbruttsineachrecurrentiter=0), 11))[2] == [2, 4]


def test_long_sentences_go_on_in_the_next_minibatch(data: Path) -> None:
    reader = sequence_reader(data, randomize="none", nbruttsineachrecurrentiter=2)
    found = epoch(reader, 3)
    pieces = [(one.layout.T, one.layout.sequences.tolist()) for one in found[:2]]
    assert pieces == [(3, [[0, 0, 0, 5], [1, 1, 0, 5]]), (2, [[0, 0, -3, 2], [1, 1, -3, 2]])]
    assert all(one.truncated and one.layout.S == 2 for one in found)
    assert sum(one.num_samples for one in found) == reader.samples_per_sweep == 36


def test_slots_without_a_sentence_are_no_gaps(data: Path) -> None:
    """Momentum counts gaps; CNTK has as many slots as sentences, ours stay where sentences are cut."""
    found = epoch(sequence_reader(data, randomize="none", nbruttsineachrecurrentiter=3), 3)
    assert {one.layout.S for one in found} == {3}
    assert [one.columns_together for one in found] == [one.num_samples for one in found]


def test_an_epoch_ends_when_more_was_delivered(data: Path) -> None:
    reader = sequence_reader(data, randomize="none")
    assert [one.num_samples for one in epoch(reader, 20, 1, 11)] == [5, 2, 4, 2]
    assert [one.num_samples for one in epoch(reader, 20, 0, 10)] == [5, 2, 4]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_order_of_the_original(data: Path, number: int) -> None:
    found = [key for (key,) in keys(epoch(sequence_reader(data), 20, number))]
    want = shuffled(8, twister(number + 1), 2**32 - 1)
    assert found == want
    assert sorted(found) == list(range(8))


def test_training_shuffles_whatever_randomize_says(data: Path) -> None:
    assert keys(epoch(sequence_reader(data, randomize="none", action="train"))) == keys(epoch(sequence_reader(data)))
    kept = epoch(sequence_reader(data, randomize="none", action="train", shuffle="false"))
    assert keys(kept) == [[i] for i in range(8)]
    assert keys(epoch(sequence_reader(data, randomize="none", action="write"))) == keys(kept)


@pytest.mark.parametrize("make", [sequence_reader, lu_reader])
def test_what_is_written_has_the_order_of_the_corpus(data: Path, make: Any) -> None:
    found = keys(epoch(make(data, action="write", randomize="none", nbruttsineachrecurrentiter=3)))
    assert found == [[i] for i in range(len(found))]


def test_blocks_are_shuffled_by_themselves(data: Path) -> None:
    reader = sequence_reader(data, cacheBlockSize=14)
    found = [key for (key,) in keys(epoch(reader))]
    assert sorted(found[:3]) == [0, 1, 2]
    assert found[:3] == shuffled(3, twister(1), 2**32 - 1)
    assert [key - 3 for key in found[3:6]] == shuffled(3, twister(2), 2**32 - 1)


def test_a_category_as_label_uses_its_own_list(data: Path) -> None:
    (data / "out.map").write_text("a\nb\nc\n</s>\n<unk>\n")
    reader = create_reader(
        f'readerType=SequenceReader;randomize=none;wordclass="{data}/classes.txt";file="{data}/corpus.txt";mode=softmax;'
        "features=[dim=0];labelsIn=[labelType=Category;labelDim=6;labelMappingFile=none];"
        f'labels=[labelType=Category;labelMappingFile="{data}/out.map"]'
    )
    first, *_ = epoch(reader)
    assert words(first) == [[[0]], [[1]], [[2]], [[3]], [[1]]]
    np.testing.assert_allclose(first.streams["labels"][:, 0, 0], [1e-6, 1, 2, 1e-6, 3])


def test_end_symbol_in_any_case_and_odd_text(data: Path) -> None:
    text = "\ufeff</s>\ta  b </S>\r\n\r\n</s> a b </s>"
    (data / "corpus.txt").write_text(text, encoding="utf-8")
    one, other = epoch(sequence_reader(data, randomize="none"))
    assert words(one) == words(other)
    assert one.streams["labels"].tolist() == other.streams["labels"].tolist()


def test_sentences_longer_than_what_is_read_at_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [words(one) for one in epoch(sequence_reader(data, randomize="none"))]
    tagged = [words(one) for one in epoch(lu_reader(data))]
    monkeypatch.setattr("cntkpy.readers.formats.language.corpus.READ_BYTES", 7)
    assert [words(one) for one in epoch(sequence_reader(data, randomize="none"))] == whole
    assert [words(one) for one in epoch(lu_reader(data))] == tagged


# ---- LUSequenceReader


def test_words_with_their_neighbours(data: Path) -> None:
    first, *_ = epoch(lu_reader(data, wordContext="-1:0:1"))
    assert words(first) == [[[0, 6, 13]], [[0, 7, 14]], [[1, 8, 14]]]
    assert first.streams["labels"].indices.tolist() == [0, 1, 0]
    assert first.streams["labels"].shape == (3, 3)


def test_a_list_of_words_makes_a_section_of_labels(data: Path) -> None:
    """As the manual lists them, without labelType (D13)."""
    usual = [words(m) for m in epoch(lu_reader(data))]
    listed = create_reader(
        f'readerType=LUSequenceReader;file="{data}/corpus.tags";features=[dim=0];'
        f'labelIn=[dim=1;token="{data}/words"];labels=[dim=1;token="{data}/tags"]'
    )
    assert [words(m) for m in epoch(listed)] == usual


@pytest.mark.parametrize("spelling", ["labelIn", "lableIn"])
@pytest.mark.parametrize("offsets", ["0:1:2", "0:-1"])
def test_the_reader_of_the_manual(data: Path, spelling: str, offsets: str) -> None:
    """Neither a section of features nor labelType, and the manual's two spellings of the section of words (G1)."""
    usual = lu_reader(data, inside="useWordMap=true", wordContext=offsets, wordmap=f'"{data}/map"')
    printed = create_reader(
        f'readerType="LUSequenceReader"\nrandomize="none"\nwordContext={offsets}\nnbrUttsInEachRecurrentIter=1\n'
        f'unk="<unk>"\nWordmap="{data}/map"\nfile="{data}/corpus.tags"\n'
        f'{spelling}=[\nusewordmap=true\nbeginSequence="BOS"\nendSequence="EOS"\ntoken="{data}/words"\n]\n'
        f'labels=[\ntoken="{data}/tags"\n]'
    )
    assert [one.name for one in printed.streams] == ["features", "labels"]
    assert [words(m) for m in epoch(printed)] == [words(m) for m in epoch(usual)]


def test_sentences_without_a_section_of_features(data: Path) -> None:
    text = f'readerType=SequenceReader;file="{data}/corpus.txt";wordclass="{data}/classes.txt";'
    text += "mode=softmax;shuffle=false;labelIn=[labelDim=6;labelMappingFile=none];"
    text += "labels=[labelType=NextWord;labelMappingFile=none]"
    usual = epoch(sequence_reader(data, shuffle="false", mode="softmax"))
    assert [words(m) for m in epoch(create_reader(text, "double"))] == [words(m) for m in usual]


def test_sentences_of_columns(data: Path) -> None:
    found = epoch(lu_reader(data))
    assert [one.num_samples for one in found] == [3, 2, 4, 1, 3]
    assert words(found[3]) == [[[5]]]
    assert words(found[4]) == [[[2]], [[2]], [[4, 0]]]  # two words at one step


def test_sentences_end_at_the_end_symbol(data: Path) -> None:
    lengths = [one.num_samples for one in epoch(lu_reader(data, outside="endSequence=T2"))]
    assert lengths == [2, 1, 1, 1, 2, 2, 1, 2, 1]
    lengths = [one.num_samples for one in epoch(lu_reader(data, inside="endSequence=w3"))]
    assert lengths == [3, 2, 4, 1, 1, 1, 1]


def test_padding(data: Path) -> None:
    found = epoch(lu_reader(data, nbruttsineachrecurrentiter=3, equalLength="false", wordContext="1"))
    assert keys(found) == [[0, 1, 2], [3, 4]]
    assert words(found[0]) == [[[1], [0], [3]], [[2], [0], [0]], [[2], [], [1]], [[], [], [1]]]
    assert found[0].layout.sequences.tolist() == [[0, 0, 0, 3], [1, 1, 0, 2], [2, 2, 0, 4]]
    assert found[0].num_samples == 9


def test_equal_lengths_among_the_next_sentences(data: Path) -> None:
    assert keys(epoch(lu_reader(data, nbruttsineachrecurrentiter=3))) == [[0], [1], [2], [3], [4]]
    assert keys(epoch(lu_reader(data, nbruttsineachrecurrentiter=5)))[0] == [0, 4]


def test_the_word_map(data: Path) -> None:
    reader = lu_reader(data, inside="useWordMap=true", wordmap=f'"{data}/map"')
    found = [words(one) for one in epoch(reader)]
    assert found[0] == [[[0]], [[1]], [[1]]]  # w3 is read as w2
    assert found[2][:2] == [[[5]], [[5]]]  # w4 and w5 are not in the map


def test_labels_with_classes(data: Path) -> None:
    first, *_ = epoch(lu_reader(data, tags="tag.classes", outside="mode=class"))
    assert first.streams["labels"][:, 0].tolist() == [[0, 0, 0, 2], [1, 0, 0, 2], [0, 0, 0, 2]]


def test_the_order_of_the_original_depends_on_the_calls(data: Path) -> None:
    reader, calls = lu_reader(data, randomize="auto"), 0
    for number in range(4):
        want = shuffled(5, minimal_standard(calls), 2147483645)
        assert [key for (key,) in keys(epoch(reader, 20, number))] == want
        assert [key for (key,) in keys(epoch(lu_reader(data, randomize="auto"), 20, number))] == want  # a resumed one
        calls += 6


def test_epochs_count_sentences_and_may_begin_anew(data: Path) -> None:
    assert keys(epoch(lu_reader(data), 20, 0, 2)) == [[0], [1], [2]]
    assert len(epoch(lu_reader(data), 20, 0, 100)) == 5
    assert keys(epoch(lu_reader(data, dataMultiPass="true"), 20, 0, 7)) == [[i % 5] for i in range(8)]


def test_several_readers_in_step(data: Path) -> None:
    def one(name: str) -> str:
        return (
            f'{name}=[file="{data}/corpus.tags";features{name}=[dim=0];'
            f'labelIn{name}=[labelType=Category;token="{data}/words"];'
            f'labels{name}=[labelType=Category;token="{data}/tags"]];'
        )

    reader = create_reader(f"readerType=LUSequenceReader;ioNodeNames=a:b;randomize=auto;{one('a')}{one('b')}")
    found = epoch(reader)
    assert len(found) == 5
    assert sorted(found[0].streams) == ["featuresa", "featuresb", "labelsa", "labelsb"]
    state = json.loads(json.dumps(reader.get_state()))
    reader.set_state(state)


# ---- positions


@pytest.mark.parametrize(
    "make",
    [
        lambda data: sequence_reader(data, cacheBlockSize=14),
        lambda data: sequence_reader(data, nbruttsineachrecurrentiter=2),
        lambda data: lu_reader(data, randomize="auto"),
        lambda data: lu_reader(data, dataMultiPass="true", randomize="auto"),
    ],
)
@pytest.mark.parametrize("size", [4, 20])
def test_positions(data: Path, make: Any, size: int) -> None:
    reader = make(data)
    epoch(reader, size)
    reader.start_minibatch_loop(size, 1, 30)
    states, found = [reader.get_state()], []
    while (minibatch := reader.get_minibatch()) is not None:
        found.append((minibatch.keys, words(minibatch)))
        states.append(reader.get_state())
    for at, state in enumerate(states):
        other = make(data)
        other.start_minibatch_loop(size, 1, 30)
        other.set_state(json.loads(json.dumps(state)))
        assert [(one.keys, words(one)) for one in iter(other.get_minibatch, None)] == found[at:]


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (sequence_reader, {"group": -1}),
        (sequence_reader, {"group": 9}),
        (sequence_reader, {"step": -1}),
        (sequence_reader, {"step": 5}),
        (lu_reader, {"group": 6}),
        (lu_reader, {"step": 1000}),
        (lu_reader, {"begin": [1000, 1, 0]}),
    ],
)
def test_a_position_of_another_corpus(data: Path, make: Any, change: dict[str, Any]) -> None:
    reader = make(data, randomize="none" if make is sequence_reader else "false")
    reader.start_minibatch_loop(20, 0)
    assert reader.get_minibatch() is not None
    with pytest.raises(ArgumentError, match="is not the one that this position belongs to"):
        reader.set_state(reader.get_state() | {"group": 0} | change)


# ---- many minibatches, which are made together


def many(tmp_path: Path) -> list[list[int]]:
    """A corpus of 700 sentences of 1 to 12 words out of a, b, c, d (1, 2, 3, 5): their numbers."""
    rng = np.random.default_rng(4)
    sentences = [rng.choice([1, 2, 3, 5], int(n)).tolist() for n in rng.integers(1, 13, 700)]
    names = {1: "a", 2: "b", 3: "c", 5: "d"}
    lines = (f"</s> {' '.join(names[word] for word in one)} </s>\n" for one in sentences)
    (tmp_path / "corpus.txt").write_text("".join(lines))
    return [[0, *one, 0] for one in sentences]


@pytest.mark.parametrize("options", [{}, {"cacheBlockSize": 900}, {"prefetch": "false"}])
@pytest.mark.parametrize(("slots", "size"), [(0, 40), (1, 20), (1, 3), (7, 4), (7, 20)])
@pytest.mark.sampled
def test_every_word_of_many_sentences(data: Path, slots: int, size: int, options: dict[str, Any]) -> None:
    sentences = many(data)
    reader = sequence_reader(data, mode="softmax", shuffle="false", nbruttsineachrecurrentiter=slots, **options)
    read = epoch(reader, size)
    found: dict[int, list[tuple[int, float]]] = {}
    for one in read:
        layout, cells, labels = one.layout, words(one), one.streams["labels"]
        assert one.streams["features"].data.tolist() == [1.0] * one.num_samples
        assert one.num_samples == layout.mask.sum()
        assert not labels[~layout.mask].any()
        for key, (_, slot, begin, end) in zip(one.keys, layout.sequences.tolist(), strict=True):
            got = found.setdefault(int(key), [])
            assert len(got) == -begin
            got += [(cells[t][slot][0], labels[t, slot, 0]) for t in range(min(layout.T, end))]
            assert one.truncated or end == layout.T == len(sentences[int(key)]) - 1
    assert sorted(found) == list(range(700))
    for key, got in found.items():
        assert got == [(a, b or 1e-6) for a, b in zip(sentences[key][:-1], sentences[key][1:], strict=True)]
    assert [one.end_of_epoch for one in read] == [False] * (len(read) - 1) + [True]
    assert [one.end_of_sweep for one in read] == [one.end_of_epoch for one in read]


def test_ctrl_c_loses_no_minibatch(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(data)
    reader = sequence_reader(data, shuffle="false", prefetch="false")
    expected, made = keys(epoch(reader)), 0

    def interrupted(*given: Any) -> Layout:
        nonlocal made
        made += 1
        if made in (3, 57, 300):
            raise KeyboardInterrupt
        return one_sequence(*given)

    monkeypatch.setattr("cntkpy.readers.formats.language.pieces.one_sequence", interrupted)
    reader.start_minibatch_loop(20, 0)
    found, interrupts = [], 0
    while len(found) < len(expected):
        try:
            found.append(reader.get_minibatch())
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts == 3
    assert keys(found) == expected
    assert reader.get_minibatch() is None


@pytest.mark.parametrize("slots", [0, 1])
def test_the_text_is_scanned_once(data: Path, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    many(data)
    reads: list[Any] = []
    read = LineCorpus._read
    monkeypatch.setattr(LineCorpus, "_read", lambda self, begin: reads.append(begin) or read(self, begin))
    reader = sequence_reader(data, shuffle="false", nbruttsineachrecurrentiter=slots, cacheBlockSize=900)
    first = keys(epoch(reader))
    behind = max(reads)
    assert keys(epoch(reader)) == first and len(set(reads)) > 3
    assert all(reads.count(begin) == 1 for begin in reads if begin != behind), "each block is kept"


def test_minibatches_of_one_sentence_share_the_layout_of_its_length(data: Path) -> None:
    many(data)
    layouts = [one.layout for one in epoch(sequence_reader(data, shuffle="false", nbruttsineachrecurrentiter=1), 40)]
    assert {id(layout) for layout in layouts} == {id(layout) for layout in {one.T: one for one in layouts}.values()}
    for layout in layouts[:20]:
        assert layout.sequences.tolist() == [[0, 0, 0, layout.T]] and not layout.sequences.flags.writeable
        assert layout.num_samples == layout.T == layout.mask.sum()


# ---- the generators, once more and plainly


def twister(seed: int) -> Any:
    generator = np.random.RandomState(seed)

    def below(count: int) -> int:
        while True:
            product = int(generator.randint(0, 2**32, dtype=np.uint32)) * count
            if product % 2**32 >= 2**32 % count:
                return product >> 32

    return below


def minimal_standard(seed: int) -> Any:
    state = [seed % 2147483647 or 1]

    def below(count: int) -> int:
        share = 2147483645 // count
        while True:
            state[0] = state[0] * 16807 % 2147483647
            if (state[0] - 1) // share < count:
                return (state[0] - 1) // share

    return below


def shuffled(count: int, below: Any, span: int) -> list[int]:
    order = list(range(count))
    at = 1
    if span // count >= count:
        if count % 2 == 0:
            j = below(2)
            order[1], order[j] = order[j], order[1]
            at = 2
        while at < count:
            first, second = divmod(below((at + 1) * (at + 2)), at + 2)
            order[at], order[first] = order[first], order[at]
            order[at + 1], order[second] = order[second], order[at + 1]
            at += 2
    else:
        for at in range(1, count):
            j = below(at + 1)
            order[at], order[j] = order[j], order[at]
    return order


@pytest.mark.parametrize(
    ("count", "seeds"),
    [
        (1, (0, 1, 12345)),
        (2, (0, 1, 12345)),
        (3, (0, 1, 12345)),
        (100, (0, 1, 12345)),
        (46341, (1,)),
        *(pytest.param(count, (0, 1, 12345), marks=pytest.mark.thorough) for count in (46340, 46341, 70000)),
    ],
)
def test_shuffles_of_any_size(count: int, seeds: tuple[int, ...]) -> None:
    from cntkpy.readers.formats.language import shuffle_kernels as k

    for seed in seeds:
        assert k.shuffled(count, k.mersenne(seed)).tolist() == shuffled(count, twister(seed), 2**32 - 1)
        assert k.shuffled(count, k.minimal_standard(seed)).tolist() == shuffled(
            count, minimal_standard(seed), 2147483645
        )


def test_an_end_that_is_no_word_of_its_list(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S13: nothing was said, and no sentence ended at it."""
    lu_reader(data, inside="endSequence=w33", outside="endSequence=T2")
    assert "endSequence of 'labelIn' has no effect: 'w33' is not in its list of words." in caplog.text
    assert caplog.text.count("has no effect") == 1
    caplog.clear()
    sequence_reader(data)
    assert "has no effect" not in caplog.text
