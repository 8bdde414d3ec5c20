"""`cntkpy sweep`: from its words to the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cntkpy.cntk_config import ConfigError, ConfigParameters, UserError, load
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.writing import shown
from cntkpy.commands.catalogue.section_map import section_map
from cntkpy.commands.checks.look import look_before_run
from cntkpy.commands.console import print_error
from cntkpy.commands.sweeps.choices import Space, product, read_words
from cntkpy.commands.sweeps.console import console
from cntkpy.commands.sweeps.criterion import Criterion, check_node, choose_criterion
from cntkpy.commands.sweeps.names import GRID, NO_PRUNER
from cntkpy.commands.sweeps.outputs import OUTSIDE, OUTSIDE_HINT, moving_words, outside, scripts
from cntkpy.commands.sweeps.plan import NAME as PLAN_FILE
from cntkpy.commands.sweeps.plan import Plan, check_same, check_whole, digest, load_plan, save_plan
from cntkpy.commands.sweeps.rows import Row, Rows
from cntkpy.commands.sweeps.running import Runner, shown_values
from cntkpy.commands.sweeps.slurm import write_script
from cntkpy.commands.sweeps.study import FolderStudy, Study
from cntkpy.commands.words import name_of_run, same_directory, sort_words

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
    join: str = ""
    jobs: int = 1
    slurm: bool = False
    maximize: bool = False
    track: tuple[str, ...] = ()


def sweep(words: list[str], options: Options) -> int:
    """Run a sweep, go on with one, or join one; return the exit status."""
    try:
        plan, folder, base = _joined(options) if options.join else _begun(words, options)
        study = make_study(plan, folder, joins=bool(options.join))
        kept = load_plan(folder)
        if kept is None or kept.to_json() != plan.to_json():
            save_plan(folder, plan)
        if options.slurm:
            check_whole(Plan.of_json(plan.to_json(), _shown(folder)), _shown(folder))
            path = write_script(folder, plan.name, options.jobs)
            print(f"{_shown(path)}: {options.jobs} tasks run {study.size()} trials; submit it with sbatch")
            return 0
        return _run(plan, folder, base, study, options.jobs)
    except OSError as error:
        if error.filename is None:  # the output
            raise
        print(f"error: the sweep cannot go on: {shown(error.filename)}: {error.strerror}", file=sys.stderr)
        return EXIT_FAILURE


def _begun(words: list[str], options: Options) -> tuple[Plan, Path, ConfigParameters]:
    """Return the plan of the words, its folder, and the configuration of its first values, after checking all."""
    line = sort_words(words).configurations
    if len(line) > 1:
        raise ConfigError("Conflict", "a sweep has one configuration", None, "join its files with +: a.cntk+b.cntk")
    space = read_words(line[0])
    folder = Path(options.out or _default_folder(words, line[0])).absolute()
    base = _read(space, space.first())
    check_values(space, folder)
    plan = _plan(space, base, folder.name, options)
    _make(folder)
    previous = load_plan(folder)
    if previous is not None:
        check_same(previous, plan, _shown(folder))
    return plan, folder, base


def _joined(options: Options) -> tuple[Plan, Path, ConfigParameters]:
    """Return the same of a sweep that another process has begun.

    Raises:
        UserError: there is none, or its configuration is another one here.
    """
    where = Path(options.join)
    plan = load_plan(where.absolute()) if "://" not in options.join else None
    if plan is not None:
        folder = where.absolute()
    elif "://" not in options.join and (where.is_dir() or not exists(Path(options.join.partition("#")[0]))):
        message = f"there is no sweep in {options.join}: it has no {PLAN_FILE}" if where.is_dir() else ""
        hint = "name the folder of a sweep, a database URL, or the journal of a study"
        raise UserError("CannotRead", message or f"there is no sweep {options.join}", hint=hint)
    else:
        plan, place = _optuna("--join").find_plan(options.join, options.out)
        folder = place.absolute()
        _make(folder)
    check_whole(plan, _shown(folder))
    base = _read(plan.space, plan.space.first())
    if digest(base) != plan.configuration:
        message = "the configuration is not the one that the sweep began with"
        raise ConfigError("OtherSettings", message, None, "use the same files here", [f"it is {' '.join(plan.words)}"])
    return plan, folder, base


def make_study(plan: Plan, folder: Path, joins: bool) -> Study:
    """Return the study that says which trial comes next.

    Raises:
        UserError: Optuna is not installed, or its storage cannot be used.
    """
    points = plan.points()
    if points is None or plan.needs_optuna:
        option = (
            f"--sampler {plan.sampler}" if points is None else "--pruner" if plan.pruner != NO_PRUNER else "--storage"
        )
        return _optuna(option).open_study(plan, folder, joins)
    return FolderStudy(folder, points)


def _run(plan: Plan, folder: Path, base: ConfigParameters, study: Study, jobs: int) -> int:
    """Run the trials that are left; return the exit status."""
    criterion = choose_criterion(base, plan.criterion)
    if criterion.trains and not criterion.validates:
        print(f"note: {criterion.command} has no cvReader: trials are compared on training data", file=sys.stderr)
    for command in scripts(base):
        print(f"note: {command} runs a script: all trials write the files that it names", file=sys.stderr)
    combinations = product(plan.space.axes)
    if combinations is not None and study.size() > combinations:
        note = f"{study.size()} trials have {combinations} combinations of values"
        print(f"note: {note}; none is trained twice, a repeated one has the outcome of the first", file=sys.stderr)
    ended = len(study.ended())
    with console() as screen:
        screen.say(f"{study.size()} trials in {_shown(folder)}" + (f", {ended} have ended before" if ended else ""))
        number = Runner(plan.space, study, criterion, Rows(folder), jobs, screen, plan.track).run()
    if number is not None:
        print(f"the same command goes on with {_shown(folder)}", file=sys.stderr)
        return 128 + number
    return _say_end(criterion, study.ended(), plan.maximize)


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
            said = ", ".join(f"{path}={masked(text)}" for path, text in values.items())
            for error in _errors(space, first | values, folder):
                if str(error) not in seen:
                    seen.add(str(error))
                    errors.append(error.with_note(f"in the trials with {said}"))
    for error in errors[1:]:
        print_error(error)
    if errors:
        raise errors[0]


def _errors(space: Space, values: dict[str, str], folder: Path) -> list[ConfigError]:
    """Return errors that would end the run of a trial before its first command."""
    try:
        root = _read(space, values)
        errors = [finding.error() for finding in look_before_run(section_map(root)) if finding.severity == "error"]
        if not errors:
            moved = _read(space, values, moving_words(root, folder))
            errors = [
                ConfigError("CannotWrite", OUTSIDE.format(path), None, OUTSIDE_HINT) for path in outside(moved, folder)
            ]
        return errors
    except ConfigError as error:
        return [error]


def _read(space: Space, values: dict[str, str], words: Iterable[str] = ()) -> ConfigParameters:
    """Return the configuration of a trial."""
    with same_directory():
        return load([*space.words_for(values), *words])


def _plan(space: Space, base: ConfigParameters, name: str, options: Options) -> Plan:
    """Return the plan that the options describe.

    Raises:
        ConfigError: they contradict each other, or the choices.
    """
    trials = options.trials or 0
    if options.sampler == GRID and trials:
        hint = "leave out --trials, or add --sampler random"
        raise ConfigError("Conflict", "a grid has as many trials as combinations", None, hint)
    if options.sampler != GRID and not trials:
        message = f"--sampler {options.sampler} needs a number of trials"
        raise ConfigError("MissingParameter", message, None, "add --trials N")
    criterion = choose_criterion(base, options.criterion)
    check_node(base, criterion)
    if options.pruner != NO_PRUNER and not criterion.trains:
        message = f"--pruner {options.pruner} needs a criterion after every epoch, and {criterion.command} has none"
        raise ConfigError("Conflict", message, None, "leave out --criterion, or name a node of a training")
    plan = Plan(
        space.words, options.sampler, options.pruner, trials, options.seed, options.criterion, options.storage,
        digest(base), name, maximize=options.maximize, track=options.track,
    )  # fmt: skip
    plan.points()
    return plan


def _optuna(purpose: str):
    """Import the part that needs Optuna.

    Raises:
        UserError: it is not installed.
    """
    try:
        from cntkpy.commands.sweeps import optuna_study
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "optuna":
            raise
        message = f"{purpose} needs optuna, which is not installed"
        raise UserError("MissingPackage", message, hint=how_to_install("sweep")) from None
    return optuna_study


def _default_folder(words: list[str], line: list[str]) -> Path:
    """Return `sweeps/NAME`, after the run of the project or the last file of the configuration."""
    if name := name_of_run(words, line):
        return Path(FOLDER) / name
    names = [word.partition("=")[2] for word in line if word.lower().startswith("configfile=")]
    return Path(FOLDER) / Path(names[-1].rpartition("+")[2]).stem


def _make(folder: Path) -> None:
    """Make the folder of a sweep.

    Raises:
        UserError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError("CannotWrite", f"cannot make the folder {folder}: {error.strerror or error}") from None


def _say_end(criterion: Criterion, rows: list[Row], maximize: bool = False) -> int:
    """Print the best trial; the exit status: 1 if no trial has finished."""
    states = [row.state for row in rows]
    print(", ".join(f"{states.count(state)} {state}" for state in ("finished", "pruned", "failed") if state in states))
    finished = [row for row in rows if row.state == "finished" and row.criterion is not None]
    sign = -1.0 if maximize else 1.0
    best = min(finished, key=lambda row: sign * _criterion_of(row), default=None)
    if best is None:
        return EXIT_FAILURE
    print(f"best: trial {best.number}, {_criterion_of(best):.6g} ({criterion}): {shown_values(best.values)}")
    return 0


def _criterion_of(row: Row) -> float:
    return float("inf") if row.criterion is None else row.criterion


def _shown(path: Path) -> str:
    return os.path.relpath(path) if Path.cwd() in path.parents else str(path)
