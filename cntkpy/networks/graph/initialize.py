"""Start values of parameters, bit for bit those of CNTK's CPU build.

The generator is `minstd_rand0` (x <- 16807 x mod 2^31 - 1), computed here in blocks: the k-th value after x is
16807^k x mod 2^31 - 1. Formulas: docs/specification/random-numbers.md 1 and networks.md C.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from cntkpy.cntk_config.base.diagnostics import Span, UserError
from cntkpy.cntk_config.base.files import LIST_LIMIT, read_input
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape

_MODULUS = 2147483647
_RANGE = 2147483646
_BLOCK_ELEMENTS = 1 << 16

_PIECE_ELEMENTS = 1 << 14
"""Values computed at a time, so that what is computed on the way stays in the processor's cache."""

UNIFORM = 0.05000000074505806
"""The largest value of `uniform` at scale 1: 0.05 in single precision, whatever the precision of the network."""
OVERFLOW_SINGLE = math.ldexp(2**25 - 1, 103)
"""The least number that is not finite when it is rounded to single precision."""

#: kinds that draw random numbers and so take a seed
RANDOM_KINDS = (
    "uniform", "gaussian", "heNormal", "xavier", "glorotUniform", "glorotNormal", "heUniform", "normal",
    "truncatedNormal",
)  # fmt: skip
#: kinds whose numbers depend on how many elements an element connects
BY_FANS = ("gaussian", "heNormal", "xavier", "glorotUniform", "glorotNormal", "heUniform")
#: all kinds accepted for `init`
KINDS = (*RANDOM_KINDS, "fixedValue", "zero", "fromFile", "fromLiteral", "bilinear")


def _reduce(product: np.ndarray) -> np.ndarray:
    """Product of two values below the modulus, modulo 2^31 - 1 (a Mersenne prime: fold the high bits, no division)."""
    modulus = np.uint64(_MODULUS)
    folded = (product & modulus) + (product >> np.uint64(31))
    return np.where(folded >= modulus, folded - modulus, folded)


@functools.cache
def _powers() -> np.ndarray:
    """16807^1 ... 16807^_BLOCK_ELEMENTS modulo 2^31 - 1."""
    powers = np.array([16807], np.uint64)
    while len(powers) < _BLOCK_ELEMENTS:
        powers = np.concatenate([powers, _reduce(powers * powers[-1])])
    return powers


