"""Little data is read without Numba: what comes out is what the kernels give, and Numba is not imported."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cntkpy.readers import DataError, create_reader
from cntkpy.readers.common import labels
from cntkpy.readers.common.chunk import StreamData
from cntkpy.readers.formats.text import deserializer, index
from cntkpy.readers.formats.text import fallback as text_fallback
from cntkpy.readers.formats.text.offsets import Offsets
from cntkpy.readers.formats.uci.columns import Columns
from cntkpy.readers.formats.uci.text import UCIText
from cntkpy.readers.kernels import (
    budget,
    index_kernels,
    kept,
    label_kernels,
    order_fallback,
    order_kernels,
    pack_fallback,
    pack_kernels,
    random_fallback,
    random_kernels,
    shuffle_kernels,
)


@pytest.fixture(autouse=True)
def whole_budget() -> None:
    """Every test starts with the whole budget."""
    budget.reset(budget.BUDGET)


def test_work_is_done_without_kernels_until_it_has_cost_as_much_as_they_do() -> None:
    budget.reset(10_000)
    assert budget.fits_budget(5000)
    assert not budget.fits_budget(5000), "calls cost something too"
    assert not budget.fits_budget(0), "kernels are there now"


def test_what_is_too_much_at_once_is_not_begun() -> None:
    budget.reset(10_000)
    assert not budget.fits_budget(10_001)
    assert not budget.fits_budget(1)


def test_more_is_done_without_kernels_where_none_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling them takes ten times as long as loading them; the folder is looked at once."""
    for name, work, fits in [
        ("new", budget.BUDGET_WITHOUT_KERNELS - 1000, True),
        ("new", budget.BUDGET_WITHOUT_KERNELS, False),
        (".", budget.BUDGET, False),
        (".", budget.BUDGET - 1000, True),
    ]:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / name))
        monkeypatch.setattr(budget, "_left", budget.BUDGET)
        monkeypatch.setattr(budget, "_may_grow", True)
        assert budget.make_room(work) == fits
        assert budget.fits_budget(work) == fits
        assert not budget.fits_budget(budget.BUDGET)


def test_kernels_are_kept_from_the_first_use_of_their_folder_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kept, "private_folder", lambda *parts: made(tmp_path.joinpath(*parts)))
    kept.place_for_compiled_code.cache_clear()
    try:
        assert not kept.are_kept()
        assert kept.place_for_compiled_code() == str(next((tmp_path / "kernels").iterdir()))
        assert kept.are_kept()
    finally:
        kept.place_for_compiled_code.cache_clear()


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# ------------------------------------------------------------------------------------------------ text

numbers = st.one_of(
    st.integers(-99, 99).map(str),
    st.floats(allow_nan=False).map(repr),
    st.floats(width=32).map(lambda x: f"{x:.3f}"),
    st.sampled_from(["5.", "+1", "1e-3", "-0", "1E5", "123456789012345678901234567890", "0.1e400"]),
    st.sampled_from([".5", "1-2", "x", "1.e5", "1_0", "inf", "", "\v"]),
)
finite = st.floats(allow_nan=False, allow_infinity=False)
good = st.one_of(st.integers(-99, 99).map(str), finite.map(lambda x: f"{x:.4g}"))
blanks = st.sampled_from([" ", "  ", "\t", " \t"])


@st.composite
def lines(draw: Any, odd: bool) -> str:
    """A line of text with the inputs a (2 values), s (sparse, 5) and c (1 value)."""
    number = numbers if odd else good
    parts: list[str] = []
    for name in draw(st.permutations(["a", "s", "c"])):
        if draw(st.integers(0, 4)) == 0:
            continue
        gap = draw(blanks)
        if name == "s":
            entries = draw(st.lists(st.tuples(st.integers(0, 5 if odd else 4), number), max_size=3))
            text = gap.join(f"{i}:{x}" for i, x in entries)
        else:
            text = gap.join(draw(st.lists(number, min_size=2, max_size=2)) if name == "a" else [draw(number)])
        parts.append(f"|{name}{gap}{text}")
        if draw(st.integers(0, 7)) == 0:
            parts.append("|z 1 anything 2:x \u00e4 ")
        if draw(st.integers(0, 5)) == 0:
            parts.append("|# a remark: 1 2 \u00e4 ")
    joint = draw(st.sampled_from([" ", "", "\t"]))
    return joint.join(parts) + draw(st.sampled_from(["", " ", "\r"]))


