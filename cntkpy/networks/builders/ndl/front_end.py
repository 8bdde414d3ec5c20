"""The front end of the network description language (NDL): a script becomes a `Network`.

    text -> statements (`parse`) -> calls of functions (`expand`) -> nodes (`build`)

`build_ndl` starts from a section of a configuration (`source` finds the text), `parse_ndl` from a text.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.build import Builder, unsupported
from cntkpy.networks.builders.ndl.expand import Expander
from cntkpy.networks.builders.ndl.parse import Macro, Word
from cntkpy.networks.builders.ndl.recovery import statements_of
from cntkpy.networks.builders.ndl.scope import NodeCall
from cntkpy.networks.builders.ndl.source import Program, find_program, plain_document
from cntkpy.networks.builders.ndl.text import Document, Place, error
from cntkpy.networks.graph.dump import dump_nodes
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network, ValidatedNetwork

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters

__all__ = [
    "Document", "Program", "Session", "build_ndl", "build_program", "find_program", "parse_ndl", "plain_document",
]  # fmt: skip

log = logging.getLogger("cntkpy.networks")


def build_ndl(
    section: ConfigParameters,
    precision: str = "float",
    seeds: SeedCounter | None = None,
    *,
    strict: bool = False,
    diagnostics: list[Diagnostic] | None = None,
) -> ValidatedNetwork:
    """Return the network of an `NDLNetworkBuilder` section.

    Args:
        section: the section; names that it lacks are looked up in the sections around it.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: the counter of start values of the process; `randomSeedOffset` of the section is added.
        strict: an option that a function does not have is an error among the diagnostics, every time; otherwise it is
            a warning, once for each function.
        diagnostics: takes the warnings; without it they are logged.

    Raises:
        ConfigError: anything wrong with the script, with its place in the user's file.
        UserError: shapes that do not fit.
    """
    program = find_program(section)
    network = build_program(program, precision, seeds, strict=strict, diagnostics=diagnostics).validate()
    if program.dump is not None:
        dump_nodes(program.dump, network, network.nodes.values(), values=False)
    return network


def parse_ndl(
    text: str,
    name: str = "<ndl>",
    precision: str = "float",
    seeds: SeedCounter | None = None,
    *,
    network: Network | None = None,
    require_features: bool = True,
    strict: bool = False,
    diagnostics: list[Diagnostic] | None = None,
) -> Network:
    """Return the network of a script given as text; `$name$` in it is not replaced.

    Args:
        text: the script.
        name: how messages call it.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`; ignored with `network`.
        seeds: the counter of start values.
        network: add to this network; its nodes can be used by their full names.
        require_features: a script without a feature node is an error.
        strict: see `build_ndl`.
        diagnostics: see `build_ndl`.
    """
    program = Program([plain_document(text, name)], [])
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
    """Return the network of a program: the macros of its macro files, then its scripts one after the other in one
    scope.
    """
    seeds = seeds or SeedCounter()
    session = Session(network if network is not None else Network(precision), strict=strict)
    try:
        session.run(program, require_features=require_features)
        offset, seeds.offset = seeds.offset, seeds.offset + program.seed_offset
        try:
            session.initialise(seeds)
        finally:
            seeds.offset = offset
    finally:
        _report(session.warnings, diagnostics)
    if diagnostics is None:
        for diagnostic in session.warnings:
            if diagnostic.severity == "error":
                raise ConfigError(diagnostic.kind, diagnostic.message, diagnostic.span, diagnostic.hint)
    return session.network


class Session:
    """Builds a network piece by piece: a whole script, or the in-line NDL of model editing line by line.

        session = Session(network)
        session.add(document)       # constants and symbols stay known to what is added later
        session.connect()           # inputs and groups
        session.initialise(seeds)   # start values

    Args:
        network: the nodes go here; those that it holds can be used by their full names.
        strict: see `build_ndl`.
        macros: the macros known already; those of the scripts are added.
        errors: collects the errors of `run`; None: the first one is raised.
    """

    def __init__(
        self,
        network: Network,
        *,
        strict: bool = False,
        macros: dict[str, Macro] | None = None,
        errors: list[UserError] | None = None,
    ) -> None:
        functions = [name for kind in nodes.kinds() if not kind.unsupported for name in kind.names]
        self.network = network
        macros = {} if macros is None else macros
        self.expander = Expander(functions, _not_supported, macros, network.nodes)
        self.expander.expansion.errors = errors
        self.builder = Builder(network, self.expander.expansion, macros, strict)

    @property
    def warnings(self) -> list[Diagnostic]:
        """The diagnostics so far."""
        return self.expander.expansion.warnings

    def run(self, program: Program, *, require_features: bool = True) -> None:
        """Everything but start values: the macros, the scripts one after the other in one scope, the nodes of them."""
        for document in program.macros:
            self.define_macros(document)
        for document in program.scripts:
            self.read(document)
        self.create()
        self.connect()
        if require_features and not self.expander.expansion.errors and not self.network.groups["feature"]:
            message = "invalid or nonexistent group featureNodes: no node is a feature"
            hint = "add FeatureNodes = (name of the input) or the option tag=feature"
            raise error("NoFeatureNode", message, Place(program.scripts[-1], 0, 1), hint)

    def define_macros(self, document: Document) -> None:
        """Take the macros of a text; its other statements have no effect."""
        self.expander.define_macros(statements_of(document, self.expander.expansion))

    def read(self, document: Document) -> None:
        """Expand a text, without making nodes yet."""
        self.expander.run(statements_of(document, self.expander.expansion))

    def create(self) -> None:
        """Make the nodes of what was read, without inputs."""
        self.builder.create()

    def add(self, document: Document) -> None:
        """Read a text and make its nodes. Names of nodes that were removed from the network are free again."""
        symbols = self.expander.expansion.top.symbols
        for key, symbol in list(symbols.items()):
            node = self.builder.made.get(symbol.value) if isinstance(symbol.value, NodeCall) else None
            if node is not None and self.network.nodes.get(node.name) is not node:
                del symbols[key]
        self.read(document)
        self.create()

    def connect(self) -> None:
        """Attach the inputs of the nodes made so far, and fill the groups."""
        self.builder.connect()

    def initialise(self, seeds: SeedCounter) -> None:
        """Give the new parameters their start values."""
        self.builder.initialise(seeds)


def _not_supported(function: Word) -> ConfigError | None:
    """Return the error for a function that is known, but cannot be made."""
    kind = nodes.find(function.text)
    return unsupported(function, kind) if kind is not None and kind.unsupported else None


def _report(problems: list[Diagnostic], diagnostics: list[Diagnostic] | None) -> None:
    """Hand over what was noticed, or log it."""
    if diagnostics is not None:
        diagnostics.extend(problems)
        return
    for diagnostic in problems:
        log.warning("%s", diagnostic.one_line() + (f" ({diagnostic.hint})" if diagnostic.hint else ""))
