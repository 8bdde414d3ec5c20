"""The extras: what each is for, whether it is installed, and how its packages get into the environment that is running.

pip, pipx and uv differ.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError

PACKAGES = {
    "data": ("numpy", "scipy", "numba"),
    "train": ("jax",),
    "image": ("cv2",),
    "tables": ("pyarrow",),
    "zstd": ("zstandard",),
    "remote": ("fsspec",),
    "plot": ("matplotlib",),
    "lsp": ("pygls",),
    "tensorboard": ("tensorboardX",),
    "mlflow": ("mlflow",),
    "onnx": ("onnx",),
    "sweep": ("optuna",),
}
"""For each extra, the packages that are imported, by which it is recognised."""
BUILT_ON = {"train": ("data",), "image": ("data",), "tables": ("data",), "onnx": ("data",), "sweep": ("train",)}
"""The extras that are a part of others."""

_OF_EXTRA = re.compile(r"""(?P<needed>[^;]+);(?P<first>.*\band\s)?\s*extra\s*==\s*['"](?P<extra>[\w-]+)['"]\s*""")
"""A requirement of an extra in the metadata of a package, by itself or behind another condition."""


def how_to_install(extra: str) -> str:
    """Return the hint for a missing package of an extra: `add the extra plot: pipx inject cntkpy
    'matplotlib>=3.8'`.

    Args:
        extra: its name.
    """
    return f"add the extra {extra}: {command_for(requirements(extra) or [f'cntkpy[{extra}]'])}"


def command_for(packages: Sequence[str]) -> str:
    """Return the command that installs packages into the environment that is running."""
    return shlex.join([*_installer(Path(sys.prefix)), *packages])


def missing(extra: str) -> str | None:
    """Return a package of an extra that is not installed, those of the extras that it is built on first; None: all
    are.
    """
    below = [result for extra_name in BUILT_ON.get(extra, ()) if (result := missing(extra_name)) is not None]
    return next((name for name in (*below, *PACKAGES[extra]) if not _is_installed(name)), None)


def extra_of(module: str | None) -> str | None:
    """Return the extra to which a module belongs that cannot be imported; None if it belongs to none."""
    package = (module or "").split(".")[0]
    return next((extra for extra, names in PACKAGES.items() if package in names), _OTHERS.get(package))


_OTHERS = {"jaxlib": "train", "safetensors": "train", "onnxruntime": "onnx", "lsprotocol": "lsp", "aiohttp": "remote"}
"""The extras of packages by which none is recognised."""


def need(extra: str, purpose: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: its name.
        purpose: what needs it, as the subject of a sentence.

    Raises:
        UserError: a package is missing.
    """
    package = missing(extra)
    if package is not None:
        raise UserError(
            "MissingPackage", f"{purpose} needs {package}, which is not installed", hint=how_to_install(extra)
        )


def need_to_import(extra: str, module: str) -> None:
    """As `need`, for a module that people import.

    Raises:
        ModuleNotFoundError: a package is missing.
    """
    package = missing(extra)
    if package is not None:
        message = f"{module} needs {package}, which is not installed; {how_to_install(extra)}"
        raise ModuleNotFoundError(message, name=package)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # somebody refuses to import it
        return False


def requirements(extra: str) -> list[str]:
    """Return the packages of an extra with their versions, without those that are installed if only some are missing.

    None if cntkpy is not installed, or has no such extra. Those that only some systems need are left out.
    """
    every = _requirements(extra)
    return [requirement for requirement in every if not _has_distribution(requirement)] or every


def _has_distribution(requirement: str) -> bool:
    """Return whether some version of the package of a requirement is installed."""
    from importlib import metadata  # it is slow to import

    try:
        return bool(metadata.version(_NAME.split(requirement, maxsplit=1)[0]))
    except metadata.PackageNotFoundError:
        return False


_NAME = re.compile(r"[^\w.-]")
"""Pattern of the end of a package name."""
_NESTED = re.compile(r"cntkpy\[(?P<extra>[\w-]+)\]")


def _requirements(extra: str) -> list[str]:
    from importlib import metadata

    try:
        every = metadata.requires("cntkpy") or []
    except metadata.PackageNotFoundError:
        return []
    matches = (_OF_EXTRA.fullmatch(requirement) for requirement in every)
    needed = [match["needed"].strip() for match in matches if match and not match["first"] and match["extra"] == extra]
    parts = [
        _requirements(part["extra"]) if (part := _NESTED.fullmatch(requirement)) else [requirement]
        for requirement in needed
    ]
    return list(dict.fromkeys(requirement for part in parts for requirement in part))


def _installer(prefix: Path) -> list[str]:
    """Return the words of the program that installs into the environment of this folder."""
    if (prefix / "pipx_metadata.json").exists():
        return ["pipx", "inject", prefix.name]
    if (prefix / "uv-receipt.toml").exists() or importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
