"""A folder with a project file and layers, made of a template."""

from __future__ import annotations

import json

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.writing import shown
from cntkpy.commands.new.package import LONGEST, NAME, write_template
from cntkpy.commands.projects.schema import json_schema

SCHEMA = "cntkpy.schema.json"


def make_project(name: str) -> int:
    """Make the folder `name` with a project in the current folder, and say what to do with it.

    Args:
        name: The name of the folder.

    Returns:
        The exit status.

    Raises:
        ConfigError: The name is taken or cannot be one, or the folder cannot be written.
    """
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        hint = f"write small letters, digits and single dashes, {LONGEST} at most, with a letter first"
        raise ConfigError("BadChoice", f"a project cannot be called '{shown(name)}'", None, hint)
    words = {"PACKAGE": name, "CLASS": name, "NAME": name}
    write_template("project", name, words, {SCHEMA: schema_text()})
    print(f"{name}: a project with 5 runs of 5 layers")
    for line in (f"cd {name}", "cntkpy check", "cntkpy run dev-small"):
        print(f"  {line}")
    return 0


def schema_text() -> str:
    """Return the JSON schema of the project file, as a file."""
    return json.dumps(json_schema(), indent=2) + "\n"
