"""`cntkpy diff RUN1 RUN2`: the configurations of two runs, what they ran on, and their results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.commands.console import print_error
from cntkpy.commands.runs.find import find_runs
from cntkpy.commands.runs.forms import CONTROL, shown
from cntkpy.commands.runs.record import Curves, Run, Setting

EXIT_DIFFERENT, EXIT_ERROR = 1, 2
MAX_TEXT = 200
"""Characters of a value that are shown."""


def compare(words: Sequence[str], origins: bool = False, form: str = "text") -> int:
    """Print the differences of two runs; return 0 if there are none, 1 if there are, 2 with errors.

    As `text` they are lines, as `json` the same lines in three lists.
    """
    try:
        first, second = (_only_run(word) for word in words)
    except UserError as error:
        print_error(error)
        return EXIT_ERROR
    parts = {
        "configuration": list(configuration(first, second, origins)),
        "surroundings": list(surroundings(first, second)),
        "results": list(results(first, second)),
    }
    if form == "json":
        print(json.dumps({"version": 1, **parts}, indent=2))
    else:
        sys.stdout.write("".join(line.translate(CONTROL) + "\n" for lines in parts.values() for line in lines))
    return EXIT_DIFFERENT if any(parts.values()) else 0


def _only_run(word: str) -> Run:
    runs = find_runs([word])
    if len(runs) > 1:
        names = ", ".join(str(run.path) for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise UserError("NoRuns", f"{word} has {len(runs)} runs, but one is compared", hint=f"name one of {names}")
    return runs[0]


def configuration(first: Run, second: Run, origins: bool = False) -> Iterator[str]:
    """Return lines `- name=text` and `+ name=text`, in the order of the first configuration, what is new at the end."""
    for run in (first, second):
        if not run.settings:
            yield f"# the configuration of {run.path} is not known: a log does not have it"
    if not first.settings or not second.settings:
        return
    old, new = ({setting.name.lower(): setting for setting in run.settings} for run in (first, second))
    for name in dict.fromkeys([*old, *new]):
        previous_value, after = old.get(name), new.get(name)
        if previous_value is not None and after is not None and _same(previous_value.text, after.text):
            continue
        for sign, item in (("-", previous_value), ("+", after)):
            if item is not None:
                yield f"{sign} {item.name}={shorten(item.text, MAX_TEXT)}" + (_place(item) if origins else "")


def _same(left: str, right: str) -> bool:
    """Return whether two texts are the same but for blanks, or the same number."""
    if " ".join(left.split()) == " ".join(right.split()):
        return True
    try:
        return float(left) == float(right)
    except ValueError:
        return False


def _place(setting: Setting) -> str:
    place = next((step.at for step in setting.origins if step.kind != "variable"), "")
    return f"  # {place}" if place else ""


def surroundings(first: Run, second: Run) -> Iterator[str]:
    """Return lines of versions, hosts, states and warnings that are known of both and not the same."""
    old, new = ({**run.versions, **run.place, "state": run.state} for run in (first, second))
    for name, previous_value in old.items():
        if previous_value != new.get(name, previous_value):
            yield f"# {name}: {previous_value} -> {new[name]}"
    for sign, run, second_run in (("-", first, second), ("+", second, first)):
        for text in run.warnings:
            if text not in second_run.warnings:
                yield f"{sign} WARNING: {shorten(text, MAX_TEXT)}"


def results(first: Run, second: Run) -> Iterator[str]:
    """Return lines of criteria that are not the same: of each node the best and the last value, and those of tests."""
    old, new = dict(_numbers(first)), dict(_numbers(second))
    for name in dict.fromkeys([*old, *new]):
        previous_value, after = old.get(name), new.get(name)
        if previous_value == after:
            continue
        change = f"  ({after - previous_value:+.6g})" if previous_value is not None and after is not None else ""
        yield f"# {name}: {shown(previous_value) or 'none'} -> {shown(after) or 'none'}{change}"


def _numbers(run: Run) -> Iterator[tuple[str, float | None]]:
    for curves in run.curves:
        yield from _criteria(curves)
    for result in run.results:
        for node, value in result.nodes.items():
            yield f"{result.command} {node}", value


def _criteria(curves: Curves) -> Iterator[tuple[str, float | None]]:
    if curves.epochs:
        yield f"{curves.command} epochs", float(max(curves.epochs))
    for node in curves.nodes:
        yield f"{curves.command} {node} best", curves.best(node)
        yield f"{curves.command} {node} last", curves.last(node)
