"""Studies, which say which trial comes next: the protocol, and the study of a grid or a random search in a folder.

Trials of such a study depend on their numbers alone. A process takes the first one that has no row in `trials.jsonl`
and whose lock nobody holds; the lock ends with the process, so that a trial of a killed one is free again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cntkpy.commands.sweeps.points import Points
from cntkpy.commands.sweeps.rows import Row, Rows
from cntkpy.commands.sweeps.trial_folder import TrialFolder


@dataclass(frozen=True)
class Trial:
    """A trial that this process has claimed.

    Attributes:
        number: its number in the sweep.
        values: the texts of the choices, by path.
        folder: where it runs.
        lock: the descriptor of its lock.
    """

    number: int
    values: Mapping[str, str]
    folder: TrialFolder
    lock: int

    def release(self) -> None:
        """Close the lock; another process can claim the trial if it has no row."""
        os.close(self.lock)


class Study(Protocol):
    """Source of the trials of a sweep."""

    busy: set[int]
    """The numbers of the trials that other processes run, when `next` was last asked."""

    def next(self) -> Trial | None:
        """Claim a trial; None: there is none now."""
        ...

    def report(self, trial: Trial, epoch: int, value: float) -> bool:
        """Take note of the criterion after an epoch (from 1); whether the trial shall end early."""
        ...

    def finish(self, trial: Trial, row: Row) -> None:
        """Take note of the end of a trial."""
        ...

    def size(self) -> int:
        """Return the number of trials."""
        ...

    def ended(self) -> list[Row]:
        """Return the outcomes of the trials that have ended, here and elsewhere."""
        ...


class FolderStudy:
    """A grid or a random search, without Optuna.

    Args:
        folder: the folder of the sweep, absolute.
        points: the values of the trials.
    """

    def __init__(self, folder: Path, points: Points) -> None:
        self._folder, self._points, self._rows = folder, points, Rows(folder)
        self._claimed: set[int] = set()
        self.busy: set[int] = set()

    def next(self) -> Trial | None:
        """See `Study`."""
        done = self._rows.read()
        self.busy = set()
        for number in range(self._points.size):
            if number in done or number in self._claimed:
                continue
            folder = TrialFolder(self._folder / str(number))
            lock = folder.claim()
            if lock is None:
                self.busy.add(number)
            elif number in self._rows.read():  # another process has ended it meanwhile
                os.close(lock)
            else:
                self._claimed.add(number)
                return Trial(number, self._points.values(number), folder, lock)
        return None

    def report(self, trial: Trial, epoch: int, value: float) -> bool:
        """See `Study`; no trial ends early."""
        return False

    def finish(self, trial: Trial, row: Row) -> None:
        """See `Study`; the row has been written."""

    def size(self) -> int:
        """See `Study`."""
        return self._points.size

    def ended(self) -> list[Row]:
        """See `Study`."""
        return list(self._rows.read().values())
