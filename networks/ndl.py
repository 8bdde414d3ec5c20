"""The front end of the network description language (NDL): a script becomes a `Network`.

    text -> statements (ndl_parse) -> calls of functions (ndl_expand) -> nodes (ndl_build)

`build_ndl` starts from a section of a configuration (ndl_source finds the text), `parse_ndl` from a text.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cntk_config.diagnostics import ConfigError, Diagnostic
from networks import nodes
from networks.initialize import SeedCounter
from networks.ndl_build import Builder, unsupported
from networks.ndl_expand import Expander
from networks.ndl_parse import Word, parse_document
from networks.ndl_source import Program, find_program, plain_document
from networks.ndl_text import Document, Place
from networks.network import Network

if TYPE_CHECKING:
    from cntk_config import ConfigParameters

__all__ = ["Builder", "Document", "Program", "build_ndl", "build_program", "find_program", "parse_ndl"]

log = logging.getLogger("cntkpy.networks")


def build_ndl(
    section: ConfigParameters,
    precision: str = "float",
    seeds: SeedCounter | None = None,
    *,
    strict: bool = False,
    diagnostics: list[Diagnostic] | None = None,
) -> Network:
    """The network of an `NDLNetworkBuilder` section.

    Args:
        section: the section; names that it lacks are looked up in the sections around it.
        precision: "float" or "double".
        seeds: the counter of start values of the process; `randomSeedOffset` of the section is added.
        strict: an option that a function does not have is an error instead of a warning.
        diagnostics: takes the warnings; without it they are logged.

    Raises:
        ConfigError: anything wrong with the script, with its place in the user's file.
    """
    program = find_program(section)
    return build_program(program, precision, seeds, strict=strict, diagnostics=diagnostics)


def parse_ndl(
    text: str,
    name: str = "<ndl>",
    precision: str = "float",
    seeds: SeedCounter | None = None,
    *,
    macros: Iterable[str] = (),
    network: Network | None = None,
    require_features: bool = True,
    strict: bool = False,
    diagnostics: list[Diagnostic] | None = None,
) -> Network:
    """The network of a script given as text; `$name$` in it is not replaced.

    Args:
        text: the script.
        name: how messages call it.
        precision: "float" or "double"; ignored with `network`.
        seeds: the counter of start values.
        macros: texts of macro files.
        network: add to this network; its nodes can be used by their full names.
        require_features: a script without a feature node is an error.
        strict: see `build_ndl`.
        diagnostics: see `build_ndl`.
    """
    program = Program([plain_document(text, name)], [plain_document(macro, "<macros>") for macro in macros])
    return build_program(
        program,
        precision,
        seeds,
        network=network,
        require_features=require_features,
        strict=strict,
        diagnostics=diagnostics,
    )


def build_program(
    program: Program,
    precision: str = "float",
    seeds: SeedCounter | None = None,
    *,
    network: Network | None = None,
    require_features: bool = True,
    strict: bool = False,
    diagnostics: list[Diagnostic] | None = None,
) -> Network:
    """The network of a program: the macros of its macro files, then its scripts one after the other in one scope."""
    seeds = seeds or SeedCounter()
    result = network if network is not None else Network(precision)
    functions = [name for kind in nodes.kinds() if not kind.unsupported for name in kind.names]
    expander = Expander(functions, _not_supported)
    warnings: list[Diagnostic] = []
    try:
        for document in program.macros:
            statements, found = parse_document(document)
            warnings += found
            expander.define_macros(statements)
        for document in program.scripts:
            statements, found = parse_document(document)
            warnings += found
            expander.run(statements)
        whole = Place(program.scripts[-1], 0, 1)
        offset, seeds.offset = seeds.offset, seeds.offset + program.seed_offset
        try:
            Builder(result, expander.expansion, strict).build(seeds, whole if require_features else None)
        finally:
            seeds.offset = offset
    finally:
        _report(warnings + expander.expansion.warnings, diagnostics)
    return result


def _not_supported(function: Word) -> ConfigError | None:
    """The error for a function that is known, but cannot be made."""
    kind = nodes.find(function.text)
    return unsupported(function, kind) if kind is not None and kind.unsupported else None


def _report(warnings: list[Diagnostic], diagnostics: list[Diagnostic] | None) -> None:
    if diagnostics is not None:
        diagnostics.extend(warnings)
        return
    for diagnostic in warnings:
        log.warning("%s", diagnostic.one_line() + (f" ({diagnostic.hint})" if diagnostic.hint else ""))
