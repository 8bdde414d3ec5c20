"""A study of Optuna: its samplers choose values, its pruners end trials early, its storage joins several machines.

All trials of a sweep are in the study from its beginning, waiting; those of a grid or a random search with their
values. A process takes one with `ask`, which the storage gives to one process only. A trial whose process was killed is
still running for the storage; who can lock its folder goes on with it.
"""

from __future__ import annotations

import os
import platform
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, QMCSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.cntk_config.base.names import masked, public_name
from cntkpy.commands.runs import plain
from cntkpy.commands.sweeps.choices import Choice, Space
from cntkpy.commands.sweeps.journal import repair
from cntkpy.commands.sweeps.locks import held
from cntkpy.commands.sweeps.plan import Plan, check_same
from cntkpy.commands.sweeps.rows import Row, Rows, State
from cntkpy.commands.sweeps.study import Trial
from cntkpy.commands.sweeps.study_values import axis_name, parameter, row_names, suggest
from cntkpy.commands.sweeps.trial_folder import LOCK, TrialFolder

SAMPLERS: Mapping[str, Callable[[int | None], BaseSampler]] = {
    "grid": lambda seed: RandomSampler(seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
    "tpe": lambda seed: TPESampler(seed=seed, constant_liar=True),
    "gp": lambda seed: GPSampler(seed=seed),
    "cmaes": lambda seed: CmaEsSampler(seed=seed),
    "qmc": lambda seed: QMCSampler(seed=seed),
}
"""By name; the values of a grid and a random search are in the waiting trials."""
NEEDED = {"gp": "torch", "cmaes": "cmaes"}
"""Packages that samplers need beside Optuna."""
PRUNERS: Mapping[str, Callable[[], BasePruner]] = {
    "none": NopPruner,
    "median": MedianPruner,
    "halving": SuccessiveHalvingPruner,
    "hyperband": HyperbandPruner,
}
JOURNAL, SQLITE = "study.journal", "sqlite:///"
PLAN, FOLDER, POINT, WHERE, ERROR = "cntkpy plan", "cntkpy folder", "cntkpy point", "cntkpy where", "error"
"""Attributes of studies and trials."""
OPTUNA = ("optuna", "sqlalchemy")
"""Packages whose errors are those of a storage."""
STATES: Mapping[TrialState, State] = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
UNPLACED = timedelta(seconds=60)
"""Seconds after which a trial without a folder counts as taken by a process that was killed at once."""


class OptunaStudy:
    """Trials from a study of Optuna.

    Args:
        study: the study.
        space: what is chosen.
        folder: where the trials of this process run, absolute.
        where: the address of the storage.
    """

    def __init__(self, study: optuna.Study, space: Space, folder: Path, where: str) -> None:
        self._where = where
        self._study, self._space, self._folder, self._rows = study, space, folder, Rows(folder)
        self._claimed: dict[int, optuna.Trial] = {}
        self.busy: set[int] = set()

    def next(self) -> Trial | None:
        """See `Study`."""
        with self._asking():
            return self._left_behind() or self._waiting()

    def report(self, trial: Trial, epoch: int, value: float) -> bool:
        """See `Study`."""
        optuna_trial = self._claimed[trial.number]
        with self._asking():
            optuna_trial.report(value, epoch)
            return optuna_trial.should_prune()

    def finish(self, trial: Trial, row: Row) -> None:
        """See `Study`."""
        with self._asking():
            self._tell(self._claimed[trial.number], row)

    def size(self) -> int:
        """See `Study`."""
        with self._asking():
            return sum(POINT in trial.user_attrs for trial in self._study.get_trials(deepcopy=False))

    def ended(self) -> list[Row]:
        """See `Study`; those of other machines have no row here."""
        here = self._rows.read()
        with self._asking():
            trials = self._study.get_trials(deepcopy=False, states=tuple(STATES))
        return [here.get(trial.number) or _row(trial, self._space) for trial in trials if POINT in trial.user_attrs]

    @contextmanager
    def _asking(self) -> Generator[None]:
        with quiet(), _storage_errors(self._where):
            yield

    def _waiting(self) -> Trial | None:
        """Return a trial that nobody has taken."""
        while self._study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            optuna_trial = self._study.ask()
            if (
                POINT not in optuna_trial.user_attrs
            ):  # another process took the last one meanwhile, and this is a new one
                self._study.tell(optuna_trial, state=TrialState.FAIL)
                return None
            if claimed := self._claim(optuna_trial):
                return claimed
        return None

    def _left_behind(self) -> Trial | None:
        """Return a trial of a process that was killed. Takes note of those that other processes run."""
        self.busy = set()
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.number in self._claimed or POINT not in trial.user_attrs:
                continue
            if not self._is_here(trial):
                self.busy.add(trial.number)
                continue
            optuna_trial = optuna.Trial(self._study, trial._trial_id)  # pyright: ignore[reportPrivateUsage]
            if claimed := self._claim(optuna_trial):
                return claimed
            self.busy.add(trial.number)
        return None

    def _is_here(self, frozen_trial: FrozenTrial) -> bool:
        """Return whether the folder of a running trial is here, or it has none at all."""
        if WHERE not in frozen_trial.user_attrs:
            return frozen_trial.datetime_start is not None and datetime.now() - frozen_trial.datetime_start > UNPLACED
        return (self._folder / str(frozen_trial.number) / LOCK).exists()

    def _claim(self, own_trial: optuna.Trial) -> Trial | None:
        """Lock the folder of a trial and choose its values; None: another process has it, or it has ended."""
        folder = TrialFolder(self._folder / str(own_trial.number))
        lock = folder.claim()
        if lock is None:
            return None
        row = self._rows.read().get(own_trial.number)
        if row is not None:  # the process was killed before it could tell the study
            self._tell(own_trial, row)
            os.close(lock)
            return None
        if WHERE not in own_trial.user_attrs:
            own_trial.set_user_attr(WHERE, f"{platform.node()}:{folder.path}")
        values: dict[str, str] = {}
        for axis in self._space.axes:
            values |= suggest(own_trial, axis)
        self._claimed[own_trial.number] = own_trial
        return Trial(own_trial.number, values, folder, lock)

    def _tell(self, optuna_trial: optuna.Trial, row: Row) -> None:
        if row.state == "finished":
            self._study.tell(optuna_trial, row.criterion, skip_if_finished=True)
            return
        if row.error:
            optuna_trial.set_user_attr(ERROR, masked(row.error)[:1000])
        state = TrialState.PRUNED if row.state == "pruned" else TrialState.FAIL
        self._study.tell(optuna_trial, state=state, skip_if_finished=True)


def open_study(plan: Plan, folder: Path, joins: bool) -> OptunaStudy:
    """Return the study of a plan: made, or found, and filled with the trials that it lacks.

    Args:
        plan: the sweep.
        folder: its folder.
        joins: the study is there.

    Raises:
        UserError: the storage cannot be used, or has another sweep of that name.
    """
    name, where = plan.name, plan.storage or str(folder / JOURNAL)
    with quiet(), _opening_errors(where):
        storage = open_storage(where)
        if joins:
            study = optuna.load_study(study_name=name, storage=storage)
        else:
            direction = "maximize" if plan.maximize else "minimize"
            study = optuna.create_study(study_name=name, storage=storage, load_if_exists=True, direction=direction)
            with held(folder / ".sweep.lock"):
                _fill(study, plan, folder)
        ended = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        study.sampler = _sampler(plan.sampler, None if joins else plan.seed + ended)
        study.pruner = PRUNERS[plan.pruner]()
    return OptunaStudy(study, plan.space, folder, where)


def find_plan(where: str, out: str | None) -> tuple[Plan, Path]:
    """Return the plan of the sweep in a storage, and the folder that it names.

    Args:
        where: of the storage; `#NAME` at its end chooses one of several sweeps.
        out: the folder in place of the one that the sweep names.

    Raises:
        UserError: the storage cannot be used, or has no sweep, or several.
    """
    url, _, name = where.partition("#")
    if url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).is_file():  # which would be made
        raise UserError("CannotRead", f"there is no sweep in {url}: no such file", hint="begin one with --storage")
    with quiet(), _opening_errors(url):
        storage = open_storage(url)
        user_attrs = {
            summary.study_name: summary.user_attrs
            for summary in optuna.get_all_study_summaries(storage, include_best_trial=False)
            if PLAN in summary.user_attrs
        }
    if not user_attrs:
        raise UserError("BadFile", f"there is no sweep in {url}", hint="begin one with --storage")
    if name not in user_attrs and (name or len(user_attrs) > 1):
        listed = ", ".join(user_attrs)
        message = f"{url} has no sweep '{name}'" if name else f"{url} has several sweeps: {listed}"
        hint = (suggestion(name, list(user_attrs)) if name else None) or f"choose one: {url}#{next(iter(user_attrs))}"
        raise UserError("BadFile", message, hint=hint)
    attributes = user_attrs[name or next(iter(user_attrs))]
    plan = Plan.of_json(attributes[PLAN], public_name(url))
    if not out and not isinstance(attributes.get(FOLDER), str):
        raise UserError("BadFile", f"{public_name(url)} names no folder of its sweep", hint="give one with --out")
    withheld = tuple(name for name in plan.withheld if name != "storage")
    return replace(plan, storage=url, withheld=withheld), Path(out or attributes[FOLDER])


