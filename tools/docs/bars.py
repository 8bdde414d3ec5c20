"""Bar charts of the tables of docs/benchmarks.md, as SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cntkpy.commands.report.markup import Markup, tag

WIDTH, LEFT, RIGHT = 640, 120, 60
BAR, GAP, LABEL = 14, 4, 24
"""Height of a bar, room between two, height of the line over those of a row."""

Row = tuple[str, Sequence[float]]
"""What was measured, and the value of each system."""


def table(page: str, title: str) -> list[dict[str, str]]:
    """The first table of a section of a page: the cells of each row by the names of their columns, of two the first."""
    section = page[page.index(f"\n## {title}\n") :]
    found = re.search(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
    assert found is not None, title
    head, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in found[0].splitlines())
    return [dict(reversed(list(zip(head, row, strict=True)))) for row in rows]


def bars(systems: Sequence[str], rows: Sequence[Row], explained: str) -> Markup:
    """A chart: for each row a bar of every system, its number at its end.

    Args:
        systems: their names, in the order of the values.
        rows: their values are drawn to one scale.
        explained: what the numbers are, under the bars.
    """
    longest = max(value for _, values in rows for value in values)
    drawn: list[Markup] = []
    y = 0
    for label, values in rows:
        y += LABEL
        drawn.append(tag("text", label, x=0, y=y - 7, class_="name"))
        for number, (system, value) in enumerate(zip(systems, values, strict=True)):
            length = value / longest * (WIDTH - LEFT - RIGHT)
            end = y + BAR - 3
            bar = tag("rect", x=LEFT, y=y, width=f"{length:.1f}", height=BAR, fill="currentColor")
            drawn.append(tag("text", system, x=LEFT - 8, y=end, text_anchor="end"))
            drawn.append(tag("g", bar, class_=f"line color{number}"))
            drawn.append(tag("text", f"{value:.2f}", x=f"{LEFT + length + 6:.1f}", y=end))
            y += BAR + GAP
    drawn.append(tag("text", explained, x=LEFT, y=y + 18))
    height = y + 26
    view = f"0 0 {WIDTH} {height}"
    return tag("svg", drawn, viewBox=view, width=WIDTH, height=height, role="img", aria_label=explained, class_="bars")
