"""Everything that the rules find in a configuration which has been read: for `check`, and for the start of a run."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.commands.actions.train import TrainParameters
from cntkpy.commands.catalogue.section_map import TopLevel, Use, import_modules, section_map
from cntkpy.commands.checks.dollars import dollar_problems, with_variables
from cntkpy.commands.checks.files import (
    RECORDS,
    file_problems,
    foreign_texts,
    missing_inputs,
    unwritable_outputs,
)
from cntkpy.commands.checks.findings import Finding, diagnostics_of
from cntkpy.commands.checks.models import Models, whole_path
from cntkpy.commands.checks.names import name_problems, shadow_problems
from cntkpy.commands.checks.networks import computed_networks, network_problems
from cntkpy.commands.checks.overwritten import overwritten_inputs, overwritten_logs
from cntkpy.commands.checks.records import record_problems
from cntkpy.commands.checks.repeated import repeated_problems
from cntkpy.commands.checks.rules import command_problems, idle_problems, precision_of
from cntkpy.commands.checks.scan import trains
from cntkpy.commands.checks.values import open_values, value_problems
from cntkpy.commands.context.root import RootParameters, check_deprecated, check_precision
from cntkpy.commands.projects.places import find_project

if TYPE_CHECKING:
    from cntkpy.commands.projects.project import Project

HIDDEN_HINTS = ("CK040", "CK060")
"""Hints that a run does not show: a longer schedule is meant for more epochs, and other files need not be there."""

MISSING = ("FileNotFound", "MissingFile", "MissingInput")
"""Kinds that say the same of one place."""


def look(
    root: ConfigParameters,
    *,
    data: bool = False,
    modules: bool = False,
    records: int = RECORDS,
    cut: set[str] | None = None,
) -> list[Diagnostic]:
    """Return the problems of a configuration, each place once: the warnings of reading it first.

    Errors are what ends a run before its first command. What it does not read is a warning at most: commands that
    `command` does not list, and values that nothing takes, which a run reads only to print them (`traceLevel` above 0).

    Args:
        root: the configuration.
        data: the data are here: files that a run needs must be there, and their first records are read.
        modules: import the modules that readers name, for their declarations.
        records: records of each file that are read.
        cut: gets the names of files, and paths of readers, that have more than was read.
    """
    top = section_map(root)
    imported = list(import_modules(top)) if modules else []
    read = [*_root_problems(top), *_problems(top, top, here=data)]
    needed = list(missing_inputs(_listed_part(top))) if data else []
    wrong: set[int] = set()
    files = list(file_problems(top, data, records, wrong))
    if data and not any(diagnostic.severity == "error" for diagnostic in imported):
        networks = functools.cache(lambda: computed_networks(top))
        files += record_problems(
            _listed_part(top), precision_of(root), records, modules, lambda use: id(use) in wrong, networks, cut
        )
    different = distinct([*_values(top, read), *imported, *read, *idle_problems(top), *needed, *files])
    return [*root.warnings, *with_variables(different, top)]


def _values(top: TopLevel, read: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield errors in the texts of all values; warnings where nothing reads them. `read`: the findings of a run."""
    try:
        printed = int(top.values.trace_level) > 0
    except ConfigError:
        printed = False  # found where values are read
    errors = [problem for problem in read if problem.severity == "error"]
    ends = {(problem.kind, text) for problem in errors for text in (str(problem.span), problem.message)}
    for problem in diagnostics_of(value_problems(top.section, {use.command: use.section for use in top.parts})):
        ends_run = printed or not ends.isdisjoint({(problem.kind, str(problem.span)), (problem.kind, problem.message)})
        yield problem if ends_run else replace(problem, severity="warning")


def look_before_run(top: TopLevel) -> list[Finding]:
    """Return the findings of the commands that `command` lists, and the contracts of the project that are broken.

    Nothing else of the configuration is going to be read.
    """
    findings, project = _found(top, _listed_part(top)), _project_of(top.section)
    if project is None:
        return findings
    from cntkpy.commands.checks.contracts import broken_contracts, without_contracted

    broken = broken_contracts(top.section, project)
    kept = {id(diagnostic) for diagnostic in without_contracted(top.section, project, [f.diagnostic for f in findings])}
    findings = [finding for finding in findings if id(finding.diagnostic) in kept]
    return findings + [finding for finding in map(Finding.of, broken) if not finding.ignored()]


def _project_of(root: ConfigParameters) -> Project | None:
    """Return the project of the layers of a configuration; None without one, or with one that cannot be read."""
    files = list(root.files())
    try:
        return find_project(files[-1].parent) if files else None
    except ConfigError:
        return None  # it does not say which files make this run


def is_wrong(top: TopLevel, command: str) -> bool:
    """Return whether one command, looked at alone, has an error."""
    alone = replace(top, parts=[use for use in top.parts if use.command.lower() == command.lower()])
    return any(finding.severity == "error" for finding in _found(top, alone))


def _found(everything: TopLevel, top: TopLevel) -> list[Finding]:
    """Return the findings of a run for the commands of `top`, without those that comments in the files switch off."""
    wrong = [*_root_problems(top), *_problems(everything, top, here=True), *missing_inputs(top)]
    different = with_variables(distinct(wrong), top)
    is_joined = len(top.section.files()) > 1
    findings = map(Finding.of, without_root(top.section, different) if is_joined else different)
    return [
        finding
        for finding in findings
        if not finding.ignored() and (finding.rule.code not in HIDDEN_HINTS or finding.severity == "error")
    ]


