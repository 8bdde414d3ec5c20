"""The subcommand `new`."""

from __future__ import annotations

import click

HELP = """\
Make a package that adds a reader or a tracker to cntkpy, or a project.

\b
NAME is that of the package; the class is called after it: word-counts gives
WordCountsReader. The folder NAME gets the class, a test that passes, a README
and an entry point, by which cntkpy finds the class once the package is
installed; a reader has data and a configuration that trains on them, too.
What is there is never overwritten.

\b
A project is a folder with layers of configurations, cntkpy.toml, which names
the runs that they make, and the schema of that file for editors.

\b
A config is a configuration that trains on a table: NAME is a CSV, TSV,
Parquet or Arrow file, --target the column that is predicted. It says which
columns are numbers and which categories, what stands for missing values, and
which rows are for training, validation and test.

\b
Examples:
  cntkpy new config houses.csv --target price
  cntkpy new reader word-counts
  cntkpy new tracker our-dashboard
  cntkpy new project digits
  cd word-counts && pip install -e . && pytest
"""


@click.command("new", help=HELP, short_help="Make a configuration for a table, a project, a reader or a tracker.")
@click.argument("kind", type=click.Choice(["config", "project", "reader", "tracker"]))
@click.argument("name")
@click.option("--target", metavar="COLUMN", help="Of a config: the column that is predicted.")
@click.option(
    "--task",
    type=click.Choice(["regression", "classification"]),
    help="Of a config: what the target is, where its values do not tell.",
)
@click.option("--drop", "dropped", multiple=True, metavar="COLUMN", help="Of a config: a column that is left out.")
@click.option(
    "--column",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help="Of a config: take a column as number, or as category.",
)
@click.option("--output", metavar="FILE", help="Of a config: the configuration; by default NAME with the ending .cntk.")
def new_command(
    kind: str,
    name: str,
    target: str | None,
    task: str | None,
    dropped: tuple[str, ...],
    kinds: tuple[str, ...],
    output: str | None,
) -> int:
    """Make a package, a project or a configuration."""
    from cntkpy.cntk_config.base.diagnostics import ConfigError

    if kind == "config":
        if target is None:
            raise ConfigError(
                "MissingParameter", "new config needs the column that is predicted", None, "add --target COLUMN"
            )
        from cntkpy.commands.new.tables.make import make_config

        return make_config(name, target, task, dropped, kinds, output)
    if target or task or dropped or kinds or output:
        raise ConfigError(
            "Conflict",
            f"--target, --task, --drop, --column and --output are not of `new {kind}`",
            None,
            "leave them out",
        )
    if kind == "project":
        from cntkpy.commands.new.project import make_project

        return make_project(name)
    from cntkpy.commands.new.package import make

    return make(kind, name)
