"""A folder with a project file and layers, made of a template."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.writing import atomic_write, shown, why_no_folder
from cntkpy.commands.new.package import LONGEST, NAME, TEMPLATES, write_template
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
    folder = Path(name)
    if folder.exists() or folder.is_symlink():
        raise ConfigError("CannotWrite", f"there is a {name} already", None, "choose another name, or move it away")
    try:
        write_template(TEMPLATES / "project", folder, {"PACKAGE": name, "CLASS": name, "NAME": name})
        with atomic_write(folder / SCHEMA, "w", durable=False) as file:
            file.write(schema_text())
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        message = f"{shown(folder)} cannot be written: {why_no_folder(folder) or error.strerror or error}"
        raise ConfigError("CannotWrite", message) from None
    print(f"{name}: a project with 5 runs of 5 layers")
    for line in (f"cd {name}", "cntkpy check", "cntkpy run dev-small"):
        print(f"  {line}")
    return 0


def schema_text() -> str:
    """Return the JSON schema of the project file, as a file."""
    return json.dumps(json_schema(), indent=2) + "\n"
