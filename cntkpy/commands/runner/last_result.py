"""The last line on a terminal whose run writes its log into a file: what came out, and where the log is."""

from __future__ import annotations

import logging
from typing import Any

RESULTS = ("epoch finished", "validation", "final results")
"""Events with values of criteria."""


class LastResult(logging.Handler):
    """Keeps the criteria that a run has logged last."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._event: dict[str, Any] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the event of a record that has criteria."""
        event: dict[str, Any] = getattr(record, "event", {})
        if event.get("event") in RESULTS and event.get("nodes"):
            self._event = event

    def line(self, log_file: str) -> str:
        """`COMPLETED: err = 0.0421, ce = 0.13 (360 samples). The log is in log/run`.

        Args:
            log_file: the file that the log has gone to.
        """
        where = f"The log is in {log_file}"
        if not self._event:
            return f"COMPLETED. {where}"
        nodes: dict[str, float] = self._event["nodes"]
        values = ", ".join(f"{name} = {value:.6g}" for name, value in nodes.items())
        return f"COMPLETED: {values} ({self._event['samples']:,} samples). {where}"
