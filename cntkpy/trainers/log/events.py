"""Events of a run as data: records beside the lines of the log, for `logFormat=json`.

A log call that reports something carries it as `extra=event(...)`; a handler that writes objects looks only at these.
A line that is not shown is logged with the level DEBUG, so that its event is there all the same.
"""

import logging
from collections.abc import Sequence
from typing import Any

from cntkpy.trainers.log.text import Total

COUNTED = logging.DEBUG - 5
"""Level of a log whose events may cost computations of their own, as counts of a confusion matrix: `logFormat=json`."""


def event(name: str, totals: Sequence[Total] = (), **values: Any) -> dict[str, Any]:
    """Return the `extra` of a log call.

    Args:
        name: what happened.
        totals: sums of nodes, if there are any.
        values: further values.
    """
    record: dict[str, Any] = {"event": name, **values}
    if totals:
        record["nodes"] = {total.name: total.average for total in totals}
        record["samples"] = totals[0].count
    return {"event": record}


def level(shown: bool) -> int:
    """Return the level of a line that is in the log only if it is `shown`."""
    return logging.INFO if shown else logging.DEBUG
