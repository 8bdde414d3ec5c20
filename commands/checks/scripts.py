"""Files of BrainScript, which hold members of networks: what the grammar does not allow."""

from __future__ import annotations

from pathlib import Path

from cntk_config import ConfigError
from commands.checks.findings import Finding

SUFFIX = ".bs"


def is_script(name: str) -> bool:
    """Whether a file holds BrainScript."""
    return name.lower().endswith(SUFFIX)


def script_findings(name: str, text: str | None = None) -> list[Finding]:
    """What is wrong with a file of BrainScript, or with `text` in its place.

    Names that nothing defines are none of it: the network that includes the file may.
    """
    from networks.builders.brainscript.language.parse import parse_members
    from networks.builders.brainscript.language.source import text_of_file, text_of_string

    try:
        parse_members(text_of_file(Path(name), name) if text is None else text_of_string(text, name))
    except ConfigError as error:
        return [Finding.of(error.diagnostic)]
    return []
