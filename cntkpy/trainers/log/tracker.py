"""Interface of experiment trackers, for both fronts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Tracker(Protocol):
    """Receives the events of a run, in a thread of its own. An error ends the tracking, with a warning."""

    def started(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Begin a run: the values of its configuration by name; versions, host and command line."""
        ...

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Keep values by name: `train/ce`, `train/validation/ce`, `test/ce` of an epoch, `train/progress/ce`.

        Args:
            values: of a command, a slash, and the name of a node.
            step: the epoch, from 1; 0 for a test; of `progress` the minibatches so far.
        """
        ...

    def artifact(self, path: str) -> None:
        """Keep a file that the run has written: its event file, its log, its models. Called at the end."""
        ...

    def finished(self, status: int, error: str) -> None:
        """End the run with this exit status; 0: all is well. Nothing else is called afterwards."""
        ...
