"""Section of a report: the configuration with the origin of each value, and what was overridden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.commands.report.curves import swatch, trainings
from cntkpy.commands.report.markup import Child, Markup, scrolled_table, tag
from cntkpy.commands.runs.record import Run, Setting, Step

MAX_TEXT = 4000
"""Characters of a value that are shown."""
MAX_LINES = 5
"""Command lines that are not folded."""


def settings_section(runs: Sequence[Run]) -> Markup | None:
    """Return a table of all values; of several runs, values that differ have a line for each run."""
    configured = [run for run in runs if run.settings]
    if not configured:
        return None
    values = [{setting.name.lower(): setting for setting in run.settings} for run in configured]
    names = list(dict.fromkeys(name for value in values for name in value))
    colors = _colors(runs, configured)
    rows = [_row([value.get(name) for value in values], colors) for name in names]
    several = len(configured) > 1
    return tag(
        "div",
        _commands(runs),
        [_choice("all", "all values", True), _choice("changed", "overridden values", False)],
        _choice("differing", "values that differ", False) if several else None,
        scrolled_table(rows, ("name", "value", "from"), class_="settings"),
    )


def _commands(runs: Sequence[Run]) -> Markup:
    lines = [tag("p", f"{run.name}: ", tag("code", "cntkpy ", " ".join(run.words))) for run in runs if run.words]
    if len(lines) <= MAX_LINES:
        return tag("div", lines)
    return tag("details", tag("summary", f"{len(lines)} command lines"), lines, data_key="command lines")


def _choice(name: str, text: str, checked: bool) -> list[Markup]:
    return [tag("input", type="radio", name="values", id=name, checked=checked), tag("label", f" {text} ", for_=name)]


def _colors(runs: Sequence[Run], configured: Sequence[Run]) -> list[Markup]:
    """Return the dots of the first training of each run, or its name where it has none."""
    first: dict[int, int] = {}
    for number, (run, _) in enumerate(trainings(runs)):
        first.setdefault(id(run), number)
    return [swatch(first[id(run)]) if id(run) in first else tag("span", f"{run.name}: ") for run in configured]


def _row(values: Sequence[Setting | None], colors: Sequence[Markup]) -> Markup:
    there = [value for value in values if value is not None]
    same = len(there) == len(values) and len({cell.text for cell in there}) == 1
    content: Child = _text(there[0].text) if same else list(_different(values, colors))
    origins = list(dict.fromkeys(_origins(cell) for cell in there))
    plain_ = "" if any(cell.overridden for cell in there) else " plain"
    return tag(
        "tr",
        tag("th", tag("code", there[0].name), scope="row"),
        tag("td", content),
        tag("td", origins),
        class_=("same" if same else "other") + plain_,
    )


def _different(values: Sequence[Setting | None], colors: Sequence[Markup]) -> Iterator[Markup]:
    """Return each text of a value once, behind the dots of the runs that have it."""
    dots: dict[str | None, list[Markup]] = {}
    for color, value in zip(colors, values, strict=True):
        dots.setdefault(value.text if value is not None else None, []).append(color)
    for text, marks in dots.items():
        yield tag("div", marks, _text(text) if text is not None else tag("span", "not given", class_="dim"))


def _text(text: str) -> Markup:
    return tag("code", text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + " ...")


def _origins(setting: Setting) -> Markup:
    return tag("ul", [_step(step) for step in setting.origins], class_="origins")


def _step(step: Step) -> Markup:
    if step.kind == "overridden":
        return tag("li", "instead of ", tag("code", shorten(step.text, 80), class_="overridden"), f" at {step.at}")
    if step.kind == "variable":
        return tag("li", tag("code", f"${step.name}$"), f" at {step.at}")
    return tag("li", "added at " if step.kind == "merged" else "", step.at)
