"""Files of networks that are looked at by themselves: BrainScript by its grammar, NDL by functions and names, too."""

from __future__ import annotations

from pathlib import Path

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.source import decode
from cntkpy.commands.checks.findings import Finding

SUFFIX, NDL = ".bs", ".ndl"


def is_script(name: str) -> bool:
    """Return whether a file holds BrainScript."""
    return name.lower().endswith(SUFFIX)


def script_findings(name: str, text: str | None = None) -> list[Finding]:
    """Return the findings of a file of BrainScript, or of `text` in its place.

    Names that nothing defines are none of it: the network that includes the file may.
    """
    from cntkpy.networks.builders.brainscript.language.parse import parse_members
    from cntkpy.networks.builders.brainscript.language.source import text_of_file, text_of_string

    try:
        parse_members(text_of_file(Path(name), name) if text is None else text_of_string(text, name))
    except ConfigError as error:
        return [Finding.of(error.diagnostic)]
    return []


def is_ndl(name: str) -> bool:
    """Return whether a file holds networks or macros in NDL."""
    return name.lower().endswith(NDL)


def ndl_findings(name: str, text: str | None = None) -> list[Finding]:
    """Return the findings of a file in NDL, or of `text` in its place.

    Names that are unlike all of the file are none of it: the configuration may have them.
    """
    from cntkpy.networks.builders.ndl.alone import file_statements
    from cntkpy.networks.builders.ndl.idle import idle_problems

    try:
        text = decode(read_input(name), name).text if text is None else text
        statements = file_statements(text, name)
    except ConfigError as error:
        return [Finding.of(error.diagnostic)]
    return [Finding.of(diagnostic) for diagnostic in idle_problems(statements, {}, ())]
