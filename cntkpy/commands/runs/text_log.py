"""The events of a log: what its lines say, in the form of the objects that `logFormat=json` writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)"
PROGRAM = re.compile(r"^cntkpy (\S+) on (.*) at (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)$")
WORDS = re.compile(r"^cntkpy  (.*)")
STAMP = re.compile(r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d: ")
BANNER = re.compile(r"# (\S+) command \((\w+) action\)")
FINISHED = re.compile(r"Finished Epoch\[ *(\d{1,18}) of (\d{1,18})\]: \[(Training|Validate)\] (.*)")
PROGRESS = re.compile(r"(?<!Search:) Epoch\[ *(\d{1,18}) of (\d{1,18})\]-Minibatch\[ *(\d+)- *(\d{1,18})[^\]]*\]: (.*)")
FINAL = re.compile(r"Final Results: Minibatch\[(\d{1,18})-(\d{1,18})\]: (.*)")
NODE = re.compile(rf"(?:^|; )([^;=]+?) = ({NUMBER})(%?) \* (\d{{1,18}})")
RATE = re.compile(rf"learningRatePerSample = ({NUMBER})")
SECONDS = re.compile(rf"epochTime=({NUMBER})s")
WARNING = re.compile(r"WARNING: (.*)")
FAILED = re.compile(r"EXCEPTION occurred: (.*)")
COMPLETED = ("COMPLETED.", "__COMPLETED__")


def log_events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """What the lines of a log say, as events."""
    command = ""
    for line in lines:
        found = _event(line)
        if found is None:
            continue
        if found["event"] == "action":
            command = found["command"]
        yield {"command": command, **found} if command else found


def _event(line: str) -> dict[str, Any] | None:
    for read in (_epoch, _progress, _other):
        if found := read(line):
            return found
    return None


def _epoch(line: str) -> dict[str, Any] | None:
    found = FINISHED.search(line)
    if found is None:
        return None
    rest = found[4]
    event: dict[str, Any] = {"epoch": int(found[1]), "epochs": int(found[2]), **_nodes(rest)}
    if found[3] == "Validate":
        return {"event": "validation", **event}
    for name, pattern in (("learningRatePerSample", RATE), ("seconds", SECONDS)):
        if number := pattern.search(rest):
            event[name] = float(number[1])
    return {"event": "epoch finished", **event}


def _progress(line: str) -> dict[str, Any] | None:
    found = PROGRESS.search(line)
    if found is None:
        return None
    minibatches = [int(found[3][:18]), int(found[4])]
    event = {"epoch": int(found[1]), "epochs": int(found[2]), "minibatches": minibatches}
    return {"event": "progress", **event, **_nodes(found[5])}


def _other(line: str) -> dict[str, Any] | None:
    if found := BANNER.search(line):
        return {"event": "action", "command": found[1], "action": found[2]}
    if found := FINAL.search(line):
        return {"event": "final results", "minibatches": [int(found[1]), int(found[2])], **_nodes(found[3])}
    if found := WARNING.search(line):
        return {"event": "warning", "text": found[1]}
    if found := FAILED.search(line):
        return {"event": "run finished", "status": _status(found[1]), "error": found[1]}
    if STAMP.sub("", line).rstrip() in COMPLETED:
        return {"event": "run finished", "status": 0}
    return _banner(line)


def _banner(line: str) -> dict[str, Any] | None:
    if found := PROGRAM.match(line):
        try:
            time = datetime.strptime(found[3], "%Y/%m/%d %H:%M:%S").astimezone().isoformat()
        except ValueError:
            return None
        return {"event": "run started", "time": time, "versions": {"cntkpy": found[1]}, "place": {"host": found[2]}}
    if found := WORDS.match(line):
        return {"event": "run started", "words": found[1].split("  ")}
    return None


def _status(error: str) -> int:
    return 130 if error.startswith("interrupted") else 143 if error.startswith("terminated by signal") else 1


def _nodes(text: str) -> dict[str, Any]:
    found = NODE.findall(text)
    nodes = {name: float(value) / (100 if percent else 1) for name, value, percent, _ in found}
    return {"nodes": nodes, "samples": int(found[0][3]) if found else 0}
