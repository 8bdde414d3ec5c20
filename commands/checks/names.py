"""Names in a configuration that nothing reads: misspelled ones, unused ones, and variables that mislead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from cntk_config import ConfigError, ConfigParameters
from cntk_config.base.diagnostics import Diagnostic, Span
from cntk_config.base.files import read_input
from cntk_config.base.source import VARIABLE
from cntk_config.base.spelling import letters
from cntk_config.command_line import CURRENT_DIRECTORY
from cntk_config.definitions import Definition
from commands.catalogue.section_map import Use
from commands.catalogue.topics import homes
from commands.checks.values import looks_like_set, network_texts
from commands.context.root import listed_commands
from networks.builders.parameters import BUILDERS

FREE = (*BUILDERS, "truncated")
"""May stand in any section: those inside look for them."""
COMPARED = 10_000_000
"""Pairs of names that are compared in one section; the names after them are found, but not the nearest to them."""
NEAR, NEAR_AT_THE_TOP = 0.72, 0.8
"""How alike two names are if one is meant to be the other; at the top level names are free."""


CUT_OFF = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?|[\w./\\-]+\.[A-Za-z]\w{0,5}")
"""Numbers and names of files."""
BEHIND_A_COMMA = re.compile(r"[ \t]*,[ \t]*([\w-]+)[ \t]*(?=[,;:\n]|$)")
"""What follows the value of a parameter, a name without a value."""
_OF_NAMES = r"[^ \t\r\n$,/<>?;':\"\[\]{}\\|!@#%^&*()+=~`]"
_DEFINED = re.compile(rf"(?<!{_OF_NAMES})(?<!\$)([A-Za-z_]{_OF_NAMES}*+)\s*+[=\[({{]")
"""A name that may be that of a variable, where it is defined."""


def name_problems(everything: Use, top: Use) -> Iterator[Diagnostic]:
    """Names which nothing reads, at the top level and in the commands of `top`; `everything` has all commands."""
    variables = used_variables(top.section)
    opaque = network_texts(top.section)
    yield from _section(everything, variables, opaque, True)
    yield from _commands_behind_a_comma(top.section)
    for part in top.parts:
        for use in part.walk():
            if not use.sets:
                yield from _section(use, variables, opaque, False)


def _commands_behind_a_comma(root: ConfigParameters) -> Iterator[Diagnostic]:
    """`command=train,test`, of which only `train` is run: a section that nothing reads is nothing odd at the top."""
    entry = root.definition("command")
    if entry is None:
        return
    part = entry.parts[-1]
    if found := BEHIND_A_COMMA.match(part.text.string, part.end):
        message = f"command: '{found[1]}' is not run: what stands behind a comma is a parameter of its own"
        yield _found("CutOff", message, part.text.span(found.start(1)), "separate commands by colons")


def _section(use: Use, variables: set[str], opaque: frozenset[str], is_top: bool) -> Iterator[Diagnostic]:
    own = use.names()
    below = use.reads_below()
    known = {name.lower() for name in (*own, *FREE)} | below | _sections_of(use) | variables | opaque
    open_below = any(inside.open for inside in use.walk())
    idle = _without_effect(use)
    spellings: Spellings | None = None
    commands = Spellings((part.command for part in use.parts), NEAR_AT_THE_TOP) if is_top else None
    listed = _listed(use.section) if is_top else set[str]()
    for name in use.section.names():
        key = name.lower()
        entry = use.section.definition(name)
        declared = use.parameter(name)
        if declared is not None and declared.ignored and entry is not None:
            reason = declared.ignored.rstrip(".")
            yield _found("IgnoredParameter", f"{use.role}: '{name}' has no effect", entry.name_span, reason)
        elif entry is not None and (reason := idle.get(key)):
            yield _found("IgnoredParameter", f"{use.role}: '{name}' has no effect here", entry.name_span, reason)
        if key in known or entry is None or (is_top and _changes_directory(key, entry)):
            continue
        if CUT_OFF.fullmatch(name) and _is_flag(entry):
            reason, hint = _cut_off(name, entry.name_span)
            message = f"{use.role}: '{name}' is read as a parameter of its own{reason}"
            yield _found("CutOff", message, entry.name_span, hint)
            continue
        if spellings is None:
            spelled = {n.lower(): n for part in use.parts for inside in part.walk() for n in inside.names()}
            spelled |= {n.lower(): n for n in (*own, *BUILDERS)}
            spellings = Spellings(spelled.values(), NEAR_AT_THE_TOP if is_top else NEAR, prefer=own)
        begin = name.partition(":")[0].strip()
        if ":" in name and begin.lower() in known | listed:
            message = f"{use.role}: '{name}' has a colon in place of '='"
            yield _found("UnknownParameter", message, entry.name_span, f"write {begin} = ...", "warning")
            continue
        meant = None if use.open and key in homes() else spellings.closest(name)
        if meant:
            message, hint = f"{use.role}: '{name}' is not a known parameter", f"did you mean '{meant}'?"
            if meant.lower() == key:
                roles = (inside.role for part in use.parts for inside in part.walk() if meant in inside.names())
                message, hint = f"{message} here", f"it is one of '{next(roles, 'the command')}'"
            yield _found("UnknownParameter", message, entry.name_span, hint, "warning")
        elif commands is not None and entry.bracket and (meant := commands.closest(name)):
            message = f"{use.role}: nothing reads the section '{name}'"
            yield _found("UnknownParameter", message, entry.name_span, f"did you mean '{meant}'?", "warning")
        elif not open_below and not (is_top and (entry.bracket or not use.parts)):
            where = " and no $variable$ is called so" if is_top else ""
            option = "options stand behind `cntkpy run`; a parameter is name=value"
            hint = option if name.startswith("-") else _home(key)
            yield _found("UnusedParameter", f"{use.role}: nothing reads '{name}'{where}", entry.name_span, hint)


def _listed(root: ConfigParameters) -> set[str]:
    try:
        return listed_commands(root)
    except ConfigError:  # told where values are looked at
        return set()


def _sections_of(use: Use) -> set[str]:
    """Sections, in lower case, that are read, or that hold others that are: `input` and `output` of HTKMLFReader."""
    begin = f"{use.section.path}:"
    return {
        part.section.path[len(begin) :].partition(":")[0].lower()
        for part in use.parts
        if part.section.path.startswith(begin)
    }


def _without_effect(use: Use) -> dict[str, str]:
    """Names, in lower case, that change nothing beside the other values, with the reasons."""
    found: dict[str, str] = {}
    for declared in use.declared:
        try:
            found |= {name.lower(): reason for name, reason in declared(use.section).without_effect()}
        except ConfigError:
            continue  # found where values are looked at
    return found


def _home(key: str) -> str | None:
    """Where a parameter belongs that is known, but not in this place."""
    sections = homes().get(key, ())
    if not sections:
        return None
    some = " or ".join(f"'{one}'" for one in sections[:3])
    return f"it is a parameter of {some}" + (f" ({len(sections) - 3} more)" if len(sections) > 3 else "")


def _is_flag(entry: Definition) -> bool:
    """Whether a name stands alone, without `=` and value."""
    name, value = entry.name_span, entry.span
    return name is not None and (name.line, name.column) == (value.line, value.column)


def _cut_off(name: str, span: Span | None) -> tuple[str, str]:
    """Why the value of a parameter ends before a name that stands alone, and what to do."""
    before = span.before.rstrip(" \t")[-1:] if span else ""
    if before == ",":
        return ": what stands behind a comma is cut off", "separate the values of a list by colons, or use quotes"
    if before in tuple('"])}'):
        return ": the value before it ends with its quote or bracket", "look for a quote or bracket that is missing"
    if span and span.in_word:
        return "", f"write configFile={name} if it is a configuration, name=value if not"
    return "", "write name=value; a list on several lines stands in parentheses"


def _changes_directory(key: str, entry: Definition) -> bool:
    """Whether it is the word `currentDirectory=` of the command line; in a file it does nothing."""
    span = entry.name_span
    return key == CURRENT_DIRECTORY.rstrip("=") and span is not None and span.in_word


def _found(kind: str, message: str, span: Span | None, hint: str | None, severity: str = "error") -> Diagnostic:
    return Diagnostic(kind, message, span, hint, severity="warning" if severity == "warning" else "error")


class Spellings:
    """The names that are known in one place, to find which of them a wrong one is meant to be.

    Args:
        known: the names.
        cutoff: how alike two names have to be, 0 to 1.
        prefer: names that win when they are nearly as good.
    """

    def __init__(self, known: Iterable[str], cutoff: float, prefer: Iterable[str] = ()) -> None:
        preferred = set(prefer)
        self.cutoff = cutoff
        self._known = [(letters(one), cutoff / 2 * len(one), one, 0.03 * (one in preferred)) for one in known]
        self._left = COMPARED

    def closest(self, name: str) -> str | None:
        """The name that is most like `name`; None where none is like it."""
        self._left -= len(self._known)
        if self._left < 0:
            return None
        bag, cutoff = letters(name), self.cutoff
        without_bit = len(name) - bag.bit_count()
        needed = cutoff / 2 * len(name) - without_bit - 1e-9
        alike = [
            (one, other, bonus)
            for other, half, one, bonus in self._known
            if (bag & other).bit_count() >= half + needed  # else there are too few letters in common
        ]
        if not alike:
            return None
        matcher = difflib.SequenceMatcher(b=name.lower(), autojunk=False)
        anagram = sorted(name.lower())
        best, score = None, cutoff
        for one, other, bonus in alike:
            if 2 * ((bag & other).bit_count() + without_bit) < (score - bonus) * (len(name) + len(one)):
                continue
            matcher.set_seq1(one.lower())
            ratio = max(matcher.ratio(), 0.85 * (anagram == sorted(one.lower())))
            if ratio >= cutoff and ratio + bonus > score:
                best, score = one, ratio + bonus
        return best


def used_variables(root: ConfigParameters) -> set[str]:
    """Names, in lower case, that stand as `$name$` somewhere, also in network files."""
    used: set[str] = set()
    for name in root.names():
        entry = root.definition(name)
        if entry is not None:
            for text in (entry.text, *(part.string for part in entry.earlier or ())):
                if "$" in text:
                    used.update(found["name"].lower() for found in VARIABLE.finditer(text))
    for warning in _network_files(root):
        used.update(found["name"].lower() for found in VARIABLE.finditer(warning))
    return used


def _network_files(root: ConfigParameters) -> Iterator[str]:
    """Texts of the network and editing scripts that the configuration names: they use variables too."""

    for section in (root, *_sections(root)):
        holders = [section]
        if section.exists_current("NDLNetworkBuilder"):
            try:
                holders.append(section.section("NDLNetworkBuilder"))
            except ConfigError:
                continue
        for holder in holders:
            for key in ("networkDescription", "ndlMacros", "editPath"):
                if not holder.exists_current(key):
                    continue
                try:
                    paths = str(holder(key)).split("+")
                    yield from (read_input(path.strip()).decode("utf-8", "replace") for path in paths)
                except (ConfigError, OSError):
                    continue


def _sections(root: ConfigParameters) -> Iterator[ConfigParameters]:
    for name in root.names():
        entry = root.definition(name)
        if entry is None or not any(word in entry.text.lower() for word in ("ndlnetworkbuilder", "editpath")):
            continue
        if looks_like_set(root, name):
            try:
                yield root.section(name)
            except ConfigError:
                continue


# ------------------------------------------------------------------------------------------------- variables


def shadow_problems(root: ConfigParameters) -> Iterator[Diagnostic]:
    """Variables whose value comes from further out, though a nearer section defines the name as well."""
    entries = [entry for name in root.names() if (entry := root.definition(name))]
    used = {found["name"].lower() for entry in entries for found in VARIABLE.finditer(entry.text)}
    if not used:
        return
    if any(found[1].lower() in used for entry in entries if entry.bracket for found in _DEFINED.finditer(entry.text)):
        yield from _shadowed(root, [root], network_texts(root))


def _shadowed(
    section: ConfigParameters, around: list[ConfigParameters], opaque: frozenset[str]
) -> Iterator[Diagnostic]:
    for name in section.names():
        entry = section.definition(name)
        if entry is None or entry.is_default or "$" not in entry.text or name.lower() in opaque:
            continue
        value = section.stored(name, raw=True)
        if looks_like_set(section, name) and len(around) < 60:
            try:
                inside = ConfigParameters.from_value(value)
            except ConfigError:
                continue
            yield from _shadowed(inside, [*around, inside], opaque)
            continue
        if len(around) < 2:
            continue
        for part in entry.parts:
            for found in VARIABLE.finditer(part.text.string, part.start, part.end):
                holders = [one for one in around if (own := one.definition(found["name"])) and own is not entry]
                if len(holders) < 2:
                    continue
                near, far = (holders[i].definition(found["name"]) for i in (-1, 0))
                if near is None or far is None or near.text == far.text:
                    continue
                message = f"${found['name']}$ is '{far.text}' of {far.span}, not '{near.text}' of this section"
                span = part.text.span(found.start(), found.end() - found.start())
                hint = "variables are taken from the outermost section that has them; use another name"
                yield Diagnostic("ShadowedVariable", message, span, hint, severity="warning")
