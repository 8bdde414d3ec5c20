"""The check of a BrainScriptNetworkBuilder."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from cntkpy.cntk_config import ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, nearest
from cntkpy.networks.builders.brainscript.build import check_program
from cntkpy.networks.builders.brainscript.known import Description, KnownNetworks
from cntkpy.networks.builders.brainscript.language.syntax import ArrayLiteral, Call, Name, New, RecordLiteral
from cntkpy.networks.builders.brainscript.network import SPECIAL
from cntkpy.networks.builders.brainscript.outline import outline_of
from cntkpy.networks.builders.brainscript.program import Program, taken_by_library
from cntkpy.networks.builders.brainscript.source import program_names, text_of
from cntkpy.networks.builders.check import CheckContext, CheckedNetwork
from cntkpy.networks.builders.ndl.groups import ARRAYS
from cntkpy.networks.graph.network import Network

KNOWN = KnownNetworks()
EFFECTS = ("Print", "Debug", "Fail")
"""Functions that are called for what they do, not for a value."""
MIN_SIMILARITY = 0.85
"""Similarity of the names of a member and a group, 0 to 1, from which the group is meant: any name may be similar."""


def check_network(value: ConfigValue, context: CheckContext) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Evaluate a network in BrainScript and infer its shapes; draw no start value of a large parameter.

    Raises:
        UserError: The text cannot be read.
    """
    text, names = text_of(value), program_names(value.scope)
    key = text.identity, tuple(names.items()), context.precision
    description = KNOWN.get(key)
    if description is None:
        loaded: list[str] = []

        def load(path: str, precision: str) -> Network:
            loaded.append(path)
            return context.load(path, precision)

        program, built, errors = check_program(text, names, context.precision, load)
        yield from (error.diagnostic for error in errors)
        if program is None or built is None:
            return None
        description = Description(built.network, built.warnings, _record(program), value.span)
        if not loaded:
            KNOWN.keep(key, description)
    yield from description.warnings
    if context.strict and description.record is not None:
        yield from _unused(description, description.record, set(context.named))
    return CheckedNetwork(
        lambda: description.network,
        aliases=_aliases(description.record) if description.record is not None else {},
        reads_all_streams=True,
    )


def _record(program: Program) -> RecordLiteral | None:
    """Return the text of a network, if that is a record."""
    record = program.expression.record if isinstance(program.expression, New) else program.expression
    return record if isinstance(record, RecordLiteral) else None


def _aliases(record: RecordLiteral) -> dict[str, str]:
    """Return the members that are other members by another name, in lower case, and these."""
    aliases: dict[str, str] = {}
    for name, member in record.members.items():
        expression = member.value
        while isinstance(expression, ArrayLiteral) and len(expression.items) == 1:
            (expression,) = expression.items
        if isinstance(expression, Name):
            aliases[name.lower()] = expression.name
    return aliases


def _unused(description: Description, record: RecordLiteral, named: set[str]) -> Iterator[Diagnostic]:
    """Report members that nothing refers to, and that are not nodes of a group."""
    outline, span = outline_of(record), description.span
    grouped = {node.name for members in description.network.groups.values() for node in members}
    used, known = outline.used(), grouped | named | taken_by_library() | set(SPECIAL)
    for name, member in outline.members.items():
        call = member.value
        acts = isinstance(call, Call) and isinstance(call.function, Name) and call.function.name in EFFECTS
        included = span is not None and member.place.span.source is not span.source
        if not (member in used or acts or included or name in known):
            yield _unused_member(name, member.place.span)


def _unused_member(name: str, span: Span) -> Diagnostic:
    """Return the finding of a member that nothing uses: perhaps it is meant for a group, or for another builder."""
    groups = {group: special for special, group in SPECIAL.items()}
    if group := groups.get(ARRAYS.get(name.lower(), "")) or nearest(name, list(SPECIAL), MIN_SIMILARITY):
        message, hint = f"'{name}' is not a group of nodes, and nothing uses it", f"did you mean '{group}'?"
        return Diagnostic("UnusedMember", message, span, hint, severity="warning")
    if name.lower() == "networkdescription":
        message = f"'{name}' is a parameter of NDLNetworkBuilder, here it is a member that nothing uses"
        hint = 'a file in BrainScript is included: include "file.bs"'
        return Diagnostic("UnusedMember", message, span, hint, severity="warning")
    message = f"nothing uses the member '{name}' of the network"
    return Diagnostic("UnusedMember", message, span, "remove it, or name it in outputNodes")
