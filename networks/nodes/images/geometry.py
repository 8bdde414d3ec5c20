"""Windows of convolution and pooling: output sizes and padding, axis by axis (docs/specification/networks.md B.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, cast

from networks.graph import shapes
from networks.graph.shapes import Shape, ShapeProblem
from networks.nodes.declare import BOOLEAN, Option

SHARED_PADDING = Option(
    "sharedPadding",
    BOOLEAN,
    False,
    "automatic padding as CNTK 2 has it: what the steps leave over is shared between both ends",
)


@dataclass(frozen=True)
class Geometry:
    """Windows over a sample of shape `inputs`.

    Attributes:
        inputs: shape of the side on which the windows slide.
        kernel, stride: per axis.
        padding: per axis (before, after); negative values drop elements.
        outputs: number of windows per axis.
    """

    inputs: Shape
    kernel: Shape
    stride: Shape
    padding: tuple[tuple[int, int], ...]
    outputs: Shape

    def reversed(self) -> Geometry:
        """The same for arrays, whose axes come in the reverse order."""
        return Geometry(self.inputs[::-1], self.kernel[::-1], self.stride[::-1], self.padding[::-1], self.outputs[::-1])

    def without_first(self) -> Geometry:
        """The same for the axes after the first."""
        return Geometry(*(sizes[1:] for sizes in astuple(self)))

    def first_last(self) -> Geometry:
        """The same with the first axis after the others."""
        return Geometry(*((*sizes[1:], sizes[0]) for sizes in astuple(self)))


def several(value: Any) -> tuple[Any, ...]:
    """An array option as a tuple; one value is an array of one."""
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else (value,)


def extended(values: Any, kernel_rank: int, rank: int, rest: Sequence[Any]) -> tuple[Any, ...]:
    """An array option for `rank` axes: the last value repeated up to the kernel's rank, then `rest`."""
    values = list(several(values))
    if not values:
        raise ShapeProblem("an array of window sizes, steps or paddings has no values")
    if len(values) > rank:
        raise ShapeProblem(f"{len(values)} values given for an operand of {rank} axes")
    values += [values[-1]] * (kernel_rank - len(values))
    return (*values, *rest[len(values) : rank])


def windows(
    inputs: Shape,
    kernel: Shape,
    stride: Shape,
    auto: Sequence[bool],
    lower: Sequence[int],
    upper: Sequence[int],
    extra_left: bool = False,
    shared: bool = False,
) -> Geometry:
    """The geometry of a convolution or pooling.

    Args:
        inputs: sample shape.
        kernel: window size per axis.
        stride: step per axis.
        auto: automatic padding per axis: as many windows as steps, the first one centred on element 0.
        lower: explicit padding before, where not automatic.
        upper: explicit padding after.
        extra_left: put the odd cell of an even kernel on the left (legacy HWC convolution).
        shared: automatic padding as CNTK 2 has it: the elements that the steps leave over after the last window's
            centre are shared between both ends, so the first window is centred on an element further inside.
    """
    outputs: list[int] = []
    padding: list[tuple[int, int]] = []
    for axis, (n, k, s) in enumerate(zip(inputs, kernel, stride, strict=True)):
        _check(k, s, lower[axis], upper[axis])
        if k > n:  # with padding, too
            raise ShapeProblem(f"the kernel {shapes.text(kernel)} is larger than the input {shapes.text(inputs)}")
        if auto[axis]:
            count = (n - 1) // s + 1
            before = k // 2 if extra_left else (k - 1) // 2 - _shift(n, count, s, shared)
        else:
            before, after = lower[axis], upper[axis]
            count = (n + before + after - k) // s + 1
            if (before or after) and (n + before + after - k) % s:
                raise ShapeProblem("with explicit padding the windows must exactly fill the input")
        outputs.append(count)
        padding.append((before, (count - 1) * s + k - n - before))
    return Geometry(tuple(inputs), tuple(kernel), tuple(stride), tuple(padding), tuple(outputs))


def transposed(
    inputs: Shape,
    kernel: Shape,
    stride: Shape,
    auto: Sequence[bool],
    lower: Sequence[int],
    upper: Sequence[int],
    sizes: Sequence[int] = (),
    shared: bool = False,
) -> Geometry:
    """The geometry whose windows produce `inputs`: `Geometry.inputs` is the result of a transposed convolution.

    Args:
        inputs, kernel, stride, auto, lower, upper, shared: as for `windows`.
        sizes: sizes of the result per axis, 0 or left out where it is to be inferred.
    """
    outputs: list[int] = []
    padding: list[tuple[int, int]] = []
    for axis, (n, k, s) in enumerate(zip(inputs, kernel, stride, strict=True)):
        _check(k, s, lower[axis], upper[axis])
        size = (n - 1) * s + 1 if auto[axis] else (n - 1) * s + k - lower[axis] - upper[axis]
        given = sizes[axis] if axis < len(sizes) else 0
        if given and not size <= given < size + s:
            raise ShapeProblem(
                f"the size {given} of the result on axis {axis + 1} is not one of {size} to {size + s - 1}"
            )
        size = given or size
        if k > size:
            raise ShapeProblem(f"the kernel {shapes.text(kernel)} is larger than the result, {size} on axis {axis + 1}")
        before = (k - 1) // 2 - _shift(size, n, s, shared) if auto[axis] else lower[axis]
        outputs.append(size)
        padding.append((before, (n - 1) * s + k - size - before))
    return Geometry(tuple(outputs), tuple(kernel), tuple(stride), tuple(padding), tuple(inputs))


def _shift(size: int, count: int, stride: int, shared: bool) -> int:
    """How far inside the first window is centred."""
    return (size - (count - 1) * stride - 1) // 2 if shared else 0


def _check(kernel: int, stride: int, lower: int, upper: int) -> None:
    if kernel < 1 or stride < 1:
        raise ShapeProblem("kernel and stride must be at least 1")
    if lower < 0 or upper < 0:
        raise ShapeProblem("padding must not be negative")
