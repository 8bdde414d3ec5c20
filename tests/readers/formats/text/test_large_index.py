"""The index of large text files: offsets in four bytes, lengths in one, lines of blocks that are read ahead."""

import io
import os
import tempfile
import threading
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cntkpy.readers.common import sequences
from cntkpy.readers.common.packed import open_text
from cntkpy.readers.common.sequences import SequenceTable, Starts
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.text import index as index_module
from cntkpy.readers.formats.text.blocks import READABLE, whole_lines
from cntkpy.readers.formats.text.index import IndexOptions, build_index
from cntkpy.readers.formats.text.offsets import Offsets, joined
from cntkpy.readers.kernels import budget, text_codes

STEPS = st.lists(st.sampled_from([1, 2, 7, 2**31, 2**32 - 1, 2**32, 3 * 2**32 + 5]), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def kernels():
    budget.reset(0)
    yield
    budget.reset(budget.BUDGET)


# --------------------------------------------------------------------------------------------------- offsets


@given(STEPS, st.integers(0, 2**34), st.data())
def test_offsets_are_those_given(steps, first, data):
    values = np.array(list(accumulate(steps, initial=first)), np.int64)
    offsets, n = Offsets.of(values), len(values)
    assert offsets.low.dtype == np.uint32 and len(offsets) == n and offsets.ascend()
    assert offsets.tolist() == values.tolist()
    a, b = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    assert_array_equal(offsets[a:b], values[a:b])
    assert_array_equal(offsets.shifted(a)[:], values[a:])
    which = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    assert_array_equal(offsets[which], values[which])
    assert_array_equal(offsets[which[::-1]], values[which[::-1]])
    chosen = offsets.chosen(which)
    assert_array_equal(chosen[:], values[which])
    assert [int(chosen[i]) for i in range(len(which))] == values[which].tolist()
    for at in [*(values + data.draw(st.integers(-2, 2))).clip(0).tolist(), 0, 2**40]:
        assert offsets.searchsorted(at) == values.searchsorted(at, "right")
        assert chosen.searchsorted(at) == values[which].searchsorted(at, "right")
    cut = data.draw(st.integers(0, n - 1))
    before, after = Offsets.of(values[: cut + 1]), Offsets.of(values[cut:])
    own = after.turns[int(values[cut]) >> 32 :]  # a part of a file has the turns after its begin
    assert joined([before, Offsets(after.low, own)]).tolist() == values.tolist()


@given(STEPS, st.integers(0, 12), st.sampled_from([0, 1, -1]))
def test_offsets_that_do_not_ascend(steps, at, change):
    values = np.array(list(accumulate(steps, initial=3)), np.int64)
    offsets = Offsets.of(values)
    at %= len(values)
    low = offsets.low.copy()
    low[at] = (int(low[at - 1]) + change) % 2**32
    wrong = Offsets(low, offsets.turns)
    assert wrong.ascend() == bool((np.diff(wrong[:]) > 0).all())
    assert not Offsets(offsets.low, np.array([len(values) + 1])).ascend()
    assert not Offsets(offsets.low, np.array([-1])).ascend()


# --------------------------------------------------------------------------------------------------- lines


@given(
    st.lists(st.integers(0, 40), max_size=30),
    st.integers(0, 50),
    st.integers(1, 70),
    st.integers(0, 9),
    st.sampled_from([0, 0, 1, 100]),
    st.booleans(),
)
@settings(max_examples=200)
def test_lines_come_whole(lengths, last, block, skipped, cut, ahead):
    text = b"".join(bytes([65 + i % 26]) * n + b"\n" for i, n in enumerate(lengths)) + b"x" * last
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(text + b"more\n")
        file.seek(skipped := min(skipped, len(text)))
        found, held = [], 0
        size = len(text) - skipped
        if cut:  # the file has become shorter since its size was looked at
            file.truncate(len(text))
        for lines, after, is_end in whole_lines(file, size + cut, block, ahead=ahead):
            assert lines.dtype == np.uint8 and (is_end or not len(lines) or lines[-1] == 10)
            assert lines.base is not None and len(lines.base) >= len(lines) + READABLE
            found.append(lines.tobytes())
            held = after
            assert sum(map(len, found)) + held <= len(text) - skipped
        assert is_end and held == 0
    assert b"".join(found) == text[skipped:]


class Failing(io.RawIOBase):
    """Bytes, and an error where they end."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks

    def readinto(self, buffer):
        if not self.blocks:
            raise OSError(5, "a broken disk")
        self.blocks -= 1
        buffer[:] = b"a\n" * (len(buffer) // 2)
        return len(buffer)


def readers():
    return {thread for thread in threading.enumerate() if thread.name.startswith("cntkpy-reader")}


@pytest.mark.parametrize("blocks", [0, 1, 5])
def test_a_disk_that_fails_while_a_thread_reads_ahead(blocks):
    lengths, earlier = 0, readers()
    with pytest.raises(OSError, match="a broken disk"):
        for lines, _, _ in whole_lines(Failing(blocks), 10**6, 32, ahead=True):
            assert readers() - earlier
            lengths += len(lines)
    assert lengths == 32 * blocks and not readers() - earlier


def test_nobody_reads_ahead_of_a_fault(tmp_path):
    path = tmp_path / "a.ctf"
    path.write_text("1 |x 1\n|x 2\n" + "18446744073709551616 |x 1\n" * 5000)
    earlier = readers()
    with pytest.raises(DataError, match=r"Overflow .*line 3, column 1, byte offset 12\)"):
        build_index(str(path), IndexOptions(block=64))
    assert not readers() - earlier


# --------------------------------------------------------------------------------------------------- the index


def listed(index):
    keys = index.table.key(np.arange(index.table.num_sequences)).tolist()
    lengths = np.broadcast_to(index.table.lengths, len(keys)).tolist()
    return index.table.first.tolist(), keys, lengths, index.begins.tolist(), index.ends.tolist()


def by_hand(text, main):
    """Keys, lengths, begins, ends of the sequences with samples; ids are numbers."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        key, _, rest = line.partition(" ")
        if key and (not found or int(key) != found[-1][0]):
            found.append([int(key), 0, at, at])
        at += len(line)
        found[-1][1] += not main or "|x" in rest
        found[-1][3] = at
    return [list(column) for column in zip(*(one for one in found if one[1]), strict=True)]


@pytest.mark.thorough
@settings(max_examples=60)
@given(
    sequences=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([1, 2, 3, 254, 255, 256, 300]), st.integers(0, 90)),
        min_size=1,
        max_size=8,
    ),
    odd=st.booleans(),
    block=st.integers(1, 600),
    threads=st.integers(1, 3),
    main=st.sampled_from(["", "x"]),
)
def test_sequences_across_the_borders_of_blocks(sequences, odd, block, threads, main):
    text, key = "", 7
    for gap, count, width in sequences:
        key += 1 + gap * odd
        stream = "y" if width % 5 == 0 else "x"
        text += f"{key} |x 1 {'9' * width}\n" + f"{key if width % 2 else ''} |{stream} 1\n" * (count - 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ctf"
        path.write_text(text)
        found = listed(
            build_index(str(path), IndexOptions(main=main, block=block, threads=threads, piece=1, chunk_size=900))
        )
        kept = [
            listed(build_index(str(path), IndexOptions(main=main, block=block, cache=True, chunk_size=900)))
            for _ in range(2)
        ]
    assert list(found[1:]) == by_hand(text, main)
    assert kept == [found, found]


@pytest.mark.parametrize("hashed", [False, True])
def test_names_with_more_samples_than_a_byte_can_count(tmp_path, hashed):
    text = "".join(f"{name} |x 1\n" + "|x 2\n" * (n - 1) for name, n in [("a", 1), ("b", 256), ("b2", 3), ("c", 600)])
    path = tmp_path / "a.ctf"
    path.write_text(text)
    found = build_index(str(path), IndexOptions(corpus=index_module.Corpus(numeric=False, hashed=hashed), block=64))
    assert found.table.lengths.tolist() == [1, 256, 3, 600]
    assert found.table.lengths.dtype == np.int32


def test_lengths_take_a_byte_each_if_they_fit(tmp_path):
    path = tmp_path / "a.ctf"
    for most in (255, 256):
        path.write_text("0 |x 1\n1 |x 1\n" + "|x 1\n" * (most - 1))
        lengths = build_index(str(path)).table.lengths
        assert lengths.tolist() == [1, most]
        assert lengths.dtype == (np.uint8 if most < 256 else np.int32)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", [text_codes.NUMBERS, text_codes.NAMES, text_codes.LINES])
@pytest.mark.parametrize("high", [1, 3])
def test_offsets_beyond_four_gigabytes(mode, high):
    """The file is not needed for it: the lines say where they are."""
    lines = [b"7 |x 1\n", b"8 |x 2\n", b" |x 3\n", b"9 |x 4\n", b"11 |x 5\n"]
    buffer = np.frombuffer(b"".join(lines) + bytes(READABLE), np.uint8)
    size, offsets = len(buffer) - READABLE, list(accumulate(map(len, lines), initial=0))
    first = [i for i in range(5) if i != 2 or mode == text_codes.LINES]
    for before in range(size + 2):
        at = (high << 32) - before
        scan = index_module._Scan(0, mode, b"", False, False)
        assert scan.add(buffer, size, at, at + size) is None
        found = scan.result(True, at + size, None)
        assert found.offsets.tolist() == [*(at + offsets[i] for i in first), at + size]
        assert found.offsets.ascend() and len(found.offsets.turns) == (at + size) >> 32
        assert found.samples.tolist() == ([1] * 5 if mode == text_codes.LINES else [1, 2, 1, 1])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.sampled_from([np.uint8, np.int32]), st.integers(1, 20))
