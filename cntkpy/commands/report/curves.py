"""Sections of a report: the curves of every criterion, runs over one another, and the table of epochs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cntkpy.commands.report.charts import COLORS, Line, chart, mark
from cntkpy.commands.report.markup import Markup, scrolled_table, tag
from cntkpy.commands.runs.record import Curves, Points, Run
from cntkpy.commands.runs.table import differing_texts

MAX_ROWS = 500
"""Most rows of a table of epochs; of longer trainings every n-th epoch is shown."""


def trainings(runs: Sequence[Run]) -> list[tuple[Run, Curves]]:
    """Return every training with its run."""
    return [(run, curves) for run in runs for curves in run.curves if curves.epochs or curves.between]


def title_of(run: Run, curves: Curves) -> str:
    """Return the title of a training."""
    return run.name if len(run.curves) == 1 else f"{run.name}: {curves.command}"


def swatch(number: int) -> Markup:
    """Return a point as those in the curves of a training."""
    return tag("span", class_=f"swatch {mark(number)}")


def curves_section(runs: Sequence[Run], best: Curves | None = None) -> Markup | None:
    """Return the charts: one of every node, then of the throughput and of the learning rate.

    Args:
        runs: The runs.
        best: The best training, which is marked.
    """
    pairs, abouts = trainings(runs), differing_texts(runs)
    about = [abouts.get(id(run), "") for run, _ in pairs]
    nodes = list(dict.fromkeys(node for _, curves in pairs for node in curves.nodes))
    charts = [chart(node, list(_lines(pairs, about, node))) for node in nodes]
    charts.append(chart("samples per second", list(_plain(pairs, about, [curves.speeds for _, curves in pairs]))))
    charts.append(chart("learning rate per sample", list(_plain(pairs, about, [curves.rates for _, curves in pairs]))))
    if all(item is None for item in charts):
        return None
    scales = [
        (
            tag("input", type="radio", name="scale", id=name, checked=name == "linear"),
            tag("label", f" {name}", for_=name),
        )
        for name in ("linear", "log")
    ]
    legend = [
        tag(
            "label",
            tag("input", type="checkbox", id=f"run{number}", checked=True),
            swatch(number),
            title_of(*pair),
            tag("span", f" {about[number]}", class_="dim") if about[number] else None,
            tag("span", " \u2605 best", class_="best") if pair[1] is best else None,
            for_=f"run{number}",
        )
        for number, pair in enumerate(pairs)
    ]
    explained = "full: training; dashed: validation; thin: inside of epochs; drag to zoom, double-click for everything"
    return tag(
        "div",
        tag("div", legend, class_="legend"),
        tag("p", explained, class_="note"),
        [part for pair in scales for part in pair],
        tag("div", charts, class_="charts many" if len(pairs) > COLORS else "charts"),
        class_="curves-part",
    )


def switches(runs: Sequence[Run]) -> str:
    """Return the rules of style by which the box of a training switches its curves off."""
    numbers = range(len(trainings(runs)))
    part = ".curves-part:has(#run{0}:not(:checked)) .run{0} {{ display: none; }}\n"
    return "".join(part.format(number) for number in numbers)


def _lines(pairs: Sequence[tuple[Run, Curves]], about: Sequence[str], node: str) -> Iterator[Line]:
    for number, (run, curves) in enumerate(pairs):
        name, text = title_of(run, curves), about[number]
        yield Line(name, number, "progress", curves.progress(node), text)
        yield Line(name, number, "training", curves.training.get(node, {}), text)
        yield Line(f"{name}, validation", number, "validation", curves.validation.get(node, {}), text)


def _plain(pairs: Sequence[tuple[Run, Curves]], about: Sequence[str], points: Sequence[Points]) -> Iterator[Line]:
    for number, (pair, point) in enumerate(zip(pairs, points, strict=True)):
        yield Line(title_of(*pair), number, "training", point, about[number])


def epochs_section(runs: Sequence[Run]) -> Markup | None:
    """Return a table of the epochs of every training, folded together where there are several."""
    pairs = [(number, *pair) for number, pair in enumerate(trainings(runs)) if pair[1].epochs]
    if not pairs:
        return None
    tables = [
        tag(
            "details",
            tag("summary", swatch(number), title_of(run, curves), f": {len(curves.epochs)} epochs"),
            _table(curves),
            open=len(pairs) == 1,
            data_key=f"epochs {run.path} {curves.command}",
        )
        for number, run, curves in pairs
    ]
    return tag("div", tables)


def _table(curves: Curves) -> Markup:
    columns: list[tuple[str, Points]] = []
    for node in curves.nodes:
        columns.append((node, curves.training.get(node, {})))
        if node in curves.validation:
            columns.append((f"{node}, validation", curves.validation[node]))
    criteria = {name for name, _ in columns}
    columns += [("samples/s", curves.speeds), ("seconds", curves.seconds), ("rate per sample", curves.rates)]
    columns = [column for column in columns if column[1]]
    best = {name: min(filter(math.isfinite, points.values()), default=None) for name, points in columns}
    every = math.ceil(len(curves.epochs) / MAX_ROWS)
    shown = [epoch for index, epoch in enumerate(curves.epochs) if index % every == 0 or epoch == curves.epochs[-1]]
    rows = [
        tag(
            "tr",
            tag("th", epoch, scope="row", class_="number"),
            [
                _cell(points.get(epoch), name in criteria and points.get(epoch) == best[name])
                for name, points in columns
            ],
        )
        for epoch in shown
    ]
    note = tag("p", f"One of {every} epochs is shown.", class_="note") if every > 1 else None
    return tag("div", note, scrolled_table(rows, ["epoch", *(name for name, _ in columns)]))


def _cell(value: float | None, best: bool) -> Markup:
    text = "" if value is None else f"{value:.6g}"
    return tag("td", tag("strong", text) if best else text, class_="number")
