"""Composite readers: how sections are understood, what is joined, whose lengths count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config import ConfigError
from cntkpy.readers import DataError, Reader, create_reader
from cntkpy.readers.pipeline.randomize import NoRandomizer

DENSE = "=[dim=1;format=dense]"
DEFINES = "=[dim=1;format=dense;definesMBSize=true]"


@pytest.fixture
def join(compose) -> Callable[..., Reader]:
    """A composite reader of parts (text, streams, more of the section), in file order."""
    return lambda *parts, **options: compose(parts, **{"randomize": False, **options})


def read(tools: Any, reader: Reader, size: int = 100, **more: int) -> list[Any]:
    """Per minibatch, key and samples of every stream (of one value each)."""
    minibatches = tools["epoch"](reader, size, **more)
    reader.close()
    return [
        [(key, {s: [v for (v,) in samples] for s, samples in streams.items()}) for key, streams in tools["unpack"](m)]
        for m in minibatches
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # without definesMBSize the longest counts: 3 + 2 samples
        (("x", DENSE), ("y", DENSE), [[0], [1]]),
        # else only that input, whichever deserializer has it
        (("x", DEFINES), ("y", DENSE), [[0, 1]]),
        (("x", DENSE), ("y", DEFINES), [[0], [1]]),
    ],
)
def test_whose_lengths_count(join, tools, first, second, expected):
    parts = ("0 |x 1\n1 |x 2\n", "".join(first)), ("1 |y 5\n1 |y 6\n0 |y 7\n0 |y 8\n0 |y 9\n", "".join(second))
    reader = join(*parts)
    assert reader.samples_per_sweep == (2 if first[1] == DEFINES else 5)
    minibatches = read(tools, reader, 2)
    assert [[key for key, _ in m] for m in minibatches] == expected
    assert [s for m in minibatches for _, s in m] == [{"x": [1], "y": [7, 8, 9]}, {"x": [2], "y": [5, 6]}]


def test_only_one_input_defines_the_size(join):
    with pytest.raises(ConfigError, match="more than one deserializer has an input with definesMBSize"):
        join(("0 |x 1\n", "x" + DEFINES), ("0 |y 1\n", "y" + DEFINES))


@pytest.mark.parametrize(
    ("first", "second", "keys"),
    [
        ("|x 1\n|x 2\n|x 3\n", "|y 1\n|y 2\n", [0, 1]),  # by line
        ("|x 1\n|x 2\n", "1 |y 2\n0 |y 1\n", [0, 1]),  # by line and by id
        ("\n|x 1\n|x 2\n", "2 |y 2\n0 |y 0\n1 |y 1\n", [1, 2]),  # lines are counted from the top of the file
        ("9 |x 1\n9 |x 2\n", "1 |y 2\n0 |y 1\n", [9]),
        (
            "18446744073709551615 |x 1\n4294967296 |x 2\n",
            "4294967296 |y 2\n0 |y 0\n18446744073709551615 |y 1\n",
            [18446744073709551615, 4294967296],
        ),
        ("0 |x 1\n00 |x 1\n7 |x 2\n", "007 |y 2\n0 |y 1\n0 |y 1\n", [0, 7]),
    ],
)
def test_keys_that_meet(join, tools, first, second, keys):
    if keys == [9]:
        with pytest.raises(DataError, match="Could not reconcile data"):
            join((first, "x:1"), (second, "y:1"))
        (found,) = read(tools, join((first, "x:1", "skipSequenceIds=true"), (second, "y:1")))
        keys = [0, 1]
    else:
        (found,) = read(tools, join((first, "x:1"), (second, "y:1")))
    assert [key for key, _ in found] == keys
    assert all(s["x"] == s["y"] for _, s in found)


def test_three_files_and_chunks_without_anything(join, tools):
    first = "".join(f"{i} |a {i}\n" for i in range(12))
    second = "".join(f"{i} |b {10 * i}\n" for i in (11, 2, 3, 7, 1))
    third = "".join(f"{i} |c {100 * i}\n" for i in (3, 4, 11, 2))
    reader = join(
        (first, "a:1", "chunkSizeInBytes=7"), (second, "b:1"), (third, "c:1", "chunkSizeInBytes=1"), allowDataLoss=True
    )
    assert reader.source.deserializer.table.first.tolist() == [0, 1, 2, 3]  # a chunk for each that is left
    assert [s.name for s in reader.streams] == ["a", "b", "c"]
    (found,) = read(tools, reader)
    assert found == [(i, {"a": [i], "b": [10 * i], "c": [100 * i]}) for i in (2, 3, 11)]


def test_an_id_of_the_first_file_may_come_again(join, tools):
    (found,) = read(tools, join(("1 |x 1\n2 |x 2\n1 |x 3\n", "x:1"), ("2 |y 20\n1 |y 10\n", "y:1")))
    assert found == [(1, {"x": [1], "y": [10]}), (2, {"x": [2], "y": [20]}), (1, {"x": [3], "y": [10]})]


def test_one_name_in_two_files(join, tools):
    (found,) = read(tools, join(("1 |v 1\n", "a:1:dense:v"), ("1 |v 2\n", "A:1:dense:v")))
    assert found == [(1, {"a": [1], "A": [2]})]


@pytest.mark.parametrize(
    ("of_reader", "own", "passes"),
    [
        ({}, "", False),
        ({"maxErrors": 1}, "", True),
        ({}, "maxErrors=1", True),
        ({"maxErrors": 1}, "maxErrors=0", False),
    ],
)
def test_budget_of_a_file(join, tools, of_reader, own, passes):
    """Every file has its own budget: what its section says, else what the reader's says."""
    parts = ("1 |x a |x 1\n", "x:1", own), ("1 |y b |y 1\n", "y:1", own)
    if passes:
        assert read(tools, join(*parts, **of_reader)) == [[(1, {"x": [1], "y": [1]})]]
    else:
        with pytest.raises(DataError, match="Reached the maximum number of allowed errors"):
            read(tools, join(*parts, **of_reader))


