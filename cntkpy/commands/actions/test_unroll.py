"""`action = testUnroll`: an evaluation whose results can be kept in a file.

The manual describes this action as a check that unrolling a recurrent network does not change its results; here
networks are always unrolled, so it is `test` with a result file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.cntk_config.declare import PATH, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.evaluate import TestParameters, evaluate_section

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext

ENTRY = Entry(
    "action",
    ("testUnroll",),
    parameters="cntkpy.commands.actions.test_unroll:TestUnrollParameters",
    factory="cntkpy.commands.actions.test_unroll:unroll",
    traits=frozenset({"builds", "evaluates"}),
)


class TestUnrollParameters(TestParameters):
    """`action=testUnroll`: evaluates a network on data, as `test` does, and keeps the results in a file."""

    results = Parameter(
        "path2EvalResults", PATH, default=None, help="Where the results go: one line `node average samples` per node."
    )


def unroll(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = TestUnrollParameters(section)
    totals = evaluate_section(p, context)
    if p.results:
        with output_file(p.results) as file:
            for total in totals:
                file.write(f"{total.name} {total.average:.17g} {total.count}\n".encode())
