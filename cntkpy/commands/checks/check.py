"""`cntkpy check`: what is wrong with configurations, found without running anything."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.cntk_config.base.kinds import RULES
from cntkpy.cntk_config.base.systems import cores
from cntkpy.cntk_config.command_line import load_with
from cntkpy.commands.checks import output as check_output
from cntkpy.commands.checks.files import RECORDS
from cntkpy.commands.checks.findings import Finding, selects
from cntkpy.commands.checks.look import look, without_root
from cntkpy.commands.checks.merging import Causes, Result, merged, placed, suites, without_project
from cntkpy.commands.checks.scripts import is_ndl, is_script, ndl_findings, script_findings
from cntkpy.commands.checks.targets import Target, Targets
from cntkpy.commands.console import has_colours
from cntkpy.commands.context import processes
from cntkpy.commands.projects.places import NAME, find_project
from cntkpy.commands.words import OPEN, is_config_word, same_directory

if TYPE_CHECKING:
    from cntkpy.commands.checks.contracts import Unmet
    from cntkpy.commands.checks.corrections import Correction
    from cntkpy.commands.projects.project import Project

EXIT_WARNINGS, EXIT_ERRORS = 1, 2
CONFIGS_PER_PROCESS = 25
"""Configurations that are worth a process of their own."""
MAX_ROUNDS = 8
"""Rounds of corrections: what is corrected lets `check` see further."""
DAMAGE = ("CK00", "CK03")
"""Beginnings of codes that no correction may bring in: errors of syntax, values that are lost."""
_Key = tuple[str, str, str]
MOST_SKIPPED = 5
"""Files that are named as skipped; the others are counted."""


@dataclass(frozen=True)
class CheckOptions:
    """The findings that are wanted, and what is looked at."""

    select: str = ""
    """Codes or beginnings of codes, with commas: only these findings. Empty: all."""
    ignore: str = ""
    """Findings to leave out."""
    strict: bool = False
    """Make every finding an error."""
    data: bool = False
    """Read the first records of the data."""
    records: int = RECORDS
    modules: bool = False
    """Import the modules that readers name, for their declarations."""
    open_: bool = False
    """Leave out variables that are not given."""
    statistics: bool = False
    """Print numbers of findings in place of the findings."""
    fix: bool = False
    """Correct what is certain."""
    show_diff: bool = False
    """Print the corrections, write nothing."""


def check(words: list[str], quiet: bool, form: str, options: CheckOptions) -> int:
    """Check the configurations that `words` name; print the findings; return the exit status.

    Args:
        words: Configurations, folders of them, and overrides.
        quiet: Leave out notes and the last line.
        form: The form of the output, as in `--format`.
        options: The findings that are wanted.

    Returns:
        0 without findings or with hints only, 1 with warnings, 2 with errors.
    """
    for option, codes in (("--select", options.select), ("--ignore", options.ignore)):
        _check_codes(option, codes)
    if options.show_diff and not options.fix:
        raise click.UsageError("--diff goes with --fix.")
    skipped: list[str] = []
    targets = Targets(skipped)
    try:
        chosen = targets.of(words)
    except ConfigError as error:  # of a project file that cannot be read
        chosen, results = [], [([""], [Finding.of(error.diagnostic)])]
    else:
        results = [([NAME], list(map(Finding.of, project.problems))) for project in targets.projects.values()]
        results = [(line, problems) for line, problems in results if problems]
    if skipped and not quiet:
        shown = ", ".join(skipped[:MOST_SKIPPED]) + ", ..." * (len(skipped) > MOST_SKIPPED)
        print(f"note: {len(skipped)} skipped, no command and no action is in them: {shown}", file=sys.stderr)
    if options.fix:
        from cntkpy.commands.checks.corrections import difference, write_texts

        texts, is_clean = _corrected(chosen, options, targets)
        if not texts and not quiet:
            advice = "no finding can be corrected with certainty; `cntkpy check` shows them"
            print("there is nothing to correct" if is_clean else advice, file=sys.stderr)
        if options.show_diff:
            sys.stdout.write(difference(texts))
            return EXIT_WARNINGS if texts else 0
        write_texts(texts)
        for path in texts:
            print(f"corrected {os.path.relpath(path)}", file=sys.stderr)
    several = list(_all_findings(chosen, options))
    results = _of_projects(results, targets, chosen, several, options)
    results += _of_configurations(chosen, several, form)
    if options.statistics:
        sys.stdout.write(check_output.statistics(results))
    else:
        is_cut = any(looked.cut for looked in several)
        colours = has_colours(sys.stdout)
        sys.stdout.write(check_output.write(results, form, quiet, colours, options.records if is_cut else None))
    severities = {finding.severity for _, result in results for finding in result}
    return EXIT_ERRORS if "error" in severities else EXIT_WARNINGS if "warning" in severities else 0


def _of_projects(
    results: list[tuple[list[str], list[Finding]]],
    targets: Targets,
    chosen: list[Target],
    several: list[Looked],
    options: CheckOptions,
) -> list[tuple[list[str], list[Finding]]]:
    """Return the errors of project files, and where all runs are checked what has no effect in them.

    Args:
        results: The errors, for each project file.
        targets: The projects.
        chosen: The configurations.
        several: Their findings.
        options: The findings that are wanted.
    """
    for project in targets.whole:
        unused = list(project.unmatched())
        runs = [looked for target, looked in zip(chosen, several, strict=True) if target.project is project]
        if runs and not project.problems:
            from cntkpy.commands.checks.contracts import unused_contracts

            unused += unused_contracts(project, [looked.contracts for looked in runs])
        findings = [finding for finding in map(Finding.of, unused) if _is_wanted(finding, options, project)]
        if findings:
            strict = options.strict or project.strict
            results.append(([NAME], [finding.as_error() if strict else finding for finding in findings]))
    return results


def _of_configurations(
    chosen: Sequence[Target], several: Sequence[Looked], form: str
) -> list[tuple[list[str], list[Finding]]]:
    """Return the findings of configurations, those of one cause as one; JUnit's form has them for each run."""
    causes: dict[int, Causes] = {}
    grouped: list[Result] = []
    for target, looked in zip(chosen, several, strict=True):
        result = looked.findings
        if target.run is not None and target.project is not None:
            cause = causes.setdefault(id(target.project), Causes(target.project))
            result = cause.grouped(target.run, result)
        grouped.append((target, result))
    grouped = without_project(grouped)
    return suites(grouped) if form == "junit" else [(target.line, result) for target, result in merged(grouped)]


