"""`cntkpy sweep`: from its words to the exit status."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from cntk_config import ConfigError, ConfigParameters, UserError, load
from commands.checks.look import look_before_run
from commands.sweeps.choices import Space, read_words
from commands.sweeps.criterion import Criterion, choose_criterion
from commands.sweeps.outputs import moving_words, outside, scripts
from commands.sweeps.plan import GRID, NO_PRUNER, Plan, check_same, digest, load_plan, save_plan
from commands.sweeps.rows import Row, Rows
from commands.sweeps.running import Runner, make_folder
from commands.sweeps.study import FolderStudy, Study
from commands.words import same_directory, sort_words

EXIT_FAILURE = 1
FOLDER = "sweeps"
MOST_CHECKED = 200
"""Most values of one choice that are checked before the first trial."""


@dataclass(frozen=True)
class Options:
    """The options of the command; see its help."""

    out: str | None = None
    sampler: str = GRID
    pruner: str = NO_PRUNER
    trials: int | None = None
    seed: int = 0
    criterion: str = ""
    storage: str = ""
    jobs: int = 1


def sweep(words: list[str], options: Options) -> int:
    """Run a sweep, or go on with one; return the exit status."""
    try:
        line = sort_words(words).configurations
        if len(line) > 1:
            raise ConfigError("Conflict", "a sweep has one configuration", None, "join its files with +: a.cntk+b.cntk")
        space = read_words(line[0])
        folder = Path(options.out or _default_folder(line[0])).absolute()
        base = _read(space, space.first())
        check_values(space, folder)
        plan = _plan(space, base, options)
        make_folder(folder)
        before = load_plan(folder)
        if before is not None:
            check_same(before, plan, str(folder))
        if before != plan:
            save_plan(folder, plan)
        return run_plan(plan, folder, base, options.jobs)
    except UserError as error:
        print(error.diagnostic.render(), file=sys.stderr)
        return error.exit_code


def run_plan(plan: Plan, folder: Path, base: ConfigParameters, jobs: int) -> int:
    """Run the trials of a plan that are left; return the exit status."""
    criterion = choose_criterion(base, plan.criterion)
    if criterion.trains and not criterion.validates:
        print(f"note: {criterion.command} has no cvReader: trials are compared on training data", file=sys.stderr)
    for command in scripts(base):
        print(f"note: {command} runs a script: all trials write the files that it names", file=sys.stderr)
    study, rows = make_study(plan, folder), Rows(folder)
    _say_beginning(plan, study, rows, folder)
    ended = Runner(plan.space, study, criterion, rows, jobs, _say).run()
    if ended is not None:
        print(f"interrupted; the same command goes on with {folder}", file=sys.stderr)
        return 128 + ended
    return _say_end(criterion, rows)


def make_study(plan: Plan, folder: Path) -> Study:
    """Who says which trial comes next."""
    points = plan.points()
    assert points is not None
    return FolderStudy(folder, points)


def check_values(space: Space, folder: Path) -> None:
    """Look at every value of every choice as the start of a run does.

    Raises:
        ConfigError: the first error; the others have been printed.
    """
    first, seen = space.first(), set[str]()
    errors: list[ConfigError] = []
    for axis in space.axes:
        for index, values in enumerate(axis.to_check[:MOST_CHECKED]):
            if index == 0 and axis is not space.axes[0]:
                continue  # all first values together were the first ones
            chosen = first | values
            said = ", ".join(f"{path}={text}" for path, text in values.items())
            for error in _errors(space, chosen, folder):
                if str(error) not in seen:
                    seen.add(str(error))
                    errors.append(error.with_note(f"in the trials with {said}"))
    for error in errors[1:]:
        print(error.diagnostic.render(), file=sys.stderr)
    if errors:
        raise errors[0]


def _errors(space: Space, values: dict[str, str], folder: Path) -> list[ConfigError]:
    """What would end the run of a trial before its first command."""
    try:
        root = _read(space, values)
        found = [one.error() for one in look_before_run(root) if one.severity == "error"]
        if not found:
            moved = _read(space, values, moving_words(root, folder))
            found = [
                ConfigError(
                    "CannotWrite", f"'{one}' would be written by every trial", None, "give it a value of its own"
                )
                for one in outside(moved, folder)
            ]
        return found
    except ConfigError as error:
        return [error]


def _read(space: Space, values: dict[str, str], more: list[str] | None = None) -> ConfigParameters:
    """The configuration of a trial."""
    with same_directory():
        root = load([*space.words_for(values), *(more or [])])
        list(root.names())
        return root


def _plan(space: Space, base: ConfigParameters, options: Options) -> Plan:
    trials = options.trials or 0
    if options.sampler == GRID and trials:
        raise ConfigError(
            "Conflict", "a grid has as many trials as combinations", None, "leave out --trials, or --sampler random"
        )
    if options.sampler != GRID and not trials:
        raise ConfigError(
            "MissingParameter", f"--sampler {options.sampler} needs a number of trials", None, "add --trials N"
        )
    plan = Plan(
        space.words, options.sampler, options.pruner, trials, options.seed, options.criterion, options.storage,
        digest(base),
    )  # fmt: skip
    plan.points()
    choose_criterion(base, options.criterion)
    return plan


def _default_folder(line: list[str]) -> Path:
    """`sweeps/NAME`, after the last file of the configuration."""
    names = [word.partition("=")[2] for word in line if word.lower().startswith("configfile=")]
    return Path(FOLDER) / Path(names[-1].rpartition("+")[2]).stem


def _say(text: str) -> None:
    print(text, flush=True)


def _say_beginning(plan: Plan, study: Study, rows: Rows, folder: Path) -> None:
    done, size = len(rows.read()), study.size()
    total = f"{size} trials" if size is not None else "trials"
    before = f", {done} have ended before" if done else ""
    _say(f"{total} in {_shown(folder)}{before}")


def _say_end(criterion: Criterion, rows: Rows) -> int:
    """Print the best trial; the exit status: 1 if no trial has finished."""
    found = rows.read().values()
    states = [row.state for row in found]
    _say(", ".join(f"{states.count(state)} {state}" for state in ("finished", "pruned", "failed") if state in states))
    best = min((row for row in found if row.state == "finished"), key=_criterion_of, default=None)
    if best is None:
        return EXIT_FAILURE
    values = "  ".join(f"{path}={text}" for path, text in best.values.items())
    _say(f"best: trial {best.number}, {_criterion_of(best):.6g} ({criterion}): {values}")
    return 0


def _criterion_of(row: Row) -> float:
    return float("inf") if row.criterion is None else row.criterion


def _shown(folder: Path) -> str:
    here = Path.cwd()
    return os.path.relpath(folder) if here in folder.parents else str(folder)