def texts(odd: bool) -> Any:
    """Files: lines with ids, or without them."""
    some = st.lists(st.tuples(st.integers(0, 3), lines(odd)), min_size=1, max_size=8)
    form = st.sampled_from(["{0} {1}", "{0}{1}", "{1}", "k{0} {1}"])
    end = st.sampled_from(["\n", "", "\n\n"] if odd else ["\n"])
    return st.tuples(some, form, end).map(lambda x: "\n".join(x[1].format(*one) for one in x[0]) + x[2])


class Messages(logging.Handler):
    """Keeps what is told."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def read(path: Path, options: str, work: int) -> Any:
    """All that a reader gives in two epochs, and what it says."""
    budget.reset(work)
    messages, log = Messages(), logging.getLogger("cntkpy.readers")
    log.addHandler(messages)
    try:
        found = _read(path, options)
        # When the losses of a sweep are summed up among the others, and whether at all before an error, is chance.
        summed = sorted(text for text in messages.texts if text.startswith("WARNING: "))
        located = [text for text in messages.texts if not text.startswith("WARNING: ")]
        return found, located, None if found and isinstance(found[-1], str) else summed
    finally:
        log.removeHandler(messages)


def _read(path: Path, options: str) -> list[Any]:
    section = (
        f'readerType=CNTKTextFormatReader; file="{path}"; {options}; '
        "input=[a=[dim=2;format=dense]; s=[dim=5;format=sparse]; c=[dim=1;format=dense]]"
    )
    found: list[Any] = []
    try:
        with closing(create_reader(section, "float")) as reader:
            for number in range(2):
                reader.start_minibatch_loop(3, number)
                while (minibatch := reader.get_minibatch()) is not None:
                    for name, values in sorted(minibatch.streams.items()):
                        sparse = (
                            (values.data, values.indices, values.indptr) if hasattr(values, "indptr") else (values,)
                        )
                        found.append((name, *((one.dtype, one.shape, one.tobytes()) for one in sparse)))
                        layout = minibatch.layouts[name]
                        found.append((layout.T, layout.S, layout.sequences.tolist()))
    except DataError as error:
        found.append(str(error))
    return found


OPTIONS = [
    "randomize=false",
    "randomize=true",
    "frameMode=true",
    "maxErrors=100; randomize=false",
    "useNumericSequenceKeys=false; randomize=true",
    "skipSequenceIds=true",
]


def calls_of(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    """Return a list that gets the name whenever the function is called."""
    calls, function = list[str](), getattr(owner, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        calls.append(name)
        return function(*arguments, **named)

    patch.setattr(owner, name, watched)
    return calls


def read_both_ways(path: Path, options: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_scan", None)
        calls = calls_of(patch, deserializer, "parse")
        values, said, losses = read(path, options, 10**9)
    assert (values, said, losses) == read(path, options, 0)
    # The kernels find the place of a number that is infinite; an error behind it is raised before that is said.
    assert not calls or losses is None or any("too large for its type" in text for text in said)


@pytest.mark.malformed
@given(text=st.one_of(texts(odd=False), texts(odd=True)), options=st.sampled_from(OPTIONS))
@settings(max_examples=20)
def test_text_is_read_as_the_kernels_read_it(tmp_path_factory: pytest.TempPathFactory, text: str, options: str) -> None:
    path = tmp_path_factory.mktemp("text") / "data.ctf"
    path.write_text(text, encoding="utf-8", newline="")
    read_both_ways(path, options)


def mutated(good: bytes, pieces: list[bytes]) -> Any:
    """Texts in which bytes are replaced by others."""
    change = st.tuples(st.integers(0, len(good)), st.integers(0, 3), st.sampled_from(pieces))

    def mutate(changes: list[tuple[int, int, bytes]]) -> bytes:
        text = good
        for at, length, piece in changes:
            text = text[:at] + piece + text[at + length :]
        return text

    return st.lists(change, min_size=1, max_size=3).map(mutate)


TEXT = (
    b"1 |a 1.5 -2 |s 0:1 4:2e3 |# x\n1 |a 3 +4. |c 5 |z 1\n22 |a 0 0 |s 3:-1\n22\t|c 1e-3 |a 7 8\r\n3 |s |c 6 |a 1 1\n"
)
PIECES = [bytes([one]) for one in b"| \n\t\r\0\v\xff\x7fx-+.:e#5"]
PIECES += [b"", b"|a", b"|s ", b"|b 1", b"1.e5", b".5", b"1_0", b"inf", b"4:", b"99:1"]
PIECES += [b"9" * 25, b"0" * 5000, b"k" * 5000]
MANY = [*OPTIONS, "maxErrors=1; randomize=false", "useNumericSequenceKeys=false; maxErrors=100"]


@pytest.mark.malformed
@given(text=mutated(TEXT, PIECES), options=st.sampled_from(MANY))
@example(text=b"0 |a 1" + b"0" * 60 + b"1.5 1\n", options="randomize=false")
@settings(max_examples=20)
def test_mistakes_in_text_are_those_that_the_kernels_find(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, options: str
) -> None:
    path = tmp_path_factory.mktemp("text") / "data.ctf"
    path.write_bytes(text)
    read_both_ways(path, options)


def test_so_much_odd_text_that_the_kernels_are_quicker(tmp_path: Path) -> None:
    path = tmp_path / "data.ctf"
    path.write_text("".join(f"{i} |a 1 2 |s 0:1 |c 1 {i % 5 // 4 * 'x'}\n" for i in range(1000)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deserializer, "parse", None)
        assert len(read(path, "maxErrors=9999; randomize=false; traceLevel=0", 10**9)[0]) == 2 * 3 * 2 * 334
        with pytest.raises(TypeError):
            read(path, "maxErrors=9999; randomize=false; traceLevel=0", 200_000)


UCI = b"1 2.5 a\n-3 4e1 b\r\n\n.5\t6. a\n7 8 b extra\n9 10 a 11\n"
LOOKS = [bytes([one]) for one in b" \n\t\v\f\r\0\xffx-+.,;eca"]
LOOKS += [b"", b"nan", b"1_0", b"1e", b"1.e5", b"--1", b"1x", b"9" * 30]
COLUMNS = [
    Columns("x", 0, 2),
    Columns("x", 0, 2, "y", "category", 2, 1),
    Columns("x", 1, 1, "y", "regression", 0, 1),
    Columns("x", 1, 1, "y", "category", 0, 1, ";"),
    Columns("x", 1, 1, "y", "regression", 0, 1, ";", ","),
]


def read_uci(path: Path, columns: Columns, may_add: bool, work: int) -> Any:
    budget.reset(work)
    known = labels.LabelMap([b"a", b"b", b"1", b"-3", b".5", b"7", b"9"])
    try:
        data = UCIText(str(path), columns, np.float32, known, may_add=may_add)
        chunk = data.load_chunk(0)
    except DataError as error:
        return str(error), error.line, error.hint
    streams = {name: (one.values.tobytes(), one.indices) for name, one in chunk.streams.items() if one.counts is None}
    ids = [one.indices.tolist() for one in chunk.streams.values() if one.indices is not None]
    return streams, ids, known.ids


@pytest.mark.malformed
@given(text=mutated(UCI, LOOKS), columns=st.sampled_from(COLUMNS), may_add=st.booleans())
@example(text=b"1 1.e51\n", columns=COLUMNS[0], may_add=False)
@settings(max_examples=50)
def test_mistakes_in_columns_are_those_that_the_kernels_find(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, columns: Columns, may_add: bool
) -> None:
    path = tmp_path_factory.mktemp("uci") / "data.txt"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        calls = calls_of(patch, UCIText, "_parse_with_kernels")
        streams, *result = read_uci(path, columns, may_add, 10**9)
    assert (streams, *result) == read_uci(path, columns, may_add, 0)
    if calls and not isinstance(streams, str):  # no error: the kernels find the place of a number that is infinite
        assert any(np.isinf(np.frombuffer(values, np.float32)).any() for values, _ in streams.values())


def test_small_files_are_read_without_numba(tmp_path: Path) -> None:
    (tmp_path / "data.ctf").write_text("".join(f"{i // 3} |a {i} 2.5 |s {i % 5}:1 |# x |z 1\n" for i in range(60)))
    (tmp_path / "data.uci").write_text("".join(f"{i % 3} {i} 2.5\n" for i in range(60)))
    (tmp_path / "labels").write_text("0\n1\n2\n")
    (tmp_path / "bad.ctf").write_text("0 |a 1 2 |s 1:1\n0 |a 1 2\n1 |a 1 x |s 1:1\n")
    (tmp_path / "key.ctf").write_text(f"0 |a 1 2 |s 1:1\n{'9' * 25} |a 1 2\n")
    (tmp_path / "bad.uci").write_text("0 1 2.5\n0 2,5 1\n")
    program = """
