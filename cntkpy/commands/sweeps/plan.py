"""Plan of a sweep, kept as `sweep.json` in its folder or in its study, so that it can resume and others can join."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.names import masked, shareable
from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.cntk_config.export import Export
from cntkpy.commands.sweeps.choices import Space, read_words
from cntkpy.commands.sweeps.names import GRID, NO_PRUNER, PRUNERS, RANDOM, SAMPLERS
from cntkpy.commands.sweeps.points import MOST_TRIALS, Draws, Grid, Points, check_trials

NAME = "sweep.json"
VERSION = 1
SECRET = ("words", "storage")
"""Attributes whose URLs may have users, passwords and queries."""


@dataclass(frozen=True)
class Plan:
    """A sweep.

    Attributes:
        words: the words of the command line.
        sampler: who chooses values: `grid`, `random`, or a sampler of Optuna.
        pruner: who ends trials early: `none`, or a pruner of Optuna.
        trials: how many there are; of a grid 0: all.
        seed: of the sampler.
        criterion: what `--criterion` says.
        storage: of Optuna's study; empty: the folder itself is the study.
        configuration: a digest of the configuration.
        name: what Optuna calls the study.
        version: of this format.
        maximize: the greatest value of the criterion is the best.
        track: what `--track` says, `TYPE:TARGET` each.
        withheld: the attributes that lost users, passwords or queries of URLs when the plan was kept.
    """

    words: tuple[str, ...]
    sampler: str
    pruner: str
    trials: int
    seed: int
    criterion: str
    storage: str
    configuration: str
    name: str
    version: int = VERSION
    maximize: bool = False
    track: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()

    @property
    def space(self) -> Space:
        """The choices."""
        return read_words(self.words)

    @property
    def needs_optuna(self) -> bool:
        """True if Optuna keeps the trials; otherwise the folder does."""
        return self.sampler not in (GRID, RANDOM) or self.pruner != NO_PRUNER or bool(self.storage)

    def points(self) -> Points | None:
        """Return the values of trials by their numbers; None: a sampler of Optuna chooses them."""
        check_trials(self.trials)
        if self.sampler == GRID:
            return Grid(self.space)
        return Draws(self.space, self.trials, self.seed) if self.sampler == RANDOM else None

    def checked(self) -> Plan:
        """Return the plan itself.

        Raises:
            TypeError: an attribute has another type.
            ValueError: a sampler or a pruner is not known, or a number is out of its bounds.
        """
        values = asdict(self)
        texts = ("sampler", "pruner", "criterion", "storage", "configuration", "name")
        if any(type(values[name]) is not str for name in texts) or any(
            type(values[n]) is not int for n in ("trials", "seed")
        ):
            raise TypeError
        if type(self.maximize) is not bool:
            raise TypeError
        if self.sampler not in SAMPLERS or self.pruner not in PRUNERS or not 0 <= self.trials <= MOST_TRIALS:
            raise ValueError
        return self

    def to_json(self) -> str:
        """Return the plan as text, without users, passwords and queries of URLs."""
        values = asdict(self) | {"words": list(self.words), "track": list(self.track)}
        kept = shareable(values)
        kept["withheld"] = sorted(
            {*self.withheld, *(name for name in values if name in SECRET and kept[name] != values[name])}
        )
        if not kept["withheld"]:
            del kept["withheld"]
        return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def of_json(text: str, where: str) -> Plan:
        """Return the plan that a text holds.

        Raises:
            UserError: it is none.
        """
        try:
            got = cast("dict[str, Any]", json.loads(text))
            version = got.get("version")
            if version == VERSION:
                words, withheld, track = (tuple(map(str, got.pop(name, ()))) for name in ("words", "withheld", "track"))
                return Plan(words=words, withheld=withheld, track=track, **got).checked()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            version = None
        reason = f"is of version {version}, this program knows {VERSION}" if version else "is no plan of a sweep"
        raise UserError("BadFile", f"{where} {reason}", hint="give another folder with --out")


def digest(root: ConfigParameters) -> str:
    """Return a digest that is the same for configurations with equal values; secrets of URLs do not count."""
    return hashlib.sha256(masked(Export(root, on_error=str).flat()).encode()).hexdigest()[:16]


def load_plan(folder: Path) -> Plan | None:
    """Return the plan of a folder; None: there is none.

    Raises:
        UserError: the file is no plan, or cannot be read.
    """
    try:
        return Plan.of_json(read_input(folder / NAME).decode(), str(folder / NAME))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("CannotRead", f"cannot read {folder / NAME}: {error}") from None


def save_plan(folder: Path, plan: Plan) -> None:
    """Write the plan of a folder.

    Raises:
        UserError: it cannot be written.
    """
    try:
        with atomic_write(folder / NAME, "w") as file:
            file.write(plan.to_json())
    except OSError as error:
        raise UserError("CannotWrite", not_written(error, folder / NAME)) from None


def check_same(previous: Plan, now: Plan, where: str) -> None:
    """Check that a sweep is the one that began there. The number of trials may have changed, except for a grid.

    Raises:
        ConfigError: it is another one.
    """
    names = {
        "words": "its words", "sampler": "--sampler", "pruner": "--pruner", "seed": "--seed",
        "criterion": "--criterion", "storage": "--storage", "maximize": "--maximize",
        "configuration": "its configuration",
    }  # fmt: skip
    kept, asked = (shareable(asdict(plan)) for plan in (previous, now))
    differences = [said for name, said in names.items() if kept[name] != asked[name]]
    if not differences:
        return
    message = f"another sweep has begun in {where}; it differs in {_listed(differences)}"
    hint = "give this one another folder with --out"
    if differences == [names["configuration"]]:
        hint += ", or undo the change to go on with it"
    raise ConfigError("OtherSettings", message, None, hint, [f"it began with: {masked(' '.join(previous.words))}"])


def check_whole(plan: Plan, where: str) -> None:
    """Check that nothing of a plan that was kept is withheld from another process.

    Raises:
        ConfigError: credentials of URLs are.
    """
    if not plan.withheld:
        return
    words = "words" in plan.withheld
    message = (
        f"{'the words' if words else '--storage'} of the sweep in {where} had a URL with a user, password or query"
    )
    message += ", which is not kept"
    hint = "keep credentials where fsspec or the database's client look for them, such as variables of the environment"
    other_text = "give the words of the sweep again" if words else "join it with --join URL"
    raise ConfigError("MissingParameter", message, None, f"{other_text}; or {hint}")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
