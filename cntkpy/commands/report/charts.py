"""Curves over epochs as SVG: once with a linear axis, once with a logarithmic one; the page's style shows one of them.

A chart needs no script. The script of the page zooms: it changes the `viewBox` of the plot, and writes the
ticks anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cntkpy.commands.report.markup import Child, Markup, tag
from cntkpy.commands.report.scales import Axis, Point, number, thinned, whole_steps
from cntkpy.commands.runs.record import Points

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 10, 34
UNITS = 10_000
"""Width and height of the plot, in units of the drawing."""
MAX_POINTS = 800
"""Points of a line."""
MAX_DOTS = 60
"""Of a line with more points, single ones are not marked."""
FEW_DOTS = 8
"""Marked points of such a line whose colour several runs share."""
COLORS, SHAPES = 8, 4
"""Colours of runs, and shapes of their points: disc, ring, square, frame. After 32 runs they are repeated."""
HOLLOW = (1, 3)
"""Shapes with a hole."""

Kind = Literal["training", "validation", "progress"]


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        name: of the run, and of what is shown.
        run: The number of the run, which gives the colour and the shape of points.
        kind: What is shown.
        points: Values by epoch.
        about: Values of the configuration of the run, for the texts of points.
    """

    name: str
    run: int
    kind: Kind
    points: Points
    about: str = ""


def mark(run: int) -> str:
    """Return the classes for the colour and the shape of points of a run."""
    return f"color{run % COLORS} shape{run // COLORS % SHAPES}"


def chart(title: str, lines: Sequence[Line], *, unit: str = "") -> Markup | None:
    """Return a chart; None if no line has a point.

    Args:
        title: what is over the epochs.
        lines: drawn one over another.
        unit: is in the label of the axis.
    """
    pictures = [curves(title, lines, unit, log) for log in (False, True)]
    if pictures[0] is None:
        return None
    return tag("figure", tag("figcaption", title), pictures, class_="chart")


def curves(title: str, lines: Sequence[Line], unit: str = "", log: bool = False) -> Markup | None:
    """Return the axes and lines of a chart as SVG, one of its two scales; None if no line has a point."""
    kind = "log" if log else "linear"
    y = Axis.around([value for line in lines for value in line.points.values()], log)
    if y is None:
        message = "No value is greater than 0, so there is no logarithmic axis."
        return tag("p", message, class_="scale-log note") if log else None
    epochs = [epoch for line in lines for epoch in line.points]
    first, last = min(epochs), max(epochs)
    room = (last - first) * 0.015 or 0.5
    x = Axis(first - room, last + room)
    inner = [_drawn(line, x, y) for line in lines]
    plot = tag(
        "svg",
        inner,
        x=LEFT,
        y=TOP,
        width=WIDTH - LEFT - RIGHT,
        height=HEIGHT - TOP - BOTTOM,
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveAspectRatio="none",
        class_="plot",
    )
    label = f"{title}{f' ({unit})' if unit else ''} over epochs, {kind} axis"
    return tag(
        "svg",
        tag("g", _grid(x, y), class_="grid"),
        plot,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=label,
        class_=f"curves scale-{kind}",
        data_x=f"{x.low!r} {x.high!r}",
        data_y=f"{y.low!r} {y.high!r}",
        data_log=log,
    )


def _grid(x: Axis, y: Axis) -> Iterator[Markup]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in y.ticks():
        place = y.place(value)
        if place is not None:
            baseline = bottom - place * (bottom - TOP)
            yield tag("line", x1=LEFT, x2=right, y1=f"{baseline:.1f}", y2=f"{baseline:.1f}")
            yield tag("text", number(value), x=LEFT - 6, y=f"{baseline + 4:.1f}", text_anchor="end")
    for value in x.ticks(whole_steps(x)):
        place = x.place(value)
        if place is not None:
            baseline = LEFT + place * (right - LEFT)
            yield tag("line", x1=f"{baseline:.1f}", x2=f"{baseline:.1f}", y1=TOP, y2=bottom)
            yield tag("text", number(value), x=f"{baseline:.1f}", y=bottom + 16, text_anchor="middle")
    yield tag("text", "epoch", x=(LEFT + right) / 2, y=HEIGHT - 4, text_anchor="middle", class_="axis")


def _drawn(line: Line, x: Axis, y: Axis) -> Markup:
    points = thinned(sorted(line.points.items()), MAX_POINTS)
    pieces: list[list[str]] = [[]]
    dots: list[Child] = []
    few = max(1, len(points) // FEW_DOTS) if line.run >= COLORS else 0
    every = 0 if line.kind == "progress" else 1 if len(points) <= MAX_DOTS else few
    for number_of_point, (epoch, value) in enumerate(points):
        point = _at((epoch, value), x, y)
        if point is None:
            pieces.append([])
            continue
        pieces[-1].append(point)
        if every and number_of_point % every == 0:
            text = f"{line.name}, epoch {number(epoch)}: {value:.6g}" + (f"\n{line.about}" if line.about else "")
            dots.append(tag("path", tag("title", text), d=f"M{point}h0", class_="dot"))
            if line.run // COLORS % SHAPES in HOLLOW:
                dots.append(tag("path", d=f"M{point}h0", class_="core"))
    path = "".join("M" + "L".join(piece) for piece in pieces if piece)
    classes = f"line {line.kind} {mark(line.run)} run{line.run}"
    return tag("g", tag("path", d=path, class_="stroke"), dots, class_=classes)


def _at(point: Point, x: Axis, y: Axis) -> str | None:
    across, up = x.place(point[0]), y.place(point[1])
    return None if across is None or up is None else f"{across * UNITS:.0f} {(1 - up) * UNITS:.0f}"
