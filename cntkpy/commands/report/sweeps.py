"""Section of a report: of runs that are trials of sweeps, which values matter."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.commands.report.markup import Markup, headed_row, scrolled_table, tag
from cntkpy.commands.runs.record import Run
from cntkpy.commands.runs.table import rows_of
from cntkpy.commands.sweeps.plan import Plan, load_plan
from cntkpy.commands.sweeps.rows import Row, Rows


@dataclass(frozen=True)
class Sweep:
    """A sweep some of whose trials are in a report.

    Attributes:
        folder: Its folder.
        plan: Its plan.
        rows: The outcomes of its trials by their numbers.
        criterion: The name of what trials are compared by.
    """

    folder: Path
    plan: Plan
    rows: Mapping[int, Row]
    criterion: str


def sweeps_of(runs: Sequence[Run]) -> list[Sweep]:
    """Return the sweeps whose trials runs are; a plan or rows that cannot be read are left out."""
    sweeps: list[Sweep] = []
    trials: dict[Path, Run] = {}
    for run in runs:
        if run.path.parent.name.isdecimal():
            trials.setdefault(run.path.parent.parent, run)
    for folder, run in trials.items():
        with suppress(UserError, OSError):
            plan = load_plan(folder)
            if plan is not None:
                nodes = run.curves[-1].nodes if run.curves else []
                sweeps.append(
                    Sweep(folder, plan, Rows(folder).read(), plan.criterion or "".join(nodes[:1]) or "criterion")
                )
    return sweeps


def trial_values(runs: Sequence[Run], sweeps: Sequence[Sweep]) -> dict[int, float] | None:
    """Return the criteria to minimize, by the places of rows of the table; None: the runs are not of one sweep."""
    if len(sweeps) != 1 or any(run.path.parent.parent != sweeps[0].folder for run in runs):
        return None
    (sweep,) = sweeps
    sign = -1.0 if sweep.plan.maximize else 1.0
    outcomes = {
        place: sweep.rows.get(int(run.path.parent.name))
        for place, (run, _) in enumerate(rows_of(runs))
        if run.path.parent.name.isdecimal()
    }
    return {
        place: sign * row.criterion
        for place, row in outcomes.items()
        if row is not None and row.state == "finished" and row.criterion is not None
    }


def sweeps_section(sweeps: Sequence[Sweep]) -> Markup | None:
    """Return the importances of the values and their parallel coordinates, for each sweep."""
    parts = [
        tag("div", tag("h3", str(sweep.folder)) if len(sweeps) > 1 else None, _analysis(sweep)) for sweep in sweeps
    ]
    return tag("div", parts) if parts else None


def _analysis(sweep: Sweep) -> list[Markup]:
    try:
        from cntkpy.commands.sweeps import analysis
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "optuna":
            raise
        return [_missing("Importances of values, and parallel coordinates, are computed by Optuna", "sweep")]
    with suppress(UserError):
        study = analysis.study_of(sweep.plan.space, sweep.rows.values(), sweep.plan.maximize)
        count = len(study.get_trials(deepcopy=False))
        shares = analysis.importances(study)
        if not shares:
            text = f"{count} trials have finished; importances need {analysis.LEAST_TRIALS}."
            return [tag("p", text, class_="note")]
        parts = [_importances(shares, count, analysis.BEST_PART)]
        try:
            picture = analysis.parallel_coordinates(study, sweep.criterion)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            return [*parts, _missing("Parallel coordinates are drawn by matplotlib", "plot")]
        url = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
        image = tag("img", src=url, alt=f"parallel coordinates of {count} trials", class_="drawn")
        title = tag("h4", "Trials: the criterion, and the values that gave it")
        return [*parts, title, tag("div", image, class_="scroll")]
    return []


def _missing(sentence: str, extra: str) -> Markup:
    return tag("p", f"{sentence}, which is not installed: {how_to_install(extra)}", class_="note")


def _importances(shares: Mapping[str, float], count: int, best: float) -> Markup:
    rows = [
        headed_row(
            name,
            tag("td", f"{100 * share:.0f} %", class_="number"),
            tag("td", tag("meter", value=f"{share:.4f}", min=0, max=1)),
        )
        for name, share in shares.items()
    ]
    text = f"Optuna's PED-ANOVA of {count} trials: the share of each value in what the best {best:.0%} have in common."
    return tag("div", tag("h4", "Importance of the values"), scrolled_table(rows), tag("p", text, class_="note"))
