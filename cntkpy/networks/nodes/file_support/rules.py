"""Rules that make nodes of records of CNTK's model files: what families share.

A rule takes a record and makes nodes, or refuses. Kinds that may be missing in the node library are asked for by name
and by the options that the rule sets (`Target.needed`), so that a new kind is used as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Callable

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.target import Target

Rule = Callable[[Target], Node]


def same(t: Target) -> Node:
    """Make a node of the same name and inputs, with the attributes that are options of its kind."""
    kind = t.needed(t.record.operation)
    low, high = kind.arity()
    options = {argument.name for signature in kind.signatures for argument in signature}.union(kind.defaults())
    values = {name: value for name, value in t.attributes.items() if name in options}
    return t.add(kind, t.inputs(low, len(t.record.inputs) if high is None else high), **values)


def called(name: str) -> Rule:
    """The operation has another name here."""
    return lambda t: t.add(t.needed(name), t.inputs(1))


def shaped(t: Target, x: Node, shape: Shape) -> Node:
    """x in another shape."""
    kind = t.kind("NewReshape", "dims", "beginAxis", "endAxis")
    if kind is not None:
        return t.add(kind, [x], dims=shape or (1,), beginAxis=0, endAxis=0)
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) > 3:
        raise t.refuse(f"the shape {shapes.text(shape)}")
    width, height, channels = shapes.padded(shape, 3)
    return t.add(
        "Reshape",
        [x],
        numRows=shapes.size(shape),
        imageWidth=width,
        imageHeight=height,
        imageChannels=channels,
        imageLayout="CHW",
    )
