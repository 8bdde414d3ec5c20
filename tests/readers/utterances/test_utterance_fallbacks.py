"""Little speech is read without Numba: the fallbacks give what the kernels give, mistakes included."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.formats.htk import mlf_codes, mlf_fallback, mlf_kernels
from cntkpy.readers.utterances import fallback, kernels

numbers = st.sampled_from([b"0", b"7", b"12", b"007", b"3.", b"4.5", b"65534", b"65535", b"9" * 17, b"1" + b"0" * 17])
odd = st.sampled_from([b"", b"x", b"-1", b".5", b"1.5x", b"9" * 18, b"9" * 18 + b"x", b"9" * 5000, b"1e3", b"+1"])
names = st.sampled_from([b"a", b"b", b"unlisted", b"a\v", b"\f"])
ranges = st.one_of(
    st.tuples(numbers, numbers, names),
    st.tuples(numbers, numbers, names, numbers),
    st.lists(st.one_of(numbers, odd, names), max_size=6),
)
gaps = st.sampled_from([b" ", b"\t", b"  "])
lines = st.one_of(
    st.tuples(ranges, gaps).map(lambda parts: parts[1].join(parts[0])),
    st.sampled_from(
        [b'"*/u.lab"', b'"u"', b'""', b'"', b"u", b".", b".", b"", b" \t", b" . ", b"#!MLF!#", b"..", b'  "v" \t']
    ),
)
texts = st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\n\r"])), max_size=14).map(
    lambda parts: b"".join(line + end for line, end in parts)
)


def parsed(module: Any, text: bytes, stop: int, states: LabelMap, mapped: bool, room: tuple[int, int]) -> list[Any]:
    """What calls with arrays of this size give, one after the other, up to a mistake or the end."""
    view, state = np.frombuffer(text, np.uint8), np.zeros(8, np.int64)
    ranges, entries = np.zeros((room[0], 3), np.int64), np.zeros((room[1], 5), np.int64)
    found: list[Any] = []
    for _ in range(len(text) + 2):
        how = mapped, states.names, states.starts, states.table
        code = module.parse_lines(view, stop, *how, ranges, entries, state)
        some = ranges[: state[mlf_codes.RANGES]].tolist(), entries[: state[mlf_codes.ENTRIES]].tolist()
        seen = state.tolist()
        if code <= mlf_codes.FULL:  # nothing is wrong, so nothing says where
            seen[mlf_codes.BEGIN :] = []
        found += [code, *some, seen]
        state[mlf_codes.RANGES] = state[mlf_codes.ENTRIES] = 0
        if code in (mlf_codes.DONE, mlf_codes.NO_HEADER):
            break
        if code != mlf_codes.FULL:
            state[mlf_codes.WHERE] = mlf_codes.SKIPPING
    return found


@given(texts, st.booleans(), st.booleans(), st.integers(1, 4), st.integers(1, 4), st.data())
@settings(max_examples=40)
@example(b'"u"\n0 5 a\n.\n', True, True, 9, 9, None)
@example(b'"u"\n5 0 a\n0 5 b', True, True, 9, 9, None)
def test_label_files(text: bytes, header: bool, mapped: bool, most: int, entries: int, data: Any) -> None:
    text = b"#!MLF!#\n" * header + text
    states = LabelMap([b"a", b"b", b"a\v"])
    stop = len(text) if data is None else data.draw(st.integers(0, len(text)))
    how = text, stop, states, mapped, (most, entries)
    assert parsed(mlf_fallback, *how) == parsed(mlf_kernels, *how)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=6), st.booleans(), st.data())
@settings(max_examples=20)
def test_spreading(ranges_of: list[list[int]], marked: bool, data: Any) -> None:
    ends = np.concatenate([np.cumsum(sizes) for sizes in ranges_of]).astype(np.int32)
    first = np.append(0, np.cumsum([len(sizes) for sizes in ranges_of]))
    classes = (np.arange(len(ends)) % 7 + 1).astype(np.uint16)
    which = np.array(data.draw(st.lists(st.integers(0, len(ranges_of) - 1), min_size=1, max_size=5)))
    place = np.append(0, np.cumsum(data.draw(st.lists(st.integers(0, 30), min_size=len(which), max_size=len(which)))))
    size = int(place[-1]) - data.draw(st.integers(0, min(3, int(place[-1]) - int(place[-2]))))
    found: list[np.ndarray] = []
    for module in (fallback, kernels):
        out, marks = np.zeros(size, np.int32), np.ones(size * marked, np.uint8)
        module.spread(ends, classes, first, which, place, out, marks)
        found += [out, marks]
    assert_array_equal(found[0], found[2])
    assert_array_equal(found[1], found[3])


@given(st.lists(st.integers(0, 90), min_size=1, max_size=9), st.lists(st.integers(-1, 400), max_size=9))
@settings(max_examples=20)
def test_places_of_frames(lengths: list[int], frames: list[int]) -> None:
    starts = np.append(0, np.cumsum(lengths))
    near = np.searchsorted(starts, np.arange(0, int(starts[-1]), 64), side="right") - 1
    results: list[Any] = []
    for module in (fallback, kernels):
        which, inside = np.zeros((2, len(frames)), np.int64)
        bad = module.locate(starts, near, 64, np.array(frames, np.int64), which, inside)
        results.append([bad, which.tolist(), inside.tolist()] if bad < 0 else bad)
    assert results[0] == results[1]
