"""The check of an NDLNetworkBuilder."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic, UserError
from cntkpy.networks.builders.check import CheckContext, CheckedNetwork
from cntkpy.networks.builders.ndl.front_end import Session, find_program
from cntkpy.networks.builders.ndl.idle import idle_problems, uncalled
from cntkpy.networks.builders.ndl.scope import DependsOnFailed, Instance, TooManyErrors
from cntkpy.networks.graph.network import Network


def check_ndl(section: ConfigParameters, context: CheckContext) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Make the network of a section without start values; report its errors, and options and macros without effect.

    Raises:
        UserError: There is no script.
    """
    network = Network("float", values=False)
    program = find_program(section)
    errors: list[UserError] = []
    session = Session(network, strict=context.strict, errors=errors)
    try:
        with suppress(DependsOnFailed, TooManyErrors):
            session.run(program)
            errors += (error for _, error in network.mistakes(session.builder.failed))
    except UserError as error:
        errors.append(error)
    # an option that a function does not have is passed over by the run, as by CNTK
    for problem in session.warnings:
        yield problem if problem.kind == "IgnoredParameter" else replace(problem, severity="warning")
    yield from (error.diagnostic for error in errors)
    if errors:
        return None
    if context.strict:
        yield from _uncalled(session)
    return CheckedNetwork(lambda: network)


def _uncalled(session: Session) -> Iterator[Diagnostic]:
    """Report the problems of macros that nothing calls."""
    expander = session.expander
    called = [instance.macro for instance in expander.expansion.created if isinstance(instance, Instance)]
    names = [symbol.name.text for symbol in expander.expansion.top.symbols.values()]
    yield from idle_problems(uncalled(expander.definitions.macros, called), expander.definitions.macros, names)