class MinStdRand0:
    """The engine: `draws(n)` gives the next n values, each in 1 ... 2147483646."""

    def __init__(self, seed: int) -> None:
        state = seed % _MODULUS
        self.state = np.uint64(state if state else 1)

    def draws(self, count: int) -> np.ndarray:
        """Return the next `count` values as uint64."""
        blocks: list[np.ndarray] = []
        while count > 0:
            block = _reduce(_powers()[:count] * self.state)
            self.state = block[-1]
            blocks.append(block)
            count -= len(block)
        return np.concatenate(blocks) if blocks else np.empty(0, np.uint64)

    def canonical(self, count: int, dtype: np.dtype) -> np.ndarray:
        """`count` reals in [0, 1): one draw each in single precision, two in double."""
        if dtype == np.float32:
            values = (self.draws(count) - np.uint64(1)).astype(np.float32) / np.float32(_RANGE)
        else:
            pairs = self.draws(2 * count).reshape(count, 2)
            low = (pairs[:, 0] - np.uint64(1)).astype(np.float64)
            high = (pairs[:, 1] - np.uint64(1)).astype(np.float64)
            scale = np.float64(_RANGE)
            values = (low + high * scale) / (scale * scale)
        unit = dtype.type(1)
        return np.where(values >= unit, np.nextafter(unit, dtype.type(0)), values)

    def uniform(self, count: int, low: float, high: float, dtype: np.dtype) -> np.ndarray:
        """`count` values of canonical * (high - low) + low, every operation in the element type."""
        low_, high_ = dtype.type(low), dtype.type(high)
        out = np.empty(count, dtype)
        for begin, end in _spans(count):
            out[begin:end] = self.canonical(end - begin, dtype) * (high_ - low_) + low_
        return out

    def normal(self, count: int, deviation: float, dtype: np.dtype) -> np.ndarray:
        """`count` normal values of mean 0 by the polar method (y first, then the x kept back)."""
        two, unit = dtype.type(2), dtype.type(1)
        out = np.empty(count, dtype)
        done = 0
        while done < count:
            tries = min(_PIECE_ELEMENTS // 2, int(0.7 * (count - done)) + 16)
            pairs = two * self.canonical(2 * tries, dtype).reshape(tries, 2) - unit
            x, y = pairs[:, 0], pairs[:, 1]
            radius = x * x + y * y
            good = (radius <= unit) & (radius != 0)
            x, y, radius = x[good], y[good], radius[good]
            logarithm = np.log(radius.astype(np.float64)).astype(dtype)  # rounded once, as the C library does
            factor = np.sqrt(dtype.type(-2) * logarithm / radius)
            values = np.stack([y * factor, x * factor], axis=1).reshape(-1)[: count - done]
            out[done : done + len(values)] = values * dtype.type(deviation) + dtype.type(0)
            done += len(values)
        return out

    def truncated(self, count: int, deviation: float, dtype: np.dtype) -> np.ndarray:
        """`count` normal values of mean 0, of which those beyond two deviations are drawn again."""
        out = np.empty(count, dtype)
        done = 0
        while done < count:
            drawn = self.normal(min(_PIECE_ELEMENTS, count - done), 1.0, dtype)
            kept = drawn[np.abs(drawn) <= 2]
            out[done : done + len(kept)] = kept * dtype.type(deviation)
            done += len(kept)
        return out


def _spans(count: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, count, _PIECE_ELEMENTS):
        yield begin, min(begin + _PIECE_ELEMENTS, count)


class SeedCounter:
    """Hands out seeds 1, 2, 3, ...; one per process for NDL, one per network for the simple builder.

    Args:
        offset: `randomSeedOffset`, added to every seed.
        constant: `forceConstantRandomSeed`: every seed is 1.
    """

    def __init__(self, offset: int = 0, constant: bool = False) -> None:
        self.count = 0
        self.offset = offset
        self.constant = constant
        self._others: dict[str, SeedCounter] = {}

    def other(self, name: str) -> SeedCounter:
        """Return a counter of its own, which continues as long as this one."""
        return self._others.setdefault(name, SeedCounter(constant=self.constant))

    def next(self) -> int:
        """Return the next seed."""
        self.count += 1
        return 1 if self.constant else self.count + self.offset

    def given(self, seed: int) -> int:
        """Return the seed to use for an explicit `randomSeed`; the counter does not advance."""
        return 1 if self.constant else seed + self.offset


@dataclass
class Initializer:
    """Initializer of a parameter.

    Args:
        kind: one of `KINDS`.
        scale: `initValueScale`.
        value: `value`, for fixedValue.
        path: `initFromFilePath`, for fromFile.
        seed: the final seed of a random kind; None until one was assigned.
        kernel: (kernelWidth, kernelHeight), for bilinear.
        literal: a matrix as text, one row a line, for fromLiteral.
        filter_rank: how many first axes are those of a filter.
        output_rank: how many axes after them (if negative, at the end) count outputs; the others count inputs.
        span: where the parameter is defined.
    """

    kind: str = "fixedValue"
    scale: float = 1.0
    value: float = 0.0
    path: str | None = None
    seed: int | None = None
    kernel: tuple[int, int] = (0, 0)
    literal: str = ""
    filter_rank: int = 0
    output_rank: int = 1
    span: Span | None = field(default=None, repr=False)

    @property
    def random(self) -> bool:
        """True if this kind needs a seed."""
        return self.kind in RANDOM_KINDS

    def assign_seed(self, seeds: SeedCounter, seed: int = -1) -> None:
        """Take the seed: `seed` (`randomSeed`) if it is not negative, else the next of the counter."""
        if self.random:
            self.seed = seeds.given(seed) if seed >= 0 else seeds.next()

    def complete_shape(self, shape: Shape) -> Shape:
        """For fromFile and fromLiteral: the shape with its 0 axes (or rank 1 with several columns) taken from there."""
        if self.kind not in ("fromFile", "fromLiteral"):
            return shape
        matrix = self._matrix()
        rows, columns = len(matrix), len(matrix[0])
        shape = tuple(shape)
        if len(shape) == 1 and columns > 1:
            shape = (*shape, 0)
        if shape[0] == 0:
            shape = (rows, *shape[1:])
        remaining_shape = list(shape[1:])
        if remaining_shape.count(0) > 1:
            raise self._error(f"at most one dimension after the first can be taken from {self._source}")
        if 0 in remaining_shape:
            other_number = shapes.size(d for d in remaining_shape if d)
            remaining_shape[remaining_shape.index(0)] = columns // other_number if other_number else 0
        full = (shape[0], *remaining_shape)
        if shapes.size(full) != rows * columns or full[0] != rows:
            raise self._error(
                f"{self._source} holds a matrix of {rows} rows and {columns} columns, which does not fit the "
                f"parameter's shape {shapes.text(full)}"
            )
        return full

    def check(self, shape: Shape, precision: str) -> None:
        """Check that the (complete) `shape` can have a start value, without making it.

        Args:
            shape: of the parameter.
            precision: "float" or "double".

        Raises:
            UserError: the shape does not fit this kind, or what is drawn would not be finite.
        """
        if shape or self.kind in BY_FANS:
            self.fans(shape)
        if self.kind == "bilinear":
            self._filters(shape)
        largest = 10 * self.scale  # the largest values of all distributions are smaller
        if self.random and not abs(largest) < (math.inf if precision == "double" else OVERFLOW_SINGLE):
            raise self._error(f"the values drawn with initValueScale {self.scale:g} are not finite")

    def same(self) -> float | None:
        """Return the number that all elements have; None if they differ, or are drawn."""
        if self.kind == "fixedValue":
            return float(self.value)
        if self.kind == "zero":
            return 0.0
        if self.kind not in ("fromFile", "fromLiteral"):
            return None
        numbers = {number for row in self._matrix() for number in row}
        return numbers.pop() if len(numbers) == 1 else None

    def create(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """Return the start value of a parameter of the (complete) `shape`, as an array of the reversed shape."""
        count, reversed_shape = shapes.size(shape), tuple(reversed(shape))
        if count * dtype.itemsize > sys.maxsize:
            raise MemoryError
        np.empty(count, dtype)  # raises MemoryError before hours are spent on drawing numbers
        kind, scale = self.kind, self.scale
        self.check(shape, "double" if dtype.itemsize == 8 else "float")
        fan_out, fan_in = self.fans(shape) if shape or kind in BY_FANS else (1, 1)
        if kind == "zero":
            return np.zeros(reversed_shape, dtype)
        if kind == "fixedValue":
            return np.full(reversed_shape, self.value, dtype)
        if kind in ("fromFile", "fromLiteral"):
            matrix = np.array(self._matrix(), np.float64)
            return np.ascontiguousarray(matrix.T.astype(dtype)).reshape(reversed_shape)
        if kind == "bilinear":
            return self._bilinear(shape).astype(dtype).reshape(reversed_shape)
        if self.seed is None:
            raise self._error("internal: a random parameter without a seed")
        engine = MinStdRand0(self.seed)
        spreads = {
            "uniform": lambda: dtype.type(UNIFORM) * dtype.type(scale),
            "heUniform": lambda: scale * math.sqrt(6 / fan_in),
            "xavier": lambda: scale * math.sqrt(3 / fan_in),
            "glorotUniform": lambda: scale * math.sqrt(6 / (fan_in + fan_out)),
        }
        if kind in spreads:
            spread = spreads[kind]()
            return engine.uniform(count, -spread, spread, dtype).reshape(reversed_shape)
        if kind == "truncatedNormal":
            return engine.truncated(count, scale, dtype).reshape(reversed_shape)
        deviations = {
            "gaussian": lambda: 0.2 * scale / math.sqrt(fan_in),
            "heNormal": lambda: scale * math.sqrt(2 / fan_in),
            "glorotNormal": lambda: scale * math.sqrt(2 / (fan_in + fan_out)),
            "normal": lambda: scale,
        }
        return engine.normal(count, deviations[kind](), dtype).reshape(reversed_shape)

    def fans(self, shape: Shape) -> tuple[int, int]:
        """(outputs, inputs) that an element of a parameter of this shape connects.

        Raises:
            UserError: the shape has fewer axes than `filter_rank` and `output_rank` ask for.
        """
        filters, outputs = self.filter_rank, abs(self.output_rank)
        if filters + outputs > len(shape):
            raise self._error(
                f"initFilterRank {filters} and initOutputRank {self.output_rank} need {filters + outputs} axes, "
                f"the parameter has the shape {shapes.text(shape)}"
            )
        inputs = shape[filters + outputs :] if self.output_rank >= 0 else shape[filters : len(shape) - outputs]
        size = shapes.size(shape[:filters])
        fan_in = size * shapes.size(inputs)
        return shapes.size(shape) * size // fan_in, fan_in

    @property
    def _source(self) -> str:
        return str(self.path) if self.kind == "fromFile" else "initFromLiteral"

    def _matrix(self) -> list[list[float]]:
        """Return the rows of the matrix of the file or of the literal."""
        try:
            if self.kind == "fromFile":
                return read_matrix(str(self.path))
            return parse_matrix(self.literal, "initFromLiteral")
        except UserError as problem:
            raise UserError(problem.kind, problem.message, problem.span or self.span, problem.hint) from None

    def _filters(self, shape: Shape) -> tuple[int, int]:
        """Rows and width of the filters of `bilinear`."""
        if len(shape) == 4 and self.kernel in ((0, 0), shape[:2]):  # the filters of a layer
            (width, height), (rows, columns) = shape[:2], (shape[3], math.prod(shape[:3]))
        else:
            (width, height), (rows, columns) = self.kernel, shapes.matrix(shape)
        if width <= 0 or width != height or rows * width * height != columns:
            raise self._error(
                "init=bilinear needs equal kernelWidth and kernelHeight and a parameter of shape "
                f"[C x C*k*k], or a shape [k x k x C x C], not {shapes.text(shape)}"
            )
        return rows, width

    def _bilinear(self, shape: Shape) -> np.ndarray:
        rows, width = self._filters(shape)
        profile = 1 - np.abs(np.arange(width) - (width - 1) / 2) / ((width + 1) // 2)
        return np.einsum("io,h,w->iohw", np.eye(rows), profile, profile).swapaxes(0, 1)

    def _error(self, message: str) -> UserError:
        return UserError("BadShape", message, span=self.span)


def read_matrix(path: str) -> list[list[float]]:
    """Return a matrix from a text file: one row per line, numbers separated by white space, empty lines skipped.

    Returns:
        Its rows, all of the same length.

    Raises:
        UserError: missing file, bad number or rows of different length, with file and line.
    """
    try:
        content = read_input(path, LIST_LIMIT).decode("utf-8-sig", "replace")
    except OSError as problem:
        raise UserError(
            "CannotRead", f"cannot read the initial values in {path}: {problem.strerror or problem}"
        ) from None
    return parse_matrix(content, path)


def parse_matrix(content: str, path: str) -> list[list[float]]:
    """Return a matrix from text: one row per line, numbers separated by white space, empty lines skipped.

    Args:
        content: the text.
        path: what to call it in messages.

    Returns:
        Its rows, all of the same length.

    Raises:
        UserError: bad number or rows of different length, with the line.
    """
    rows: list[list[float]] = []
    for number, line in enumerate(content.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        row = [result for word in words if (result := _number(word)) is not None]
        if len(row) < len(words):
            bad = next(word for word in words if _number(word) is None)
            raise UserError("BadFile", f"{path}:{number}: row {len(rows) + 1}: '{bad}' is not a number")
        if rows and len(row) != len(rows[0]):
            raise UserError(
                "BadFile",
                f"{path}:{number}: row {len(rows) + 1} has {len(row)} numbers, the rows before it have {len(rows[0])}",
            )
        rows.append(row)
    if not rows:
        raise UserError("BadFile", f"{path} holds no numbers")
    return rows


def _number(word: str) -> float | None:
    """Return a number as C reads it (Python would also take underscores), or None."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None
