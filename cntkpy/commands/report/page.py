"""The page of a report: its head, its sections, its style and script, all in one text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from cntkpy import __version__
from cntkpy.cntk_config.base.files import read_input
from cntkpy.commands.report.curves import curves_section, epochs_section, switches
from cntkpy.commands.report.markup import Markup, join, tag
from cntkpy.commands.report.networks import network_section
from cntkpy.commands.report.results import confusion_section, summary_section
from cntkpy.commands.report.settings import settings_section
from cntkpy.commands.report.surroundings import surroundings_section
from cntkpy.commands.report.sweeps import Sweep, sweeps_of, sweeps_section, trial_values
from cntkpy.commands.runs.record import Run
from cntkpy.commands.runs.table import FIRST, Table, best_row, for_people, rows_of, table_of
from cntkpy.commands.words import is_config_word

FOLDER = Path(__file__).parent
MAX_NAMES = 4
"""Names in the title of a page."""


def page(runs: Sequence[Run], live_seconds: int = 0) -> str:
    """Return the report of runs as HTML.

    Args:
        runs: The runs.
        live_seconds: The script asks the server of the page so often for a newer one; 0: the page is a file.
    """
    style, script = (read_input(FOLDER / name).decode() for name in ("report.css", "report.js"))
    if not live_seconds:  # the style of a live page stays the same, as its policy wants; its script does this
        style += switches(runs)
    table = for_people(table_of(runs))
    sweeps = sweeps_of(runs)
    best = best_row(table, trial_values(runs, sweeps))
    best_curves = rows_of(runs)[best][1] if best is not None else None
    sections = {
        "summary": ("Summary", summary_section(runs, table, best, _best_by(table, sweeps))),
        "curves": ("Curves", curves_section(runs, best_curves)),
        "sweep": ("Sweep", sweeps_section(sweeps)),
        "epochs": ("Epochs", epochs_section(runs)),
        "confusion": ("Confusion", confusion_section(runs)),
        "network": ("Network", network_section(runs)),
        "configuration": ("Configuration", settings_section(runs)),
        "surroundings": ("Where it ran", surroundings_section(runs)),
    }
    title = title_of_page(runs, sweeps)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # Only this very style and script may be used, and nothing is loaded: a second lock behind the escapes.
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script, bool(live_seconds))),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"cntkpy {__version__}"),
        tag("link", rel="icon", href="data:,") if live_seconds else None,
        tag("title", f"{title} - cntkpy"),
        tag("style", Markup(style)),
    )
    shown = {key: (name, content) for key, (name, content) in sections.items() if content is not None and runs}
    body = tag(
        "body",
        tag(
            "main",
            tag("h1", title),
            tag("nav", [tag("a", name, href=f"#{key}") for key, (name, _) in shown.items()]),
            [tag("section", tag("h2", name, id=key), content) for key, (name, content) in shown.items()],
            data_live=live_seconds or None,
        ),
        tag("p", "The server has ended: this page is as it was last.", id="ended", hidden=True),
        tag("script", Markup(script)),
    )
    return join([Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), Markup("\n")])


def _best_by(table: Table, sweeps: Sequence[Sweep]) -> str:
    """Return by what the best run is the best."""
    if len(sweeps) == 1:
        return f"the {'greatest' if sweeps[0].plan.maximize else 'least'} {sweeps[0].criterion} of the sweep"
    first = table.columns[FIRST + table.values]
    return f"the least {first.removesuffix(' best')}"


def title_of_page(runs: Sequence[Run], sweeps: Sequence[Sweep] = ()) -> str:
    """Return the name of one run, or what several are of: `digits: a, b`, `24 runs of digits`.

    Args:
        runs: The runs.
        sweeps: Those that they are trials of.
    """
    if trial_values(runs, sweeps) is not None:
        numbers = ", ".join(run.path.parent.name for run in runs)
        of = f"of {sweeps[0].folder.name}"
        if len(runs) == 1:
            return f"Trial {numbers} {of}"
        return f"Trials {numbers} {of}" if len(runs) <= MAX_NAMES else f"{len(runs)} trials {of}"
    if len(runs) < 2:
        return runs[0].name if runs else "No runs yet"
    files = [part for run in runs for word in run.words if is_config_word(word) for part in _files(word)]
    names = list(dict.fromkeys(Path(file.strip()).stem for file in files))
    of = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    if len(runs) <= MAX_NAMES:
        listed = ", ".join(run.name for run in runs)
        return f"{of}: {listed}" if of else listed
    return f"{len(runs)} runs" + (f" of {of}" if of else "")


def _files(word: str) -> list[str]:
    return word.partition("=")[2].split("+")


def _policy(style: str, script: str, live: bool) -> str:
    own_text = f"style-src {_hash(style)}; script-src {_hash(script)}" + ("; connect-src 'self'" if live else "")
    return f"default-src 'none'; img-src data:; {own_text}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
