"""The streams of a reader against the inputs of a network."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, nearest, suggestion
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.networks.builders.check import Input

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork


class Stream(NamedTuple):
    """A stream of a reader, as far as its section says."""

    name: str
    dim: int | None
    span: Span | None
    """Parameter that gives the dimension."""
    section: Span | None = None
    advice: Callable[[int], str | None] = lambda wanted: None
    """Advice for samples of so many elements, if it is more than another `dim`."""


class Streams(dict[str, Stream]):
    """The streams of a reader by name in lower case; `skipped`: sections whose data it does not deliver."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped: dict[str, Span | None] = {}


def reader_streams(reader: Use) -> Streams | None:
    """Return the streams of a reader by name in lower case; None where its sections do not name them."""
    streams = Streams()
    for use in reader.walk():
        if use.open:
            return None
        kind, _, name = use.role.partition(" ")
        if _is_left_out(use):
            continue
        if kind in ("stream", "features", "labels"):
            streams[name.lower()] = Stream(name, *_width(use), use.section.span, functools.partial(_advice, use))
        elif kind == "skipped":
            streams.skipped[name.lower()] = use.section.span
    return streams or None


def _is_left_out(use: Use) -> bool:
    """Return whether the reader makes no stream of a section."""
    try:
        return any(declared(use.section).is_left_out() for declared in use.declared)
    except ConfigError:
        return False  # found where values are looked at


def _advice(use: Use, wanted: int) -> str | None:
    """Return the hint of a section about samples of `wanted` elements."""
    try:
        return next(filter(None, (declared(use.section).size_advice(wanted) for declared in use.declared)), None)
    except ConfigError:
        return None  # found where values are looked at


def _width(use: Use) -> tuple[int | None, Span | None]:
    """Return the elements of a sample as the section declares them, and where it does."""
    for declared in use.declared:
        section = declared(use.section)
        try:
            if (width := section.sample_size()) is not None:
                place = next(filter(None, map(section.given, ("mode", "labelDim", "targetDim", "dim"))), None)
                return width, place.span if place is not None else use.section.span
        except ConfigError:
            break  # already found
    return None, None


def unread(network: Network | ValidatedNetwork, streams: dict[str, Stream]) -> Iterator[Diagnostic]:
    """Report every stream that no input of the network is called after."""
    inputs = {node.name.lower(): node.name for node in network.nodes.values() if node.operation.endswith("InputValue")}
    for key, stream in streams.items():
        if key not in inputs and stream.span is not None:
            hint = f"the inputs are {', '.join(inputs.values())}" if inputs else None
            yield Diagnostic(
                "UnusedStream", f"no input of the network reads the stream '{stream.name}'", stream.span, hint
            )


def missing_or_wrong(
    network: Network | ValidatedNetwork,
    streams: Streams,
    trains: bool,
    meant: Mapping[str, str] | None = None,
    computed: Iterable[Node] | None = None,
) -> Iterator[Diagnostic]:
    """Report every input of the network against the stream of its name.

    One that is missing is an error where a criterion needs it that is trained, and a warning where that is not known.

    Args:
        network: the network.
        streams: those of the reader.
        trains: whether the criteria are trained.
        meant: for members of the network that are second names of others, in lower case, these others.
        computed: the nodes that are computed, if that is known: inputs of others may be missing.
    """
    needed = needed_by(network) if trains else set[str]()
    read = None if computed is None else _below(computed)
    for node in network.nodes.values():
        if not node.operation.endswith("InputValue"):
            continue
        stream = streams.get(node.name.lower())
        if stream is None and read is not None and node.name not in read:
            continue
        if stream is None:
            hint = _what_to_write(node.name, suggestion(node.name, [known.name for known in streams.values()]), streams)
            alias = (meant or {}).get(node.name.lower(), "")
            if alias.lower() in streams:
                hint = f"'{node.name} = {alias}' gives the input another name: write {node.name} = Pass ({alias})"
            message = f"the reader has no stream for the input '{node.name}'"
            severity = "error" if node.name in needed else "warning"
            yield Diagnostic("MissingStream", message, node.span, hint, severity=severity)
        elif node.shape is not None and stream.dim not in (None, size := math.prod(d or 1 for d in node.shape)):
            message = f"the input '{node.name}' has {size} elements, but the stream has {stream.dim}"
            hint = stream.advice(size) or f"the dimension is given at {stream.span}"
            yield Diagnostic("DimensionMismatch", message, node.span, hint)