def _corrected(chosen: list[Target], options: CheckOptions, targets: Targets) -> tuple[Mapping[str, str], bool]:
    """Return the new texts of files, by path, with the corrections that are certain; True if there are no findings."""
    from cntkpy.commands.checks.corrections import accepted, corrections

    folders = [Path.cwd().resolve(), *(project.folder for project in targets.projects.values())]
    texts: Mapping[str, str] = {}
    present: list[Finding] = []
    for _ in range(MAX_ROUNDS):
        present = _findings_with(texts, chosen, options)
        known = Counter(map(_text_of, present))

        def is_better(several: Sequence[Correction], new: Mapping[str, str], known: Counter[_Key] = known) -> bool:
            now = Counter(map(_text_of, _findings_with(new, chosen, options)))
            is_readable = not any(code.startswith(DAMAGE) for code, _, _ in now - known)
            return is_readable and all(now[key] < known[key] for key in (_text_of(item.finding) for item in several))

        new = accepted(corrections(present, folders), texts, is_better)
        if new == texts:
            break
        texts = new
    return texts, not present


def _findings_with(texts: Mapping[str, str], chosen: list[Target], options: CheckOptions) -> list[Finding]:
    """Return the findings of all configurations, with texts in place of files."""
    result: list[Finding] = []
    for target in chosen:
        with same_directory():
            result += findings(target.line, options, None, target.project, texts)
    return result


def _text_of(finding: Finding) -> _Key:
    """Return the parts of a finding that stay when the text in front of it changes."""
    from cntkpy.commands.checks.output.places import PLACES

    return finding.rule.code, finding.diagnostic.kind, PLACES.sub("", finding.diagnostic.message)


def folders_of() -> list[Path]:
    """Return the folder whose files are watched: that of the project, or the current one."""
    project = find_project(Path())
    here = Path.cwd()
    if project is None or project.folder in (here.resolve(), *here.resolve().parents):
        return [project.folder if project is not None else here]
    return [here, project.folder]


def _check_codes(option: str, codes: str) -> None:
    """Require that every word of an option selects the code of some finding."""
    for word in filter(None, (word.strip() for word in codes.split(","))):
        if not any(selects(word, rule.code) for rule in RULES):
            raise click.UsageError(f"{option}: no finding has the code '{word}'; `cntkpy list findings` shows all.")


@dataclass
class Looked:
    """The result of looking at one configuration.

    Attributes:
        findings: Its findings.
        cut: The data of which only the beginning was read.
        contracts: Contracts of the project for which it has no value, by path: the path that is meant, or "".
    """

    findings: list[Finding]
    cut: set[str]
    contracts: dict[tuple[str, ...], Unmet]


