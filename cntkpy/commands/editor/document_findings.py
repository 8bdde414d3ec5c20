"""Findings of a document: by itself, or in the runs of a project that it is a layer of, one run after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.commands.checks.check import findings, findings_of
from cntkpy.commands.checks.contracts import Unmet, unused_contracts
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.merging import Causes, Result, merged, placed
from cntkpy.commands.checks.scripts import is_script, ndl_findings, script_findings
from cntkpy.commands.checks.targets import Target
from cntkpy.commands.editor import ndl
from cntkpy.commands.projects.places import NAME, PYPROJECT, TABLE, find_project
from cntkpy.commands.projects.project import Project, Run, load_project
from cntkpy.commands.words import same_directory

FIRST_SECONDS = 1.0
"""Time in which runs are checked before findings are shown; at least one run is."""
NAMES_SHOWN = 4
"""Runs that are named as not checked."""


def is_toml(name: str) -> bool:
    """Return True for a TOML file: a project file, or one of other programs, in which nothing is looked at."""
    return name.endswith(".toml")


class DocumentFindings:
    """Findings of `check` in the text of a document.

    Args:
        text: The text, as the editor has it.
        name: The path of the document.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._problems: Sequence[Diagnostic] = ()
        self._results: list[Result] = []
        self._contracts: list[dict[tuple[str, ...], Unmet]] = []
        self._is_project = is_toml(name)
        self.project = self._read_project()
        self.runs: list[Run] = self._runs()
        """Runs that the document is part of."""
        self._pending = list(self.runs)

    def _read_project(self) -> Project | None:
        path = Path(self._name)
        if not path.is_absolute() or (self._is_project and path.name not in (NAME, PYPROJECT)):
            return None
        try:
            if self._is_project:
                prefix = TABLE if path.name == PYPROJECT else ()
                project = load_project(path, prefix, self._text, self._name)
            else:
                project = find_project(path.parent)
        except ConfigError as error:
            if self._is_project:
                self._problems = [error.diagnostic]
            return None  # the document of the project file shows it
        except KeyError:
            return None  # pyproject.toml without our table
        self._problems = project.problems if project is not None and self._is_project else ()
        return project

    def _runs(self) -> list[Run]:
        if self.project is None:
            return []
        runs = self.project.runs if self._is_project else self.project.runs_of(Path(self._name))
        return [run for run in runs if run.is_complete]

    def advance(self, seconds: float = FIRST_SECONDS) -> None:
        """Check further runs: at least one, and no new one after some time.

        Args:
            seconds: The time.
        """
        end = time.monotonic() + seconds
        while self._pending:
            self._check(self._pending.pop(0))
            if time.monotonic() > end:
                return

    def _check(self, run: Run) -> None:
        line, unmet = run.command_line(absolute=True), dict[tuple[str, ...], Unmet]()
        texts = {} if self._is_project else {os.path.realpath(self._name): self._text}
        with same_directory():
            several = findings(line, project=self.project, texts=texts, contracts=unmet)
        several = [finding._replace(diagnostic=placed(run, line, finding.diagnostic)) for finding in several]
        if self._causes is not None:
            several = self._causes.grouped(run, several)
        self._results.append((Target(line, run, self.project), several))
        self._contracts.append(unmet)

    @cached_property
    def _causes(self) -> Causes | None:
        """Missing layers, which are shown at the lists of files of a project file."""
        return Causes(self.project) if self._is_project and self.project is not None else None

    @property
    def unchecked(self) -> str:
        """The runs that have not been checked yet, as a sentence; empty if all are."""
        if not self._pending:
            return ""
        names = ", ".join(run.name for run in self._pending[:NAMES_SHOWN])
        ending = ", ..." if len(self._pending) > NAMES_SHOWN else ""
        count, total = len(self._pending), len(self.runs)
        return f"{count} of {total} runs {'is' if count == 1 else 'are'} not checked yet: {names}{ending}"

    def findings(self) -> list[Finding]:
        """Return the findings of the runs that have been checked, each once; without runs those of the text."""
        if self._is_project:
            return [*map(Finding.of, self._problems), *self._of_runs(), *self._of_project()]
        if self.runs:
            return self._of_runs()
        return self._alone

    def _of_runs(self) -> list[Finding]:
        return [finding for _, several in merged(self._results) for finding in several]

    def _of_project(self) -> list[Finding]:
        """Return the entries of a project file without effect; contracts are known when all runs are checked."""
        project = self.project
        if project is None:
            return []
        unused = list(project.unmatched())
        if self.runs and not self._pending and not project.problems:
            unused += unused_contracts(project, self._contracts)
        return [
            finding
            for finding in map(Finding.of, unused)
            if not finding.ignored() and not project.is_ignored(finding.diagnostic.span, finding.rule.code)
        ]

    @cached_property
    def _alone(self) -> list[Finding]:
        if ndl.is_network(self._name):
            return ndl_findings(self._name, self._text)
        if is_script(self._name):
            return script_findings(self._name, self._text)
        if self.project is not None and not self.project.is_complete:
            return []  # any run may have it as a layer
        return findings_of(lambda: parse(self._text, self._name), project=self.project)
