"""The subcommand `runs`. Declared here, done in the other modules of this package."""

from __future__ import annotations

import sys

import click

RUNS = """\
List runs: state, epochs, the values in which they differ, the best and the
last value of every criterion, the results of tests, time.

\b
FOLDER is searched for the event files of runs (logFormat=json), and for logs
(stderr=FILE) of runs that have none; an event file, a log or a model may be
named, too. Criteria are those of the validation, where there is one.

\b
Examples:
  cntkpy runs
  cntkpy runs sweep --sort 'err best'
  cntkpy runs sweep --filter state=completed --filter 'err best<0.1'
  cntkpy runs sweep --columns 'err best,learningRatesPerMB'
  cntkpy runs old new --format markdown
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
def runs_command(
    folders: tuple[str, ...],
    form: str,
    order: str | None,
    conditions: tuple[str, ...],
    columns: str | None,
    wide: bool,
) -> int:
    """List runs."""
    from cntkpy.cntk_config.base.diagnostics import UserError
    from cntkpy.commands.console import print_error
    from cntkpy.commands.runs import forms
    from cntkpy.commands.runs.find import find_runs
    from cntkpy.commands.runs.table import chosen, for_people, left_out, select, table_of, with_short_names

    try:
        table = select(table_of(find_runs(folders or ["."])), conditions, order)
        if columns is not None:
            table = chosen(table, [name for name in columns.split(",") if name.strip()])
    except UserError as error:
        print_error(error)
        return error.exit_code
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
        shown, hidden = forms.fitting(shown, width) if width is not None else (shown, [])
        forms.show(shown)
        if hidden:
            names = ", ".join(hidden)
            many = f"{len(hidden)} columns do" if len(hidden) > 1 else "1 column does"
            print(f"{many} not fit: {names}; --wide shows all, --columns chooses.", file=sys.stderr)
    if extra_name := left_out(table):
        print(extra_name, file=sys.stderr)
    return 0
