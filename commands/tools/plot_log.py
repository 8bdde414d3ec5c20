"""`cntkpy plot LOG...`: curves of criteria over the epochs, from the logs of trainings."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cntk_config.base.diagnostics import ConfigError, UserError, suggestion
from cntk_config.base.files import LIST_LIMIT, read_input
from cntk_config.base.writing import output_file

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)"
BANNER = re.compile(r"# (\S+) command \((\w+) action\)")
FINISHED = re.compile(r"Finished Epoch\[ *(\d{1,18}) of \d+\]: \[(Training|Validate)\] (.*)")
PROGRESS = re.compile(r"(?<!Search:) Epoch\[ *(\d{1,18}) of \d+\]-Minibatch\[ *\d+- *(\d{1,18})[^\]]*\]: (.*)")
NODE = re.compile(rf"(?:^|; )([^;=]+?) = ({NUMBER})(%?) \* (\d+)")

FORMATS = ("png", "svg", "pdf")

Points = dict[float, float]
"""Values by position: the number of the epoch, or a fraction inside an epoch."""


@dataclass
class Run:
    """What one command of a log reports: by name of a node, its points in training, validation and between."""

    name: str
    training: dict[str, Points] = field(default_factory=dict[str, "Points"])
    validation: dict[str, Points] = field(default_factory=dict[str, "Points"])
    between: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict[str, dict[tuple[int, int], float]])
    """By epoch and minibatch."""

    def progress(self, node: str) -> Points:
        """The points between epochs; an epoch is as long as the longest one."""
        points = self.between.get(node, {})
        longest = max((minibatch for _, minibatch in points), default=1)
        return {epoch - 1 + minibatch / longest: value for (epoch, minibatch), value in points.items()}


def read_runs(path: Path) -> list[Run]:
    """The trainings of a log, or of a `.jsonl` file of events.

    Raises:
        UserError: if the file cannot be read or has no epochs.
    """
    try:
        lines = read_input(path, LIST_LIMIT).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise UserError("CannotRead", f"cannot read {path}: {error.strerror or error}") from None
    runs: list[Run] = []
    for kind, command, epoch, minibatch, nodes in _events(lines) if path.suffix == ".jsonl" else _lines(lines):
        if kind == "action" or not runs:
            runs.append(Run(f"{path}: {command}" if command else str(path)))
        if kind == "progress":
            for name, value in nodes.items():
                runs[-1].between.setdefault(name, {})[epoch, minibatch] = value
        elif kind in ("training", "validation"):
            for name, value in nodes.items():
                getattr(runs[-1], kind).setdefault(name, {})[float(epoch)] = value
    runs = [run for run in runs if run.training or run.between]
    if not runs:
        raise UserError(
            "NoEpochs",
            f"{path} has no epochs to plot",
            hint="a log of a training is wanted: stderr=FILE, or standard error in a file",
        )
    if len(runs) == 1:
        runs[0].name = str(path)
    return runs


Event = tuple[str, str, int, int, dict[str, float]]
"""What happened, the command, the epoch, the minibatch, the nodes' values."""


def _lines(lines: Iterable[str]) -> Iterator[Event]:
    command = ""
    for line in lines:
        if found := BANNER.search(line):
            command = found[1]
            yield "action", command, 0, 0, {}
        elif found := FINISHED.search(line):
            kind = "training" if found[2] == "Training" else "validation"
            yield kind, command, int(found[1]), 0, _nodes(found[3])
        elif found := PROGRESS.search(line):
            yield "progress", command, int(found[1]), int(found[2]), _nodes(found[3])


def _nodes(text: str) -> dict[str, float]:
    return {name: float(value) / (100 if percent else 1) for name, value, percent, _ in NODE.findall(text)}


def _events(lines: Iterable[str]) -> Iterator[Event]:
    """What the lines say; the last one of a run that was killed, and lines of others, say nothing."""
    kinds = {"epoch finished": "training", "validation": "validation", "progress": "progress", "action": "action"}
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match event:
            case {"trial": _}:
                continue
            case {"event": "action", "command": str(command)}:
                yield "action", command, 0, 0, {}
            case {"event": str(word), "epoch": int(epoch), "nodes": dict()} if word in kinds and 0 <= epoch < 2**31:
                command, minibatch = event.get("command"), 0
                match event.get("minibatches"):
                    case [_, int(last)]:
                        minibatch = last
                    case _:
                        pass
                listed = cast("dict[Any, Any]", event["nodes"])
                values = {
                    str(name): float(value)
                    for name, value in listed.items()
                    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53)
                }
                yield kinds[word], command if isinstance(command, str) else "", epoch, minibatch, values
            case _:
                continue


def choose_node(runs: list[Run], name: str | None) -> str:
    """The node to draw: the one asked for, or the training criterion of the first run."""
    known = list(dict.fromkeys(node for run in runs for node in [*run.training, *run.between]))
    if name is None:
        return known[0]
    found = next((node for node in known if node.lower() == name.lower()), None)
    if found is None:
        raise UserError(
            "UnknownNode",
            f"no log has a node '{name}'",
            hint=suggestion(name, known) or f"there are {', '.join(known)}",
        )
    return found


def draw(runs: list[Run], node: str, out: Path) -> None:
    """Draw the runs over one another into a file, whose suffix says what it becomes."""
    form = out.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise ConfigError(
            "UnknownFormat",
            f"cannot draw a file {out.name}",
            hint=f"the name ends in {', '.join('.' + f for f in FORMATS)}",
        )
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure: Any = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for index, run in enumerate(runs):
        color = f"C{index % 10}"
        curves: list[tuple[Points, str | None, dict[str, Any]]] = [
            (run.progress(node), None, {"linewidth": 0.7, "alpha": 0.4}),
            (run.training.get(node, {}), run.name, {"marker": "o", "markersize": 3}),
            (
                run.validation.get(node, {}),
                f"{run.name}, validation",
                {"marker": "s", "markersize": 3, "linestyle": "--"},
            ),
        ]
        for points, label, style in curves:
            if points:
                axes.plot(sorted(points), [points[x] for x in sorted(points)], color=color, label=label, **style)
    axes.set_xlabel("epoch")
    axes.set_ylabel(node)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
    with output_file(out) as file:
        figure.savefig(file, format=form, dpi=120)


def plot(logs: list[str], out: str | None = None, node: str | None = None) -> int:
    """Draw the logs; print the name of the picture. Returns the exit status."""
    try:
        runs = [run for log in logs for run in read_runs(Path(log))]
        target = Path(out) if out else Path(logs[0]).with_name(Path(logs[0]).name + ".png")
        draw(runs, choose_node(runs, node), target)
    except UserError as error:
        print(error.diagnostic.render(), file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        print("error: plot needs matplotlib, which is not installed", file=sys.stderr)
        print("  help: pip install 'cntkpy[plot]'", file=sys.stderr)
        return 1
    print(target)
    return 0