def _what_to_write(name: str, near: str | None, streams: Streams) -> str:
    """Return a hint for an input without a stream; `near` is the advice about a stream of a similar name."""
    if name.lower() in streams.skipped:
        return f"labelType = None at {streams.skipped[name.lower()]} leaves it out; write Category"
    return near or f"streams: {', '.join(stream.name for stream in streams.values())}"


def needed_by(network: Network | ValidatedNetwork) -> set[str]:
    """Return the names of the nodes from which the criteria and the nodes to evaluate are computed."""
    return _below([*network.groups["criterion"], *network.groups["evaluation"]])


def _below(nodes: Iterable[Node], trained: bool = False) -> set[str]:
    waiting, below = list(nodes), set[str]()
    while waiting:
        node = waiting.pop()
        if node.name not in below:
            below.add(node.name)
            waiting += [
                operand for operand in node.inputs if operand is not None and not (trained and node.kind.precompute)
            ]
    return below


def needed_inputs(network: Network | ValidatedNetwork, nodes: Iterable[Node]) -> list[Input]:
    """Return the inputs from which nodes of a trained network are computed; statistics of data are constant."""
    names = _below(nodes, trained=True)
    inputs = (node for node in network.nodes.values() if node.operation.endswith("InputValue") and node.name in names)
    return [
        Input(node.name, math.prod(d or 1 for d in node.shape) if node.shape is not None else None) for node in inputs
    ]


def layers_beside(
    inputs: Iterable[Input], streams: Streams, builder: str, span: Span | None, trains: bool
) -> Iterator[Diagnostic]:
    """Report streams that a feed-forward network is trained with and that the reader lacks, and layers of other sizes.

    Args:
        inputs: the inputs, each with its layer.
        streams: those of the reader.
        builder, span: the builder of the network, and its place.
        trains: whether the network is trained.
    """
    for node in inputs:
        stream = streams.get(node.name)
        if stream is None and trains:
            names = [known.name for known in streams.values()]
            hint = f"the reader delivers {', '.join(names)}; add '{node.name}' to its section"
            message = f"the reader has no stream for the input '{node.name}' of the {builder}"
            yield Diagnostic("MissingStream", message, span, suggestion(node.name, names) or hint)
        elif stream is not None and stream.dim not in (None, node.size) and node.size is not None and node.span:
            message = f"the {node.layer} has {node.size} elements, but the stream '{stream.name}' has {stream.dim}"
            hint = stream.advice(node.size) or f"the dimension of the stream is given at {stream.span}"
            yield Diagnostic("DimensionMismatch", message, node.span, hint)


def beside_model(inputs: Iterable[Input], streams: Streams, reader: Use, owner: str) -> Iterator[Diagnostic]:
    """Check the streams of a reader against the inputs of a network that stands elsewhere.

    Args:
        inputs: the inputs that are needed.
        streams, reader: what the reader delivers, and its section.
        owner: what has the inputs, for the messages.
    """
    for needed in inputs:
        stream = streams.get(needed.name.lower())
        if stream is None:
            message = f"the reader has no stream for the input '{needed.name}' of {owner}"
            meant = nearest(needed.name, [stream.name for stream in streams.values()])
            near = streams[meant.lower()] if meant else None
            place = (near.section if near is not None else None) or reader.section.span
            hint = _what_to_write(needed.name, f"write {needed.name} in place of {meant}" if meant else "", streams)
            yield Diagnostic("MissingStream", message, place, hint)
        elif None not in (stream.dim, needed.size) and stream.dim != needed.size:
            message = f"the stream '{stream.name}' has {stream.dim} elements"
            written = stream.span is not None and stream.span.starts_with(str(stream.dim))
            hint = f"write {needed.size}, or train with {stream.dim}" if written else f"train with {stream.dim}"
            hint = (stream.advice(needed.size) if needed.size is not None else None) or hint
            message += f", but the input '{needed.name}' of {owner} has {needed.size}"
            yield Diagnostic("DimensionMismatch", message, stream.span, hint)
