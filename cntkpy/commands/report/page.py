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
from cntkpy.commands.runs.record import Run

FOLDER = Path(__file__).parent


def page(runs: Sequence[Run]) -> str:
    """The report of runs, as HTML."""
    style, script = (read_input(FOLDER / name).decode() for name in ("report.css", "report.js"))
    style += switches(runs)
    sections = {
        "summary": ("Summary", summary_section(runs)),
        "curves": ("Curves", curves_section(runs)),
        "epochs": ("Epochs", epochs_section(runs)),
        "confusion": ("Confusion", confusion_section(runs)),
        "network": ("Network", network_section(runs)),
        "configuration": ("Configuration", settings_section(runs)),
        "surroundings": ("Where it ran", surroundings_section(runs)),
    }
    title = f"cntkpy: {', '.join(run.name for run in runs[:3])}{', ...' if len(runs) > 3 else ''}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # Only this very style and script may be used, and nothing is loaded: a second lock behind the escapes.
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"cntkpy {__version__}"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    shown = {key: (name, content) for key, (name, content) in sections.items() if content is not None}
    body = tag(
        "body",
        tag("h1", title),
        tag("nav", [tag("a", name, href=f"#{key}") for key, (name, _) in shown.items()]),
        [tag("section", tag("h2", name, id=key), content) for key, (name, content) in shown.items()],
        tag("script", Markup(script)),
    )
    return join([Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), Markup("\n")])


def _policy(style: str, script: str) -> str:
    own_text = f"style-src {_hash(style)}; script-src {_hash(script)}"
    return f"default-src 'none'; img-src data:; {own_text}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
