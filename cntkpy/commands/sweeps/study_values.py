"""The values of trials as a study of Optuna has them: names of axes, names of choices, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import optuna

from cntkpy.cntk_config.base.names import masked
from cntkpy.commands.sweeps.choices import Axis, Choice


def axis_name(axis: Axis) -> str:
    """Return the name of an axis in a study."""
    return axis.paths[0] if len(axis.paths) == 1 else f"zip({', '.join(axis.paths)})"


def row_names(axis: Choice) -> Iterator[str]:
    """Return the names of the choices of an axis in a study: all different, and URLs without secrets."""
    names: set[str] = set()
    for number, row in enumerate(axis.rows, 1):
        name = masked(row[0] if len(row) == 1 else ", ".join(f"{p}={t}" for p, t in zip(axis.paths, row, strict=True)))
        yield f"{name} [{number}]" if name in names else name
        names.add(name)


def suggest(trial: optuna.Trial, axis: Axis) -> dict[str, str]:
    """Return the values that a trial has, or that the sampler chooses now."""
    name = axis_name(axis)
    if isinstance(axis, Choice):
        rows = list(row_names(axis))
        return axis.values(rows.index(str(trial.suggest_categorical(name, rows))))
    if axis.whole:
        return {axis.path: axis.exact(trial.suggest_int(name, int(axis.low), int(axis.high), log=axis.log))}
    return {axis.path: axis.exact(trial.suggest_float(name, axis.low, axis.high, log=axis.log))}


def parameter(axis: Axis, values: Mapping[str, str]) -> Any:
    """Return the value of an axis in a study."""
    if isinstance(axis, Choice):
        return list(row_names(axis))[axis.rows.index(tuple(values[path] for path in axis.paths))]
    number = float(values[axis.path])
    return int(number) if axis.whole else number
