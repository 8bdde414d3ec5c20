"""A run, made from its events: those of `logFormat=json`, or those that the lines of a log say."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cntkpy.commands.runs import plain
from cntkpy.commands.runs.record import Confusion, Curves, Example, Pixels, Result, Run, Setting, State, Step

TRAINS = ("train", "trainRNN", "adapt")
"""Actions whose final results are those of a validation, which has an event of its own."""
MAX_EPOCH = 2**31
MAX_SIDE = 64
"""Pixels of a side of a picture."""
MAX_WARNINGS = 200
"""Different warnings that are kept."""
STOPPED = (130, 143)
"""Exit statuses of a run that a signal has ended."""


def json_events(text: str) -> Iterator[dict[str, Any]]:
    """Return the events of a `.jsonl` file, but for those of trials of a search for rates; see `plain.objects`."""
    return (event for event in plain.objects(text) if "trial" not in event)


def run_of(path: Path, events: Iterable[dict[str, Any]]) -> Run:
    """Return the run of these events; `name` is the path as it is given."""
    run = Run(path, str(path))
    fold = _Fold(run)
    for event in events:
        fold.add(event)
    run.curves = [curve for curve in run.curves if curve.training or curve.between or curve.network]
    for curve in run.curves:
        curve.name = str(path) if len(run.curves) == 1 or not curve.command else f"{path}: {curve.command}"
    return run


class _Fold:
    """Adds events to a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._action = ""
        self._kinds = {
            "run started": self._started,
            "run finished": self._finished,
            "action": self._begun,
            "network": self._network,
            "progress": self._progress,
            "epoch started": self._epoch,
            "epoch finished": self._epoch_finished,
            "validation": self._validation,
            "final results": self._results,
            "confusion": self._confusion,
            "saved": self._saved,
            "warning": self._warning,
        }

    def add(self, event: dict[str, Any]) -> None:
        """Add an event; unknown ones say only when the run was alive."""
        time = plain.time(event.get("time"))
        if time is not None:
            self.run.started = self.run.started or time
            self.run.ended = time
        handle = self._kinds.get(plain.text(event.get("event")))
        if handle is not None:
            handle(event)

    def _curves(self, event: dict[str, Any]) -> Curves:
        if not self.run.curves:
            self.run.curves.append(Curves("", plain.text(event.get("command"))))
        return self.run.curves[-1]

    def _started(self, event: dict[str, Any]) -> None:
        run = self.run
        run.words = plain.texts(event.get("words")) or run.words
        run.versions |= plain.texts_by_name(event.get("versions"))
        run.place |= plain.texts_by_name(event.get("place"))
        run.settings = [_setting(table) for table in plain.tables(event.get("settings"))] or run.settings

    def _finished(self, event: dict[str, Any]) -> None:
        status = plain.count(event.get("status"))
        states: dict[int, State] = {0: "completed", **dict.fromkeys(STOPPED, "interrupted")}
        self.run.state = states.get(status, "failed")
        self.run.error = plain.text(event.get("error")) if status else ""

    def _begun(self, event: dict[str, Any]) -> None:
        self._action = plain.text(event.get("action"))
        self.run.curves.append(Curves("", plain.text(event.get("command"))))

    def _network(self, event: dict[str, Any]) -> None:
        self._curves(event).network = event

    def _epoch(self, event: dict[str, Any]) -> int | None:
        """Return the epoch of an event; None if it has none."""
        epoch = event.get("epoch")
        if not plain.is_count(epoch) or plain.count(epoch) >= MAX_EPOCH:
            return None
        wanted = plain.count(event.get("epochs"))
        if wanted:
            self._curves(event).wanted = wanted
        return plain.count(epoch)

    def _progress(self, event: dict[str, Any]) -> None:
        epoch, minibatches = self._epoch(event), plain.counts(event.get("minibatches"))
        if epoch is None:
            return
        last = minibatches[1] if len(minibatches) == 2 else 0
        for node, value in plain.numbers_by_name(event.get("nodes")).items():
            self._curves(event).between.setdefault(node, {})[epoch, last] = value

    def _epoch_finished(self, event: dict[str, Any]) -> None:
        epoch = self._epoch(event)
        if epoch is None:
            return
        curves = self._curves(event)
        for node, value in plain.numbers_by_name(event.get("nodes")).items():
            curves.training.setdefault(node, {})[epoch] = value
        seconds, samples = plain.number(event.get("seconds")), plain.count(event.get("samples"))
        rate = plain.number(event.get("learningRatePerSample"))
        if seconds is not None and seconds > 0:
            curves.seconds[epoch] = seconds
            if samples:
                curves.speeds[epoch] = samples / seconds
        if rate is not None:
            curves.rates[epoch] = rate

    def _validation(self, event: dict[str, Any]) -> None:
        epoch = self._epoch(event)
        if epoch is None:
            return
        for node, value in plain.numbers_by_name(event.get("nodes")).items():
            self._curves(event).validation.setdefault(node, {})[epoch] = value

    def _results(self, event: dict[str, Any]) -> None:
        if self._action in TRAINS or not self._action:
            return
        nodes = plain.numbers_by_name(event.get("nodes"))
        if nodes:
            command = plain.text(event.get("command"))
            self.run.results.append(Result(command, nodes, plain.count(event.get("samples"))))

    def _confusion(self, event: dict[str, Any]) -> None:
        matrix = [plain.counts(row) for row in plain.rows(event.get("counts"))]
        size = len(matrix)
        if not size or any(len(row) != size for row in matrix):
            return
        worst = [_example(table) for table in plain.tables(event.get("worst"))]
        worst = [sample for sample in worst if sample.label < size and sample.taken_for < size]
        command, output = plain.text(event.get("command")), plain.text(event.get("output"))
        self.run.confusions.append(Confusion(command, output, matrix, worst))

    def _saved(self, event: dict[str, Any]) -> None:
        if model := plain.text(event.get("model")):
            self._curves(event).models.append(model)

    def _warning(self, event: dict[str, Any]) -> None:
        name, warnings = plain.text(event.get("text")), self.run.warnings
        if name in warnings or len(warnings) < MAX_WARNINGS:
            warnings[name] = warnings.get(name, 0) + 1


def _setting(value: dict[str, Any]) -> Setting:
    steps = tuple(
        Step(*(plain.text(table.get(name)) for name in ("kind", "name", "text", "at")))
        for table in plain.tables(value.get("origins"))
    )
    return Setting(plain.text(value.get("name")), plain.text(value.get("value")), steps)


def _example(value: dict[str, Any]) -> Example:
    sequence, step, label, taken_for = (
        plain.count(value.get(name)) for name in ("sequence", "step", "label", "takenFor")
    )
    loss = plain.number(value.get("loss")) or 0.0
    return Example(sequence, step, loss, label, taken_for, _pixels(plain.table(value.get("picture"))))


def _pixels(value: dict[str, Any]) -> Pixels | None:
    width, height, channels = (plain.count(value.get(name)) for name in ("width", "height", "channels"))
    try:
        content = base64.b64decode(plain.text(value.get("pixels")), validate=True)
    except ValueError:
        return None
    fits = channels in (1, 3) and 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE
    return Pixels(width, height, channels, content) if fits and len(content) == width * height * channels else None
