"""Axes of a minibatch that a Reshape joins with each other or with axes of a sample, as the batch and the heads of
attention are, and sizes that are products of such axes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from cntkpy.networks.nodes.onnx_support.building import Size, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Axes, Axis, Data, Joined, Unusable

PASSED = ("Gemm", "Identity", "MatMul", "Reshape", "Shape", "Transpose")
"""Operators that take values of which an axis joins some of the minibatch with some of the sample."""

FACTORS = ("Div", "Mul")
"""Operators that take joined axes where the other operand is a number."""


def check(use: Use) -> None:
    """Refuse values of which an axis joins some of the minibatch with some of the sample, where they are not expected.

    Raises:
        Unusable: the operator does something else than those above.
    """
    mixed = [operand.axes for operand in use.inputs if isinstance(operand, Data) and any(map(_is_mixed, operand.axes))]
    numbers = sum(isinstance(operand, Array) and operand.value.size == 1 for operand in use.inputs)
    scaled = use.operator.kind in FACTORS and numbers == len(use.inputs) - 1
    if mixed and use.operator.kind not in PASSED and not scaled:
        raise Unusable(f"it takes a value of the axes {list(mixed[0])}, of which one joins samples and elements")


def _is_mixed(axis: Axis) -> bool:
    """Return whether an axis joins some of the minibatch with some of the sample."""
    return isinstance(axis, Joined) and any(isinstance(atom, int) for atom in axis.atoms)


def joined(atoms: Sequence[Axis]) -> Axis:
    """Return one axis of several."""
    factors = [atom for atom in atoms if atom != 1]
    if all(isinstance(atom, int) for atom in factors):
        return math.prod(int(atom) for atom in factors)
    return factors[0] if len(factors) == 1 else Joined(factors)


def atoms_within(axis: Axis) -> Axes:
    """Return the axes that an axis is joined of."""
    return axis.atoms if isinstance(axis, Joined) else (axis,)


def reshaped(use: Use, x: Data, wanted: Sequence[int]) -> Data:
    """Return the same elements on other axes, which may join some of the minibatch with some of the sample.

    Args:
        use: the operator.
        x: the value.
        wanted: the new sizes; -1 is what is left over.

    Raises:
        Unusable: samples would be mixed.
    """
    fixed, left = use.build.fixed, [atom for axis in x.axes for atom in atoms_within(axis) if atom != 1]
    sizes = [None if number == -1 else use.build.size_of(number) for number in wanted]
    if None not in sizes:
        _fix(fixed, left, [size for size in sizes if size is not None])
    first = sizes.index(None) if None in sizes else len(sizes)
    axes: list[Axis] = [_taken(left, size, fixed, 0) for size in sizes[:first] if size is not None]
    behind = [_taken(left, size, fixed, -1) for size in reversed(sizes[first + 1 :]) if size is not None]
    if first < len(sizes):
        axes.append(joined(left))
        left = []
    if left:
        raise Unusable(f"the axes {list(x.axes)} cannot have the sizes {list(wanted)}")
    return use.build.data(x.node, (*axes, *reversed(behind)))


def _taken(left: list[Axis], size: Size, fixed: Mapping[str, int], end: int) -> Axis:
    """Take as many axes as have a size.

    Args:
        left: the axes that are left, from which they are taken.
        size: the size.
        fixed: sizes of axes of the minibatch.
        end: 0 takes the first ones, -1 the last ones.
    """
    count, words, axes = size.known, list(size.words), list[Axis]()
    if count < 1:
        raise Unusable(f"{count} is no size")
    while count != 1 or words:
        axis = left.pop(end) if left else 1
        if isinstance(axis, int):
            whole, remainder = divmod(axis, count) if axis > count else (1, count % axis)
            if remainder or 1 in (axis, count):
                raise Unusable("its axes would mix samples of a minibatch, or do not have the sizes that it names")
            if whole > 1:
                left.insert(0 if end == 0 else len(left), whole)
            axes.append(axis // whole)
            count //= axis // whole
        elif axis in words:
            words.remove(axis)
            axes.append(axis)
        elif axis in fixed and count % fixed[axis] == 0:
            count //= fixed[axis]
            axes.append(axis)
        else:
            raise Unusable(f"its axes would mix the axis '{axis}' of the minibatch with others")
    return joined(axes if end == 0 else axes[::-1])


def _fix(fixed: dict[str, int], atoms: Sequence[Axis], sizes: Sequence[Size]) -> None:
    """Note the size of an axis of the minibatch for which the sizes of a Reshape have a number.

    PyTorch's older exporter writes the number of steps of its example for that of the keys of attention.
    """
    missing = Counter(atom for atom in atoms if isinstance(atom, str))
    missing.subtract(word for size in sizes for word in size.words)
    names = [word for word, count in missing.items() if count > 0]
    elements = math.prod(atom for atom in atoms if isinstance(atom, int))
    asked = math.prod(size.known for size in sizes)
    if len(names) == 1 and missing[names[0]] == 1 and asked % elements == 0:
        fixed.setdefault(names[0], asked // elements)
