"""Sources of the text of a network: sections of the configuration, network files and macro files.

`run` and `load` are sections to execute and sections to parse before them (lists with ':' or ','); with a file,
`networkDescription`, they are sections of it.
A file that has `load` or `run` entries consists of sections, of which these are used; otherwise it is one script.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, nearest, suggestion
from cntkpy.cntk_config.base.source import Source
from cntkpy.cntk_config.declare import INTEGER, PATH, TEXT, Declared, Parameter
from cntkpy.cntk_config.parameters import read_text_file
from cntkpy.networks.builders.ndl.text import Document

if TYPE_CHECKING:
    from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue


class NDLBuilderParameters(Declared):
    """`NDLNetworkBuilder`: a network written in the network description language."""

    network = Parameter("networkDescription", PATH, default=None, help="The file of the network.")
    run = Parameter("run", TEXT, default=None, help="Sections that hold the network.")
    load = Parameter("load", TEXT, default=None, help="Sections to be read before, with macros.")
    macros = Parameter("ndlMacros", PATH, default=None, help="Files of macros, joined by `+`.")
    seed_offset = Parameter("randomSeedOffset", INTEGER, default="0", help="Added to the seed of every parameter.")
    dump = Parameter("dumpFileName", PATH, default=None, help="File that gets the nodes of the new network as text.")


HAS_SECTIONS = re.compile(r"(?im)(?:^|[\s,;])(?:load|run)[ \t]*=")

SECTION = re.compile(r"(?m)^[ \t]*(\w+)[ \t]*=\s*\[[^]]*[=(]")
"""A section has statements, an array of nodes (`OutputNodes = [z]`) has names only."""


@dataclass
class Program:
    """The scripts of one network in their order, the macro files to be read before them, the file to dump it to."""

    scripts: list[Document]
    macros: list[Document] = field(default_factory=list["Document"])
    seed_offset: int = 0
    dump: str | None = None


def plain_document(text: str, name: str) -> Document:
    """Return a document that is a whole text."""
    source = Source(name, text)
    starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def locate(offset: int) -> Span:
        line = bisect_right(starts, offset)
        return Span(source, line, offset - starts[line - 1] + 1)

    return Document(text, locate, name)


def find_program(section: ConfigParameters) -> Program:
    """Return the program of an `NDLNetworkBuilder` section.

    Raises:
        ConfigError: no text, more than one network file, a section or file that does not exist.
    """
    p = NDLBuilderParameters
    macros = macro_documents(section)
    network_file = _given(section, p.network)
    run = _given(section, p.run)
    if network_file is not None:
        if "+" in network_file:
            raise network_file.error(
                "OneNetworkFile",
                f"'{network_file}': networkDescription names one file",
                "several files are possible for macros: ndlMacros = a.ndl+b.ndl",
            )
        scripts = file_documents(str(network_file), network_file.span, section, (_given(section, p.load), run))
        if not any(script.text.strip() for script in scripts):
            raise network_file.error("NoFeatureNode", f"'{network_file}' holds no network")
    elif run is not None:
        scripts = section_documents((_given(section, p.load), run), section)
    else:
        raise ConfigError(
            "MissingParameter",
            f"{section.path}: neither networkDescription nor run is given",
            section.span,
            hint="networkDescription = file.ndl, or run = name of the section with the network",
        )
    _drop_warnings(section, scripts)
    dump = _given(section, p.dump)
    return Program(scripts, macros, p.seed_offset.read(section), None if dump is None else str(dump))


def macro_documents(section: ConfigParameters) -> list[Document]:
    """Return the texts of the macro files that `ndlMacros` names."""
    macros: list[Document] = []
    if macro_files := _given(section, NDLBuilderParameters.macros):
        for name in _file_names(macro_files):
            macros += file_documents(name, macro_files.span, section, None)
    return macros


def _given(section: ConfigParameters, parameter: Parameter[ConfigValue | None]) -> ConfigValue | None:
    """Return a value of the section or of the sections around it; an empty one counts as absent."""
    value = parameter.value(section)
    return value if value is not None and value.strip() else None


def _file_names(value: ConfigValue) -> list[str]:
    return [part.strip().strip('"').strip() for part in value.split("+") if part.strip()]


def file_documents(
    path: str,
    asked: Span | None,
    section: ConfigParameters | None,
    overrides: tuple[ConfigValue | None, ConfigValue | None] | None,
) -> list[Document]:
    """Return the scripts of a network file or macro file; `overrides` are (load, run) of the configuration, if any.

    `asked` is the place that names the file, `section` gives the values of its `$variables$`.
    """
    try:
        value = read_text_file(path, section)
    except ConfigError as problem:
        if problem.span is not None:
            raise
        diagnostic = problem.diagnostic
        raise ConfigError(diagnostic.kind, diagnostic.message, asked, diagnostic.hint, diagnostic.notes) from None
    load, run = overrides or (None, None)
    if load is None and run is None and not HAS_SECTIONS.search(value):
        return [_script(value, path, asked)]
    content = value.as_section()
    load = load if load is not None else content.own(NDLBuilderParameters.load.name)
    run = run if run is not None else content.own(NDLBuilderParameters.run.name)
    content.add_warnings(list(_misspelt(content, load, run)))
    if load is None and run is None:
        return [_script(value, path, asked)]
    return section_documents((load, run), content)


def _misspelt(content: ConfigParameters, load: ConfigValue | None, run: ConfigValue | None) -> Iterator[Diagnostic]:
    """Names at the top of a file of sections that are nearly `load` or `run`, where that is not given."""
    wanted = [name for name, setting in (("load", load), ("run", run)) if setting is None]
    for name in content.names():
        entry = content.definition(name)
        if entry is not None and not entry.bracket and (meant := nearest(name, wanted)):
            message, hint = f"'{name}' chooses no section", f"did you mean '{meant}'?"
            yield Diagnostic("UnknownParameter", message, entry.name_span, hint, severity="warning")


def _script(value: ConfigValue, path: str, asked: Span | None) -> Document:
    """Return a file that is one script.

    Raises:
        ConfigError: it consists of sections, and none is chosen.
    """
    sections = list(dict.fromkeys(SECTION.findall(value)))
    if sections:
        message = f"'{path}' consists of sections, and none of them is chosen: {', '.join(sections)}"
        last = sections[-1]
        hint = f"write run = {last} beside networkDescription or in the file, or section={last} in LoadNDLSnippet"
        raise ConfigError("UnknownSection", message, asked, hint)
    return value_document(value)


NAMES_ONLY = "load and run name sections: write run = net, and net = [ ... ] next to it; load = macros likewise"
"""The hint where `load` or `run` is the description itself, as a page of CNTK's manual has it."""


