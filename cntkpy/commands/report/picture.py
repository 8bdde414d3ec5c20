"""The picture of a network: boxes with operations, shapes and parameters, as SVG. It needs no Graphviz."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cntkpy.commands.report.layout import Placed, place
from cntkpy.commands.report.markup import Markup, headed_row, scrolled_table, tag
from cntkpy.commands.runs import plain

MAX_BOXES = 300
"""A network with more nodes, parameters not counted, is a table only."""
MAX_NAME, MAX_LINES = 38, 6
LINE, PADDING, CHARACTER = 15.0, 8.0, 6.7
"""Height of a line, space around the text, width of a character, in units of the picture."""
MARGIN, OUT = 12.0, 30.0
"""Room around the picture; how far an edge to another step goes out to the right."""
GROUPS = ("criterion", "evaluation", "output", "label", "feature")
"""Groups of nodes that have a colour, the one that shows first."""


@dataclass
class Part:
    """A node of the network, checked.

    Attributes:
        shape: as text, `[10 x *]`.
        inputs: names.
        parameters: the number of elements, if it is a parameter.
        delay: its input is of another step.
        group: one of `GROUPS`, or empty.
    """

    name: str
    operation: str
    shape: str
    inputs: list[str] = field(default_factory=list[str])
    parameters: int | None = None
    rate: float = 1.0
    delay: bool = False
    group: str = ""


def parts_of(network: dict[str, Any]) -> dict[str, Part]:
    """Return the nodes of the event of a network, by name."""
    parts: dict[str, Part] = {}
    for table in plain.tables(network.get("nodes")):
        sizes = [str(size) for size in plain.counts(table.get("shape"))] + ["*"] * (table.get("minibatch") is True)
        part = Part(plain.text(table.get("name")), plain.text(table.get("operation")), f"[{' x '.join(sizes)}]")
        part.inputs = plain.texts(table.get("inputs"))
        part.delay = table.get("delay") is True
        if plain.is_count(table.get("parameters")):
            part.parameters = plain.count(table.get("parameters"))
            rate = plain.number(table.get("learningRateMultiplier"))
            part.rate = 1.0 if rate is None else rate
        parts[part.name] = part
    groups = plain.table(network.get("groups"))
    for group in reversed(GROUPS):
        for name in plain.texts(groups.get(group)):
            if name in parts:
                parts[name].group = group
    return parts


def picture(parts: dict[str, Part]) -> Markup | None:
    """Return the picture; None if the network has too many nodes, or none.

    Parameters stand in the boxes of the nodes that take them.
    """
    boxes = {name: part for name, part in parts.items() if part.parameters is None}
    if not 0 < len(boxes) <= MAX_BOXES:
        return None
    texts = {name: list(_lines(part, parts)) for name, part in boxes.items()}
    sizes = {name: _size(lines) for name, lines in texts.items()}
    edges = [(source, name) for name, part in boxes.items() for source in part.inputs if source in boxes]
    placed = place(sizes, [(source, name) for source, name in edges if not boxes[name].delay])
    drawn = [_edge(points) for points in placed.paths.values()]
    back = [edge for edge in dict.fromkeys(edges) if edge not in placed.paths]
    drawn += [_back(placed, sizes, edge) for edge in back]
    drawn += [_box(boxes[name], texts[name], sizes[name], placed.boxes[name]) for name in boxes]
    width, height = placed.width + 2 * MARGIN + (OUT if back else 0), placed.height + 2 * MARGIN
    return tag(
        "svg",
        tag("defs", _arrow()),
        drawn,
        viewBox=f"{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
        aria_label=f"network of {len(parts)} nodes",
        class_="network",
    )


def _arrow() -> Markup:
    shape = tag("path", d="M0 0L8 4L0 8z", class_="head")
    return tag("marker", shape, id="arrow", markerWidth=8, markerHeight=8, refX=7, refY=4, orient="auto")


def _lines(part: Part, parts: dict[str, Part]) -> Iterator[tuple[str, str]]:
    """Return the lines of a box, each with its class."""
    yield "name", part.name
    yield "operation", f"{part.operation} {part.shape}"
    taken = [parts[name] for name in part.inputs if name in parts and parts[name].parameters is not None]
    for node in taken[:MAX_LINES]:
        fixed = ", not trained" if node.rate == 0 else ""
        yield "parameter", f"{node.name} {node.shape}: {node.parameters:,}{fixed}"
    if len(taken) > MAX_LINES:
        yield "parameter", f"and {len(taken) - MAX_LINES} more"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME // 2 - 1]}…{text[-MAX_NAME // 2 :]}"


def _size(lines: list[tuple[str, str]]) -> tuple[float, float]:
    longest = max(len(_cut(text)) for _, text in lines)
    return longest * CHARACTER + 2 * PADDING, len(lines) * LINE + 2 * PADDING - 3


def _box(part: Part, lines: list[tuple[str, str]], size: tuple[float, float], point: tuple[float, float]) -> Markup:
    (width, height), (x, y) = size, point
    whole = tag("title", "\n".join(text for _, text in lines))
    box = tag("rect", x=f"{x - width / 2:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", rx=6)
    texts = [
        tag("text", _cut(text), x=f"{x:.1f}", y=f"{y + PADDING + 9 + LINE * number:.1f}", class_=kind)
        for number, (kind, text) in enumerate(lines)
    ]
    return tag("g", whole, box, texts, class_=f"box {part.group}".strip())


def _edge(points: list[tuple[float, float]]) -> Markup:
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (next_x, next_y) in itertools.pairwise(points):
        half = (y + next_y) / 2
        path += f"C{x:.1f} {half:.1f} {next_x:.1f} {half:.1f} {next_x:.1f} {next_y:.1f}"
    return tag("path", d=path, class_="edge", marker_end="url(#arrow)")


def _back(placed: Placed, sizes: dict[str, tuple[float, float]], edge: tuple[str, str]) -> Markup:
    """Return an edge to another step, dashed, around the right-hand sides of its nodes."""
    (x, y), (to_x, to_y) = placed.boxes[edge[0]], placed.boxes[edge[1]]
    (width, height), (to_width, to_height) = sizes[edge[0]], sizes[edge[1]]
    x, to_x, y, to_y = x + width / 2, to_x + to_width / 2, y + height / 2, to_y + to_height / 2
    out = max(x, to_x) + OUT
    path = f"M{x:.1f} {y:.1f}C{out:.1f} {y:.1f} {out:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    return tag("path", d=path, class_="edge delay", marker_end="url(#arrow)")


def parameter_table(parts: dict[str, Part]) -> Markup:
    """Return the parameters of a network: name, shape, number of elements, and whether they are trained."""
    rows = [
        headed_row(
            part.name,
            tag("td", part.shape),
            tag("td", f"{part.parameters:,}", class_="number"),
            tag("td", "no" if part.rate == 0 else "yes" if part.rate == 1 else f"rate x {part.rate:g}"),
        )
        for part in parts.values()
        if part.parameters is not None
    ]
    return scrolled_table(rows, ("parameter", "shape", "elements", "trained"))
