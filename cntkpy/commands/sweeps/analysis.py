"""Analysis of the trials of a sweep: Optuna's importances of the values, and its parallel coordinates."""

from __future__ import annotations

import importlib
import inspect
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

from cntkpy.commands.runs.plain import CONTROL
from cntkpy.commands.sweeps.choices import Axis, Choice, Space
from cntkpy.commands.sweeps.optuna_study import quiet
from cntkpy.commands.sweeps.rows import Row
from cntkpy.commands.sweeps.study_values import axis_name, parameter, row_names

BEST_PART = 0.25
"""Part of the trials that counts as good. With Optuna's own tenth, eight trials give a value without effect 43 %."""
QUANTILE = ("target_quantile", "baseline_quantile")
"""Names of this part in Optuna 5 and 4."""
LEAST_TRIALS = 4
"""Trials with a criterion from which importances are computed."""
DRAWING = {"backend": "svg", "svg.hashsalt": "cntkpy", "svg.fonttype": "none", "text.parse_math": False}
"""Settings of matplotlib: the same bytes for the same trials, texts as texts, and `$` is no mathematics."""
WIDTH, HEIGHT = 3.0, 4.0
"""Inches of a picture for each axis, and of its height."""


def study_of(space: Space, rows: Iterable[Row], maximize: bool) -> optuna.Study:
    """Return a study in memory with the trials that have run to their ends.

    Args:
        space: What is chosen.
        rows: The outcomes; those whose values are not of this space are left out.
        maximize: The greatest criterion is the best.
    """
    names = _short_names(space.axes)
    distributions = {name: _distribution(axis) for name, axis in zip(names, space.axes, strict=True)}
    with quiet():
        study = optuna.create_study(direction="maximize" if maximize else "minimize")
        for row in rows:
            if row.state != "finished" or row.criterion is None or row.same is not None:
                continue
            with suppress(KeyError, ValueError):
                params = {name: _value(axis, row.values) for name, axis in zip(names, space.axes, strict=True)}
                study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=row.criterion))
    return study


def _short_names(axes: Sequence[Axis]) -> list[str]:
    """Return the last parts of the names of axes, where these tell them apart."""
    names = [_drawable(axis_name(axis)) for axis in axes]
    ends = [name if "zip(" in name else re.split("[/.:]", name)[-1] for name in names]
    return [end if ends.count(end) == 1 else name for end, name in zip(ends, names, strict=True)]


def _distribution(axis: Axis) -> BaseDistribution:
    if isinstance(axis, Choice):
        return CategoricalDistribution(list(map(_drawable, row_names(axis))))
    if axis.whole:
        return IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return FloatDistribution(axis.low, axis.high, log=axis.log)


def _value(axis: Axis, values: Mapping[str, str]) -> Any:
    value = parameter(axis, values)
    return _drawable(value) if isinstance(value, str) else value


def _drawable(text: str) -> str:
    """Return a text that every picture can have."""
    return text.translate(CONTROL)


def importances(study: optuna.Study) -> dict[str, float]:
    """Return the share of each axis in what makes trials good, by PED-ANOVA; empty: there are too few trials."""
    if len(study.get_trials(deepcopy=False)) < LEAST_TRIALS:
        return {}
    names = inspect.signature(PedAnovaImportanceEvaluator).parameters
    quantile: dict[str, Any] = {next(name for name in QUANTILE if name in names): BEST_PART}
    with quiet():
        return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator(**quantile))


def parallel_coordinates(study: optuna.Study, criterion: str) -> bytes:
    """Return Optuna's plot of parallel coordinates as SVG.

    Args:
        study: The trials.
        criterion: The name of the first axis.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    matplotlib: Any = importlib.import_module("matplotlib")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    out = io.BytesIO()
    with quiet(), matplotlib.rc_context(DRAWING):
        axes: Any = optuna.visualization.matplotlib.plot_parallel_coordinate(study, target_name=_drawable(criterion))
        figure = axes.figure
        try:
            axes.set_title("")
            figure.set_size_inches(WIDTH * (1 + len(study.best_params)), HEIGHT)
            for lines in axes.collections:
                lines.set_cmap("viridis" if study.direction.name == "MAXIMIZE" else "viridis_r")
            figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
        finally:
            pyplot.close(figure)
    return out.getvalue()
