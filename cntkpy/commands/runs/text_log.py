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
    """Yield the events that the lines of a log tell."""
    command = ""
    for line in lines:
        values = _event(line)
        if values is None:
            continue
        if values["event"] == "action":
            command = values["command"]
        yield {"command": command, **values} if command else values


def _event(line: str) -> dict[str, Any] | None:
    for read in (_epoch, _progress, _other):
        if data := read(line):
            return data
    return None


def _epoch(line: str) -> dict[str, Any] | None:
    match = FINISHED.search(line)
    if match is None:
        return None
    tail = match[4]
    event: dict[str, Any] = {"epoch": int(match[1]), "epochs": int(match[2]), **_nodes(tail)}
    if match[3] == "Validate":
        return {"event": "validation", **event}
    for name, pattern in (("learningRatePerSample", RATE), ("seconds", SECONDS)):
        if number := pattern.search(tail):
            event[name] = float(number[1])
    return {"event": "epoch finished", **event}


def _progress(line: str) -> dict[str, Any] | None:
    match = PROGRESS.search(line)
    if match is None:
        return None
    minibatches = [int(match[3][:18]), int(match[4])]
    event = {"epoch": int(match[1]), "epochs": int(match[2]), "minibatches": minibatches}
    return {"event": "progress", **event, **_nodes(match[5])}


def _other(line: str) -> dict[str, Any] | None:
    if match := BANNER.search(line):
        return {"event": "action", "command": match[1], "action": match[2]}
    if match := FINAL.search(line):
        return {"event": "final results", "minibatches": [int(match[1]), int(match[2])], **_nodes(match[3])}
    if match := WARNING.search(line):
        return {"event": "warning", "text": match[1]}
    if match := FAILED.search(line):
        return {"event": "run finished", "status": _status(match[1]), "error": match[1]}
    if STAMP.sub("", line).rstrip() in COMPLETED:
        return {"event": "run finished", "status": 0}
    return _banner(line)


def _banner(line: str) -> dict[str, Any] | None:
    if match := PROGRAM.match(line):
        try:
            time = datetime.strptime(match[3], "%Y/%m/%d %H:%M:%S").astimezone().isoformat()
        except ValueError:
            return None
        return {"event": "run started", "time": time, "versions": {"cntkpy": match[1]}, "place": {"host": match[2]}}
    if match := WORDS.match(line):
        return {"event": "run started", "words": match[1].split("  ")}
    return None


def _status(error: str) -> int:
    return 130 if error.startswith("interrupted") else 143 if error.startswith("terminated by signal") else 1


def _nodes(text: str) -> dict[str, Any]:
    pairs = NODE.findall(text)
    nodes = {name: float(value) / (100 if percent else 1) for name, value, percent, _ in pairs}
    return {"nodes": nodes, "samples": int(pairs[0][3]) if pairs else 0}
