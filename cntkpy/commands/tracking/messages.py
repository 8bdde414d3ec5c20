"""Events of a run become calls of a tracker. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cntkpy.commands.runs import plain
from cntkpy.commands.runs.events import TRAINS


class Call(NamedTuple):
    """A method of `Tracker`, and its arguments."""

    method: str
    arguments: tuple[Any, ...]


@dataclass
class Messages:
    """Translates the events of a run.

    Attributes:
        files: what the run writes besides models.
        command: the only command whose values are sent; empty: those of all.
    """

    files: Sequence[str] = ()
    command: str = ""
    _action: str = ""
    _steps_before: int = 0
    """Minibatches of the epochs that are over."""
    _inside: int = 0
    """Minibatches of this epoch."""
    _models: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, event: dict[str, Any]) -> Iterator[Call]:
        """Return the calls that an event becomes."""
        kind, command = plain.text(event.get("event")), plain.text(event.get("command"))
        if kind == "run started":
            settings = {
                plain.text(row.get("name")).replace(":", "/"): plain.text(row.get("value"))  # as words name them
                for row in plain.tables(event.get("settings"))
            }
            tags = plain.texts_by_name(event.get("versions")) | plain.texts_by_name(event.get("place"))
            yield Call("started", (settings, tags | {"command line": " ".join(plain.texts(event.get("words")))}))
        elif kind == "run finished":
            for path in [*self._models.values(), *self.files]:
                if Path(path).is_file():
                    yield Call("artifact", (path,))
            yield Call("finished", (plain.count(event.get("status")), plain.text(event.get("error"))))
        elif kind == "action":
            self._action, self._steps_before, self._inside = plain.text(event.get("action")), 0, 0
        elif not self.command or self.command == command:
            yield from self._values(kind, command, event)

    def _values(self, kind: str, command: str, event: dict[str, Any]) -> Iterator[Call]:
        nodes, epoch = plain.numbers_by_name(event.get("nodes")), plain.count(event.get("epoch"))
        if kind == "saved":
            self._models[command] = plain.text(event.get("model"))
        elif kind == "progress" and "trial" not in event:
            minibatches = plain.counts(event.get("minibatches"))
            self._inside = minibatches[-1] if minibatches else self._inside
            yield _scalars(f"{command}/progress", nodes, self._steps_before + self._inside)
        elif kind == "epoch finished":
            self._steps_before, self._inside = self._steps_before + self._inside, 0
            yield _scalars(command, nodes | _rates(event), epoch)
        elif kind == "validation":
            yield _scalars(f"{command}/validation", nodes, epoch)
        elif kind == "final results" and self._action not in TRAINS:
            yield _scalars(command, nodes, 0)


def _scalars(prefix: str, values: dict[str, float], step: int) -> Call:
    return Call("scalars", ({f"{prefix}/{name}": value for name, value in values.items()}, step))


def _rates(event: dict[str, Any]) -> dict[str, float]:
    """Return the learning rate and the throughput of an epoch."""
    rate, seconds = plain.number(event.get("learningRatePerSample")), plain.number(event.get("seconds"))
    values = {} if rate is None else {"learningRatePerSample": rate}
    if seconds is not None and seconds > 0:
        values["samplesPerSecond"] = plain.count(event.get("samples")) / seconds
    return values