import sys
from cntkpy.readers import DataError, create_reader
for section in (
    'readerType=CNTKTextFormatReader; file=data.ctf; input=[a=[dim=2;format=dense]; s=[dim=5;format=sparse]]',
    'readerType=UCIFastReader; file=data.uci; features=[dim=2;start=1]; randomize=auto;'
    'labels=[dim=1;start=0;labelDim=3;labelType=category;labelMappingFile=labels]',
):
    reader = create_reader(section, "float")
    for number in range(2):
        reader.start_minibatch_loop(10, number)
        while reader.get_minibatch() is not None:
            pass
    reader.close()

def mistake(section, where):
    try:
        reader = create_reader(section, "float")
        reader.start_minibatch_loop(10, 0)
        reader.get_minibatch()
    except DataError as error:
        assert where in str(error), error
    else:
        raise AssertionError(section)

inputs = 'input=[a=[dim=2;format=dense]; s=[dim=5;format=sparse]]'
mistake(f'readerType=CNTKTextFormatReader; file=bad.ctf; {inputs}', "line 3, column 8, sequence id 1")
mistake(f'readerType=CNTKTextFormatReader; file=key.ctf; {inputs}', "line 2, column 1")
mistake('readerType=UCIFastReader; file=bad.uci; features=[dim=2;start=1]', "line 2, column 3")
assert not {"numba", "llvmlite"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------------ order and layout


def states(seed: int, of_c: bool = False) -> tuple[np.ndarray, np.ndarray]:
    if of_c:
        return random_kernels.rand_seed(seed), random_fallback.rand_seed(seed)
    return random_kernels.mt_seed(np.uint64(seed)), random_fallback.mt_seed(seed)


@pytest.mark.parametrize("seed", [0, 1, 5489, 2**64 - 1])
def test_the_generator(seed: int) -> None:
    a, b = states(seed)
    assert_array_equal(a, b)
    for count in (1, 311, 5, 700):
        assert_array_equal([random_kernels.mt_next(a) for _ in range(count)], random_fallback.mt_next(b, count))
    assert_array_equal(a, b)


@pytest.mark.parametrize("seed", [0, 1, 2, 2**31 - 1])
def test_the_generator_of_c(seed: int) -> None:
    a, b = states(seed, of_c=True)
    assert_array_equal(a, b)
    for count in (1, 30, 5, 700):
        assert_array_equal([random_kernels.rand(a) for _ in range(count)], random_fallback.rand(b, count))
    assert_array_equal(a, b)


@given(st.integers(0, 2**64 - 1), st.integers(0, 700), st.booleans(), st.data())
@settings(max_examples=25)
def test_shuffles(seed: int, count: int, of_c: bool, data: st.DataObject) -> None:
    seed = seed % 2**31 if of_c else seed
    for name, more in (("shuffle_all", ()), ("shuffle_range", (min(3, count), count))):
        (a, b), (x, y) = states(seed, of_c), (np.arange(count), np.arange(count))
        getattr(order_kernels, name)(a, x, *more)
        getattr(order_fallback, name)(b, y, *more)
        assert_array_equal(x, y)
        assert_array_equal(a, b)
    window, seed = data.draw(st.integers(0, 2 * count + 2)), seed % 2**31
    assert_array_equal(
        shuffle_kernels.window_order(count, window, seed), random_fallback.window_order(count, window, seed)
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 60))
def test_windows_and_places(sizes: list[int], window: int) -> None:
    first = np.concatenate([[0], np.cumsum(sizes)])
    assert_array_equal(
        order_kernels.windows_in_samples(first, window), order_fallback.windows_in_samples(first, window)
    )
    places = np.random.default_rng(window).permutation(len(sizes))
    one, other = np.empty(first[-1], np.int32), np.empty(first[-1], np.int32)
    order_kernels.number_places(first, places, one)
    order_fallback.number_places(first, places, other)
    assert_array_equal(one, other)
    some = np.random.default_rng(window).integers(0, max(1, int(first[-1])), 20)
    for wanted in (some, np.sort(some), np.array([-1]), np.array([first[-1]])):
        for a, b in zip(order_kernels.by_chunk(first, wanted), order_fallback.by_chunk(first, wanted), strict=True):
            assert_array_equal(a, b)


