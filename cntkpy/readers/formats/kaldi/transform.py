"""Feature transforms: networks of Kaldi's nnet1 kind that are applied to the frames of an utterance.

A file, binary or text, holds components one after the other: `<Type>` output-size input-size data, and perhaps
`<!EndOfComponent>`; around them perhaps `<Nnet>` and `</Nnet>`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cntkpy.cntk_config.base.files import read_input
from cntkpy.readers.errors import DataError

_RATES = {"<learnratecoef>", "<biaslearnratecoef>", "<maxnorm>"}
_LONGEST_TOKEN = 100


@dataclass(frozen=True)
class Step:
    """One component: (rows, input size) -> (rows, output size). offsets: frames that stand side by side in its output.

    apply: of a component that works frame by frame; None for a splice.
    """

    name: str
    inputs: int
    outputs: int
    offsets: tuple[int, ...] = (0,)
    apply: Callable[[np.ndarray], np.ndarray] | None = None


class Transform:
    """Components in order. before, after: how many neighbours of a frame its result depends on."""

    def __init__(self, path: str, steps: Sequence[Step]):
        self.path, self.steps = path, list(steps)
        self.frames_before = sum(max(0, -min(step.offsets)) for step in self.steps)
        self.after = sum(max(0, max(step.offsets)) for step in self.steps)

    @property
    def outputs(self) -> int:
        """Values of a frame after the last component."""
        return self.steps[-1].outputs

    @property
    def inputs(self) -> int:
        """Values of a frame before the first one."""
        return self.steps[0].inputs

    def apply(self, frames: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Transform frames of several utterances. Neighbours beyond the edges of an utterance are the frame there.

        Args:
            frames: (n, inputs), utterance after utterance.
            first, last: int64[n], rows of the first and the last frame of the utterance of each row.

        Returns:
            (n, outputs), of the same type.
        """
        out = frames
        for step in self.steps:
            if step.apply is not None:
                out = np.asarray(step.apply(out), frames.dtype)
            else:
                position = np.arange(len(out))[:, None] + np.array(step.offsets)
                out = out[np.clip(position, first[:, None], last[:, None])].reshape(len(out), step.outputs)
        return out


