"""cntkpy: CNTK's configuration language, data readers and command runner.

`python -m cntkpy configFile=...` runs a configuration. `import cntkpy` gives the public names of the packages, each
imported when it is first used; `cntkpy.training` trains from Python, `cntkpy.compat.cntk` has CNTK's names for that,
`cntkpy.testing` checks plug-ins.
"""

import os
import sys

if sys.orig_argv[1:] and not sys.flags.safe_path and "-m" in sys.orig_argv:
    # `python -m` puts the current folder first, where a configuration may have come with a `typing.py`
    _place = sys.orig_argv.index("-m") + 1
    _asked = sys.orig_argv[_place : _place + 1] == ["cntkpy"] and sys.argv[:1] == ["-m"]
    if _asked and __file__ != os.path.join(sys.path[0], "cntkpy", "__init__.py"):  # noqa: PTH118 - pathlib is slow
        del sys.path[0]
    del _place, _asked

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cntkpy import __version__
    from cntkpy.cntk_config import (
        ConfigArray,
        ConfigError,
        ConfigParameters,
        ConfigValue,
        PerEpoch,
        UserError,
        load,
        parse,
    )
    from cntkpy.networks.builders.build import build_network
    from cntkpy.networks.files.model_file import load_model, save_model
    from cntkpy.readers import create_reader

__version__ = "0.2.0"

_HOME = {
    "ConfigArray": "cntkpy.cntk_config",
    "ConfigError": "cntkpy.cntk_config",
    "ConfigParameters": "cntkpy.cntk_config",
    "ConfigValue": "cntkpy.cntk_config",
    "PerEpoch": "cntkpy.cntk_config",
    "UserError": "cntkpy.cntk_config",
    "load": "cntkpy.cntk_config",
    "parse": "cntkpy.cntk_config",
    "create_reader": "cntkpy.readers",
    "build_network": "cntkpy.networks.builders.build",
    "load_model": "cntkpy.networks.files.model_file",
    "save_model": "cntkpy.networks.files.model_file",
}

_OF_DATA = ("create_reader", "build_network", "load_model", "save_model")
"""The names that need the extra `data`."""
_MODULES = ("training", "testing", "compat", "cntk_config", "readers", "networks", "trainers", "commands", "grammar")

__all__ = [
    "ConfigArray", "ConfigError", "ConfigParameters", "ConfigValue", "PerEpoch", "UserError", "__version__",
    "build_network", "create_reader", "load", "load_model", "parse", "run", "save_model",
]  # fmt: skip


def run(*words: str) -> int:
    """Run a configuration as `cntkpy WORDS...` does; return the exit status."""
    from cntkpy.commands.runner.run import run as run_words

    return run_words(list(words))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"cntkpy.{name}")
    if name not in _HOME:
        advice = "" if name.startswith("_") else "; CNTK's names for Python are in cntkpy.compat.cntk"
        raise AttributeError(f"module 'cntkpy' has no attribute {name!r}{advice}")
    if name in _OF_DATA:
        from cntkpy.cntk_config.base.extras import need_to_import

        need_to_import("data", f"cntkpy.{name}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