lengths_lists = st.one_of(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 5).map(lambda n: [n]))


@given(lengths_lists, st.data())
@settings(max_examples=100)
def test_taking_sequences(given_lengths: list[int], data: st.DataObject) -> None:
    lengths = np.array(given_lengths, np.int32)
    count = data.draw(st.integers(1, 30)) if len(lengths) == 1 and lengths[0] > 0 else len(lengths)
    begin, limit, left = (data.draw(st.integers(low, high)) for low, high in ((0, count), (1, 20), (0, 60)))
    flags = [data.draw(st.booleans()) for _ in range(3)]
    several = (lengths, begin, count, limit, left, *flags, data.draw(st.integers(1, 6)), data.draw(st.integers(0, 40)))
    for a, b in zip(order_kernels.take_several(*several), order_fallback.take_several(*several), strict=True):
        assert_array_equal(a, b)
    workers = data.draw(st.integers(1, 3))
    owner = np.arange(count, dtype=np.int32)[::-1].copy() if flags[0] else np.empty(0, np.int32)
    one = (lengths, begin, count, owner, workers, workers - 1, limit, data.draw(st.integers(1, 20)), left, *flags[1:])
    assert tuple(order_kernels.take(*one)) == order_fallback.take(*one)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(1, 9), st.integers(0, 2**32))
