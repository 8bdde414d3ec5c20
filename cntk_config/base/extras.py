"""How the packages of an extra get into the environment that is running: pip, pipx and uv differ."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shlex
import sys
from pathlib import Path

_OF_EXTRA = re.compile(r"""(?P<needed>[^;]+);(?P<first>.*\band\s)?\s*extra\s*==\s*['"](?P<extra>[\w-]+)['"]\s*""")
"""A requirement of an extra in the metadata of a package, by itself or behind another condition."""


def how_to_install(extra: str) -> str:
    """What to do where a package of an extra is missing: `add the extra plot: pipx inject cntkpy 'matplotlib>=3.8'`.

    Args:
        extra: its name.
    """
    packages = requirements(extra) or [f"cntkpy[{extra}]"]
    return f"add the extra {extra}: {shlex.join([*_installer(Path(sys.prefix)), *packages])}"


def requirements(extra: str) -> list[str]:
    """The packages of an extra with their versions; none if cntkpy is not installed, or has no such extra.

    Those that only some systems need are left out.
    """
    try:
        every = importlib.metadata.requires("cntkpy") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = (_OF_EXTRA.fullmatch(one) for one in every)
    return [one["needed"].strip() for one in found if one and not one["first"] and one["extra"] == extra]


def _installer(prefix: Path) -> list[str]:
    """The words of the program that installs into the environment of this folder."""
    if (prefix / "pipx_metadata.json").exists():
        return ["pipx", "inject", prefix.name]
    if (prefix / "uv-receipt.toml").exists() or importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
