"""Contracts of a project whose values a configuration lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic, nearest, suggestion
from cntkpy.commands.catalogue.section_map import READER_ROLES, section_map
from cntkpy.commands.checks.values import looks_like_set
from cntkpy.commands.projects.contracts import Contract
from cntkpy.commands.projects.project import Project
from cntkpy.readers.parameters import ReaderParameters
from cntkpy.readers.registry import entry_of_reader

MIN_SIMILARITY = 0.75
"""Similarity of two paths, 0 to 1, from which one is meant by the other."""
MAX_DEPTH = 8
"""Sections inside sections whose values may be meant."""


class Unmet(NamedTuple):
    """A contract for which a configuration has no value.

    Attributes:
        meant: The path of a value that is most likely meant.
        is_parameter: True if the section of the contract has such a parameter, which is not given.
    """

    meant: str | None
    is_parameter: bool


def broken_contracts(root: ConfigParameters, project: Project) -> list[Diagnostic]:
    """Return the values that break contracts of a project, and the modules that it does not allow.

    Args:
        root: The configuration, after layering.
        project: Its project.
    """
    broken = [problem for contract in project.contracts for problem in contract.problems(root)]
    return [*broken, *_module_problems(root, project)] if project.modules is not None else broken


def _module_problems(root: ConfigParameters, project: Project) -> Iterator[Diagnostic]:
    """Yield the modules that sections name besides those that `modules` allows."""
    allowed = project.modules or ()
    for use in section_map(root).walk():
        if use.role not in READER_ROLES or not use.open:
            continue
        try:
            module = ReaderParameters.module.value(use.section)
            is_known = module is None or entry_of_reader(use.section) is not None
        except ConfigError:
            continue  # found where values are looked at
        if is_known or module is None or any(module == name or module.startswith(f"{name}.") for name in allowed):
            continue
        message = f"the module '{module}' is none of those that the project allows"
        hint = suggestion(str(module), allowed) or f'add "{module}" to modules in {project.text.source.name}'
        yield Diagnostic("ModuleNotAllowed", message, module.span, hint)


def unmet(root: ConfigParameters, project: Project) -> Iterator[tuple[tuple[str, ...], Unmet]]:
    """Yield the paths of contracts for which a configuration has no value.

    Args:
        root: The configuration, after layering.
        project: Its project.
    """
    for contract in project.contracts:
        if not contract.required and not contract.is_met(root):
            is_parameter = _is_parameter(root, contract)
            yield contract.path, Unmet(None if is_parameter else _meant(root, contract), is_parameter)


def _is_parameter(root: ConfigParameters, contract: Contract) -> bool:
    """Return True if the section of a contract may have the value."""
    try:
        section = root
        *steps, name = contract.path
        for step in steps:
            if not section.exists_current(step):
                return False
            section = section.section(step)
        uses = [use for use in section_map(root).walk() if use.section.path == section.path]
    except ConfigError:
        return False
    return any(use.parameter(name) is not None for use in uses)


def _meant(root: ConfigParameters, contract: Contract) -> str | None:
    """Return the path of a value that is most likely meant by a contract: one that ends alike, or the nearest one."""
    paths = list(_paths(root, (), 0))
    wanted = tuple(step.lower() for step in contract.path)
    for start in range(len(wanted)):
        ending = wanted[start:]
        alike = [path for path in paths if tuple(step.lower() for step in path[-len(ending) :]) == ending]
        if len(alike) == 1 and (len(ending) > 1 or len(wanted) == 1):
            return "/".join(alike[0])
    return nearest("/".join(contract.path), ["/".join(path) for path in paths], MIN_SIMILARITY)


def _paths(section: ConfigParameters, steps: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all values and sections."""
    for name in section.names():
        path = (*steps, name)
        yield path
        if depth < MAX_DEPTH and looks_like_set(section, name):
            with suppress(ConfigError):  # found where values are looked at
                yield from _paths(section.section(name), path, depth + 1)


def unused_contracts(
    project: Project, configurations: Sequence[Mapping[tuple[str, ...], Unmet]]
) -> Iterator[Diagnostic]:
    """Yield the contracts that are unmet in all configurations of a project.

    Args:
        project: The project.
        configurations: The contracts that are unmet, for each configuration.
    """
    for contract in project.contracts:
        several = [unmet[contract.path] for unmet in configurations if contract.path in unmet]
        if len(several) < len(configurations):
            continue
        path = "/".join(contract.path)
        if any(entry.is_parameter for entry in several):
            message = f"no run gives {path}: this contract checks nothing"
            yield Diagnostic("UnusedContract", message, contract.name_span, "add the value, or remove the contract")
            continue
        meant = next((entry.meant for entry in several if entry.meant is not None), None)
        hint = f"did you mean {meant}?" if meant is not None else "correct the path, or remove the contract"
        message = f"no run has {path}: this contract checks nothing"
        yield Diagnostic("UnusedContract", message, contract.name_span, hint, severity="warning")


def without_contracted(root: ConfigParameters, project: Project, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return findings without those of names at the top level that nothing reads but a contract.

    Args:
        root: The configuration.
        project: Its project.
        diagnostics: Its findings.
    """
    names = [contract.path[0] for contract in project.contracts if len(contract.path) == 1]
    spans = {entry.name_span for name in names if (entry := root.definition(name)) is not None}
    return [
        diagnostic for diagnostic in diagnostics if diagnostic.kind != "UnusedParameter" or diagnostic.span not in spans
    ]
