"""Displays of a trainer at work, besides the log: a bar on a terminal, lines for a cluster scheduler."""

from dataclasses import dataclass, field
from typing import Protocol


class Progress(Protocol):
    """A display of how far a long piece of work is."""

    def start(self, description: str, total: float | None = None) -> None:
        """Begin a piece of work of `total` samples (`None`: not known)."""
        ...

    def update(self, done: float, text: str = "") -> None:
        """`done` samples are finished; `text` is shown beside the bar."""
        ...

    def finish(self) -> None:
        """The piece of work is over."""
        ...


class Tracing(Protocol):
    """`progressTracing`: how far the whole run is, for a cluster."""

    def point(self, epochs: float, criterion: float, at_end: bool = False) -> None:
        """`epochs` epochs of this command are done (fractions count), with the criterion of the last interval."""
        ...

    def keep_alive(self, minibatches: int) -> None:
        """So many minibatches have been read by something that is no training."""
        ...


class NoProgress:
    """Shows nothing."""

    def start(self, description: str, total: float | None = None) -> None:
        """Nothing."""

    def update(self, done: float, text: str = "") -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


class NoTracing:
    """Says nothing."""

    def point(self, epochs: float, criterion: float, at_end: bool = False) -> None:
        """Nothing."""

    def keep_alive(self, minibatches: int) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Reporting:
    """Displays of a training, besides the log.

    Attributes:
        progress: Shows how far the work is.
        tracing: Reports how far the work is to a cluster.
        device: What the log calls the device; None: it does not say how large the model is and where it runs.
    """

    progress: Progress = field(default_factory=NoProgress)
    tracing: Tracing = field(default_factory=NoTracing)
    device: str | None = "CPU"
