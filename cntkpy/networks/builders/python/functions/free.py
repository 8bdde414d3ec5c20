"""Functions with sizes that only data say: copies of them in which these sizes are known.

Free are the axes of inputs with a `FreeDimension`, and those that `sequence.unpack` makes. A network has known shapes,
so there is one for each combination of sizes. All of them share parameters, and what training changes besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TypeVar
from weakref import WeakKeyDictionary

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.python.functions import calls, graph
from cntkpy.networks.builders.python.functions.copies import copied_roots
from cntkpy.networks.builders.python.functions.leaves import FREE
from cntkpy.networks.builders.python.functions.nodes import INPUTS, SETTLED, Inferred, is_input, is_trained, ordered
from cntkpy.networks.builders.python.functions.recipes import (
    Build,
    grow_options,
    growing,
    grown,
    has_placeholders,
    is_free,
    is_recipe,
    resolve,
    sized,
    with_free,
)
from cntkpy.networks.graph.axes import ONE, is_kept

T = TypeVar("T")

Sizes = Mapping[NodeValue, Shape]
"""By free node the shape of an input, or the sizes (one) of the axes that it makes."""

TRIED = (16, 64, 7, 1, 224, 60, 360)
"""Sizes that are tried where shapes of parameters are wanted before there are data."""

_AXES: WeakKeyDictionary[NodeValue, str | None] = WeakKeyDictionary()
"""The time axes of functions with free sizes."""

MAX_SIZES = 8
"""The number of sizes of leaves that are tried besides."""

_SHAPES_FOR: WeakKeyDictionary[NodeValue, dict[int, Shape | None]] = WeakKeyDictionary()
"""By function and size what `shape_for` returns."""

_KEPT = "kept"
"""The option of a recipe with the parameters that it makes."""


@dataclass
class Known:
    """A function with known sizes.

    Attributes:
        roots: its nodes.
        copies: by node of the function what is in its place; others are their own.
    """

    roots: list[NodeValue]
    copies: dict[NodeValue, NodeValue]

    def of(self, node: NodeValue) -> NodeValue:
        """Return the copy of a node, or the node itself."""
        return self.copies.get(node, node)


def free_nodes(roots: Sequence[NodeValue]) -> list[NodeValue]:
    """Return the free nodes that some nodes depend on, operands before what depends on them; none where something is
    missing.

    A function with a placeholder has no sizes yet, whatever the data are.
    """
    free = [node for node in resolve(roots, SETTLED) if is_free(node)]
    if not free or has_placeholders(roots):
        return []
    below = {node: sum(map(is_free, ordered([node]))) for node in free}
    return sorted(free, key=below.__getitem__)


def with_sizes(roots: Sequence[NodeValue], sizes: Sizes) -> Known:
    """Return a function with known sizes; parameters are those of the function.

    Args:
        roots: its nodes.
        sizes: of all free nodes below.
    """
    return _sized(roots, resolve(roots, SETTLED), sizes)


def _sized(roots: Sequence[NodeValue], order: Sequence[NodeValue], sizes: Sizes) -> Known:
    for node in order:
        if is_recipe(node) and _KEPT not in node.options:
            _keep_parameters(node, _Kept())
    copies: dict[NodeValue, NodeValue] = {}
    free = [node for node in order if is_free(node)]
    for node in free:
        copies[node] = sized(node, sizes[node])
    for node in order:
        how = growing(node)
        if how is not None and how.make is not None:
            copies[node] = grown(node, lambda source, axis: sizes[source][axis])
    known_roots = copied_roots(roots, order, "share", copies)
    for node in order:
        if node in copies and growing(node) is not None:
            grow_options(copies[node], node, lambda source, axis: sizes[source][axis])
    for node in free:
        copies[node].inputs = tuple(copies.get(source, source) for source in calls.inputs_of(node))
    return Known(known_roots, copies)


@dataclass
class _Kept:
    """The parameters that a recipe has made for the first time, and those of the recipes that it has made."""

    parameters: list[NodeValue] = field(default_factory=list[NodeValue])
    inner: list[_Kept] = field(default_factory=list["_Kept"])


def _keep_parameters(node: NodeValue, kept: _Kept) -> None:
    """Let a recipe make its parameters once, whatever the sizes are."""
    node.options[_KEPT], node.options["build"] = kept, _with_kept(node.options["build"], kept)


def _with_kept(build: Build, kept: _Kept) -> Build:
    """Return a builder of the node of a recipe that reuses the parameters of its first call."""

    def make(operands: tuple[NodeValue, ...]) -> NodeValue:
        made = build(operands)
        below = set(ordered(operands))
        inside = [node for node in ordered([made]) if node not in below]
        trained, inner = [node for node in inside if is_trained(node)], [node for node in inside if is_recipe(node)]
        if not kept.parameters:
            kept.parameters.extend(trained)
        kept.inner.extend(_Kept() for _ in inner[len(kept.inner) :])
        for node, inner_kept in zip(inner, kept.inner, strict=False):
            if _KEPT not in node.options:
                _keep_parameters(node, inner_kept)
        new = dict(zip(trained, kept.parameters, strict=True)) if len(trained) == len(kept.parameters) else {}
        for node in inside:
            if any(source in new for source in calls.inputs_of(node)):
                node.inputs = tuple(new.get(source, source) for source in calls.inputs_of(node))
        return new.get(made, made)

    return make


def axis_input(unpacked: NodeValue, sizes: Sizes) -> NodeValue | None:
    """Return the input whose sequences are those that a free node unpacks; None: their lengths are computed.

    Args:
        unpacked: a node that unpacks sequences.
        sizes: of the free nodes below it.

    Raises:
        UserError: its operand has no sequences.
    """
    (operand,) = calls.inputs_of(unpacked)
    known = with_sizes([operand], sizes)
    model = graph.make(known.roots)
    node = model.nodes[known.roots[0]]
    inputs = [value for value in model.nodes if is_input(value)]
    has_steps = any(value not in INPUTS or INPUTS[value].sequence for value in inputs)
    if not node.has_layout or node.axis == ONE or not (has_steps or is_kept(node.axis)):
        message = f"sequence.unpack: '{node.name}' has no sequence axis"
        raise CallError("WrongArguments", message, hint="make its input a sequence.input_variable")
    originals = {copied: original for original, copied in known.copies.items()}
    matches = [value for value in inputs if model.nodes[value].axis == node.axis]
    return originals.get(matches[0], matches[0]) if matches else None


def sized_model(
    roots: Sequence[NodeValue], groups: Mapping[str, Sequence[NodeValue]], sizes: Sizes | None
) -> tuple[graph.Model, Known]:
    """Return the network of a function with known sizes; its inputs are found by those of the function.

    Args:
        roots: its nodes.
        groups: those that are members of the groups of the network.
        sizes: of the free nodes below; None: there are none.
    """
    known = with_sizes(roots, sizes) if sizes else Known(list(roots), {})
    place = dict(zip(roots, known.roots, strict=True))
    model = graph.make(known.roots, {name: [place[member] for member in members] for name, members in groups.items()})
    originals = {known.of(member): member for member in sizes or () if member in INPUTS}
    return graph.Model(
        model.network, {originals.get(member, member): node for member, node in model.nodes.items()}
    ), known


def probe_sizes(roots: Sequence[NodeValue]) -> Sizes:
    """Sizes that stand for those of data, so that parameters have shapes.

    Raises:
        UserError: the function does not work with any of the sizes that are tried.
    """
    return next(_working(roots, _network))[0]


def _network(known: Known) -> graph.Model:
    return graph.make_outputs(known.roots)


def _inferred(known: Known) -> Inferred:
    return graph.inferred(known.roots[0])


def _working(roots: Sequence[NodeValue], look: Callable[[Known], T]) -> Iterator[tuple[Sizes, Known, T]]:
    """Yield the sizes that a function works with, among those that are tried, and what is seen with them.

    Args:
        roots: its nodes.
        look: looks at the function with known sizes.

    Raises:
        UserError: there are none.
    """
    free = free_nodes(roots)
    failed: UserError | None = None
    works = False
    for sizes in _combinations(roots, free):
        try:
            known = with_sizes(roots, sizes)
            seen = look(known)
        except UserError as error:
            failed = failed or error
        else:
            works = True
            yield sizes, known, seen
    if not works and failed is not None:
        raise failed


def _combinations(roots: Sequence[NodeValue], free: Sequence[NodeValue]) -> Iterator[Sizes]:
    """Yield sizes of free nodes: the same for all, then one node has a size of a leaf, which it may have to fit."""
    axes = dict.fromkeys(size for node in ordered(roots) for size in (node.shape or ()) if size > 1)
    below = list(islice(axes, MAX_SIZES))
    for size in dict.fromkeys((*TRIED, *below)):
        yield {node: with_free(node, size) for node in free}
    for size, fitting, usual in product(below, free if len(free) > 1 else (), TRIED[:2]):
        yield {node: with_free(node, size if node is fitting else usual) for node in free}


def free_shape(root: NodeValue) -> tuple[int, ...] | None:
    """Return the shape of a function with free sizes, as nodes count axes: `FREE` stands for axes whose sizes only data
    say.

    None: nothing is free, or the number of axes is not known.
    """
    if not are_free([root]):
        return None
    try:
        shapes = [inferred.shape for _, _, inferred in islice(_working([root], _inferred), 2)]
    except UserError:  # the sizes that are tried do not fit
        return None
    if len({len(shape) for shape in shapes}) != 1:
        return None
    is_only_one = len(shapes) == 1  # a size of 1, which fits all others: of several free axes each has its own
    return tuple(
        FREE if len(set(sizes)) > 1 or (is_only_one and sizes[0] == 1) else sizes[0]
        for sizes in zip(*shapes, strict=True)
    )


def shape_for(node: NodeValue, size: int) -> Shape | None:
    """Return the shape of a function for a size that stands for those that only data say; None: it is not known."""
    shapes = _SHAPES_FOR.setdefault(node, {})
    if size in shapes:
        return shapes[size]
    order = ordered([node], SETTLED)  # the function itself stays as it is: only its copy is made
    free = [below for below in order if is_free(below)]
    if not free or has_placeholders([node]):
        return None
    shapes[size] = None  # while it is looked for, and if the size does not fit
    with suppress(UserError):
        shapes[size] = _inferred(_sized([node], order, {below: with_free(below, size) for below in free})).shape
    return shapes[size]


def free_axis(root: NodeValue) -> str | None:
    """Return the time axis of a function with free sizes.

    Raises:
        UserError: the function does not work with any of the sizes that are tried.
    """
    if root not in _AXES:
        _AXES[root] = next(_working([root], _inferred))[2].axis
    return _AXES[root]


def probed(roots: Sequence[NodeValue]) -> graph.Model:
    """Return the network of a function with sizes that stand for those of data.

    Its nodes are also found by those of the function.

    Raises:
        UserError: the function does not work with any of the sizes that are tried.
    """
    _, known, model = next(_working(roots, _network))
    by_original = {original: model.nodes[copied] for original, copied in known.copies.items() if copied in model.nodes}
    return graph.Model(model.network, {**model.nodes, **by_original})


def are_free(roots: Iterable[NodeValue]) -> bool:
    """Return whether some nodes depend on sizes that only data say, and on nothing else that is missing."""
    return bool(free_nodes(list(roots)))
