"""Epochs of an event file that an earlier run has trained, kept for the run that resumes the training.

An event file is written anew by every run. When the first epoch that a command trains is not the first of the training,
the events of the epochs before are those of the file as it was; they are written in front of it. Until then, they are
in `FILE.earlier`, so that a run that is killed before loses nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.lines import split_lines
from cntkpy.cntk_config.base.writing import atomic_write

KEPT = ("progress", "epoch finished", "validation")
MAX_BYTES = 64 << 20
"""Of a larger file, nothing is kept."""
SUFFIX = ".earlier"


class EarlierEvents:
    """The events of epochs in an event file, before it is emptied.

    Args:
        path: the event file.
    """

    def __init__(self, path: str) -> None:
        self._copy = Path(path + SUFFIX)
        self._lines = [line for file in (self._copy, Path(path)) for line in _epochs(file)]
        self._trained: set[str] = set()
        if self._lines:
            with atomic_write(self._copy) as file:
                file.write("".join(f"{line}\n" for *_, line in self._lines).encode())

    def before(self, event: dict[str, Any]) -> list[str]:
        """Return the lines that belong in front of an event: those of the epochs before, if it begins to train."""
        command, epoch = event.get("command"), event.get("epoch")
        if event.get("event") != "epoch started" or not isinstance(command, str) or command in self._trained:
            return []
        self._trained.add(command)
        if not isinstance(epoch, int):
            return []
        latest: dict[tuple[Any, ...], str] = {}
        for name, number, key, line in self._lines:
            if name == command and number < epoch:
                latest[key] = line
        return list(latest.values())

    def close(self) -> None:
        """Remove the copy: the run is over, or has written what it needs."""
        self._copy.unlink(missing_ok=True)


def _epochs(path: Path) -> list[tuple[str, int, tuple[Any, ...], str]]:
    """Return the lines of a file that are about epochs: the command, the epoch, what tells one from another, the
    line.
    """
    try:
        text = read_input(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    epochs: list[tuple[str, int, tuple[Any, ...], str]] = []
    for line in split_lines(text):
        if not any(f'"{kind}"' in line for kind in KEPT):
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict):
            continue
        values = cast("dict[str, Any]", event)
        kind, command, epoch = (values.get(name) for name in ("event", "command", "epoch"))
        if kind in KEPT and isinstance(command, str) and isinstance(epoch, int) and "trial" not in values:
            epochs.append((command, epoch, (kind, command, epoch, str(values.get("minibatches"))), line))
    return epochs
