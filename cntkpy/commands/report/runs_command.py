"""The subcommand `runs`, declared: `cntkpy.commands.runs` makes its tables, `serve` of this package its page."""

from __future__ import annotations

import sys
from typing import Any

import click

RUNS = """\
List runs: state, epochs, the values in which they differ, the best and the
last value of every criterion, the results of tests, time.

\b
FOLDER is searched for the records of runs and for event files (logFormat=json),
and for logs (stderr=FILE) of runs that have neither; an event file, a log or a
model may be named, too. Criteria are those of the validation, where there is
one.

\b
Examples:
  cntkpy runs
  cntkpy runs sweep --sort 'err best'
  cntkpy runs sweep --filter state=completed --filter 'err best<0.1'
  cntkpy runs sweep --columns 'err best,learningRatesPerMB'
  cntkpy runs old new --format markdown
  cntkpy runs sweep --serve

\b
--serve prints the address of a page with the report of the runs, which takes
the newest state every two seconds. Only this machine can open it. Ctrl-C ends
it, with status 130.
"""


@click.command("runs", help=RUNS, short_help="List runs: what differs, criteria, time, state.")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("--sort", "order", metavar="COLUMN", help="Column to sort by; -COLUMN: the greatest first.")
@click.option("--filter", "conditions", multiple=True, metavar="CONDITION", help="NAME=VALUE, also != < <= > >= ~.")
@click.option("--columns", metavar="NAME,NAME", help="Columns to show besides the run.")
@click.option("--wide", is_flag=True, help="Show all columns, each run in one line.")
@click.option("--serve", is_flag=True, help="Show the runs in a browser of this machine, with their newest state.")
@click.option("--port", type=click.IntRange(0, 65535), help="With --serve: port.  [default: one that is free]")
@click.option("--open", "opens", is_flag=True, help="With --serve: open the browser.")
@click.pass_context
def runs_command(context: click.Context, serve: bool, port: int | None, opens: bool, **options: Any) -> int:
    """List runs, or serve them."""
    if not serve:
        if port is not None or opens:
            raise click.UsageError("--port and --open go with --serve only.")
        return _list(**options)
    for name in ("form", "order", "conditions", "columns", "wide"):
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError("--serve goes with folders of runs, --port and --open only.")
    from cntkpy.commands.report.serve import serve as serve_page

    serve_page(options["folders"] or ["."], port or 0, opens)
    return 0


def _list(
    folders: tuple[str, ...], form: str, order: str | None, conditions: tuple[str, ...], columns: str | None, wide: bool
) -> int:
    """List runs."""
    from cntkpy.commands.runs import forms
    from cntkpy.commands.runs.find import find_runs
    from cntkpy.commands.runs.table import chosen, for_people, left_out, select, table_of, with_short_names

    table = select(table_of(find_runs(folders or ["."])), conditions, order)
    if columns is not None:
        table = chosen(table, [name for name in columns.split(",") if name.strip()])
    if form in ("json", "csv"):
        sys.stdout.write(forms.write(table, form))
        return 0
    if form == "markdown":
        sys.stdout.write(forms.write(for_people(table), form))
    elif wide or columns is not None:
        forms.show(with_short_names(table), wide=True)
        return 0
    else:
        width = forms.terminal_width()
        shown = with_short_names(for_people(table))
        shown, heads, hidden = forms.fitting(shown, width) if width is not None else (shown, None, [])
        forms.show(shown, heads=heads)
        if hidden:
            names = ", ".join(hidden)
            many = f"{len(hidden)} columns do" if len(hidden) > 1 else "1 column does"
            print(f"{many} not fit: {names}; --wide shows all, --columns chooses.", file=sys.stderr)
    if extra_name := left_out(table):
        print(extra_name, file=sys.stderr)
    return 0