def section_documents(
    lists: tuple[ConfigValue | None, ConfigValue | None], content: ConfigParameters
) -> list[Document]:
    """Return the texts of the sections named by `load` and `run`, in this order, found in `content` or around it."""
    documents: list[Document] = []
    for names in lists:
        for name in names.as_array() if names is not None else ():
            if not content.exists(name):
                raise ConfigError(
                    "UnknownSection",
                    f"there is no section '{name}' to be loaded or run",
                    name.span,
                    hint=NAMES_ONLY if "(" in name else suggestion(name, _names(content)),
                )
            documents.append(value_document(content.opaque(name)))
    return documents


def _drop_warnings(section: ConfigParameters, scripts: list[Document]) -> None:
    """Drop the warnings of reading a script as a set of parameters, in search of `run`: it is none."""
    kinds = ("NamelessGroup", "EmptyName", "StrayBracket")
    for script in scripts:
        first, last = script.locate(0), script.locate(max(0, len(script.text) - 1))
        for warning in list(section.warnings):
            if warning.kind not in kinds or warning.span is None or first is None or last is None:
                continue
            if warning.span.source is first.source and first.line <= warning.span.line <= last.line:
                section.warnings.remove(warning)


def _names(content: ConfigParameters) -> list[str]:
    names: list[str] = []
    scope: ConfigParameters | None = content
    while scope is not None:
        names.extend(scope.names())
        scope = scope.parent
    return names


def value_document(value: ConfigValue) -> Document:
    """Return the text of a section or file."""
    return Document(str(value), value.locate, value.path or "<ndl>")