@pytest.mark.parametrize(("level", "own", "told"), [(0, "", False), (1, "", True), (1, "traceLevel=0", False)])
def test_trace_level_is_handed_on(join, tools, caplog, level, own, told):
    tools["epoch"](join(("1 |x 1\n", "x:2", own), traceLevel=level), 9)
    assert ("fewer values" in caplog.text) == told


FORMS = [
    "deserializers=([{0}])",
    "deserializers=({{{0}}})",
    "deserializers=[{0}]",
    "DESERIALIZERS=([{0};TRANSFORMS=()])",
    "readerType=CompositeDataReader;deserializers=([{0}])",
    "readerType=UCIFastReader;deserializers=([{0}])",  # deserializers always mean a composite reader
    "{0}",
    "readerType=CNTKTextFormatReader;{0}",
    "readerType=cntktextformatreader;module=CNTKTextFormatReader;{0}",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "part",
    [
        "module=CNTKTextFormatReader;input=[x=[dim=2;format=dense]]",
        "module=Cntk.Deserializers.TextFormat;input={{x={{dim=2;format=Dense}}}}",
        "dim=2;format=dense;input=[x=[alias=x]]",  # found further out
        "input=[dim=2;format=dense;x=[alias=x]]",
        'INPUT=[x=[DIM=2;FORMAT="dense";transforms=([type=Cast])]]',
    ],
)
def test_old_and_new_forms(files, tools, form, part):
    if "Cntk." in part and "deserializers" not in form.lower():
        part = part.replace("module=Cntk.Deserializers.TextFormat;", "")
    path = files.write("3 |x 1 2\n")
    text = form.format(f'type=CNTKTextFormatDeserializer;file="{path}";{part.replace("{{", "{").replace("}}", "}")}')
    reader = create_reader(f"randomize=false;{text}", "double")
    (m,) = tools["epoch"](reader, 9)
    reader.close()
    assert (m.keys, m.streams["x"].tolist(), m.streams["x"].dtype) == ([3], [[[1, 2]]], np.float64)


def test_writing_is_in_file_order(join):
    reader = join(("1 |x 1\n", "x:1"), randomize=True, action="write")
    assert isinstance(reader.source.timeline, NoRandomizer)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("local", [True, False])