@settings(max_examples=50)
def test_layouts_and_samples(given_lengths: list[int], size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = np.array(given_lengths, np.int64)
    if seed % 3 == 0:
        lengths[:] = lengths[0]
    cuts = np.append(np.arange(0, len(lengths), size), len(lengths))
    found = pack_kernels.first_fit(lengths, cuts)
    for a, b in zip(found, pack_fallback.first_fit(lengths, cuts), strict=True):
        assert_array_equal(a, b)
    *_, places, rows = found
    # The samples of a chunk of two more sequences, in another order.
    which = rng.permutation(len(lengths) + 2)[: len(lengths)]
    sizes = np.full(len(lengths) + 2, 3)
    sizes[which] = lengths
    sequences = np.concatenate([[0], sizes.cumsum()])
    where = np.arange(len(lengths))
    ours, theirs = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    pack_kernels.lengths_to(sequences, which, where, ours)
    pack_fallback.lengths_to(sequences, which, where, theirs)
    assert_array_equal(ours, theirs)
    samples = pack_kernels.samples_of(sequences, which, where, lengths, places)
    first, row = sequences[which], places[:, 0].copy()
    for found in (
        pack_fallback.samples_of(sequences, which, where, lengths, places),
        pack_kernels.samples_of_runs(first, lengths, row, 3),
        pack_fallback.samples_of_runs(first, lengths, row, 3),
    ):
        assert_array_equal(found[0], samples[0])
    assert_array_equal(found[1], pack_kernels.samples_of_runs(first, lengths, row, 3)[1])
    assert_array_equal(pack_fallback.samples_of(sequences, which, where, lengths, places)[1], samples[1])
    total, dim = int(sequences[-1]), 4
    values = rng.random(total * dim + 3).astype(np.float32)
    starts = rng.permutation(total) * dim
    dense = [np.zeros((int(rows[-1]), dim), np.float32) for _ in range(2)]
    for source in (values, rng.integers(0, 256, len(values)).astype(np.uint8)):
        pack_kernels.gather_dense(source, starts, *samples, dense[0])
        pack_fallback.gather_dense(source, starts, *samples, dense[1])
        assert_array_equal(*dense)
    counts = rng.integers(0, dim + 1, total).astype(np.int32)
    indices = rng.integers(0, 5, len(values)).astype(np.int32)
    entries = [_csr(k, values, indices, starts, counts, samples, int(rows[-1])) for k in (pack_kernels, pack_fallback)]
    for a, b in zip(*entries, strict=True):
        assert_array_equal(a, b)
    indptr = entries[0][2]
    for a, b in zip(pack_kernels.split_rows(indptr, rows), pack_fallback.split_rows(indptr, rows), strict=True):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)
    spread = [np.zeros((int(rows[-1]), 5), np.float32) for _ in range(2)]
    pack_kernels.spread_sparse(values, indices, starts, counts, *samples, spread[0])
    pack_fallback.spread_sparse(values, indices, starts, counts, *samples, spread[1])
    assert_array_equal(*spread)


