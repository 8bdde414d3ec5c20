# ruff: noqa: E501  tables of cases
"""Feature transforms of the nnet1 kind: every component against a formula, pieces against the whole, damage."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.kaldi.features import KaldiFrames
from cntkpy.readers.formats.kaldi.transform import Transform, read_transform

X = np.random.default_rng(0).standard_normal((6, 2))
PARTS = {
    "<Splice> 6 2 [ -2 0 1 ]": lambda x: np.concatenate([x[np.clip(np.arange(6) + o, 0, 5)] for o in (-2, 0, 1)], 1),
    "<AddShift> 2 2 <LearnRateCoef> 0.5 [ 1 -3 ]": lambda x: x + np.array([1, -3]),
    "<rescale> 2 2 [ 2 0.5 ]": lambda x: x * [2, 0.5],
    "<Copy> 3 2 [ 2 1 2 ]": lambda x: x[:, [1, 0, 1]],
    "<LinearTransform> 3 2 [ 1 2\n 3 4\n 5 6 ]": lambda x: x @ np.array([[1, 3, 5], [2, 4, 6.0]]),
    "<AffineTransform> 1 2 <LearnRateCoef> 1 <BiasLearnRateCoef> 1 <MaxNorm> 0 [ 1 2 ] [ 7 ]": lambda x: (
        x @ [[1], [2]] + 7
    ),
    "<Sigmoid> 2 2": lambda x: 1 / (1 + np.exp(-x)),
    "<Tanh> 2 2": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
    "<Softmax> 2 2": lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
}


def apply(transform: Transform, x: np.ndarray) -> np.ndarray:
    return transform.apply(x, np.zeros(len(x), np.int64), np.full(len(x), len(x) - 1))


def read(folder: Path, content: str | bytes) -> Transform:
    path = folder / "nnet"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_transform(str(path))


@pytest.mark.parametrize("text", PARTS)
@pytest.mark.parametrize("form", ["{}", "<Nnet> {}\n<!EndOfComponent>\n</Nnet>\n", "<Nnet>\n{}\n</Nnet>"])
def test_components(tmp_path: Path, text: str, form: str) -> None:
    np.testing.assert_allclose(apply(read(tmp_path, form.format(text)), X), PARTS[text](X), rtol=1e-12)


def number(value: int) -> bytes:
    return b"\4" + struct.pack("<i", value)


def real(value: float) -> bytes:
    return b"\4" + struct.pack("<f", value)


def vector(values: list[float]) -> bytes:
    return b"FV " + number(len(values)) + np.array(values, "<f4").tobytes()


def matrix(values: list[list[float]], token: bytes = b"FM ", kind: str = "<f4") -> bytes:
    rows = np.array(values, kind)
    return token + number(rows.shape[0]) + number(rows.shape[1]) + rows.tobytes()


BINARY = (
    b"\0B<Nnet> <Splice> " + number(6) + number(2) + b"\4" + struct.pack("<4i", 3, -2, 0, 1) + b"<!EndOfComponent> "
    b"<AddShift> " + number(6) + number(6) + b"<LearnRateCoef> " + real(0) + vector([1, 2, 3, 4, 5, 6])
    + b"<LinearTransform> " + number(2) + number(6) + matrix([[1, 0, 0, 0, 0, 2], [0, 3, 0, 0, 1, 0]], b"DM ", "<f8")
    + b"<Rescale> " + number(2) + number(2) + vector([2, 3]) + b"<!EndOfComponent> </Nnet> "
)  # fmt: skip
TEXT = (
    "<Nnet> <Splice> 6 2 [ -2 0 1 ] <AddShift> 6 6 <LearnRateCoef> 0 [ 1 2 3 4 5 6 ] "
    "<LinearTransform> 2 6 [ 1 0 0 0 0 2 \n 0 3 0 0 1 0 ] <Rescale> 2 2 [ 2 3 ] </Nnet>"
)


def test_binary_files_are_the_same_as_text(tmp_path: Path) -> None:
    found, text = read(tmp_path, BINARY), read(tmp_path, TEXT)
    assert (found.inputs, found.outputs, found.frames_before, found.after) == (2, 2, 2, 1)
    np.testing.assert_array_equal(apply(found, X), apply(text, X))


class Rows:
    """Stands in for `Matrices`."""

    def __init__(self, utterances: list[np.ndarray]):
        self.utterances, self.columns = utterances, utterances[0].shape[1]

    def copy(self, which: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [self.utterances[u][a:b] for u, a, b in zip(which, begin, end, strict=True)]
        return np.concatenate(parts), np.cumsum(end - begin) - (end - begin)


@settings(max_examples=50)
@given(st.data())
def test_a_piece_of_an_utterance_is_that_piece_of_the_whole(tmp_path_factory: pytest.TempPathFactory, data):
    splices = data.draw(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=3), min_size=1, max_size=3))
    text, dim = "", 2
    for offsets in splices:
        text += f"<Splice> {dim * len(offsets)} {dim} [ {' '.join(map(str, offsets))} ] <Tanh> {dim * len(offsets)} {dim * len(offsets)}\n"
        dim *= len(offsets)
    transform = read(tmp_path_factory.mktemp("t"), text)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lengths = np.array(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    rows = [rng.standard_normal((n, 2)).astype(np.float32) for n in lengths]
    frames = KaldiFrames([], ("", "", lengths), lengths, Rows(rows), transform, 0, 0)  # type: ignore[arg-type]
    which = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5)))
    begin = np.array([data.draw(st.integers(-3, lengths[u] - 1)) for u in which])
    end = np.array([data.draw(st.integers(max(b, 0) + 1, lengths[u] + 3)) for u, b in zip(which, begin, strict=True)])
    found, place = frames.copy(which, begin, end)
    for u, a, b, at in zip(which, begin, end, place, strict=True):
        whole = apply(transform, rows[u])
        np.testing.assert_array_equal(found[at : at + b - a], whole[np.clip(np.arange(a, b), 0, lengths[u] - 1)])


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    complete = {len(BINARY), len(BINARY) - 1, len(BINARY) - 2, BINARY.index(b"</Nnet>")}
    ends = {
        at + len(b"<!EndOfComponent> ") for at in range(len(BINARY)) if BINARY[at:].startswith(b"<!EndOfComponent> ")
    }
    for size in range(len(BINARY)):
        try:
            read(tmp_path, BINARY[:size])
        except DataError as error:
            assert "nnet, byte" in str(error)
        else:
            assert size in complete or any(BINARY[:size].startswith(BINARY[:end][:-18]) for end in ends | {len(BINARY)})
    for content in (b"", b"\0B", b"<Nnet> </Nnet>", b"\0BFM "):
        with pytest.raises(DataError, match="nnet, byte"):
            read(tmp_path, content)


@settings(max_examples=40)
@given(st.data())
def test_other_bytes_are_errors_or_other_transforms(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    content = bytearray(data.draw(st.sampled_from([BINARY, TEXT.encode()])))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DataError):
        read(tmp_path_factory.mktemp("t"), bytes(content))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<Convolutional> 2 2", "<Convolutional> is not supported in a feature transform"),
        ("<Tanh> 2 3", "<Tanh> has 3 inputs, but 2 outputs"),
        ("<Tanh> 2 2 <Tanh> 3 3", "has 3 inputs, but <Tanh> before it"),
        ("<Splice> 4 2 [ 0 ]", "1 offsets of 2 values, but 4 outputs"),
        ("<Copy> 1 2 [ 3 ]", "copies 1 of the values 1 to 2"),
        ("<AddShift> 2 2 [ 1 2 3 ]", "3 numbers stand where the sizes of the component mean 2"),
        ("<LinearTransform> 2 2 [ 1 2\n 3 ]", "rows of a matrix differ in length"),
        ("<Tanh> 2 x", "'x' is not a number"),
        ("<AddShift> 2 2 1 2", "numbers in brackets are expected"),
        ("Tanh 2 2", "a component such as <Splice> is expected"),
        ("<Splice> 20002 2 [ -10001 ]", "offsets of 2 values"),
        ("<AddShift> 2 2 [ 1 2", "brackets are not closed"),
    ],
)
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)
