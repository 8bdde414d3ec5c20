"""The subcommand `new`."""

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
Examples:
  cntkpy new reader word-counts
  cntkpy new tracker our-dashboard
  cntkpy new project digits
  cd word-counts && pip install -e . && pytest
"""


@click.command("new", help=HELP, short_help="Make a package with a reader or a tracker of your own, or a project.")
@click.argument("kind", type=click.Choice(["reader", "tracker", "project"]))
@click.argument("name")
def new_command(kind: str, name: str) -> int:
    """Make a package or a project of a template."""
    if kind == "project":
        from cntkpy.commands.new.project import make_project

        return make_project(name)
    from cntkpy.commands.new.package import make

    return make(kind, name)