def _csr(
    k: Any,
    values: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    samples: tuple[np.ndarray, np.ndarray],
    rows: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The CSR arrays that the functions of `k` make of these samples."""
    indptr = np.zeros(rows + 1, np.int32)
    k.note_entries(counts, *samples, indptr)
    k.add_up(indptr)
    data, columns = np.empty(indptr[-1], values.dtype), np.empty(indptr[-1], np.int32)
    k.copy_entries(values, indices, starts, *samples, indptr, data, columns)
    return data, columns, indptr


@given(st.integers(2, 30), st.integers(0, 3), st.integers(1, 3), st.integers(0, 3), st.integers(0, 2**32))
@settings(max_examples=50)
def test_samples_with_as_many_entries_each(total: int, begin: int, apart: int, entries: int, seed: int) -> None:
    wide = np.arange(begin + apart * total + 4)
    values, indices = wide.astype(np.float32), (wide % 5).astype(np.int32)
    starts, counts = begin + apart * np.arange(total), np.full(total, entries, np.int32)
    assert StreamData(5, values, starts, np.arange(total + 1), counts, indices).even == (begin, apart, entries)
    rng = np.random.default_rng(seed)
    samples = rng.permutation(total), rng.permutation(total)
    expected = _csr(pack_kernels, values, indices, starts, counts, samples, total)
    for k in (pack_kernels, pack_fallback):
        indptr, data, columns = np.zeros(total + 1, np.int32), np.empty_like(expected[0]), np.empty_like(expected[1])
        k.note_as_many(entries, samples[1], indptr)
        k.add_up(indptr)
        k.copy_even_entries(values, indices, begin, apart, entries, *samples, indptr, data, columns)
        for a, b in zip(expected, (data, columns, indptr), strict=True):
            assert_array_equal(a, b)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 40), st.integers(0, 3))
def test_chunks_of_sequences(given_sizes: list[int], maximum: int, gap: int) -> None:
    sizes = np.array(given_sizes, np.uint32)
    offsets = np.arange(len(sizes)) * gap + np.append(0, sizes.cumsum()[:-1]).astype(np.int64)
    first = np.empty(len(sizes) + 1, np.int64)
    expected = first[: index_kernels.form_chunks(offsets, offsets + sizes, maximum, first) + 1]
    begins, ends = Offsets.of(offsets), Offsets.of(offsets + sizes)
    assert_array_equal(text_fallback.form_chunks(begins, ends, maximum), expected)


@given(st.binary(max_size=20))
def test_hashes_of_labels(label: bytes) -> None:
    text = np.frombuffer(bytearray(label), np.uint8)
    assert labels.hash_of(label) == int(label_kernels.hash_of(text, 0, len(label)))
