"""`import cntk` as `cntkpy.compat.cntk`: the modules of a program for CNTK 2 are found under CNTK's names."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from cntkpy.compat.keras_support import is_keras_on_cntk, support_keras

TARGETS = {"cntk": "cntkpy.compat.cntk", "_cntk_py": "cntkpy.compat.cntk.cntk_py"}
"""The top-level modules of CNTK's package, and what they are here."""


def target_of(name: str) -> str | None:
    """Return the module that a name of CNTK stands for; None for names that are not CNTK's."""
    top, dot, path = name.partition(".")
    return f"{TARGETS[top]}{dot}{path}" if top in TARGETS else None


class _Same(Loader):
    """Loads a module that exists under another name: the very same object.

    Args:
        target: Its own name.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module.

        Raises:
            ModuleNotFoundError: There is none; the message says what there is instead.
        """
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        for name, loaded in list(sys.modules.items()):  # else an import sets the attribute of the package to the module
            if name.startswith("cntkpy.compat.cntk."):
                sys.modules.setdefault(f"cntk{name.removeprefix('cntkpy.compat.cntk')}", loaded)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it was executed under its own name, and keeps its own `__spec__`."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Finds CNTK's modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of CNTK; None for all others."""
        target_name = target_of(fullname)
        return None if target_name is None else ModuleSpec(fullname, _Same(target_name), is_package=True)


def install() -> None:
    """Make `cntk` and all its modules those of `cntkpy.compat.cntk`, in this process.

    A package `cntk` that is installed is hidden, with a warning. Where the environment variable KERAS_BACKEND is
    `cntk`, Keras 2.3.1 gets what it needs, see `cntkpy.compat.keras_support`.

    Raises:
        ImportError: Another package `cntk` was imported before.
    """
    previous = sys.modules.get("cntk")
    ours = sys.modules.get(TARGETS["cntk"])
    if previous is not None and previous is not ours and not _is_ours(previous.__spec__):
        raise ImportError(
            f"the package cntk of {_place(previous.__spec__)} is imported already: call cntkpy.compat.install() before "
            "the first `import cntk`, or run the program with `python -m cntkpy.compat PROGRAM`"
        )
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    real = PathFinder.find_spec("cntk")
    if real is not None and not _is_ours(real):
        warnings.warn(
            f"`import cntk` gives cntkpy from now on; the package cntk of {_place(real)} is hidden",
            RuntimeWarning,
            stacklevel=2,
        )
    sys.meta_path.insert(0, _Finder())
    if is_keras_on_cntk():
        support_keras()


def _is_ours(spec: ModuleSpec | None) -> bool:
    """Return whether it is the package of the distribution cntkpy-cntk2, which calls `install` itself."""
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return any(PathFinder.find_spec("_made_by_cntkpy", [folder]) is not None for folder in folders)


def _place(spec: ModuleSpec | None) -> str:
    return str(spec.origin) if spec is not None and spec.origin else "another place"
