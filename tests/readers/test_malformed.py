"""Data that would make a kernel read or write outside its arrays: refused, or left out, with everything else unharmed.

Run with NUMBA_BOUNDSCHECK=1 as well: then every index is checked but those of addresses, for which text ends at the
last byte of memory that can be read here.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cntkpy.readers import (
    CBFDeserializer,
    DataError,
    MinibatchSource,
    StreamInformation,
    UserDeserializer,
    create_reader,
)
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.formats.htk import feature_kernels
from cntkpy.readers.formats.htk.archive import write_features
from cntkpy.readers.formats.text.events import UNREAD
from cntkpy.readers.formats.text.index import IndexOptions, build_index
from cntkpy.readers.formats.text.parse import PADDING, parse, streams_of
from cntkpy.readers.formats.text.stream_format import StreamFormat
from cntkpy.readers.formats.text.tables import Output, Runs, Text
from cntkpy.readers.formats.uci.columns import Columns
from cntkpy.readers.formats.uci.text import UCIText
from cntkpy.readers.kernels import index_kernels
from cntkpy.readers.kernels.order_kernels import by_chunk, windows_in_samples
from cntkpy.readers.utterances import kernels
from cntkpy.readers.utterances.frames import FrameTable
from tests.readers.formats.cbf.test_cbf import CHUNK, FILE

pytestmark = pytest.mark.malformed


# ------------------------------------------------------------------------------------------------------- label files


def speech(folder: Path, ranges: str) -> str:
    """A reader of two utterances of 60 frames; the labels of the first one are these ranges."""
    for name in ("u0", "u1"):
        write_features(str(folder / f"{name}.mfc"), np.ones((60, 3), np.float32))
    (folder / "s.scp").write_text("".join(f"a/{name}.mfc={folder}/{name}.mfc[0,59]\n" for name in ("u0", "u1")))
    (folder / "states").write_text("s1\ns2\n")
    (folder / "l.mlf").write_text(f'#!MLF!#\n"*/a/u0.lab"\n{ranges}\n.\n"*/a/u1.lab"\n0 6000000 s2\n.\n')
    features = f'x=[dim=3;scpFile="{folder}/s.scp"]'
    labels = f'y=[labelDim=2;mlfFile="{folder}/l.mlf";labelMappingFile="{folder}/states"]'
    return (
        f"deserializers=([type=HTKFeatureDeserializer;module=HTKDeserializers;input=[{features}]]:"
        f"[type=HTKMLFDeserializer;module=HTKDeserializers;input=[{labels}]]);randomize=none;traceLevel=0"
    )


LATER = ["0 90000000000000 s1\n1000000 6000000 s2", "0 7000000 s1\n1000000 6000000 s2", "0 6000000 s1\n0 100000 s2"]


@pytest.mark.parametrize("frame_mode", ["true", "false"])
@pytest.mark.parametrize("ranges", LATER)
def test_a_range_that_ends_later_than_the_last_one(tmp_path: Path, ranges: str, frame_mode: str) -> None:
    section = speech(tmp_path, ranges) + f";frameMode={frame_mode}"
    reader = create_reader(section)
    reader.start_minibatch_loop(200, 0)
    with pytest.raises(DataError, match="invalid sequences"):
        while reader.get_minibatch() is not None:
            pass
    reader = create_reader(section + ";maxErrors=100")
    reader.start_minibatch_loop(200, 0)
    found = list(iter(reader.get_minibatch, None))
    keys = {str(key) for minibatch in found for key in minibatch.keys}
    assert keys == {"a/u1"}
    assert sum(int(minibatch.streams["y"].nnz) for minibatch in found) == 60


def test_ranges_are_cut_off_at_the_end_of_the_utterance() -> None:
    out, marks = np.full(40, 9, np.int32), np.full(40, 9, np.uint8)
    ends, classes = np.array([2**31 - 2, 3, 2], np.int32), np.array([1, 2, 3], np.uint16)
    first, place = np.array([0, 2, 3]), np.array([0, 3, 5])
    kernels.spread(ends, classes, first, np.array([0, 1]), place, out, marks)
    assert out[:5].tolist() == [1, 1, 1, 3, 3]
    assert (out[5:] == 9).all() and (marks[5:] == 9).all()
    kernels.spread(ends, classes, first, np.array([0]), np.array([0, 99]), out, marks)  # beyond `out` itself


# ------------------------------------------------------------------------------------------------------ feature files


def test_frames_that_do_not_fit_are_not_copied() -> None:
    frames = np.arange(12, dtype=np.uint32)
    files = np.array([[frames.ctypes.data, -1, 0, 0]])
    one = np.zeros(1, np.int64)
    out = np.full(20, 99, np.uint32)

    def copy(begin: int, end: int, place: int = 0, rows: int = 2) -> int:
        some = (np.array([begin]), np.array([end]), out[: rows * 3], np.array([place]))
        return feature_kernels.copy_frames(files, one, one, np.array([3]), 3, one, *some)

    assert copy(1, 3) == -1 and out[:6].tolist() == [3, 4, 5, 6, 7, 8]
    assert copy(900, 902) == -1 and out[:6].tolist() == [9, 10, 11] * 2  # after the last frame is the last frame
    for wrong in ((0, 3), (2, 2), (3, 1), (-5, -3), (0, 1, -1), (0, 1, 2), (0, 2**40)):
        assert copy(*wrong) == 0
    assert (out[6:] == 99).all()


def test_frames_that_do_not_exist() -> None:
    table = FrameTable(np.array([0, 2]), np.array([3, 2]), np.array([7, 8], np.uint64), Corpus())
    assert [one.tolist() for one in table.place(np.array([4, 0]))] == [[1, 0], [1, 0]]
    for wrong in (5, 2**40, -1):
        with pytest.raises(DataError, match=f"Sequence {wrong} was asked for, but the data have 5"):
            table.place(np.array([1, wrong]))


# ------------------------------------------------------------------------------------------------------ order of data


def test_sequences_that_do_not_exist() -> None:
    first = np.array([0, 2, 2, 5])
    assert by_chunk(first, np.array([4, 0]))[0].tolist() == [0, 2]
    for wrong in (5, 6, 2**40, -1, -(2**40)):
        assert len(by_chunk(first, np.array([0, wrong]))[0]) == 0


def test_a_state_of_other_data(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 |x 1\n0 |x 2\n0 |x 3\n1 |x 4\n")
    source = f'[type=CNTKTextFormatDeserializer;module=CNTKTextFormatReader;file="{tmp_path}/a.txt";'
    source += "input=[x=[dim=1;format=dense]]]"
    reader = create_reader(f"deserializers=({source});truncated=true;truncationLength=1;randomize=false")
    reader.start_minibatch_loop(1, 0)
    assert reader.get_minibatch() is not None
    state = reader.get_state()
    (((number, used, last),),) = state["held"]
    assert (number, used) == (0, 1)
    for wrong in (2, 77, 2**40, -1):
        with pytest.raises(DataError, match=f"Sequence {wrong} was asked for, but the data have 2"):
            reader.set_state({**state, "held": [[[wrong, used, last]]]})
    for wrong in (3, 77, 2**40, -1):
        with pytest.raises(DataError, match=f"Sequence 0 has 3 samples, but {wrong} of them were used"):
            reader.set_state({**state, "held": [[[number, wrong, last]]]})
    reader.set_state(state)
    assert np.asarray(reader.get_minibatch().streams["x"]).tolist() == [[[2]]]


@pytest.mark.parametrize("window", [-(2**40), -2, 0, 1, 2**62])
def test_any_window(window: int) -> None:
    found = windows_in_samples(np.array([0, 3, 3, 4]), window)
    assert (
        (found[:, 0] >= 0) & (found[:, 0] <= np.arange(3)) & (found[:, 1] > np.arange(3)) & (found[:, 1] <= 3)
    ).all()


# -------------------------------------------------------------------------------------------------- columns of numbers


def test_a_file_of_columns_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for kind, line in (("none", "1.25 2.5\n"), ("category", "1.25 a\n\n\n"), ("regression", "1.25 7.5\n")):
        columns = Columns("x", 0, 1, "y" if kind != "none" else "", kind, 1, 1)
        text = line * 50
        for other in (line.split(" ")[0][:1] + " a\n", "\n"):
            path.write_text(text)
            data = UCIText(str(path), columns, np.float32, LabelMap([b"a", b"7.5"]))
            changed = (other.replace("a", "7") if kind != "category" else other) * 500
            path.write_text(changed[: len(text) - 1] + "\n")
            with pytest.raises(DataError, match="was changed while it was read"):
                data.load_chunk(0)


# ---------------------------------------------------------------------------------------------------------- kept index

KEPT = {
    "beyond": {"offsets": [0, 7, 14, 2**31]},
    "far beyond": {"turns": [3]},
    "before": {"turns": [-1]},
    "not all": {"offsets": [0, 7, 14, 20]},
    "downwards": {"offsets": [14, 7, 0, 21]},
    "twice": {"offsets": [0, 7, 7, 21]},
    "fewer": {"offsets": [0, 7, 21]},
    "none": {"offsets": [], "samples": [], "keys": []},
    "negative": {"samples": np.array([1, -9, 1], np.int32)},
    "huge": {"samples": np.array([1, 2**31 - 1, 1], np.int32)},
    "many": {"samples": [1, 255, 1]},
    "more": {"samples": [1, 1, 1, 1]},
    "floats": {"offsets": np.array([0.0, 7.0, 14.0, 21.0])},
    "wide": {"offsets": np.array([0, 7, 14, 21])},
    "short": {"samples": np.array([1, 1, 1], np.uint16)},
    "keys": {"keys": [0, 1]},
}


@pytest.mark.parametrize("name", KEPT)
def test_an_index_that_points_outside(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 |x 1\n1 |x 2\n2 |x 3\n")
    section = f'readerType=CNTKTextFormatReader;file="{path}";cacheIndex=true;randomize=false;traceLevel=1'
    section += ";input=[x=[dim=1;format=dense]]"

    def values() -> list[float]:
        reader = create_reader(section)
        reader.start_minibatch_loop(10, 0)
        return np.asarray(reader.get_minibatch().streams["x"]).reshape(-1).tolist()

    assert values() == [1, 2, 3]
    (cache,) = tmp_path.glob("*.cache")
    with np.load(cache) as archive:
        arrays = dict(archive)
    for array, changed in KEPT[name].items():
        dtype = None if isinstance(changed, np.ndarray) else arrays[array].dtype
        arrays[array] = np.array(changed, dtype)
    with cache.open("wb") as file:
        np.savez(file, **arrays)
    caplog.clear()
    assert values() == [1, 2, 3]
    assert "is damaged. Rebuilding it." in caplog.text


X = [StreamFormat("x", "x", 2, False), StreamFormat("s", "s", 4, True)]


def parse_text(buffer: np.ndarray, begins: list[int], ends: list[int], cut: int = -1) -> object:
    nominal = np.ones(len(begins), np.int32)
    return parse(
        Text(buffer, np.array(begins), np.array(ends), nominal),
        X,
        streams_of(X),
        np.dtype(np.float32),
        10**6,
        end_of_file=cut,
    )


def test_sequences_outside_of_the_text() -> None:
    buffer = np.full(20 + PADDING, 10, np.uint8)
    for begin, end in ((0, 21), (-1, 5), (6, 5), (0, 2**40), (-(2**40), 3), (2**40, 2**40)):
        with pytest.raises(DataError, match="is outside the file"):
            parse_text(buffer, [0, begin], [1, end])


def test_nothing_is_read_where_there_is_no_room(tmp_path: Path) -> None:
    from cntkpy.readers.formats.text.read_kernels import read_and_parse

    (tmp_path / "a").write_bytes(b"x" * 100)
    dtype, one = np.float32, np.zeros(1, np.int64)
    output = Output(
        np.empty(9, dtype), np.empty(9, np.int32), np.empty((2, 9), np.int64), np.empty((2, 9), np.int32),
        np.zeros((2, 2), np.int64), np.empty((9, 4), np.int64), np.empty((9, 3), np.int64), np.zeros(6, np.int64),
    )  # fmt: skip
    whole = np.full(200, 7, np.uint8)
    text = Text(whole[:50], one, one, np.ones(1, np.int32))
    with (tmp_path / "a").open("rb") as file:
        for from_, to, place in ((0, 50, 0), (0, 10, 41), (0, 10, -1), (10, 0, 0), (0, 2**40, 0), (0, 1, 2**40)):
            runs = Runs(file.fileno(), np.array([from_]), np.array([to]), np.array([place]))
            code = read_and_parse(runs, text, streams_of(X), output, 0, False, -1)
            assert code == UNREAD
    assert (whole == 7).all()


# ------------------------------------------------------------------------------------------- addresses: the last bytes


@pytest.fixture
def at_the_edge() -> Callable[[bytes], np.ndarray]:
    """Bytes that end where a page begins that cannot be read: one look after them ends the process."""
    if os.name != "posix":
        pytest.skip("mprotect is POSIX")
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.c_void_p(whole.ctypes.data + page)
    assert libc.mprotect(address, ctypes.c_size_t(page), mmap.PROT_NONE if hasattr(mmap, "PROT_NONE") else 0) == 0

    def place(data: bytes) -> np.ndarray:
        out = whole[page - len(data) : page]
        out[:] = np.frombuffer(data, np.uint8)
        return out

    return place


NASTY = [
    b"0 |x 1 2 |s 3:1 0:5\n",
    b"0 |x 1.5e3 -.5 |s 1:99999999999999999999\n",
    b"0|x 0 0 0 0 0 0 0 0\n",
    b"12345678 |x 12345678 1234567.123456789012345 |s 12345678:12345678.12345678\n",
    b"1|x +|s 1:|x -|s 3:-\n",
    b"|x 1.|s 1:1.\n|x .1|s 1:.1\n",
    b"|x 1e|s 0:1e+\n",
    b"||| |xx |x| |s| |#|\n",
    b"\xff\x00\xfe|x \xff 1|s \x80:1\n",
    b"1 |x 0.0000000000000000000000000001 123456789012345678901234567890 |s 2:1.2.3.4\n",
    b"99999999999999999999|x",
]


@pytest.mark.parametrize("text", NASTY)
def test_nothing_behind_the_text_is_looked_at(text: bytes, at_the_edge: Callable[[bytes], np.ndarray]) -> None:
    for end in range(len(text) + 1):
        for cut in (-1, end):
            parse_text(at_the_edge(text[:end] + b"\n" * PADDING), [0], [end], cut)


@pytest.mark.parametrize("mode", [index_kernels.LINES, index_kernels.NUMBERS, index_kernels.NAMES])
@pytest.mark.parametrize("text", NASTY)
def test_nothing_behind_the_lines_is_looked_at(
    text: bytes, mode: int, at_the_edge: Callable[[bytes], np.ndarray]
) -> None:
    text = text + text
    for end in range(len(text) + 1):
        for main in (b"", b"x", b"s" * 30):
            state = np.zeros(index_kernels.STATE, np.int64)
            state[[index_kernels.MODE, index_kernels.MOST]] = mode, 255
            arrays = np.zeros(9, np.uint64), np.zeros(9, np.uint8), np.zeros(9, np.uint32)
            index_kernels.find_sequences(
                at_the_edge(text[:end] + b"7" * 64),
                0,
                end,
                0,
                np.frombuffer(main, np.uint8),
                *arrays,
                np.zeros(5 if mode == index_kernels.NAMES else 1, np.uint8),
                state,
            )
            assert state[index_kernels.POSITION] <= end


@pytest.mark.parametrize("text", [*NASTY, b"1 +", b"1 .", b"-.\t.5\r", b"1e400 12345678.12345678", b"a \x0b\x0c 1"])
def test_nothing_behind_the_columns_is_looked_at(
    text: bytes, tmp_path: Path, at_the_edge: Callable[[bytes], np.ndarray]
) -> None:
    (tmp_path / "a").write_bytes(b"1 a\n")
    for kind in ("none", "category", "regression"):
        data = UCIText(str(tmp_path / "a"), Columns("x", 0, 1, "y", kind, 1, 1), np.float32, LabelMap([b"a"]))
        for end in range(len(text) + 1):
            with suppress(DataError):
                data._parse(at_the_edge(text[:end] + b"\n" * PADDING), np.zeros(1, np.int64))


# ------------------------------------------------------------------------------------------------------ other formats


@pytest.mark.parametrize(("counts", "nnz"), [((-3, 5), 2), ((5, -3), 2), ((-1, 0), -1), ((2**31 - 1, -(2**31) + 3), 2)])
def test_negative_counts_in_a_binary_text_file(tmp_path: Path, counts: tuple[int, int], nnz: int) -> None:
    at = 12 + CHUNK.index(struct.pack("<Ii2f2i2i", 2, 2, 1, 7, 3, 0, 1, 1))
    data = bytearray(FILE)
    data[at + 4 : at + 8] = struct.pack("<i", nnz)
    data[at + 24 : at + 32] = struct.pack("<2i", *counts)
    (tmp_path / "a.cbf").write_bytes(data)
    with pytest.raises(DataError, match=r"cut short|damaged"):
        MinibatchSource(CBFDeserializer(str(tmp_path / "a.cbf")), randomize=False).next_minibatch(10)


class Given(UserDeserializer):
    def __init__(self, matrix: scipy.sparse.csr_matrix):
        super().__init__()
        self.matrix = matrix

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation("x", 0, "sparse", np.float32, (4,))]

    def num_chunks(self) -> int:
        return 1

    def get_chunk(self, chunk_id: int) -> dict[str, object]:
        return {"x": self.matrix}


@pytest.mark.parametrize(
    ("part", "array"),
    [
        ("indptr", [0, 10**6, 3]),
        ("indptr", [0, -5, 3]),
        ("indptr", [-9, 1, 3]),
        ("indptr", [0, 1, 10**6]),
        ("indptr", [0, 3]),
        ("indptr", [0, 1, 2, 3]),
        ("data", [1.0]),
        ("indices", [0, 1, 2, 3]),
        ("indices", [0, 1, 4]),
        ("indices", [0, -1, 2]),
    ],
)
@pytest.mark.parametrize("as_list", [False, True])
def test_a_matrix_whose_arrays_do_not_fit(part: str, array: list[float], as_list: bool) -> None:
    matrix = scipy.sparse.csr_matrix(np.array([[1, 0, 0, 0], [0, 2, 3, 0]], np.float32))
    setattr(matrix, part, np.array(array, getattr(matrix, part).dtype))
    with pytest.raises(DataError, match=r"do not fit together|out of range"):
        MinibatchSource(Given([matrix] if as_list else matrix), randomize=False).next_minibatch(2)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- the checked kernels


def test_a_kernel_with_checks_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from cntkpy.readers.kernels import jit

    monkeypatch.setattr(jit.config, "BOUNDSCHECK", 1)
    checked: Any = jit.kernel(lambda array: array[2])
    with pytest.raises(IndexError):
        checked(np.zeros(2))
    assert not checked.stats.cache_path


@pytest.mark.thorough
def test_kernels_with_checks_are_not_kept(tmp_path: Path) -> None:
    """The run of these tests with NUMBA_BOUNDSCHECK=1 sees checked kernels, and leaves none for others."""
    import subprocess
    import sys

    code = (
        "import numpy as np\nfrom cntkpy.readers.kernels.order_kernels import number_places as f\n"
        "try:\n    f(np.array([0, 5]), np.array([0]), np.empty(2, np.int64)); print('unchecked')\n"
        "except IndexError:\n    print('checked')\n"
    )
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "checked"
    assert not list(tmp_path.rglob("*.nb[ic]"))


def test_an_index_is_what_it_says(tmp_path: Path) -> None:
    """The index itself never points outside, whatever the text."""
    rng = np.random.default_rng(5)
    signs = np.frombuffer(b"0123456789|xs: \t\r\n\n#\xff\x00", np.uint8)
    path = tmp_path / "a.txt"
    for size in (1, 2, 7, 30, 200) * 20:
        path.write_bytes(rng.choice(signs, size).tobytes())
        try:
            index = build_index(str(path), IndexOptions(main=str(rng.choice(["", "x"]))))
        except DataError:
            continue
        assert index.begins[0] >= 0 and (np.diff(index.begins[:]) > 0).all()
        assert (index.ends[:] <= path.stat().st_size).all()
