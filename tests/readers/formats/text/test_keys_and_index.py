"""Keys that are text, the index kept next to the file, parsing on several threads, invalid sequences, checkData."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import ConfigError
from cntkpy.readers import DataError, create_reader
from cntkpy.readers.common.chunk import Chunk, dense_stream
from cntkpy.readers.common.corpus import Corpus, hash_of
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.formats.text import index as index_module
from cntkpy.readers.formats.text.index import IndexOptions, build_index
from cntkpy.readers.kernels import budget
from cntkpy.readers.pipeline.randomize import NoRandomizer
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.streams import StreamInformation


@pytest.mark.parametrize(
    ("text", "number"), [("100", 193358996), ("not", 193419184), ("abcDEF_+123!890x.Y.Z@", 1661589163364855789)]
)
def test_hashes_of_the_specification(text, number):
    assert hash_of(text) == number
    assert Corpus(False, True).numbers([text]).tolist() == [number]
    assert Corpus(False, True).name(number) == f"<Unknown, hash {number}>"


NAMED = "utt-1.a |x 1\n |x 2\nutt-1.a |x 3\nutt-1 |x 4\n\t|x 5\n7|x 6\nutt-10 |x 7\n"


def test_keys_of_text(files):
    found = files.sequences(NAMED, "x:1", useNumericSequenceKeys=False, traceLevel=0)
    assert [(key, [x for (x,) in s["x"]]) for key, s in found] == [
        ("utt-1.a", [1, 2, 3]),
        ("utt-1", [4, 5]),
        ("7", [6]),
        ("utt-10", [7]),
    ]


def test_hashed_keys(files):
    found = files.sequences(NAMED, "x:1", useNumericSequenceKeys=False, hashSequenceKeys=True, traceLevel=0)
    assert [key for key, _ in found] == [f"<Unknown, hash {hash_of(k)}>" for k in ("utt-1.a", "utt-1", "7", "utt-10")]


@pytest.mark.parametrize("hashed", [True, False])
def test_files_joined_by_keys_of_text(compose, tools, hashed):
    other = "utt-10 |y 70\nmore |y 1\nutt-1.a |y 10\n"
    reader = compose(
        [(NAMED, "x:1"), (other, "y:1")], randomize=False, useNumericSequenceKeys=False, hashSequenceKeys=hashed
    )
    (m,) = tools["epoch"](reader, 100)
    keys = ["utt-1.a", "utt-10"]
    assert m.keys == ([f"<Unknown, hash {hash_of(key)}>" for key in keys] if hashed else keys)
    assert m.matrix("y").tolist() == [[10, 70]]


def test_a_malformed_sample_names_its_key(files):
    with pytest.raises(DataError, match="line 2, column 2, sequence id a"):
        files.sequences("a |x 1\n b |x 2\n", "x:1", useNumericSequenceKeys=False, traceLevel=0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (" |x 1\n", "have no keys"),
        ("|x 1\n", "have no keys"),
        ("k" * 5000 + " |x 1\n", "longer than 4096 bytes"),
    ],
)
def test_keys_that_cannot_be_read(files, text, part):
    with pytest.raises(DataError, match=part):
        files.reader(text, "x:1", useNumericSequenceKeys=False)


@pytest.mark.parametrize("section", ["file=f;input=[x=[dim=1;format=dense]]", "deserializers=([type=X])"])
def test_hashes_of_numbers_make_no_sense(section):
    with pytest.raises(ConfigError, match="Hashing should not be used with numeric sequence keys"):
        create_reader(f"hashSequenceKeys=true;{section}")


# ------------------------------------------------------------------------------------------------- checkData


def test_missing_sequences_are_left_out_and_told(compose, tools, caplog):
    parts = [("1 |x 1\n2 |x 2\n3 |x 3\n", "x:1"), ("3 |y 3\n1 |y 1\n", "y:1")]
    with caplog.at_level("INFO", "cntkpy.readers"):
        (m,) = tools["epoch"](compose(parts, randomize=False), 10)
    assert m.keys == [1, 3]
    assert re.search(
        r"1 of \d sequences of the first deserializer are left out of every sweep: .*\.ctf has no data", caplog.text
    )
    with pytest.raises(DataError, match=r"Sequence 2 of the first deserializer is missing in deserializer 2 \(1 seq"):
        compose(parts, checkData=False)


# ------------------------------------------------------------------------------------------------- cached index


@pytest.fixture
def counted(monkeypatch):
    """How often an index was built."""
    calls = []
    build = index_module._build
    monkeypatch.setattr(index_module, "_build", lambda *args: calls.append(1) or build(*args))
    return calls


def cached(path, **options):
    return listed(build_index(str(path), IndexOptions(cache=True, **options)))


def listed(index):
    keys = index.table.key(np.arange(index.table.num_sequences))
    return index.table.first.tolist(), keys.tolist(), index.begins.tolist(), index.ends.tolist()


def test_an_index_is_kept(files, counted, sequences):
    path = files.write(sequences)
    first = cached(path)
    assert (files.folder / "data.ctf._.0.0.0.v7.cache").exists()
    assert cached(path) == first
    assert len(counted) == 1
    assert cached(path, chunk_size=40)[0] != first[0]
    assert cached(path, chunk_size=40)[1:] == first[1:]
    assert len(counted) == 1
    cached(path, skip_sequence_ids=True)
    cached(path, main="x")
    assert len(counted) == 3


def test_a_kept_index_knows_the_lines_in_front(files, counted):
    path = files.write("\n \n|x 1\n|x 2\n")
    assert cached(path)[1] == cached(path)[1] == [2, 3]
    assert cached(path, main="x")[1] == cached(path, main="x")[1] == [2, 3]
    assert len(counted) == 2


def test_an_index_of_a_changed_file_is_made_anew(files, counted, sequences):
    path = files.write(sequences)
    cached(path)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    changed = sequences.replace("3 |x 100", "4 |x 100", 1)
    path.write_text(changed)  # as long as before; another time
    assert cached(path)[1][0] == 4
    os.utime(path, ns=times)
    assert cached(path)[1][0] == 4
    path.write_text(sequences)
    os.utime(path, ns=times)  # as long and of the same time: the checksum tells
    assert cached(path)[1][0] == 3
    assert len(counted) == 4


@pytest.mark.parametrize("damage", [b"", b"no archive", None, 5])
def test_a_damaged_cache_is_made_anew(files, counted, sequences, damage):
    path = files.write(sequences)
    expected = cached(path)
    cache = files.folder / "data.ctf._.0.0.0.v7.cache"
    content = cache.read_bytes()
    if damage is None:
        damage = content[: len(content) // 2]
    elif damage == 5:
        at = len(content) // 2
        damage = content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]
    cache.write_bytes(damage)
    assert cached(path) == expected
    assert cached(path) == expected
    assert len(counted) <= 2


def test_a_folder_that_cannot_be_written(files, counted, sequences, monkeypatch):
    path = files.write(sequences)

    def refuse(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr(index_module.index_cache, "atomic_write", refuse)
    assert cached(path) == cached(path)
    assert len(counted) == 2


def test_a_reader_with_a_cached_index(files, tools, sequences, counted):
    found = []
    for _ in range(2):
        reader = files.reader(sequences, "x:1 s:5:sparse", cacheIndex=True, traceLevel=0)
        found.append([tools["unpack"](m) for m in tools["epoch"](reader, 7)])
    assert found[0] == found[1]


def test_a_cached_index_with_keys_of_text(files, counted):
    for _ in range(2):
        path = files.folder / "data.ctf"
        if not path.exists():
            files.write(NAMED)
        reader = create_reader(
            f'file="{path}";input=[x=[dim=1;format=dense]];cacheIndex=true;useNumericSequenceKeys=false;randomize=false'
        )
        reader.start_minibatch_loop(100, 0)
        assert reader.get_minibatch().keys == ["utt-1.a", "utt-1", "7", "utt-10"]
    assert len(counted) == 1


# ------------------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("randomize", [True, False])
def test_several_threads_parse_the_same(files, tools, monkeypatch, randomize):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    rng = np.random.default_rng(2)
    text = "".join(
        f"{k} |x {' '.join(map(repr, rng.normal(size=2).tolist()))}"
        f" |s {' '.join(f'{i}:{v}' for i, v in enumerate(rng.integers(9, size=k % 4).tolist()))}\n"
        for k in range(200)
        for _ in range(k % 3 + 1)
    )
    found = []
    for threads in (False, True):
        reader = files.reader(
            text, "x:2 s:5:sparse", randomize=randomize, multiThreadedDeserialization=threads, chunkSizeInBytes=3000
        )
        found.append([tools["unpack"](m) for m in tools["epoch"](reader, 17)])
        reader.close()
    assert found[0] == found[1]


def test_errors_found_on_several_threads(files, tools, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    text = "".join(f"{k} |x {'a' if k in (30, 60, 90) else k} |x {k}\n" for k in range(100))
    options = {"randomize": False, "multiThreadedDeserialization": True, "traceLevel": 0, "chunkSizeInBytes": 200}
    more = 97  # sequences with two samples in one row
    reader = files.reader(text, "x:1", maxErrors=3 + more, **options)
    assert sum(m.num_samples for m in tools["epoch"](reader, 10)) == 197
    with pytest.raises(DataError, match=r"Reached the maximum number of allowed errors .*line \d+, column \d"):
        tools["epoch"](files.reader(text, "x:1", maxErrors=2 + more, **options), 10)


# ------------------------------------------------------------------------------------------------- invalid sequences


class Faulty:
    """Ten samples, some of which cannot be decoded."""

    def __init__(self, bad):
        self.streams = [StreamInformation("x", (1,), False, np.dtype(np.float32))]
        self.table = SequenceTable(np.array([0, 5, 10]), np.ones(1, np.int32))
        self.chunk_bytes = np.array([40, 40])
        self.bad = np.isin(np.arange(10), bad)

    def load_chunk(self, chunk):
        return self.load_sequences(np.arange(5 * chunk, 5 * chunk + 5))

    def load_sequences(self, sequences):
        rows = sequences.astype(np.float32).reshape(-1, 1)
        return Chunk({"x": dense_stream(rows, np.arange(len(rows) + 1))}, 40, self.bad[sequences])


def faulty(bad, most, size=4, **options):
    data = Faulty(bad)
    source = Source(data, NoRandomizer(data.table), SourceOptions(max_errors=most, **options))
    source.set_state(EpochRequest(size, 0, 30))
    found = []
    while (m := next(source, None)) is not None:
        found.append(m)
    return found


def test_invalid_sequences_are_left_out_and_counted_once():
    found = faulty([1, 6, 7], 3)
    assert [m.streams["x"].ravel().tolist() for m in found[:3]] == [[0, 2, 3], [4, 5], [8, 9]]
    assert [m.keys for m in found[:3]] == [[0, 2, 3], [4, 5], [8, 9]]
    assert sum(m.num_samples for m in found) == 21


def test_too_many_invalid_sequences():
    with pytest.raises(DataError, match=r"Number of invalid sequences '3' in the input exceeded .* number '2'.*6, 7"):
        faulty([1, 6, 7], 2)


def test_a_minibatch_without_anything_valid_is_empty():
    found = faulty([0, 1, 2, 3], 4)
    assert found[0].num_samples == 0
    assert found[0].streams["x"].shape == (0, 0, 1)
    with pytest.raises(DataError, match="'5'"):
        faulty([0, 1, 2, 3, 4], 1)


def test_invalid_sequences_in_truncated_minibatches():
    found = faulty([0, 3], 2, size=2, truncation_length=1)
    values = [v for m in found for v in m.matrix("x").ravel().tolist()]
    assert set(values) == {1, 2, 4, 5, 6, 7, 8, 9}
    with pytest.raises(DataError, match="invalid sequences"):
        faulty([0, 3], 0, size=2, truncation_length=1)


# ------------------------------------------------------------------------------------------------- pieces of the index


@settings(max_examples=50)
@given(
    lines=st.lists(
        st.sampled_from(
            ["6 |x 1", "7 |x 1", "8 |x 1", "9|x 1", "|x 2", " |x 3 |y 1", "", "8", "|y 4", "10 |y 1", "|x 1 |x 2"]
        ),
        min_size=1,
        max_size=40,
    ),
    threads=st.integers(2, 6),
    skip=st.booleans(),
    main=st.sampled_from(["", "x"]),
    last=st.sampled_from(["", "\n"]),
)
def test_an_index_read_in_pieces_is_the_same(lines, threads, skip, main, last):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.ctf"
        path.write_text("5 |x 1\n" + "\n".join(lines) + last)
        one, several = (
            build_index(
                str(path), IndexOptions(skip_sequence_ids=skip, main=main, chunk_size=50, threads=n, piece=1, block=64)
            )
            for n in (1, threads)
        )
    assert listed(one) == listed(several)
    assert one.table.lengths.tolist() == several.table.lengths.tolist()
    assert (one.size, one.newline_at_end) == (several.size, several.newline_at_end)


@pytest.mark.parametrize("first", [0, 1, 7, 2**64 - 20])
@pytest.mark.parametrize("odd", [None, 0, 1, 30, 59])
@pytest.mark.parametrize("threads", [1, 3])
def test_ids_that_count(files, first, odd, threads):
    """Ids 0, 1, 2, ... take no memory; others are kept, wherever the counting ends, and counting begins anywhere."""
    ids = [(first + i) % 2**64 for i in range(60)]
    if odd is not None:
        ids[odd] = 1000 + odd
    path = files.write("\n" + "".join(f"{key} |x {t}\n" for key in ids for t in range(1 + key % 2)))
    index = build_index(str(path), IndexOptions(threads=threads, piece=1, block=64))
    assert index.table.key(np.arange(60)).tolist() == ids
    assert (index.table.keys is None) == (first == 0 and odd is None)
    assert np.broadcast_to(index.table.lengths, 60).tolist() == [1 + key % 2 for key in ids]
    assert cached(path) == cached(path) == listed(build_index(str(path), IndexOptions(chunk_size=32 << 20)))


@pytest.mark.parametrize("refused", [False, True])
def test_a_file_larger_than_the_memory(files, sequences, monkeypatch, refused):
    """It is read past the cache of the system, where the system can do that; the index is the same."""
    path, flags = files.write(sequences), []
    budget.reset(0)
    expected = listed(build_index(str(path)))

    def preadv(descriptor, buffers, offset, *flag):
        flags.append(flag)
        if flag and refused:
            raise OSError(errno.EOPNOTSUPP, "no such flag")
        return os.preadv(descriptor, buffers, offset)

    monkeypatch.setattr("cntkpy.cntk_config.base.systems.memory.of_machine", lambda: 20)
    monkeypatch.setattr("cntkpy.cntk_config.base.systems.files.os", SimpleNamespace(**vars(os) | {"preadv": preadv}))
    assert listed(build_index(str(path), IndexOptions(threads=2, piece=1))) == expected
    if sys.platform == "linux":
        assert (0x80,) in flags
        assert refused == (flags.count(()) > 2), "the first two reads are of the format"


def test_a_fault_in_the_index_has_its_line_whoever_finds_it(files):
    path = files.write("".join(f"{k} |x 1\n" for k in range(100)) + "18446744073709551616 |x 1\n" * 50)
    for threads in (1, 2, 5):
        with pytest.raises(DataError, match=r"Overflow while reading a numeric sequence id .*line 101, column 1, "):
            build_index(str(path), IndexOptions(threads=threads, piece=1))


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.thorough)])
def test_no_byte_of_a_kept_index_can_change_unnoticed(files, sequences, caplog, step):
    path = files.write(sequences)
    cached(path)
    cache = files.folder / "data.ctf._.0.0.0.v7.cache"
    load = partial(index_module.index_cache.load, is_sound=index_module.is_sound)
    arrays, more = load(str(cache), str(path))
    content, refused = cache.read_bytes(), 0
    for at in range(0, len(content), step):
        cache.write_bytes(content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :])
        caplog.clear()
        found = load(str(cache), str(path))
        if found is None:
            refused += 1
            assert len(caplog.records) <= 1
        else:
            assert found[1] == more
            assert {name: array.tolist() for name, array in found[0].items()} == {
                name: array.tolist() for name, array in arrays.items()
            }
    assert refused > len(content) // step // 2