def open_storage(where: str) -> BaseStorage:
    """Return a database for a URL, a journal for the name of a file."""
    if "://" in where:
        return optuna.storages.RDBStorage(where)
    Path(where).parent.mkdir(parents=True, exist_ok=True)
    repair(Path(where))
    return JournalStorage(JournalFileBackend(where))


def _fill(study: optuna.Study, plan: Plan, folder: Path) -> None:
    """Add the trials that a study lacks, all waiting."""
    previous_plan = study.user_attrs.get(PLAN)
    if previous_plan is not None:
        check_same(Plan.of_json(previous_plan, study.study_name), plan, f"the study {study.study_name}")
    points = plan.points()
    size = points.size if points is not None else plan.trials
    there = {
        plain.count(trial.user_attrs.get(POINT))
        for trial in study.get_trials(deepcopy=False)
        if POINT in trial.user_attrs
    }
    for number in range(size):
        if number not in there:
            values = points.values(number) if points is not None else {}
            fixed = {axis_name(axis): parameter(axis, values) for axis in plan.space.axes} if values else {}
            study.enqueue_trial(fixed, user_attrs={POINT: number})
    if previous_plan != plan.to_json():
        here = Path.cwd()
        study.set_user_attr(FOLDER, os.path.relpath(folder) if here in folder.parents else str(folder))
        study.set_user_attr(PLAN, plan.to_json())


