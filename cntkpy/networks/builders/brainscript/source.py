"""The network description of a command section: the value of `BrainScriptNetworkBuilder`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.source import Text
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.networks.builders.brainscript.language.source import text_of_value
from cntkpy.networks.builders.brainscript.program import Program, parse_network


def program_of(value: ConfigValue) -> Program:
    """Return the network description that a value is.

    Raises:
        ConfigError: an included file cannot be read, or it is no BrainScript.
    """
    return parse_network(text_of(value))


def text_of(value: ConfigValue) -> Text:
    """Return the text of a network description, with its included files.

    Raises:
        ConfigError: an included file cannot be read.
    """
    return text_of_value(value, include_folders(value.scope))


def include_folders(section: ConfigParameters | None) -> list[Path]:
    """Return the folders of the configuration files."""
    folders: dict[Path, None] = {}
    scope = section
    while scope is not None:
        folders.update(dict.fromkeys(path.parent for path in scope.files()))
        scope = scope.parent
    return list(folders)


def program_names(section: ConfigParameters | None) -> Mapping[str, float | str]:
    """Return the names of the configuration that a program sees: `deviceId` and `traceLevel`."""
    return {"deviceId": _number(section, "deviceId", -1.0), "traceLevel": _number(section, "traceLevel", 0.0)}


def _number(section: ConfigParameters | None, name: str, default: float) -> float:
    value = section.find(name) if section is not None else None
    if value is None:
        return default
    try:
        return float(value.as_double())
    except ConfigError:  # cpu, gpu, auto
        return default
