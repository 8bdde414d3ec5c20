"""The subcommand `report`. Declared here, done in the other modules of this package."""

from __future__ import annotations

from pathlib import Path

import click

REPORT = """\
Write a report of runs: one HTML file that needs no network.

\b
It has the curves of every criterion, the epochs, the results of tests with
their confusion matrix and worst examples, the network, the configuration
with the origin of each value, throughput, warnings and versions. Everything
comes from the event files of runs (logFormat=json); of a log without one,
what its lines say.

\b
RUN is an event file, a log, a model, or a folder with runs.

\b
Examples:
  cntkpy report log/run.jsonl
  cntkpy report sweep/3 sweep/7 -o best.html
"""


@click.command("report", help=REPORT, short_help="Write a report of runs as one HTML file.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--out", metavar="FILE", default="report.html", show_default=True, help="Output file.")
def report_command(runs: tuple[str, ...], out: str) -> int:
    """Write a report of runs."""
    from cntkpy.cntk_config.base.writing import output_file
    from cntkpy.commands.report.page import page
    from cntkpy.commands.runs.find import find_runs
    from cntkpy.commands.same_file import keep_inputs

    keep_inputs(out, runs)
    text = page(find_runs(runs)).encode()
    with output_file(Path(out)) as file:
        file.write(text)
    print(out)
    return 0