def _all_findings(targets: list[Target], options: CheckOptions) -> Iterator[Looked]:
    """Yield the findings of every configuration. Many configurations are shared out among processes."""
    work = functools.partial(_findings_here, options=options)
    several = min(cores.count(), len(targets) // CONFIGS_PER_PROCESS)
    if several < 2:
        yield from map(work, targets)
        return
    from concurrent.futures import ProcessPoolExecutor

    with processes.safe_path(), ProcessPoolExecutor(several) as pool:
        yield from pool.map(work, targets, chunksize=8)


def _findings_here(target: Target, options: CheckOptions) -> Looked:
    looked = Looked([], set(), {})
    with same_directory():
        looked.findings = findings(target.line, options, looked.cut, target.project, contracts=looked.contracts)
    if target.run is not None:
        looked.findings = [
            finding._replace(diagnostic=placed(target.run, target.line, finding.diagnostic))
            for finding in looked.findings
        ]
    return looked


def findings(
    words: list[str],
    options: CheckOptions = CheckOptions(),
    cut: set[str] | None = None,
    project: Project | None = None,
    texts: Mapping[str, str] | None = None,
    contracts: dict[tuple[str, ...], Unmet] | None = None,
) -> list[Finding]:
    """Return all findings of one configuration, in the order of the text, each place once; or of a script.

    Args:
        words: The classic command line.
        options: The findings that are wanted.
        cut: Gets the data of which only the beginning was read.
        project: The project of the configuration, which adds contracts and leaves out findings.
        texts: Texts of an editor in place of files, by canonical path.
        contracts: Gets the contracts of the project for which there is no value.
    """
    name = words[0].partition("=")[2] or words[0]
    if len(words) == 1 and is_script(name):
        return script_findings(name)
    if len(words) == 1 and is_ndl(name):
        return ndl_findings(name)
    configurations = [word for word in words if is_config_word(word)]
    is_joined = len(configurations) > 1 or any("+" in word for word in configurations)
    return findings_of(lambda: load_with(words, texts or {}), options, cut, project, is_joined, contracts)


def findings_of(
    read: Callable[[], ConfigParameters],
    options: CheckOptions = CheckOptions(),
    cut: set[str] | None = None,
    project: Project | None = None,
    is_joined: bool = False,
    contracts: dict[tuple[str, ...], Unmet] | None = None,
) -> list[Finding]:
    """Return the wanted findings of the configuration that `read` returns, in the order of the text.

    Args:
        read: Returns the configuration.
        options: The findings that are wanted.
        cut: Gets the data of which only the beginning was read.
        project: The project of the configuration, which adds contracts and leaves out findings.
        is_joined: Several layers make the configuration; the last one, its name, is left out of messages (U1).
        contracts: Gets the contracts of the project for which there is no value.
    """
    diagnostics = _diagnostics(read, options, cut, project, is_joined, contracts)
    wanted = [finding for finding in map(Finding.of, diagnostics) if _is_wanted(finding, options, project)]
    wanted.sort(key=lambda finding: finding.place)
    strict = options.strict or (project is not None and project.strict)
    return [finding.as_error() for finding in wanted] if strict else wanted


def _is_wanted(finding: Finding, options: CheckOptions, project: Project | None) -> bool:
    """Return True if neither the options, nor a comment, nor the project leave a finding out."""
    return (
        (not options.select or selects(options.select, finding.rule.code))
        and not (options.ignore and selects(options.ignore, finding.rule.code))
        and not (options.open_ and finding.diagnostic.kind in OPEN)
        and not finding.ignored()
        and not (project is not None and project.is_ignored(finding.diagnostic.span, finding.rule.code))
    )


def _diagnostics(
    read: Callable[[], ConfigParameters],
    options: CheckOptions,
    cut: set[str] | None,
    project: Project | None,
    is_joined: bool,
    contracts: dict[tuple[str, ...], Unmet] | None,
) -> list[Diagnostic]:
    try:
        root = read()
    except ConfigError as error:
        return [error.diagnostic]
    looked = functools.partial(look, root, data=options.data, records=options.records, cut=cut)
    if project is None:
        result = looked(modules=options.modules)
    else:
        from cntkpy.commands.checks.contracts import broken_contracts, unmet, without_contracted

        if contracts is not None:
            contracts.update(unmet(root, project))
        broken = broken_contracts(root, project)
        modules = options.modules and not any(problem.kind == "ModuleNotAllowed" for problem in broken)
        result = [*without_contracted(root, project, looked(modules=modules)), *broken]
    return without_root(root, result) if is_joined else result
