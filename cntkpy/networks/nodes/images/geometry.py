"""Windows of convolution and pooling: output sizes and padding, axis by axis (docs/specification/networks.md B.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes.declare import BOOLEAN, Option

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
        dilation: per axis, the distance between neighbours in a window.
    """

    inputs: Shape
    kernel: Shape
    stride: Shape
    padding: tuple[tuple[int, int], ...]
    outputs: Shape
    dilation: Shape

    @property
    def reach(self) -> Shape:
        """Return the number of elements from the first to the last one of a window, per axis."""
        return tuple(_reach(k, d) for k, d in zip(self.kernel, self.dilation, strict=True))

    def reversed(self) -> Geometry:
        """Return the same for arrays, whose axes come in the reverse order."""
        return Geometry(*(sizes[::-1] for sizes in self._parts()))

    def without_first(self) -> Geometry:
        """Return the same for the axes after the first."""
        return Geometry(*(sizes[1:] for sizes in self._parts()))

    def first_last(self) -> Geometry:
        """Return the same with the first axis after the others."""
        return Geometry(*((*sizes[1:], sizes[0]) for sizes in self._parts()))

    def _parts(self) -> tuple[Any, ...]:
        return (self.inputs, self.kernel, self.stride, self.padding, self.outputs, self.dilation)


@dataclass(frozen=True)
class Placing:
    """Options for the places of windows, per axis.

    Attributes:
        kernel: window size.
        stride: step.
        auto: automatic padding: as many windows as steps, the first one centred on element 0.
        lower: explicit padding before, where not automatic.
        upper: explicit padding after.
        dilation: the distance between neighbours in a window.
        extra_left: put the odd cell of an even kernel on the left (legacy HWC convolution).
        shared: automatic padding as CNTK 2 has it: the elements that the steps leave over after the last window's
            centre are shared between both ends, so the first window is centred on an element further inside.
        ceiling: a last window that lies partly behind the end counts, too, where padding is not automatic.
    """

    kernel: Shape
    stride: Shape
    auto: tuple[bool, ...]
    lower: Shape
    upper: Shape
    dilation: Shape
    extra_left: bool = False
    shared: bool = False
    ceiling: bool = False


def placing(options: Mapping[str, Any], rank: int, kernel_rest: Shape, stride_rest: Shape) -> Placing:
    """Return the geometry of a node's options for an operand of `rank` axes.

    Args:
        options: of the node.
        rank: the number of axes.
        kernel_rest: sizes of windows on the axes that the option does not name: one for each axis of the operand.
        stride_rest: steps there.

    Raises:
        ShapeProblem: the options name more axes than there are.
    """
    kernel = tuple(int(k) for k in options["kernelShape"])
    if len(kernel) > rank:
        raise ShapeProblem(f"the kernel {shapes.text(kernel)} has more axes than the input")
    rank_ = len(kernel)
    return Placing(
        extended(kernel, rank_, rank, kernel_rest),
        extended(options["stride"], rank_, rank, stride_rest),
        extended(options["autoPadding"], rank_, rank, [False] * rank),
        extended(options["lowerPad"], rank_, rank, [0] * rank),
        extended(options["upperPad"], rank_, rank, [0] * rank),
        extended(options.get("dilation", (1,)), rank_, rank, [1] * rank),
        shared=bool(options.get("sharedPadding", False)),
        ceiling=bool(options.get("ceilOutDim", False)),
    )


def several(value: object) -> tuple[Any, ...]:
    """Return an array option as a tuple; one value is an array of one."""
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else (value,)


def extended(values: object, kernel_rank: int, rank: int, remainder: Sequence[object]) -> tuple[Any, ...]:
    """Return an array option for `rank` axes: the last value repeated up to the kernel's rank, then `remainder`."""
    values = list(several(values))
    if not values:
        raise ShapeProblem("an array of window sizes, steps or paddings has no values")
    if len(values) > rank:
        raise ShapeProblem(f"{len(values)} values given for an operand of {rank} axes")
    values += [values[-1]] * (kernel_rank - len(values))
    return (*values, *remainder[len(values) : rank])


