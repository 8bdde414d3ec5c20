"""Names in a configuration that nothing reads: misspelled ones, unused ones, and variables that mislead."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, suggestion
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.names import is_url
from cntkpy.cntk_config.base.source import VARIABLE
from cntkpy.cntk_config.base.spelling import MAX_NAME_LENGTH, letter_bits
from cntkpy.cntk_config.command_line import CURRENT_DIRECTORY
from cntkpy.cntk_config.declare import Declared
from cntkpy.cntk_config.definitions import Definition
from cntkpy.commands.catalogue.section_map import TopLevel, Use
from cntkpy.commands.catalogue.topics import homes
from cntkpy.commands.checks.values import looks_like_set, network_texts
from cntkpy.commands.context.root import RootParameters
from cntkpy.networks.builders.parameters import BUILDERS

FREE = (*BUILDERS, "truncated")
"""May stand in any section: those inside look for them."""
_FREE = frozenset(name.lower() for name in FREE)
COMPARED = 10_000_000
"""Pairs of names that are compared in one section; the names after them are found, but not the nearest to them."""
NEAR, NEAR_AT_THE_TOP, NEAR_IN_A_WORD = 0.72, 0.8, 0.6
"""Least likeness of a name to the one that is meant; at the top level names are free, but not those of sections
in words of the command line."""


SCRIPTED = frozenset(
    word.lower()
    for word in (
        "ConfigDir", "ConfigName", "DataDir", "DeviceNumber", "ExpDir", "LogDir", "ModelDir", "NdlDir", "OutputDir",
        "RootDir", "RunDir", "ScpDir", "WorkDir",
    )
)  # fmt: skip
"""Names, in lower case, that scripts of CNTK set for every configuration, whether it uses them or not."""
FOLDER = re.compile(r"\w*dir(?:ectory)?", re.IGNORECASE)
"""Names that other scripts set for every configuration."""
OF_CNTK = {
    "addprior": "needPrior=true adds the nodes of a prior",
    "dogradientcheck": "it is called gradientcheck",
    "dounittest": None,
    "fulldebug": None,
    "gpudata": None,
    "imagelayout": None,
    "initoncpuonly": None,
    "logfile": "stderr names the log",
    "needavemultiplier": "it is called normWithAveMultiplier",
    "packthresholdsizeinkb": None,
    "requestdatasize": None,
    "rounds": None,
    "usecudnn": None,
    "usenesterov": "CNTK does not read it either: useNAG=true is the momentum of Nesterov",
    "writesequencekey": None,
}
"""Names, in lower case, that other versions of CNTK read, or that its configurations have though nothing reads them,
each with what to write instead, if there is anything."""

CUT_OFF = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?|[\w./\\-]+\.[A-Za-z]\w{0,5}")
"""Numbers and names of files."""
MERGE_MARK = re.compile(r"[<|>]{7} ")
"""Begin of a line of Git around two versions that it could not merge."""
INCLUDE = re.compile(r"include(?:[ \t:].*)?", re.IGNORECASE)
_INCLUDED = re.compile(r"include[ \t]*(\"[^\"\n]*\")", re.IGNORECASE)
_EQUALS = re.compile(r"(?<![ \t])[ \t]*=")
BEHIND_A_COMMA = re.compile(r"[ \t]*([,;])[ \t]*([\w-]+)[ \t]*(?=[,;:\n]|$)")
"""Text after the value of a parameter: a name without a value."""
COMMENTS = ("//", "/*", "--", "%", "'")
"""Signs that begin a comment elsewhere."""
LONGEST_NAME = 80
_OF_NAMES = r"[^ \t\r\n$,/<>?;':\"\[\]{}\\|!@#%^&*()+=~`]"
_DEFINED = re.compile(rf"(?<!{_OF_NAMES})(?<!\$)([A-Za-z_]{_OF_NAMES}*+)\s*+[=\[({{]")
"""A name that may be that of a variable, where it is defined."""


def name_problems(everything: TopLevel, top: TopLevel) -> Iterator[Diagnostic]:
    """Report names that nothing reads, at the top level and in the commands of `top`; `everything` has all commands.

    Of commands that `command` does not list, only words of the command line can be errors: a word counts for what runs.
    """
    variables = used_variables(top.section)
    opaque = network_texts(top.section)
    yield from unread_names(everything, variables, opaque, True)
    running = _running(everything)
    in_use = _running_variables(running, opaque)
    yield from _idle_words(everything, running, variables, in_use, opaque)
    yield from _commands_behind_a_comma(top.section)
    for extra in everything.others:
        yield from unread_names(extra, variables, opaque)
    looked_at = {part.command for part in top.parts}
    for part in everything.parts:
        for use in part.walk():
            for problem in () if use.sets else unread_names(use, variables, opaque):
                if problem.kind == "UnreadWord" or (part.command in looked_at and top.runs(part)):
                    yield problem
                elif part.command in looked_at:
                    yield replace(problem, severity="warning")
    for use in running.walk():
        yield from _shadowed_words(use, in_use)


def _running(everything: TopLevel) -> TopLevel:
    """Return the use of the commands that `command` lists; of all where it lists none of those that are there."""
    parts = [part for part in everything.parts if everything.runs(part)]
    return replace(everything, parts=parts or everything.parts)


def _known(use: Use, opaque: frozenset[str]) -> set[str]:
    """Return the names, in lower case, that a section and those inside read from it, variables left out."""
    return {name.lower() for name in (*use.names(), *FREE)} | use.reads_below() | _sections_of(use) | opaque


def _running_variables(running: Use, opaque: frozenset[str]) -> set[str]:
    """Return the names, in lower case, that stand as `$name$` in what runs, or in variables that it needs."""
    root = running.section
    used = {match["name"].lower() for text in _network_files(root) for match in VARIABLE.finditer(text)}
    pending = [*used, *_known(running, opaque), *(part.command.lower() for part in running.parts)]
    done = set[str]()
    while pending:
        key = pending.pop()
        entry = root.definition(key) if key not in done else None
        done.add(key)
        if entry is not None and "$" in (text := entry.text):
            names = {match["name"].lower() for match in VARIABLE.finditer(text)}
            used |= names
            pending += names
    return used


def _idle_words(
    everything: Use, running: Use, variables: set[str], in_use: set[str], opaque: frozenset[str]
) -> Iterator[Diagnostic]:
    """Find words of the command line that only commands read which `command` does not list, or nothing.

    A name of the top level is an error. A variable is a warning, a word for a command's own section a hint: scripts say
    the same words for every command.

    Args:
        everything: the configuration with all commands.
        running: the same with those that run.
        variables: the names that stand as `$name$` somewhere, in lower case.
        in_use: those that what runs needs.
        opaque: the names of texts in other languages.
    """
    if any(use.open and use.role not in BUILDERS for use in running.walk()):
        return  # a plug-in may read any name
    root = everything.section
    known = _known(running, opaque) | in_use | {part.command.lower() for part in running.parts}
    all_known = _known(everything, opaque) | {part.command.lower() for part in everything.parts}
    commands = {part.command.lower() for part in everything.parts}
    idle: dict[str, set[str]] | None = None
    for name in root.names():
        key, entry = name.lower(), root.definition(name)
        word = _word_of(entry) if entry is not None else None
        if entry is None or word is None or key in known or _changes_directory(key, entry):
            continue
        idle = _idle_names(everything, running) if idle is None else idle
        readers = [command for command, names in idle.items() if key in names]
        is_variable = key in variables and key not in all_known
        if (not readers and not is_variable) or (is_variable and (key in SCRIPTED or FOLDER.fullmatch(name))):
            continue
        reading, hint = _reading_of_word(name, running, readers, is_variable, key in commands)
        message = f"{everything.role}: nothing that runs {reading}"
        span = entry.name_span if entry.name_span is not None and entry.name_span.in_word else word
        kind = "UnusedParameter" if key in commands else "UnreadWord"
        yield _found(kind, message, span, hint, "warning" if is_variable else "error")


def _reading_of_word(
    name: str, running: Use, readers: list[str], is_variable: bool, is_command: bool
) -> tuple[str, str]:
    """Return the readers of a word of the command line, and a hint.

    Args:
        name: the name that the word sets.
        running: the commands that run.
        readers: the commands that would read it.
        is_variable: it stands as `$name$`.
        is_command: it is the section of a command.
    """
    reading = f"uses ${name}$" if is_variable else f"reads '{name}'"
    if is_command:
        reading += ": `command` does not list it"
    elif readers:
        reading += f": only {_and(readers)} would, which `command` does not list"
    if not readers:
        return reading, "leave the word out"
    listed = ":".join(part.command for part in running.parts)
    return reading, f"leave the word out, or write command={listed}:{name if is_command else readers[0]}"


def _idle_names(everything: Use, running: Use) -> dict[str, set[str]]:
    """Return, by command, the names in lower case that commands which do not run read at the top level, or use."""
    runs = {part.command for part in running.parts}
    idle: dict[str, set[str]] = {}
    for part in everything.parts:
        if part.command not in runs:
            alone = replace(everything, parts=[part], others=[])
            names = alone.reads_below() | _sections_of(alone) | {part.command.lower()}
            idle[part.command] = names | _running_variables(alone, frozenset())
    return idle


def _and(commands: list[str]) -> str:
    """Return `the command 'a'`, or `the commands 'a', 'b'`."""
    return f"the command{'s' * (len(commands) > 1)} " + ", ".join(f"'{name}'" for name in commands)


def _commands_behind_a_comma(root: ConfigParameters) -> Iterator[Diagnostic]:
    """Report `command=train,test`, of which only `train` is run."""
    entry = root.definition("command")
    behind = _behind_commands(root)
    if behind and entry is not None:
        part = entry.parts[-1]
        sign = "a comma" if behind[1] == "," else "a semicolon"
        message = f"command: '{behind[2]}' is not run: what follows {sign} is a parameter of its own"
        yield _found("CutOff", message, part.text.span(behind.start(2)), "separate commands by colons")


def _behind_commands(root: ConfigParameters) -> re.Match[str] | None:
    """Return the text after the list of commands: any name after a comma, the name of a section after a semicolon."""
    entry = root.definition("command")
    part = entry.parts[-1] if entry is not None else None
    match = BEHIND_A_COMMA.match(part.text.string, part.end) if part is not None else None
    if match is None or match[1] == ",":
        return match
    section = root.definition(match[2])
    return match if section is not None and section.bracket else None


def unread_names(
    use: Use, variables: set[str], opaque: frozenset[str] = frozenset(), is_top: bool = False
) -> Iterator[Diagnostic]:
    """Report the names of a section that nothing reads, and those without effect.

    Args:
        use: the section.
        variables: the names that stand as `$name$` somewhere, in lower case.
        opaque: the names of texts in other languages.
        is_top: whether it is the top level, where names are free.
    """
    known = _known(use, opaque) | variables
    idle = idle_names(use)
    unknown = _Unknown(use, known, variables, is_top)
    behind = _behind_commands(use.section) if is_top else None
    cut = behind[2].lower() if behind else None
    entries = [(name, use.section.definition(name)) for name in use.section.names()]
    entries += [(removal.name, removal) for removal in use.section.removals()]
    for name, entry in entries:
        key = name.lower()
        declared = use.parameter(name)
        if declared is not None and declared.ignored and entry is not None:
            reason = declared.ignored.rstrip(".")
            yield _found("IgnoredParameter", f"{use.role}: '{name}' has no effect", entry.name_span, reason)
        elif entry is not None and (reason := idle.get(key)):
            yield _found("IgnoredParameter", f"{use.role}: '{name}' has no effect here", entry.name_span, reason)
        if key in known or entry is None or (is_top and (_changes_directory(key, entry) or key == cut)):
            continue
        diagnostic = unknown.found(name, entry)
        if diagnostic is not None:
            yield diagnostic


class _Unknown:
    """Describe names that a section does not know.

    Args:
        use: the section.
        known: the names that it knows, in lower case.
        variables: the names that stand as `$name$` somewhere, in lower case.
        is_top: whether it is the top level, where names are free.
    """

    def __init__(self, use: Use, known: set[str], variables: set[str], is_top: bool) -> None:
        self.use, self.known, self.variables, self.is_top = use, known, variables, is_top
        self.open_below = use.open or any(inside.open for part in use.parts for inside in part.walk())
        self.listed = use.listed if isinstance(use, TopLevel) else frozenset[str]()

    @functools.cached_property
    def spellings(self) -> Spellings:
        """Return the names that a name of this section may be meant to be."""
        use, names = self.use, self.use.names()
        spelled = {n.lower(): n for part in use.parts for inside in part.walk() for n in inside.names()}
        spelled |= {n.lower(): n for n in (*names, *BUILDERS, "include")}
        if self.is_top:
            spelled |= {n.lower(): n for n in use.section.names() if n.lower() in self.variables}
        return Spellings(spelled.values(), NEAR_AT_THE_TOP if self.is_top else NEAR, prefer=names)

    @functools.cached_property
    def commands(self) -> Spellings:
        """Return the names of the commands."""
        return Spellings((part.command for part in self.use.parts), NEAR_AT_THE_TOP)

    def found(self, name: str, entry: Definition) -> Diagnostic | None:
        """Return the problem of a name; None if there is none."""
        role, key = self.use.role, name.lower()
        if (written := self._badly_written(name, entry)) is not None:
            return written
        if key in OF_CNTK:
            message = f"{role}: '{name}' changes nothing here"
            return _unread("UnusedParameter", message, entry, OF_CNTK[key], "hint")
        meant = None if self.use.open and key in homes() else self.spellings.closest(name)
        if meant and (meant.lower() == key or key not in homes()):  # one that belongs elsewhere is not misspelt
            return self._misspelt(name, entry, meant, self.is_top and key in SCRIPTED)
        if self.is_top and entry.bracket:
            return self._unknown_section(name, entry)
        if self.open_below or (self.is_top and not self.use.parts):
            return None
        message = f"{role}: nothing reads '{name}'" + (" and no $variable$ is called so" if self.is_top else "")
        customary = self.is_top and (key in SCRIPTED or FOLDER.fullmatch(name))
        return _unread("UnusedParameter", message, entry, _what_to_do(name, entry), "hint" if customary else "")

    def _badly_written(self, name: str, entry: Definition) -> Diagnostic | None:
        """Explain a name that comes from wrong signs: no equals sign, a comma, a colon, no brackets."""
        role = self.use.role
        if MERGE_MARK.match(name):
            message = f"{role}: '{name}' is a mark of a merge of Git"
            return _unread("UnknownParameter", message, entry, "keep one of the two versions, and remove the marks")
        if INCLUDE.fullmatch(name) and not _has_equals(entry):
            return _include(role, name, entry)
        begin = name.partition(":")[0].strip()
        if ":" in name and (begin.lower() in self.known or begin.lower() in self.listed):
            if _word_of(entry) is not None and _has_equals(entry):
                path = name.replace(":", "/")
                return _unread("UnknownParameter", f"{role}: nothing reads '{name}'", entry, f"write {path}=...")
            message = f"{role}: '{name}' has a colon in place of '='"
            return _unread("UnknownParameter", message, entry, f"write {begin} = ...")
        if not _is_flag(entry):
            return None
        message = f"{role}: '{name}' is read as a parameter of its own"
        if CUT_OFF.fullmatch(name):
            reason, hint = _cut_off(name, entry.name_span)
            return _found("CutOff", f"{message}{reason}", entry.name_span, hint)
        if several := self._list_before(entry):
            hint = f"separate the values of {several} by colons"
            return _found("CutOff", f"{message}: what follows a comma is cut off", entry.name_span, hint)
        if name.lower() not in OF_CNTK and (section := _bare(self.use)):
            message = f"{role}: '{name}' is not a section: parameters are written in brackets, and have names"
            return _unread("UnknownParameter", message, entry, f"write {section}=[name=value]")
        return None

    def _list_before(self, entry: Definition) -> str | None:
        """Return the parameter with several values that is before a comma before a name in one line."""
        place = entry.name_span
        preceding = place.before.rstrip(" \t") if place is not None else ""
        head, equals, values = preceding.rpartition("=")
        if not preceding.endswith(",") or not equals or any(sign in values for sign in ';[](){}"'):
            return None
        name = re.split(r"[^\w-]", head.rstrip(" \t")[-LONGEST_NAME:])[-1]
        parameter = self.use.parameter(name)
        return (
            parameter.name
            if parameter is not None and (parameter.type.per_epoch or parameter.type.name.startswith("array"))
            else None
        )

    def _misspelt(self, name: str, entry: Definition, meant: str, scripted: bool) -> Diagnostic:
        message, hint = f"{self.use.role}: '{name}' is not a known parameter", f"did you mean '{meant}'?"
        if meant.lower() == name.lower():
            if _is_of_run(name) and not self.is_top:
                hint = f"it counts for the whole run: write {meant} at the top level"
                return _unread("UnknownParameter", message + " here", entry, hint)
            roles = (inside.role for part in self.use.parts for inside in part.walk() if meant in inside.names())
            message, hint = f"{message} here", f"it is one of '{next(roles, 'the command')}'"
        if scripted:
            return _unread("UnusedParameter", message, entry, hint, "hint")
        return _unread("UnknownParameter", message, entry, hint)

    def _unknown_section(self, name: str, entry: Definition) -> Diagnostic | None:
        """Return a section of the top level: in a file it may be there for other programs."""
        message = f"{self.use.role}: nothing reads the section '{name}'"
        there = [command.command for command in self.use.parts]
        if meant := self.commands.closest(name):
            return _unread("UnknownParameter", message, entry, f"did you mean '{meant}'?")
        if _word_of(entry) is None or not there or self.open_below:
            return None
        hint = suggestion(name, there, NEAR_IN_A_WORD) or f"the commands are {', '.join(there)}"
        return _unread("UnknownParameter", message, entry, hint)


def _what_to_do(name: str, entry: Definition) -> str | None:
    """Return a hint for a name that nothing reads."""
    place = entry.name_span
    in_word = _word_of(entry) is not None
    if in_word and name.startswith("-"):
        return "options follow `cntkpy run`; a parameter is name=value"
    if not in_word and (name.startswith(COMMENTS) or (place is not None and place.before.strip() == ";")):
        return "a comment begins with #"
    if _is_flag(entry) and place is not None and place.before.rstrip(" \t").endswith(","):
        return _home(name.lower()) or "what follows a comma is a parameter of its own; lists have colons"
    return _home(name.lower())


def _word_of(entry: Definition) -> Span | None:
    """Return the word of the command line that gives a name or a part of its value, the last one."""
    return next((part.span for part in reversed(entry.parts) if part.span.in_word), None)


def _unread(kind: str, message: str, entry: Definition, hint: str | None, severity: str = "") -> Diagnostic:
    """Return a name that nothing reads: in a file a warning or a hint, in a word of the command line an error.

    `severity` hint: it is one in a word, too.
    """
    word = _word_of(entry)
    if word is None or severity:
        return _found(kind, message, entry.name_span, hint, "warning" if kind == "UnknownParameter" else "error")
    name = entry.name_span
    return _found("UnreadWord", message, name if name is not None and name.in_word else word, hint)


def _include(role: str, name: str, entry: Definition) -> Diagnostic:
    """Return the finding of `include "file"` without an equals sign, which only BrainScript allows."""
    span = entry.name_span
    written = name[len("include") :].strip(" \t:") or (span.match(_INCLUDED) if span is not None else None)
    file = written[1] if isinstance(written, re.Match) else written
    message = f"{role}: '{name}' includes no file: an include has an equals sign"
    return _found("BadInclude", message, span, f"write include={file or 'FILE'}")


def _shadowed_words(use: Use, variables: set[str]) -> Iterator[Diagnostic]:
    """Report words of the command line whose value nothing takes, since each section has a nearer one."""
    for name in use.section.names():
        key, entry = name.lower(), use.section.definition(name)
        word = _word_of(entry) if entry is not None else None
        if word is None or key in variables or key in _FREE or use.parameter(name) is not None:
            continue
        nearer = [_holder(inside, key) for part in use.parts for inside in part.walk() if inside.parameter(name)]
        holders = {path for path in nearer if path}
        if not nearer or use.section.path in holders or len(holders) < len(set(nearer)):
            continue
        steps = re.split("[./]", (word.source.line(1) or "").partition("=")[0].strip())
        below = next((steps[number + 1 :] for number, step in enumerate(steps) if step.lower() == key), list[str]())
        full = "/".join([name, *below])
        paths = [f"{path.partition(':')[2].replace(':', '/')}/{full}".lstrip("/") for path in sorted(holders)]
        message = f"{use.role}: nothing reads '{name}' here: a value that is nearer counts, that of {paths[0]}"
        yield _found("UnreadWord", message, word, f"write {' or '.join(paths[:3])}=...")


def _holder(use: Use, key: str) -> str:
    """Return the path of the section from which a use takes a parameter; empty where it is not given or not known."""
    parameter = use.parameter(key)
    name = parameter.find(use.section) if parameter is not None and not parameter.own else None
    section: ConfigParameters | None = use.section
    while name is not None and section is not None:
        if section.exists_current(name):
            return section.path
        section = section.parent
    return ""


def _bare(use: Use) -> str | None:
    """Return the name of a section whose text is no set of parameters: `format=category`."""
    section, name = use.section, use.section.path.rpartition(":")[2]
    entry = section.parent.definition(name) if section.parent is not None else None
    return name if entry is not None and not entry.bracket and "=" not in entry.text else None


def _sections_of(use: Use) -> set[str]:
    """Return the sections, in lower case, that are read or hold others that are: `input` of HTKMLFReader."""
    begin = f"{use.section.path}:"
    return {
        part.section.path[len(begin) :].partition(":")[0].lower()
        for part in use.parts
        if part.section.path.startswith(begin)
    }


def idle_names(use: Use) -> dict[str, str]:
    """Return the names, in lower case, that have no effect, given the other values, with the reasons."""
    reasons: dict[str, str] = {}
    for declared in use.declared:
        if declared.without_effect is not Declared.without_effect:
            with suppress(ConfigError):  # found where values are looked at
                reasons |= {name.lower(): reason for name, reason in declared(use.section).without_effect()}
    return reasons


def _is_of_run(name: str) -> bool:
    """Return True for a parameter of the whole run, which is read at the top level only."""
    return RootParameters.parameter(name) is not None and name.lower() not in ("command", "type", "truncated")


def _home(key: str) -> str | None:
    """Return a hint that names the section of a misplaced parameter."""
    if _is_of_run(key):
        return "it counts for the whole run: write it at the top level"
    sections = sorted(homes().get(key, ()), key=lambda section: section != "SGD")
    if not sections:
        return None
    some = " or ".join(f"'{section}'" for section in sections[:3])
    return f"it is a parameter of {some}" + (f" ({len(sections) - 3} more)" if len(sections) > 3 else "")


def _is_flag(entry: Definition) -> bool:
    """Return whether a name stands alone, without `=` and value; of several places of it the last one counts."""
    name, value = entry.name_span, entry.span
    if name is None or (name.line, name.column) == (value.line, value.column):
        return name is not None
    if entry.text != "true" or value.before.rstrip(" \t").endswith("="):
        return False
    return value.match(re.compile(re.escape(entry.name), re.IGNORECASE)) is not None


def _has_equals(entry: Definition) -> bool:
    """Return whether an equals sign follows a name."""
    span = entry.name_span
    return span is not None and span.match(_EQUALS, len(entry.name)) is not None


def _cut_off(name: str, span: Span | None) -> tuple[str, str]:
    """Return why the value of a parameter ends before a name that stands alone, and what to do."""
    text = span.before.rstrip(" \t") if span else ""
    preceding = text[-1:]
    if preceding == "," and text[-2:-1].isdigit() and name.isdigit() and span and span.before.endswith(","):
        hint = "a number has a point and no other mark: 0.1, 1000; separate the values of a list by colons"
        return ": what follows a comma is cut off", hint
    if preceding == ",":
        return ": what follows a comma is cut off", "separate the values of a list by colons, or use quotes"
    if preceding in tuple('"])}'):
        return ": the value before it ends with its quote or bracket", "look for a quote or bracket that is missing"
    if span and span.in_word:
        return "", f"write configFile={name} if it is a configuration, name=value if not"
    return "", "write name=value; a list on several lines is written in parentheses"


def _changes_directory(key: str, entry: Definition) -> bool:
    """Return whether it is the word `currentDirectory=` of the command line; in a file it does nothing."""
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
        self._known = [
            (letter_bits(name), cutoff / 2 * len(name), name, 0.03 * (name in preferred))
            for name in known
            if len(name) <= MAX_NAME_LENGTH
        ]
        self._left = COMPARED

    def closest(self, name: str) -> str | None:
        """Return the name that is most like `name`; None where none is like it."""
        self._left -= len(self._known)
        if self._left < 0 or len(name) > MAX_NAME_LENGTH:
            return None
        bag, cutoff = letter_bits(name), self.cutoff
        without_bit = len(name) - bag.bit_count()
        needed = cutoff / 2 * len(name) - without_bit - 1e-9
        alike = [
            (candidate, bits, bonus)
            for bits, half, candidate, bonus in self._known
            if (bag & bits).bit_count() >= half + needed  # else there are too few letter_bits in common
        ]
        if not alike:
            return None
        import difflib  # late: texts without mistakes need none of it

        matcher = difflib.SequenceMatcher(b=name.lower(), autojunk=False)
        anagram = sorted(name.lower())
        best, score = None, cutoff
        for candidate, bits, bonus in alike:
            if 2 * ((bag & bits).bit_count() + without_bit) < (score - bonus) * (len(name) + len(candidate)):
                continue
            matcher.set_seq1(candidate.lower())
            ratio = max(matcher.ratio(), 0.85 * (anagram == sorted(candidate.lower())))
            if ratio >= cutoff and ratio + bonus > score:
                best, score = candidate, ratio + bonus
        return best


def used_variables(root: ConfigParameters) -> set[str]:
    """Return the names, in lower case, that stand as `$name$` somewhere, also in network files."""
    used: set[str] = set()
    for name in root.names():
        entry = root.definition(name)
        if entry is not None:
            for text in (entry.text, *(part.string for part in entry.earlier or ())):
                if "$" in text:
                    used.update(match["name"].lower() for match in VARIABLE.finditer(text))
    for warning in _network_files(root):
        used.update(match["name"].lower() for match in VARIABLE.finditer(warning))
    return used


def _network_files(root: ConfigParameters) -> Iterator[str]:
    """Yield the texts of network and editing scripts that a configuration names, which use variables, too."""

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
                    paths = [path.strip() for path in str(holder(key)).split("+")]
                    local = (path for path in paths if not is_url(path))  # no server is asked without --allow-remote
                    yield from (read_input(path).decode("utf-8", "replace") for path in local)
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
    """Report variables whose value comes from further out, though a nearer section defines the name as well."""
    entries = [entry for name in root.names() if (entry := root.definition(name))]
    used = {match["name"].lower() for entry in entries for match in VARIABLE.finditer(entry.text)}
    if not used:
        return
    if any(match[1].lower() in used for entry in entries if entry.bracket for match in _DEFINED.finditer(entry.text)):
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
            for match in VARIABLE.finditer(part.text.string, part.start, part.end):
                holders = [
                    holder
                    for holder in around
                    if (definition := holder.definition(match["name"])) and definition is not entry
                ]
                if len(holders) < 2:
                    continue
                near, far = (holders[i].definition(match["name"]) for i in (-1, 0))
                if near is None or far is None or near.text == far.text:
                    continue
                message = f"${match['name']}$ is '{far.text}' of {far.span}, not '{near.text}' of this section"
                span = part.text.span(match.start(), match.end() - match.start())
                hint = "variables are taken from the outermost section that has them; use another name"
                if near.span.in_word:
                    hint = f"variables are taken from the outermost section that has them; write {near.name}=..."
                    yield Diagnostic("UnreadWord", message, near.span, hint)
                    continue
                yield Diagnostic("ShadowedVariable", message, span, hint, severity="warning")