def test_samples_before_each_chunk(counts, dtype, some):
    first = np.array([0, *accumulate(counts)])
    lengths = (np.arange(first[-1]) % 200 + 56).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_SOME", some)
        found = SequenceTable(first, lengths).chunk_starts
    assert found.dtype == np.int64
    assert found.tolist() == [sum(lengths[:n].tolist()) for n in first]


@given(st.lists(st.integers(1, 255), min_size=1, max_size=40), st.integers(1, 9), st.sampled_from([np.uint8, np.int32]))
def test_starts_of_sequences(lengths, apart, dtype):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_APART", apart)
        starts = Starts(np.array(lengths, dtype))
        expected = list(accumulate(lengths, initial=0))
        assert [starts[i] for i in range(len(expected))] == expected
        for at in {*expected, *(start + 1 for start in expected[:-1])}:
            assert starts.searchsorted(at) == np.searchsorted(expected, at)


# --------------------------------------------------------------------------------------------------- files that change


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("change", [-2000, 7 * 1000])
def test_a_file_that_changes_its_size_after_it_was_opened(tmp_path, threads, change):
    path = tmp_path / "a.ctf"
    line = "{:04} |x 1\n"
    path.write_text("".join(map(line.format, range(1000))))
    data = open_text(str(path))
    if change > 0:
        with path.open("a") as file:
            file.write("".join(map(line.format, range(1000, 1700))))
    else:
        os.truncate(path, 10 * 1000 + change)
    found = build_index(str(path), IndexOptions(block=64, threads=threads, piece=1), data=data)
    assert found.begins.tolist() == list(range(0, path.stat().st_size, 10))
    assert found.ends[-1:].tolist() == [found.size] == [path.stat().st_size]