def windows(inputs: Shape, how: Placing) -> Geometry:
    """Return the geometry of a convolution or pooling.

    Args:
        inputs: sample shape.
        how: how windows lie.

    Raises:
        ShapeProblem: no window fits, or explicit padding leaves a rest.
    """
    outputs: list[int] = []
    padding: list[tuple[int, int]] = []
    for axis, (n, k, s, d) in enumerate(zip(inputs, how.kernel, how.stride, how.dilation, strict=True)):
        _check(how, axis)
        if k > n:  # with padding, too
            raise ShapeProblem(f"the kernel {shapes.text(how.kernel)} is larger than the input {shapes.text(inputs)}")
        reach = _reach(k, d)
        if how.auto[axis]:
            count = (n - 1) // s + 1
            leading = reach // 2 if how.extra_left else (reach - 1) // 2 - _shift(n, count, s, how.shared)
        else:
            leading, after = how.lower[axis], how.upper[axis]
            excess = n + leading + after - reach
            if excess < 0:
                raise ShapeProblem(
                    f"a window of {k} elements with the dilation {d} takes {reach} elements, more than the {n} of the "
                    f"input with {leading + after} of padding"
                )
            if (leading or after) and excess % s and not how.ceiling:
                raise ShapeProblem("with explicit padding the windows must exactly fill the input")
            count = (-(-excess // s) if how.ceiling else excess // s) + 1
        outputs.append(count)
        padding.append((leading, (count - 1) * s + reach - n - leading))
    return Geometry(tuple(inputs), how.kernel, how.stride, tuple(padding), tuple(outputs), how.dilation)


def transposed(inputs: Shape, how: Placing, sizes: Sequence[int] = ()) -> Geometry:
    """Return the geometry whose windows produce `inputs`: `Geometry.inputs` is the result of a transposed convolution.

    Args:
        inputs: sample shape.
        how: how windows lie on the result.
        sizes: sizes of the result per axis, 0 or left out where it is to be inferred.

    Raises:
        ShapeProblem: a given size is not possible, or smaller than a window.
    """
    outputs: list[int] = []
    padding: list[tuple[int, int]] = []
    for axis, (n, k, s, d) in enumerate(zip(inputs, how.kernel, how.stride, how.dilation, strict=True)):
        _check(how, axis)
        reach = _reach(k, d)
        lower, upper = how.lower[axis], how.upper[axis]
        size = (n - 1) * s + 1 if how.auto[axis] else (n - 1) * s + reach - lower - upper
        wanted = sizes[axis] if axis < len(sizes) else 0
        if wanted and not size <= wanted < size + s:
            raise ShapeProblem(
                f"the size {wanted} of the result on axis {axis + 1} is not one of {size} to {size + s - 1}"
            )
        size = wanted or size
        if k > size:
            raise ShapeProblem(
                f"the kernel {shapes.text(how.kernel)} is larger than the result, {size} on axis {axis + 1}"
            )
        leading = (reach - 1) // 2 - _shift(size, n, s, how.shared) if how.auto[axis] else lower
        outputs.append(size)
        padding.append((leading, (n - 1) * s + reach - size - leading))
    return Geometry(tuple(outputs), how.kernel, how.stride, tuple(padding), tuple(inputs), how.dilation)


def _reach(kernel: int, dilation: int) -> int:
    return (kernel - 1) * dilation + 1


def _shift(size: int, count: int, stride: int, shared: bool) -> int:
    """Return the distance of the first window's centre from the border."""
    return (size - (count - 1) * stride - 1) // 2 if shared else 0


def _check(how: Placing, axis: int) -> None:
    if how.kernel[axis] < 1 or how.stride[axis] < 1 or how.dilation[axis] < 1:
        raise ShapeProblem("kernel, stride and dilation must be at least 1")
    if how.lower[axis] < 0 or how.upper[axis] < 0:
        raise ShapeProblem("padding must not be negative")
