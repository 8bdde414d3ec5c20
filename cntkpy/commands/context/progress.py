"""Progress display of a run: a progress bar on a terminal, and the `PROGRESS:` lines which clusters read.

Trainers call `start`, `update` and `finish` of whatever object they are given; without a terminal these do nothing,
because the plain log lines are there already.
"""

import sys
import time
from typing import TYPE_CHECKING

from cntkpy.trainers.log.reporting import NoProgress, Progress

if TYPE_CHECKING:
    from rich import progress as bars


NARROW = 100
"""Columns of a terminal below which bar and speed are short, so that the criterion has room."""


def bar_columns(width: int) -> list["bars.ProgressColumn"]:
    """Return the columns of a line of the display, on a terminal of `width` characters."""
    from rich import progress as bars
    from rich.table import Column

    remaining_column = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # what is left of the line
    return [
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(bar_width=8 if width < NARROW else 20),
        bars.TextColumn("{task.fields[done]}", markup=False),
        bars.TextColumn("{task.fields[speed]}", markup=False),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[text]}", markup=False, table_column=remaining_column),
    ]


class TerminalProgress:
    """A bar below the log lines on a terminal: how far, samples per second, time left, a short text."""

    def __init__(self) -> None:
        self._bar = None
        self._task = None

    def start(self, description: str, total: float | None = None) -> None:
        """Show a new bar."""
        from rich import progress as bars
        from rich.console import Console

        self.finish()
        # soft_wrap: log lines above the bar stay whole
        console = Console(stderr=True, soft_wrap=True)
        self._bar = bars.Progress(*bar_columns(console.width), console=console, transient=True, expand=True)
        self._task = self._bar.add_task(description, total=total, text="", done="", speed="")
        self._bar.start()

    def update(self, done: float, text: str = "") -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, text=text)
            task = self._bar.tasks[0]
            share = f"{task.percentage:3.0f}%" if task.total else f"{done:.0f} samples"
            unit = "/s" if self._bar.console.width < NARROW else " samples/s"
            speed = f"{task.speed:.0f}{unit}" if task.speed else ""
            self._bar.update(self._task, done=share, speed=speed)

    def finish(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def make_progress(redirected: bool) -> Progress:
    """Return a bar if people look at the log as it is written, else the silent object."""
    if not redirected and sys.stderr.isatty():
        return TerminalProgress()
    return NoProgress()


class ProgressTracing:
    """`progressTracing=true`: lines on standard output which say how much of all training is done.

    `total_epochs` counts the epochs of all train commands; `finished_epochs` those of the commands that have run.
    """

    INTERVAL = 10.0
    """Seconds that lie at least between two lines."""

    def __init__(self, enabled: bool = False, total_epochs: int = 0):
        self.enabled = enabled
        self.total_epochs = total_epochs
        self.finished_epochs = 0
        self._last = time.monotonic()

    def point(self, epochs: float, criterion: float, at_end: bool = False) -> None:
        """Note that `epochs` epochs of this command are done (fractions count), and the last interval's criterion.

        Prints if the last line is more than ten seconds old; at the end of a training always.
        """
        if not self.enabled:
            return
        now = time.monotonic()
        if not at_end and now - self._last <= self.INTERVAL:
            return
        self._last = now
        share = 100.0 * (self.finished_epochs + epochs) / self.total_epochs if self.total_epochs else 0.0
        print(f"PROGRESS: {share:.2f}%", flush=True)
        print(f"EVALERR: {criterion:.7f}%", flush=True)

    def keep_alive(self, minibatches: int) -> None:
        """Print a sign of life for every hundredth minibatch of an evaluation, a pre-computation or a writing."""
        if self.enabled and minibatches and minibatches % 100 == 0:
            print("PROGRESS: 0.00%", flush=True)
