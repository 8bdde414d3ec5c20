"""Record of a run: plain data, made from its events."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

Points = dict[float, float]
"""Values by position: the number of the epoch, or a fraction inside an epoch."""

State = Literal["completed", "failed", "interrupted", "running", "killed"]
"""State of a run. `killed`: it has no last event, and no process writes it any more."""


@dataclass(frozen=True)
class Step:
    """One step in the history of a value of a configuration.

    Attributes:
        kind: `set`, `merged`, `overridden` or `variable`.
        name: of a variable.
        text: what stood there.
        at: the place.
    """

    kind: str
    name: str
    text: str
    at: str


@dataclass(frozen=True)
class Setting:
    """A value of a configuration.

    Attributes:
        name: the whole name, `train:SGD:maxEpochs`.
        text: after variables are replaced.
        origins: where it comes from, and what it replaced.
    """

    name: str
    text: str
    origins: tuple[Step, ...] = ()

    @property
    def overridden(self) -> bool:
        """True if it replaced an earlier value."""
        return any(step.kind == "overridden" for step in self.origins)


@dataclass
class Curves:
    """Curves of one training: by name of a node, its points in training, validation and between.

    Attributes:
        name: what a picture calls it.
        command: the section that trains.
        wanted: the number of epochs that it is to have.
        between: by epoch and minibatch.
        speeds: samples per second, by epoch.
        rates: learning rates per sample, by epoch.
        seconds: by epoch.
        models: the files that were saved.
        network: see `cntkpy.networks.graph.outline`; None: not known.
    """

    name: str
    command: str = ""
    wanted: int = 0
    training: dict[str, Points] = field(default_factory=dict[str, Points])
    validation: dict[str, Points] = field(default_factory=dict[str, Points])
    between: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict[str, dict[tuple[int, int], float]])
    speeds: Points = field(default_factory=Points)
    rates: Points = field(default_factory=Points)
    seconds: Points = field(default_factory=Points)
    models: list[str] = field(default_factory=list[str])
    network: dict[str, Any] | None = None

    def progress(self, node: str) -> Points:
        """Return the points between epochs; an epoch is as long as the longest one."""
        points = self.between.get(node, {})
        longest = max((minibatch for _, minibatch in points), default=1) or 1
        return {epoch - 1 + minibatch / longest: value for (epoch, minibatch), value in points.items()}

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that are reported, the training criterion first."""
        return list(dict.fromkeys([*self.training, *self.between, *self.validation]))

    @property
    def epochs(self) -> list[int]:
        """The numbers of the epochs that have been reported, in order."""
        points = [points for by_node in (self.training, self.validation) for points in by_node.values()]
        return sorted({int(epoch) for points in points for epoch in points})

    def judged(self, node: str) -> Points:
        """Return the values by which a model is judged: of the validation, or of the training if there are none."""
        return self.validation.get(node) or self.training.get(node, {})

    def best(self, node: str) -> float | None:
        """Return the least value over the epochs; None: there is none."""
        values = [value for value in self.judged(node).values() if math.isfinite(value)]
        return min(values, default=None)

    def last(self, node: str) -> float | None:
        """Return the value of the last epoch."""
        points = self.judged(node)
        return points[max(points)] if points else None


@dataclass(frozen=True)
class Result:
    """Result of a test: the averages of nodes, and the number of samples."""

    command: str
    nodes: dict[str, float]
    samples: int


@dataclass(frozen=True)
class Pixels:
    """A small picture: rows from the top, one byte for each of one or three channels."""

    width: int
    height: int
    channels: int
    content: bytes


@dataclass(frozen=True)
class Example:
    """A sample that a test found hard: its position in the data, its loss, its class, and the one it was taken for."""

    sequence: int
    step: int
    loss: float
    label: int
    taken_for: int
    picture: Pixels | None = None


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix: true class by row, predicted class by column; with the samples of largest loss."""

    command: str
    output: str
    counts: list[list[int]]
    worst: list[Example] = field(default_factory=list[Example])


@dataclass
class Run:
    """One start of cntkpy.

    Attributes:
        path: the event file or the log.
        name: a short one, for tables.
        state: see `State`.
        error: why it ended, if it failed.
        started, ended: the times of its first and its last event.
        words: the command line.
        versions: by package, Python included.
        place: host, system and cores, as text by name.
        settings: its configuration; empty: the log does not have it.
        curves: one of each training.
        results: of its tests.
        confusions: of its tests.
        warnings: in order; with a number if there were several of one text.
    """

    path: Path
    name: str
    state: State = "killed"
    error: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    words: list[str] = field(default_factory=list[str])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    place: dict[str, str] = field(default_factory=dict[str, str])
    settings: list[Setting] = field(default_factory=list[Setting])
    curves: list[Curves] = field(default_factory=list[Curves])
    results: list[Result] = field(default_factory=list[Result])
    confusions: list[Confusion] = field(default_factory=list[Confusion])
    warnings: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def seconds(self) -> float | None:
        """Duration in seconds."""
        if self.started is None or self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())

    @property
    def values(self) -> dict[str, str]:
        """The texts of its configuration by name in lower case."""
        return {setting.name.lower(): setting.text for setting in self.settings}

    def spellings(self) -> Iterator[tuple[str, str]]:
        """Return the names of its configuration in lower case, and as they are written."""
        return ((setting.name.lower(), setting.name) for setting in self.settings)
