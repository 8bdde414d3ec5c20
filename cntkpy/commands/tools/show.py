"""`cntkpy show`: the resolved configuration, in several forms, with the origin of every value if wanted.

A single word that names a model file shows the model instead (`show_model`).
"""

import re
import sys
from typing import Any

import click

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue, load
from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.cntk_config.base.lines import split_lines
from cntkpy.commands.catalogue.section_map import section_map
from cntkpy.commands.words import OPEN, sort_words

EXIT_ERROR = 2
OPEN_NAME = re.compile(r"\$[^$ ]+\$")
"""A variable in a message."""


def show(
    words: list[str],
    form: str = "flat",
    *,
    origins: bool = False,
    unresolved: bool = False,
    changed: bool = False,
    defaults: bool = False,
    open_: bool = False,
) -> int:
    """Print the configuration that `words` name, or the part of it at a path; return the exit status.

    What cannot be read is marked in the output and explained on standard error; everything else is shown. With `open_`
    a value whose variable is not given is only marked.
    """
    from cntkpy.cntk_config.export import Export
    from cntkpy.commands.tools.show_model import FORMATS, show_model
    from cntkpy.networks.files.recognise import is_model

    if len(words) == 1 and is_model(words[0]):
        if form not in FORMATS or origins or unresolved or changed or defaults:
            raise click.UsageError("A model is shown with --format flat or json.")
        return show_model(words[0], form)
    sorted_words = sort_words(words, files=1)
    if len(sorted_words.rest) > 1:
        raise click.UsageError(f"One path at most can be shown; there are: {' '.join(sorted_words.rest)}")
    path = sorted_words.rest[0] if sorted_words.rest else None
    if changed and form != "flat":
        raise click.UsageError("--changed needs --format flat.")
    errors: list[ConfigError] = []

    def mark(error: ConfigError) -> Any:
        if open_ and error.kind in OPEN:
            name = OPEN_NAME.search(error.message)
            text = name[0] if name else "$$"
            return {"$open": text} if form == "json" and not origins else f"<open: {text}>"
        errors.append(error)
        return {"$error": error.kind} if form == "json" and not origins else f"<error: {error}>"

    write = {"flat": Export.flat, "json": Export.json, "yaml": Export.yaml, "cntk": Export.cntk}[form]
    root = load(sorted_words.configurations[0])
    if defaults:
        fill_in(root)
    text = write(Export(root, path, unresolved, origins, mark))
    if changed:
        at_default = unchanged(root)
        lines = (line for line in split_lines(text, keep_ends=True) if line.partition("=")[0].lower() not in at_default)
        text = "".join(lines)
    sys.stdout.write(printable(text) if form == "flat" else text)
    sys.stdout.flush()
    for finding in [*root.warnings, *(error.diagnostic for error in errors)]:
        print(finding.one_line(), file=sys.stderr)
    return EXIT_ERROR if errors else 0


def fill_in(root: ConfigParameters) -> None:
    """Add the declared defaults of all sections that commands use, as if they had been written."""
    for use in section_map(root).walk():
        names = use.section.path.split(":")[1:]
        if use.section.parent is None and use.section is not root:
            continue  # a set in a list cannot be reached by a name
        for parameter in use.parameters():
            if parameter.default in (None, "") or parameter.required or parameter.type.is_section:
                continue
            if parameter.value(use.section) is None:
                quote = '"' if parameter.default[:1] not in ("(", "[", "{") else ""
                text = f"{parameter.name}={quote}{parameter.default}{quote}"
                for name in reversed(_holder(root, names)):
                    text = f"{name}=[{text}]"
                root.insert(text)


def _holder(root: ConfigParameters, names: list[str]) -> list[str]:
    """Return the path under which a section really stands; a reader may be one of the top level."""
    if len(names) > 1 and not root.section(names[0]).exists_current(names[1]):
        return names[1:]
    return names


def unchanged(root: ConfigParameters) -> set[str]:
    """Full names, in lower case, of values that are equal to their declared defaults."""
    names: set[str] = set()
    for use in section_map(root).walk():
        prefix = use.section.path.partition(":")[2]
        for parameter in use.parameters():
            if not parameter.default or parameter.required or parameter.type.is_section:
                continue
            name = next((n for n in (parameter.name, *parameter.aliases) if use.section.exists_current(n)), None)
            if name is None:
                continue
            try:
                data = parameter.read(use.section)
                default = parameter.type.convert(ConfigValue(parameter.default, scope=use.section))
            except ConfigError:
                continue
            if data == default:
                names.add(f"{prefix}:{name}".lower().lstrip(":"))
    return names
