"""Little text is read without Numba: the fallbacks give what the kernels give, mistakes included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.formats.language import (
    codes,
    lay_fallback,
    lay_kernels,
    shuffle_fallback,
    shuffle_kernels,
    text_fallback,
    text_kernels,
)

WORDS = [b"a", b"B", b"</s>", b"x\v", b"long", b"\xc3\xa4", b"eightchr", b"\x01more\0than_eight"]
words = st.sampled_from(
    [*WORDS, b"b", b"</S>", b"unlisted", b"\f", b"A", b"LONG", b"a\0", b"eightch", b"\x01more\0than_eighT"]
)
gaps = st.sampled_from([b" ", b"  ", b"\t", b" \r", b"\r"])
edges = st.sampled_from([b"", b"", b" ", b"\t\r"])
lines = st.tuples(edges, st.lists(st.tuples(words, gaps), max_size=6), edges).map(
    lambda parts: parts[0] + b"".join(word + gap for word, gap in parts[1]) + parts[2]
)
texts = st.lists(lines, max_size=12).map(lambda several: b"".join(line + b"\n" for line in several))
listed = st.permutations(WORDS).flatmap(lambda words: st.integers(1, len(words)).map(lambda n: words[:n]))


def table(names: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = LabelMap(names)
    return found.names, found.starts, found.table


def assert_same(one: Any, other: Any) -> None:
    """Arrays of equal type, or tuples of them."""
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
        return
    assert one.dtype == other.dtype
    assert_array_equal(one, other)


def scanned(module: Any, text: bytes, position: int, limit: int, given: tuple[Any, ...]) -> list[Any]:
    view, state = np.frombuffer(text + bytes(codes.PADDING), np.uint8), np.zeros(8, np.int64)
    state[codes.POSITION], state[codes.LINE] = position, 5
    inputs, outputs, bounds = (np.zeros(len(text) + 2, dtype) for dtype in (np.int32, np.int32, np.int64))
    code = module.scan_sentences(view, len(text), limit, *given, inputs, outputs, bounds, state)
    n, count = int(state[codes.TOKENS]), int(state[codes.SENTENCES])
    return [code, state.tolist(), inputs[:n].tolist(), outputs[:n].tolist(), bounds[: count + 1].tolist()]


@pytest.mark.thorough
@given(texts, listed, listed, st.booleans(), st.sampled_from([b"", b"</s>", b"LONG"]), st.integers(-1, 0), st.data())
@settings(max_examples=30)
@example(b"a a\na b </S>\n", WORDS, WORDS, True, b"</s>", -1, None)
def test_sentences(
    text: bytes, into: list[bytes], out: list[bytes], same: bool, end: bytes, unknown: int, data: Any
) -> None:
    limit = data.draw(st.integers(0, 20)) if data else 9
    first = text.find(b"\n") + 1 if data and data.draw(st.booleans()) else 0
    numbers = np.array([unknown, data.draw(st.integers(-1, 0)) if data else 0, 1], np.int64)
    given_ = (table(into), table(into if same else out), numbers, np.array(list(end), np.uint8), same)
    assert scanned(text_fallback, text, first, limit, given_) == scanned(text_kernels, text, first, limit, given_)


def columns(module: Any, text: bytes, limit: int, final: bool, given: tuple[Any, ...]) -> list[Any]:
    view, state = np.frombuffer(text + bytes(codes.PADDING), np.uint8), np.zeros(8, np.int64)
    words, labels = np.zeros(len(text) + 2, np.int32), np.zeros(len(text) + 2, np.int32)
    word_bounds, bounds = np.zeros(len(text) + 2, np.int64), np.zeros(len(text) + 2, np.int64)
    code = module.scan_columns(view, len(text), limit, final, *given, words, word_bounds, labels, bounds, state)
    n, m, count = (int(state[i]) for i in (codes.TOKENS, codes.WORDS, codes.SENTENCES))
    found = words[:m], word_bounds[: n + 1], labels[:n], bounds[: count + 1]
    return [code, state.tolist(), *(array.tolist() for array in found)]


@pytest.mark.thorough
@given(texts, listed, listed, st.integers(-1, 1), st.integers(-1, 1), st.sampled_from([b"", b"a"]), st.data())
@settings(max_examples=30)
def test_columns(
    text: bytes, into: list[bytes], out: list[bytes], word: int, label: int, end: bytes, data: Any
) -> None:
    renumbered = st.lists(st.integers(0, 2), min_size=len(WORDS), max_size=len(WORDS))
    numbers = [np.array(data.draw(renumbered), np.int32) for _ in range(2)]
    symbols = [np.array(list(symbol), np.uint8) for symbol in (end, data.draw(st.sampled_from([b"", b"</s>"])))]
    given_ = table(into), table(out), np.array([word, label], np.int64), *numbers, *symbols
    limit, final = data.draw(st.integers(0, 4)), data.draw(st.booleans())
    assert columns(text_fallback, text, limit, final, given_) == columns(text_kernels, text, limit, final, given_)


@given(st.integers(0, 2**40), st.integers(0, 700), st.sampled_from(["mersenne", "minimal_standard"]))
@settings(max_examples=30)
@example(1, 70_000, "mersenne")  # one element a draw: the squares of so many are above the generator's range
@example(2**31 - 1, 50_000, "minimal_standard")
def test_shuffles(seed: int, count: int, generator: str) -> None:
    one, other = (getattr(module, generator)(seed) for module in (shuffle_fallback, shuffle_kernels))
    assert_same(one, other)
    for _ in range(2):
        assert_same(shuffle_fallback.shuffled(count, one), shuffle_kernels.shuffled(count, other))
    assert_same(one, other)


@given(st.lists(st.integers(1, 4), max_size=40), st.integers(1, 9), st.booleans())
def test_neighbours(given_lengths: list[int], most: int, equal: bool) -> None:
    lengths = np.array(given_lengths, np.int64)
    found = (module.group_neighbours(lengths, most, equal) for module in (shuffle_fallback, shuffle_kernels))
    assert_same(*found)


@given(st.lists(st.integers(2, 7), min_size=1, max_size=20), st.booleans(), st.data())
@settings(max_examples=30)
def test_pieces(given_lengths: list[int], equal: bool, data: Any) -> None:
    """Sentences in groups, of equal length or not; the words and labels of the pieces that are planned."""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    lengths = np.array(given_lengths, np.int64)
    order = random.permutation(len(lengths))
    group = shuffle_kernels.group_neighbours(lengths[order], data.draw(st.integers(1, 4)), equal)
    by_group = np.argsort(group, kind="stable")
    members, starts = order[by_group], np.append(0, np.cumsum(np.bincount(group)))
    bounds = np.append(0, np.cumsum(lengths))
    sizes = random.integers(0, 3, bounds[-1])
    tokens = np.append(0, np.cumsum(sizes))
    inputs = random.integers(0, 50, max(tokens[-1], bounds[-1])).astype(np.int32)
    tokens = data.draw(st.sampled_from([tokens, tokens[:0]]))  # none: each token is a word
    outputs = random.integers(0, 9, bounds[-1]).astype(np.int32)
    unlabelled = data.draw(st.integers(0, 1)) if equal else 0
    at = data.draw(st.integers(0, len(starts) - 1))
    longest = max(
        (lengths[members[starts[at] : starts[at + 1]]].max() - unlabelled for at in [at] if at + 1 < len(starts)),
        default=1,
    )
    step = data.draw(st.integers(0, int(longest) - 1)) if equal else 0
    how = unlabelled, data.draw(st.sampled_from([2, 3, 2**62])) if equal else 2**62
    more = (
        data.draw(st.sampled_from([0, 5])) if equal else 0,
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(0, 40)),
    )
    plans = [
        module.plan_pieces(bounds, members, starts, at, step, *how, *more) for module in (lay_fallback, lay_kernels)
    ]
    assert_same(*plans)
    pieces = plans[0]
    found = [module.sequences_of(pieces, bounds, members, starts, unlabelled) for module in (lay_fallback, lay_kernels)]
    assert_same(*found)
    which = found[0][1]
    if equal:
        several = [
            module.lay_words(pieces, which, bounds, inputs, outputs, bool(unlabelled))
            for module in (lay_fallback, lay_kernels)
        ]
        assert_same(*several)
        return
    offsets = np.array(data.draw(st.sampled_from([[0], [0, 1], [-2, 0, 1]])))
    several = [
        module.lay_bags(pieces, which, bounds, inputs, outputs, tokens, offsets, 50)
        for module in (lay_fallback, lay_kernels)
    ]
    assert_same(*several)
    labels = several[0][-1]
    assert_same(*(module.single_entries(pieces, labels) for module in (lay_fallback, lay_kernels)))
