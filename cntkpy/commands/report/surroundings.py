"""Section of a report: versions, machines, throughput, warnings."""

from __future__ import annotations

from collections.abc import Sequence

from cntkpy.commands.report.curves import title_of, trainings
from cntkpy.commands.report.markup import Markup, headed_row, scrolled_table, tag
from cntkpy.commands.runs.record import Curves, Run


def surroundings_section(runs: Sequence[Run]) -> Markup:
    """Tables by run, then the warnings of each."""
    return tag("div", _throughput(runs), _versions(runs), [_warnings(run) for run in runs])


def _throughput(runs: Sequence[Run]) -> Markup | None:
    pairs = [pair for pair in trainings(runs) if pair[1].seconds]
    if not pairs:
        return None
    rows = [
        headed_row(title_of(*pair), [tag("td", text, class_="number") for text in _speeds(pair[1])]) for pair in pairs
    ]
    heads = ("training", "samples/s", "after the first epoch", "s/epoch")
    return tag("div", tag("h3", "Throughput"), scrolled_table(rows, heads))


def _speeds(curves: Curves) -> list[str]:
    """Samples per second over all epochs and over all but the first, which compiles; seconds of an epoch."""
    first = min(curves.seconds)
    return [
        _speed(curves, set(curves.seconds)),
        _speed(curves, set(curves.seconds) - {first}),
        f"{sum(curves.seconds.values()) / len(curves.seconds):.4g}",
    ]


def _speed(curves: Curves, epochs: set[float]) -> str:
    known = [epoch for epoch in epochs if epoch in curves.speeds]
    seconds = sum(curves.seconds[epoch] for epoch in known)
    return f"{sum(curves.speeds[epoch] * curves.seconds[epoch] for epoch in known) / seconds:,.0f}" if seconds else ""


def _versions(runs: Sequence[Run]) -> Markup:
    """Return a table of values that all runs have in common, then a row for each run with values that differ."""
    tables = [{**run.place, **run.versions} for run in runs]
    names = list(dict.fromkeys(name for values in tables for name in values))
    common = [name for name in names if len({values.get(name, "") for values in tables}) == 1]
    differing = ["path", *(name for name in names if name not in common)]
    rows = [headed_row(name, tag("td", tables[0].get(name, ""))) for name in common]
    by_run = [
        headed_row(run.name, tag("td", str(run.path)), [tag("td", values.get(name, "")) for name in differing[1:]])
        for run, values in zip(runs, tables, strict=True)
    ]
    return tag(
        "div",
        tag("h3", "Versions and machines"),
        scrolled_table(rows) if rows else None,
        scrolled_table(by_run, ["run", *differing]),
    )


def _warnings(run: Run) -> Markup | None:
    if not run.warnings:
        return None
    items = [tag("li", text, f" ({count} times)" if count > 1 else "") for text, count in run.warnings.items()]
    return tag("div", tag("h3", f"Warnings of {run.name}"), tag("ul", items))
