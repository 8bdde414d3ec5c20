"""Everything that the rules find in a configuration which has been read: for `check`, and for the start of a run."""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cntk_config import ConfigError, ConfigParameters
from cntk_config.base.diagnostics import Diagnostic
from commands.actions.train import TrainParameters
from commands.catalogue.dispatch import names_of
from commands.catalogue.section_map import Use, import_modules, section_map
from commands.checks.dollars import dollar_problems, with_variables
from commands.checks.files import file_problems, foreign_texts, missing_inputs, outputs, unwritable_outputs
from commands.checks.findings import Finding, diagnostics_of
from commands.checks.models import runs_script
from commands.checks.names import name_problems, shadow_problems
from commands.checks.networks import input_axes, network_problems
from commands.checks.repeated import repeated_problems
from commands.checks.rules import command_problems, idle_problems
from commands.checks.scan import TRAINING
from commands.checks.values import value_problems
from commands.context.root import RootParameters, check_deprecated, check_precision, listed_commands

QUIET = ("CK040", "CK060")
"""Hints that a run does not show: a longer schedule is meant for more epochs, and missing inputs are errors."""

TOLERATED = ("CK035", "CK055")
"""Errors of `check` that a run warns about: half a value behind a comma; an input, which may not be needed."""
OTHER_MODELS = frozenset(name for action in ("edit", "SVD", "adapt", "bnstat") for name in names_of(action))
"""Actions that write models beside the training's own, perhaps one with which a training goes on."""


def look(root: ConfigParameters, *, data: bool = False, modules: bool = False) -> list[Diagnostic]:
    """What is wrong with a configuration, each place once: the warnings of reading it first.

    Args:
        root: the configuration.
        data: look at the first lines of the data, too.
        modules: import the modules that readers name, for their declarations.
    """
    top = section_map(root)
    imported = list(import_modules(top)) if modules else []
    values = list(diagnostics_of(value_problems(root, {use.command: use.section for use in top.parts})))
    files = file_problems(top, data, functools.cache(lambda: input_axes(root, top)))
    wrong = [*_problems(root, top, top), *idle_problems(root, top)]
    found = distinct([*values, *_root_problems(root), *imported, *wrong, *files])
    return [*root.warnings, *with_variables(found, top)]


def look_before_run(root: ConfigParameters) -> list[Finding]:
    """What is wrong with the commands that `command` lists; nothing else of the configuration is going to be read.

    An input file that is missing, and that no command before writes, is an error here.
    """
    everything = section_map(root)
    listed = listed_commands(root)
    top = replace(everything, parts=[use for use in everything.parts if use.command.lower() in listed])
    return _found(distinct([*_root_problems(root), *_problems(root, everything, top)]), top)


def is_wrong(root: ConfigParameters, command: str) -> bool:
    """Whether one command, looked at alone, has an error."""
    everything = section_map(root)
    alone = replace(everything, parts=[use for use in everything.parts if use.command.lower() == command.lower()])
    return any(one.severity == "error" for one in _found(_problems(root, everything, alone), alone))


def _found(diagnostics: Iterable[Diagnostic], top: Use) -> list[Finding]:
    """The findings of a run for what is wrong with the commands of `top`, and for the files that they miss."""
    found = [_at_start(Finding.of(one)) for one in with_variables(diagnostics, top)]
    missing = [replace(Finding.of(one), severity="error") for one in distinct(missing_inputs(top))]
    return [one for one in found if one.rule.code not in QUIET or one.severity == "error"] + missing


def _at_start(finding: Finding) -> Finding:
    """What CNTK ran in spite of it is a warning at the start of a run."""
    return replace(finding, severity="warning") if finding.rule.code in TOLERATED else finding


def _root_problems(root: ConfigParameters) -> Iterator[Diagnostic]:
    parameters = RootParameters(root)
    yield from parameters.problems()
    for test in (lambda: check_precision(parameters), lambda: check_deprecated(root)):
        try:
            test()
        except ConfigError as error:
            yield error.diagnostic


def _problems(root: ConfigParameters, everything: Use, top: Use) -> Iterator[Diagnostic]:
    """What is wrong with the commands of `top`; `everything` has those that are not looked at, too."""
    yield from command_problems(root, top)
    yield from name_problems(everything, top)
    yield from shadow_problems(root)
    yield from repeated_problems(top)
    yield from dollar_problems(root, top)
    yield from foreign_texts(root, top)
    yield from unwritable_outputs(RootParameters(root), top)
    yield from _networks_to_build(root, top, before_run=everything is not top)


def _networks_to_build(root: ConfigParameters, top: Use, *, before_run: bool) -> Iterator[Diagnostic]:
    """What is wrong with the networks that a run builds: a training that goes on from a model builds none.

    `before_run`: options that CNTK ignores are none of the findings, and files are looked at.
    """
    anything, written = False, set[str]()

    def builds(use: Use) -> bool:
        nonlocal anything
        trains = bool(set(use.actions) & set(TRAINING))
        built = not trains or not (anything or any(map(_own_file(use), written)) or (before_run and _has_model(use)))
        if OTHER_MODELS & set(use.actions):
            written.update(outputs(use))
        anything = anything or use.open or runs_script(use)
        return built

    yield from network_problems(root, top, strict=not before_run, looks_at=builds)


def _has_model(use: Use) -> bool:
    """Whether a file of the training is there, with which it goes on."""
    own = _own_file(use)
    try:
        p = TrainParameters(use.section)
        folder = Path(str(p.sgd.model_path)).parent
        return p.make_mode and any(own(str(one)) for one in folder.iterdir())
    except (ConfigError, OSError):
        return False


def _own_file(use: Use) -> Callable[[str], bool]:
    """Tells the files of a training, the model and those of its epochs."""
    try:
        model = os.path.normpath(str(TrainParameters(use.section).sgd.model_path))
    except ConfigError:
        return lambda path: False
    own = re.compile(re.escape(model) + r"(\.[0-9]+)?")
    return lambda path: own.fullmatch(os.path.normpath(path)) is not None


def distinct(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, without those that repeat an earlier one in other words."""
    seen = _Seen()
    return [one for one in diagnostics if seen.is_new(one)]


@dataclass
class _Seen:
    """What has been found so far, by what makes another finding a repetition."""

    places: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    builders: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """File and line of the builders that are not known."""
    cycles: set[frozenset[str]] = field(default_factory=set[frozenset[str]])
    missing: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The sections in which a parameter is missing, by its name."""

    def is_new(self, one: Diagnostic) -> bool:
        """Whether nothing before says the same; it is remembered."""
        span = one.span
        place = (span.source.name, span.line, span.column, span.length) if span is not None else one.message
        line = (span.source.name, span.line) if span is not None else ("", 0)
        if (one.kind, place) in self.places or (one.kind == "UnknownParameter" and line in self.builders):
            return False
        if one.kind == "VariableCycle":
            cycle = frozenset(word.lower() for word in one.message.split() if word.startswith("$"))
            if cycle in self.cycles:
                return False
            self.cycles.add(cycle)
        if one.kind == "MissingParameter":  # `f:train:SGD:x` repeats `f:train:x`
            outer, _, name = one.message.split(" ")[0].rpartition(":")
            known = self.missing.setdefault(name, set())
            if any(around in known for around in itertools.accumulate(outer.split(":"), "{}:{}".format)):
                return False
            known.add(outer)
        if one.kind == "UnknownBuilder":
            self.builders.add(line)
        self.places.add((one.kind, place))
        return True
