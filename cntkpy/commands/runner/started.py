"""The first and the last event of a run: what it is, where, with which configuration; how it ended."""

from __future__ import annotations

import logging
import os
import platform
from pathlib import Path

from cntkpy import __version__
from cntkpy.cntk_config import ConfigParameters
from cntkpy.commands.runs.settings import as_json, settings_of
from cntkpy.trainers.log.events import event

log = logging.getLogger("cntkpy.commands")

PACKAGES = ("numpy", "scipy", "numba", "jax", "jaxlib", "safetensors", "opencv-python-headless")
"""Versions that the numbers of a run may depend on."""


def say_started(words: list[str], root: ConfigParameters) -> None:
    """Log the event of a run that starts, where events are kept or sent.

    Args:
        words: The command line.
        root: The configuration.
    """
    if not log.isEnabledFor(logging.DEBUG):
        return
    place = {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPU cores",
        "folder": str(Path.cwd()),
    }
    settings = [as_json(setting) for setting in settings_of(root)]
    log.debug("", extra=event("run started", words=words, versions=versions(), place=place, settings=settings))


def say_finished(status: int, error: str) -> None:
    """Log the event of a run that ends; `error` is the last error of its log."""
    message = error.removeprefix("EXCEPTION occurred: ") if status else ""
    log.debug("", extra=event("run finished", status=status, error=message))


def versions() -> dict[str, str]:
    """Return the versions of cntkpy, Python, and the packages that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    result = {"cntkpy": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            continue
    return result