class _Content:
    """The file, read from front to back."""

    def __init__(self, path: str):
        self.path = path
        try:
            self.data = read_input(path)
        except OSError as error:
            raise DataError(
                f"The feature transform {path} cannot be opened: {error.strerror or error}", path=path
            ) from None
        self.binary = self.data.startswith(b"\0B")
        self.position = 2 if self.binary else 0

    def error(self, message: str, hint: str | None = None) -> DataError:
        return DataError(f"{self.path}, byte {self.position}: {message}.", path=self.path, hint=hint)

    def _skip(self) -> None:
        while self.position < len(self.data) and self.data[self.position] in b" \t\r\n":
            self.position += 1

    def take(self, count: int) -> bytes:
        """So many bytes."""
        if count > len(self.data) - self.position:
            raise self.error("the file ends inside a component", "was it cut short?")
        self.position += count
        return self.data[self.position - count : self.position]

    def peek(self) -> str:
        """Return the next token, or nothing if what comes next is none; it stays where it is."""
        position = self.position
        self._skip()
        begin = end = self.position
        while end < len(self.data) and end - begin < _LONGEST_TOKEN and self.data[end] > 32:
            end += 1
        self.position = position
        return self.data[begin:end].decode("latin-1") if self.data[begin : begin + 1] == b"<" else ""

    def token(self) -> str:
        """Return the next token."""
        name = self.peek()
        if not name:
            raise self.error("a token such as <Splice> is expected", "is this an nnet1 file?")
        self._skip()
        self.position += len(name)
        if self.binary and self.position < len(self.data):
            self.position += 1  # the blank after it
        return name

    def word(self) -> str:
        """In text: what is before the next blank."""
        self._skip()
        begin = self.position
        while self.position < len(self.data) and self.data[self.position] > 32:
            self.position += 1
        return self.data[begin : self.position].decode("latin-1")

    def number(self, kind: type, least: float = -(2**31)) -> float:
        """Return a basic int32 or float."""
        if self.binary:
            size = self.take(1)[0]
            forms = {(int, 4): "<i", (float, 4): "<f", (float, 8): "<d"}
            if (kind, size) not in forms:
                self.position -= 1
                raise self.error(f"a number of 4 bytes is expected, not of {size}")
            value = struct.unpack(forms[kind, size], self.take(size))[0]
        else:
            word = self.word()
            try:
                value = kind(word)
            except ValueError:
                raise self.error(f"'{word}' is not a number") from None
        if not least <= value < 2**31:
            raise self.error(f"{value} is not a size")
        return value

    def bracketed(self) -> list[list[float]]:
        """In text: rows of numbers between brackets."""
        if self.word() != "[":
            raise self.error("numbers in brackets are expected")
        end = self.data.find(b"]", self.position)
        if end < 0:
            raise self.error("the brackets are not closed", "was the file cut short?")
        body = self.data[self.position : end].decode("latin-1")
        self.position = end + 1
        try:
            return [[float(v) for v in row.split()] for row in body.replace(";", "\n").split("\n") if row.strip()]
        except ValueError as error:
            raise self.error(f"the brackets hold more than numbers: {error}") from None

    def integers(self) -> list[int]:
        """Return a vector of integers: the size of an element, their number, the elements."""
        if not self.binary:
            numbers = [v for row in self.bracketed() for v in row]
            if not all(v.is_integer() for v in numbers):  # nor are infinities and nan
                raise self.error("the brackets hold more than integers")
            return [int(v) for v in numbers]
        size = self.take(1)[0]
        if size != 4:
            raise self.error(f"integers of 4 bytes are expected, not of {size}")
        (count,) = struct.unpack("<i", self.take(4))
        if not 0 <= count <= (len(self.data) - self.position) // 4:
            raise self.error(f"{count} integers do not fit in the file", "is it damaged?")
        return list(struct.unpack(f"<{count}i", self.take(4 * count)))

    def array(self, rows: int | None, cols: int) -> np.ndarray:
        """Return a vector of `cols` numbers (rows is None), or a matrix of that shape."""
        if self.binary:
            token = self.take(3).decode("latin-1")
            known = {"FM ": ("<f4", 2), "DM ": ("<f8", 2), "FV ": ("<f4", 1), "DV ": ("<f8", 1)}
            kind, axes = known.get(token, ("", 0))
            if axes != (1 if rows is None else 2):
                raise self.error(f"a {'vector' if rows is None else 'matrix'} is expected, not {token!r}")
            shape = [int(self.number(int, 0)) for _ in range(axes)]
            self._same(shape, rows, cols)
            values = np.frombuffer(self.take(int(np.dtype(kind).itemsize) * int(np.prod(shape, dtype=object))), kind)
            return values.reshape(shape).astype(np.float64)
        result = self.bracketed()
        if len({len(row) for row in result}) > 1:
            raise self.error("the rows of a matrix differ in length")
        shape = [len(result), len(result[0]) if result else 0]
        if rows is None and len(result) <= 1:
            shape = shape[1:]
        self._same(shape, rows, cols)
        return np.array(result, np.float64).reshape(shape)

    def _same(self, shape: list[int], rows: int | None, cols: int) -> None:
        wanted = [cols] if rows is None else [rows, cols]
        if shape != wanted:
            raise self.error(
                f"{' x '.join(map(str, shape))} numbers stand where the sizes of the component mean "
                f"{' x '.join(map(str, wanted))}"
            )