def test_frames_of_several_streams_in_random_order(join, tools, workers, local):
    first = "".join(f"{i} |x {i} |s {i % 4}:1\n" for i in range(30))
    second = "".join(f"{i} |y {-i}\n" for i in reversed(range(0, 60, 2)))
    seen = []
    for rank in range(workers):
        reader = join(
            (first, "x:1 s:4:sparse", "chunkSizeInBytes=40"),
            (second, "y:1"),
            randomize=True,
            frameMode=True,
            randomizationWindow=6,
            localTimeline=local,
        )
        for m in tools["epoch"](reader, 6, worker_rank=rank, number_of_workers=workers):
            assert m.layout.T == 1 or not m.keys
            assert m.streams["x"].ravel().tolist() == m.keys
            assert m.streams["y"].ravel().tolist() == [-key for key in m.keys]
            assert m.streams["s"].indices.tolist() == [key % 4 for key in m.keys]
            seen += m.keys
        reader.close()
    assert sorted(seen) == list(range(0, 30, 2))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("randomize", [True, False])
def test_truncated_pieces_are_whole_again(join, tools, workers, randomize):
    """Put together slot by slot, the pieces are the sequences, every one once."""
    lengths = [4, 1, 7, 3, 2, 5, 6, 1, 9]
    text = "".join(f"{i} |x {10 * i + t} |s 0:{10 * i + t}\n" for i, n in enumerate(lengths) for t in range(n))
    found: dict[int, list[float]] = {}
    for rank in range(workers):
        reader = join(
            (text, "x:1 s:1:sparse", "chunkSizeInBytes=30"),
            randomize=randomize,
            truncated=True,
            truncationLength=3,
            randomizationWindow=8,
        )
        for m in tools["epoch"](reader, 12, worker_rank=rank, number_of_workers=workers):
            assert m.layout.mask.shape == (3, 4 // workers)
            for key, streams in tools["unpack"](m):
                assert [x for (x,) in streams["x"]] == [v for ((_, v),) in streams["s"]]
                found.setdefault(key, []).extend(x for (x,) in streams["x"])
        reader.close()
    assert found == {i: [10 * i + t for t in range(n)] for i, n in enumerate(lengths)}


def test_more_workers_than_truncated_slots(join, tools):
    for rank in range(2):
        reader = join(("1 |x 1\n2 |x 2\n", "x:1"), truncated=True, truncationLength=4)
        with pytest.raises(ValueError, match="2 workers are more than the parallel sequences"):
            tools["epoch"](reader, 7, worker_rank=rank, number_of_workers=2)
        reader.close()


@pytest.mark.parametrize("randomize", [True, False])
def test_shares_of_the_minibatch_size(join, tools, randomize):
    """Of 5 samples, three workers take 2, 2 and 1; of 2, at least one each."""
    text = "".join(f"{i} |x {i}\n" for i in range(60))
    for size, shares in ((5, (2, 2, 1)), (2, (1, 1, 1))):
        for rank, share in enumerate(shares):
            reader = join((text, "x:1", "chunkSizeInBytes=8"), randomize=randomize)
            reader.start_minibatch_loop(size, 0, None, rank, 3)
            assert [reader.get_minibatch().num_samples for _ in range(4)] == [share] * 4
            reader.close()


@pytest.mark.parametrize(("have", "error"), [({1, 4, 5}, False), ({2}, True)])
def test_sequences_missing_in_a_file_are_reported(compose, tools, caplog, have, error):
    """A7: how many, in which file, the first three; half of them may be missing, and more only on demand."""
    parts = [("".join(f"{i} |x {i}\n" for i in range(6)), "x:1"), ("".join(f"{i} |y 1\n" for i in have), "y:1")]
    if error:
        with pytest.raises(DataError, match=r"Only 1 of 6 sequences .* in all deserializers"):
            compose(parts)
    reader = compose(parts, randomize=False, **({"allowDataLoss": True} if error else {}))
    missing = [i for i in range(6) if i not in have]
    assert f"WARNING: {len(missing)} of 6 sequences of the first deserializer are left out" in caplog.text
    assert f"part1.ctf has no data for them, the first: {', '.join(map(str, missing[:3]))}." in caplog.text
    assert sorted(key for m in tools["epoch"](reader, 9) for key in m.keys) == sorted(have)
    reader.close()
