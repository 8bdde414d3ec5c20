"""The subcommand `new`."""

import click

HELP = """\
Make a package that adds a reader or a tracker to cntkpy.

\b
NAME is that of the package; the class is called after it: word-counts gives
WordCountsReader. The folder NAME gets the class, a test that passes, a README
and an entry point, by which cntkpy finds the class once the package is
installed; a reader has data and a configuration that trains on them, too.
What is there is never overwritten.

\b
Examples:
  cntkpy new reader word-counts
  cntkpy new tracker our-dashboard
  cd word-counts && pip install -e . && pytest
"""


@click.command("new", help=HELP, short_help="Make a package with a reader or a tracker of your own.")
@click.argument("kind", type=click.Choice(["reader", "tracker"]))
@click.argument("name")
def new_command(kind: str, name: str) -> int:
    """Make a package of a template."""
    from cntkpy.commands.new.package import make

    return make(kind, name)