def without_root(root: ConfigParameters, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings of a composition without the name of the last layer, in which they need not be (U1).

    Args:
        root: The configuration.
        diagnostics: Its findings.
    """
    name = re.compile(rf"(?<![\w./]){re.escape(root.path)}:(?!\d)")
    return [
        replace(diagnostic, message=name.sub("", diagnostic.message)) if name.search(diagnostic.message) else diagnostic
        for diagnostic in diagnostics
    ]


def _listed_part(everything: TopLevel) -> TopLevel:
    """Return the commands that are going to run."""
    return replace(everything, parts=list(filter(everything.runs, everything.parts)))


def _root_problems(top: TopLevel) -> Iterator[Diagnostic]:
    parameters = top.values
    yield from parameters.problems()
    tests = (
        lambda: check_precision(parameters),
        lambda: check_deprecated(parameters),
        lambda: _check_trackers(parameters),
    )
    for test in tests:
        try:
            test()
        except ConfigError as error:
            yield error.diagnostic


def _check_trackers(parameters: RootParameters) -> None:
    """Check that the trackers of the top level exist; only a run needs their packages."""
    tracking = parameters.tracking
    if tracking is None:
        return
    from cntkpy.commands.tracking.tracker import check_name

    for name in tracking.type:
        check_name(str(name), name.span)


def _problems(everything: TopLevel, top: TopLevel, *, here: bool) -> Iterator[Diagnostic]:
    """Report the problems of the commands of `top`; `everything` also has the commands that are not checked.

    `here`: whether files that are missing are errors.
    """
    root, listed = top.section, _listed_part(top)
    yield from command_problems(top)
    yield from name_problems(everything, top)
    yield from shadow_problems(root)
    yield from repeated_problems(top)
    yield from dollar_problems(root, top)
    yield from foreign_texts(root, top)
    yield from unwritable_outputs(top.values, top, listed)
    if everything is top:  # a run has looked before it opened its log
        yield from overwritten_logs(top)
    yield from itertools.chain.from_iterable(map(overwritten_inputs, top.parts))
    yield from diagnostics_of(open_values(root, listed))
    yield from _networks_to_build(top, before_run=everything is not top, here=here)


def _networks_to_build(top: TopLevel, *, before_run: bool, here: bool) -> Iterator[Diagnostic]:
    """Report the problems of the networks that a run builds: a training that resumes from a model builds none.

    `before_run`: options that CNTK ignores are none of the findings, and models that are there are looked at.
    """

    def builds(use: Use, models: Models) -> bool:
        resumes = trains(use) and _resumes(use)
        return not resumes or not (models.may_resume(_own_file(use)) or (before_run and _has_model(use)))

    yield from network_problems(top, strict=not before_run, here=here, looks_at=builds)


def _resumes(use: Use) -> bool:
    """Return whether a training continues with a model that is there."""
    try:
        return TrainParameters(use.section).make_mode
    except ConfigError:
        return False


def _has_model(use: Use) -> bool:
    """Return whether a file of the training is there, with which it continues."""
    is_own = _own_file(use)
    try:
        p = TrainParameters(use.section)
        folder = Path(str(p.sgd.model_path)).parent
        return any(is_own(str(path)) for path in folder.iterdir())
    except (ConfigError, OSError):
        return False


def _own_file(use: Use) -> Callable[[str], bool]:
    """Return a function that tells the files of a training: the model and those of its epochs."""
    try:
        model = whole_path(str(TrainParameters(use.section).sgd.model_path))
    except ConfigError:
        return lambda path: False
    pattern = re.compile(re.escape(model) + r"(\.[0-9]+)?")
    return lambda path: pattern.fullmatch(whole_path(path)) is not None


def distinct(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics, without those that repeat an earlier one in other words."""
    seen = _Seen()
    return [diagnostic for diagnostic in diagnostics if seen.is_new(diagnostic)]


@dataclass
class _Seen:
    """Findings so far, by what makes another finding a repetition."""

    places: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    builders: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """File and line of the builders that are not known."""
    cycles: set[frozenset[str]] = field(default_factory=set[frozenset[str]])
    missing: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The sections in which a parameter is missing, by its name."""

    def is_new(self, diagnostic: Diagnostic) -> bool:
        """Return whether nothing before says the same; it is remembered."""
        span = diagnostic.span
        place = (span.source.name, span.line, span.column, span.length) if span is not None else diagnostic.message
        line = (span.source.name, span.line) if span is not None else ("", 0)
        kind = MISSING[0] if diagnostic.kind in MISSING else diagnostic.kind
        if (kind, place) in self.places or (diagnostic.kind == "UnknownParameter" and line in self.builders):
            return False
        if diagnostic.kind == "VariableCycle":
            cycle = frozenset(word.lower() for word in diagnostic.message.split() if word.startswith("$"))
            if cycle in self.cycles:
                return False
            self.cycles.add(cycle)
        if diagnostic.kind == "MissingParameter":  # `f:train:SGD:x` repeats `f:train:x`
            outer, _, name = diagnostic.message.split(" ")[0].rpartition(":")
            known = self.missing.setdefault(name, set())
            if any(around in known for around in itertools.accumulate(outer.split(":"), "{}:{}".format)):
                return False
            known.add(outer)
        if diagnostic.kind == "UnknownBuilder":
            self.builders.add(line)
        self.places.add((kind, place))
        return True
