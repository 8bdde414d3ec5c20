"""`cntkpy plot LOG...`: curves of criteria over the epochs, from the logs of trainings."""

from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, suggestion
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.commands.console import print_error
from cntkpy.commands.runs.find import EVENTS, read_run
from cntkpy.commands.runs.plain import CONTROL
from cntkpy.commands.runs.record import Curves, Points

FORMATS = ("png", "svg", "pdf")


def read_curves(path: Path) -> list[Curves]:
    """Return the curves of the trainings of a log, or of a `.jsonl` file of events.

    Raises:
        UserError: if the file cannot be read or has no epochs.
    """
    curves = [curves for curves in read_run(path).curves if curves.training or curves.between]
    if not curves:
        raise UserError(
            "NoEpochs",
            f"{path} has no epochs to plot",
            hint="a log of a training is wanted: stderr=FILE, or standard error in a file",
        )
    if len(curves) == 1:
        curves[0].name = str(path)
    return curves


def choose_node(runs: list[Curves], name: str | None) -> str:
    """Return the node to draw: the one asked for, or the training criterion of the first run."""
    known = list(dict.fromkeys(node for run in runs for node in [*run.training, *run.between]))
    if name is None:
        return known[0]
    node = next((node for node in known if node.lower() == name.lower()), None)
    if node is None:
        raise UserError(
            "UnknownNode",
            f"no log has a node '{name}'",
            hint=suggestion(name, known) or f"there are {', '.join(known)}",
        )
    return node


def picture_form(out: Path) -> str:
    """Return the format of a picture, which the ending of its name says.

    Raises:
        ConfigError: no such pictures are drawn.
    """
    form = out.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        hint = f"the name ends in {', '.join('.' + f for f in FORMATS)}"
        raise ConfigError("UnknownFormat", f"cannot draw a file {out.name}", hint=hint)
    return form


def draw(runs: list[Curves], node: str, out: Path) -> None:
    """Draw the runs over one another into a file, whose suffix says what it becomes."""
    form = picture_form(out)
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure: Any = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for index, run in enumerate(runs):
        color = f"C{index % 10}"
        curves: list[tuple[Points, str | None, dict[str, Any]]] = [
            (run.progress(node), None, {"linewidth": 0.7, "alpha": 0.4}),
            (run.training.get(node, {}), run.name.translate(CONTROL), {"marker": "o", "markersize": 3}),
            (
                run.validation.get(node, {}),
                f"{run.name}, validation".translate(CONTROL),
                {"marker": "s", "markersize": 3, "linestyle": "--"},
            ),
        ]
        for points, label, style in curves:
            if points:
                axes.plot(sorted(points), [points[x] for x in sorted(points)], color=color, label=label, **style)
    axes.set_xlabel("epoch")
    axes.set_ylabel(node.translate(CONTROL), parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[1]:
        for text in axes.legend().get_texts():
            text.set_parse_math(False)
    with output_file(out) as file:
        figure.savefig(file, format=form, dpi=120)


def _without_twins(logs: list[str]) -> list[str]:
    """Return the files without logs whose event files (`.jsonl` at the end of the name) are among them: both are one
    run.
    """
    return [log for log in logs if f"{log}{EVENTS}" not in logs]


def plot(logs: list[str], out: str | None = None, node: str | None = None) -> int:
    """Draw the logs; print the name of the picture. Returns the exit status."""
    try:
        runs = [run for log in _without_twins(logs) for run in read_curves(Path(log))]
        target = Path(out) if out else Path(logs[0]).with_name(Path(logs[0]).name + ".png")
        draw(runs, choose_node(runs, node), target)
    except UserError as error:
        print_error(error)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        message = "plot needs matplotlib, which is not installed"
        print_error(missing := UserError("MissingPackage", message, hint=how_to_install("plot")))
        return missing.exit_code
    print(target)
    return 0