def _sampler(name: str, seed: int | None) -> BaseSampler:
    """Return the sampler of a name.

    Raises:
        UserError: the package that it needs is not installed; Optuna imports it later, when values are chosen.
    """
    package = NEEDED.get(name)
    if package is not None and find_spec(package) is None:
        message = f"--sampler {name} needs {package}, which is not installed"
        raise UserError("MissingPackage", message, hint=f"pip install {package}, or take another sampler")
    return SAMPLERS[name](seed)


def _row(trial: FrozenTrial, space: Space) -> Row:
    """Return the outcome of a trial that has ended, from the study."""
    values: dict[str, str] = {}
    for axis in space.axes:
        choice = trial.params.get(axis_name(axis))
        if isinstance(axis, Choice):
            rows = list(row_names(axis))
            values |= axis.values(rows.index(choice)) if choice in rows else {}
        elif (number := plain.finite(choice)) is not None:
            values[axis.path] = axis.exact(number)
    seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
    error = str(trial.user_attrs.get(ERROR, ""))
    reported = trial.intermediate_values
    criterion = trial.value if trial.value is not None else reported.get(max(reported, default=0))
    return Row(trial.number, STATES[trial.state], values, criterion, max(reported, default=0), seconds, error)


@contextmanager
def quiet() -> Generator[None]:
    """Meanwhile Optuna says nothing: no progress, and no warnings of interfaces that are new."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _storage_errors(where: str) -> Generator[None]:
    """Turn errors of Optuna and the database into one with the address of the storage, without its password."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:  # a file of a trial
            raise
        message = f"the storage {public_name(where)} cannot be used: {error.strerror or error}"
        raise UserError("CannotWrite", message) from None
    except (UserError, ModuleNotFoundError):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in OPTUNA:
            if not _is_raised_by_optuna(error):
                raise
            damage = f"the storage {public_name(where)} is damaged: {type(error).__name__}: {masked(str(error)[:200])}"
            raise UserError("BadFile", damage, hint="move it away: the same command begins a new one") from None
        reason = masked(str(error).splitlines()[0]) if str(error) else type(error).__name__
        message = f"the storage {public_name(where)} cannot be used: {reason}"
        raise UserError("CannotRead", message, hint="write sqlite:///FILE, another database URL, or FILE") from None


def _is_raised_by_optuna(error: BaseException) -> bool:
    """Return whether code of Optuna has raised an error, be it of Python, such as a KeyError of an entry that lacks a
    part."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(frame.f_globals.get("__name__")).partition(".")[0] in OPTUNA for frame in frames)


@contextmanager
def _opening_errors(where: str) -> Generator[None]:
    """The same, and that a storage has no driver or no such sweep."""
    try:
        with _storage_errors(where):
            yield
    except ModuleNotFoundError as error:
        message = f"{public_name(where)} needs {error.name}, which is not installed"
        raise UserError("MissingPackage", message, hint=f"pip install {error.name}") from None
    except OSError as error:
        raise UserError("CannotRead", f"the storage {where} cannot be used: {error.strerror or error}") from None
    except KeyError:
        hint = "begin it with --storage, and join it then"
        raise UserError("BadFile", f"there is no such sweep in {public_name(where)}", hint=hint) from None