def read_transform(path: str) -> Transform:
    """Read a feature transform.

    Raises:
        DataError: the file is damaged, components do not fit together, or one of them is not supported.
    """
    content = _Content(path)
    steps: list[Step] = []
    if content.peek().lower() == "<nnet>":
        content.token()
    while (token := content.peek().lower()) and token != "</nnet>":
        if token == "<!endofcomponent>":
            content.token()
            continue
        step = _component(content)
        if steps and steps[-1].outputs != step.inputs:
            raise content.error(
                f"{step.name} has {step.inputs} inputs, but {steps[-1].name} before it has {steps[-1].outputs} outputs"
            )
        steps.append(step)
    if not token and content.data[content.position :].strip():
        raise content.error("a component such as <Splice> is expected", "is this an nnet1 file?")
    if not steps:
        raise content.error("the feature transform has no components", "write featureTransform=NO_FEATURE_TRANSFORM")
    return Transform(path, steps)


def _component(content: _Content) -> Step:
    name = content.token()
    kind = name.lower()
    if kind not in _COMPONENTS:
        known = ", ".join(sorted(_COMPONENTS))
        raise content.error(f"{name} is not supported in a feature transform", f"supported are {known}")
    outputs, inputs = int(content.number(int, 1)), int(content.number(int, 1))
    while content.peek().lower() in _RATES:
        content.token()
        content.number(float)
    return _COMPONENTS[kind](content, name, inputs, outputs)


def _splice(content: _Content, name: str, inputs: int, outputs: int) -> Step:
    offsets = content.integers()
    if not offsets or len(offsets) * inputs != outputs:
        raise content.error(f"{name} has {len(offsets)} offsets of {inputs} values, but {outputs} outputs")
    if max(map(abs, offsets), default=0) > 10000:
        raise content.error(f"{name} has an offset of {max(offsets, key=abs)} frames")
    return Step(name, inputs, outputs, tuple(offsets))


def _same_size(content: _Content, name: str, inputs: int, outputs: int) -> None:
    if inputs != outputs:
        raise content.error(f"{name} has {inputs} inputs, but {outputs} outputs")


def _shift(content: _Content, name: str, inputs: int, outputs: int) -> Step:
    _same_size(content, name, inputs, outputs)
    by = content.array(None, outputs)
    return Step(name, inputs, outputs, apply=lambda x: x + by.astype(x.dtype))


def _rescale(content: _Content, name: str, inputs: int, outputs: int) -> Step:
    _same_size(content, name, inputs, outputs)
    by = content.array(None, outputs)
    return Step(name, inputs, outputs, apply=lambda x: x * by.astype(x.dtype))


def _copy(content: _Content, name: str, inputs: int, outputs: int) -> Step:
    which = np.array(content.integers(), np.int64)
    if len(which) != outputs or not ((which >= 1) & (which <= inputs)).all():
        raise content.error(
            f"{name} copies {len(which)} of the values 1 to {inputs} to {outputs} outputs", "do they fit?"
        )
    return Step(name, inputs, outputs, apply=lambda x: x[:, which - 1])


def _linear(content: _Content, name: str, inputs: int, outputs: int) -> Step:
    by = content.array(outputs, inputs)
    return Step(name, inputs, outputs, apply=lambda x: _product(x, by))


def _affine(content: _Content, name: str, inputs: int, outputs: int) -> Step:
    by, shift = content.array(outputs, inputs), content.array(None, outputs)
    return Step(name, inputs, outputs, apply=lambda x: _product(x, by) + shift.astype(x.dtype))


def _product(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return the product, summed in an order that does not depend on how many frames are asked for."""
    return np.einsum("td,od->to", x, by.astype(x.dtype))


def _elementwise(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Step]:
    def component(content: _Content, name: str, inputs: int, outputs: int) -> Step:
        _same_size(content, name, inputs, outputs)
        return Step(name, inputs, outputs, apply=function)

    return component


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


_COMPONENTS: dict[str, Callable[[_Content, str, int, int], Step]] = {
    "<splice>": _splice,
    "<addshift>": _shift,
    "<rescale>": _rescale,
    "<copy>": _copy,
    "<lineartransform>": _linear,
    "<affinetransform>": _affine,
    "<sigmoid>": _elementwise(_sigmoid),
    "<tanh>": _elementwise(np.tanh),
    "<softmax>": _elementwise(_softmax),
}
