"""Processor time that a run takes to import modules, by package.

`python benchmarks/imports.py WORD...` runs `cntkpy WORD...`. A module counts for itself, without those that it
imports. The last line of standard output has the seconds as JSON.
"""

import atexit
import collections
import json
import sys
import time
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from typing import Any

OURS = ("cntkpy",)
JAX = ("jax", "jaxlib")


def measured(load: Callable[..., Any], name_of: Callable[[Any], str], seconds: dict[str, float]) -> Callable[..., Any]:
    """`load`, a method of a loader, which adds its own processor time to that of the package."""

    def loading(loader: Any, given: Any) -> Any:
        global inner
        start, before, inner = time.thread_time(), inner, 0.0
        try:
            return load(loader, given)
        finally:
            whole = time.thread_time() - start
            seconds[name_of(given).partition(".")[0]] += whole - inner
            inner = before + whole

    return loading


inner = 0.0
"""Seconds of the modules that the one being loaded has imported so far."""


def measure() -> dict[str, float]:
    """From now on, by package, the seconds of what is imported."""
    seconds: dict[str, float] = collections.defaultdict(float)
    for loader in (SourceFileLoader, ExtensionFileLoader):
        loader.exec_module = measured(loader.exec_module, lambda module: module.__name__, seconds)
        loader.create_module = measured(loader.create_module, lambda spec: spec.name, seconds)
    return seconds


def of(packages: tuple[str, ...], seconds: dict[str, float]) -> float:
    """Seconds of some packages together."""
    return sum(seconds.get(name, 0.0) for name in packages)


def run() -> int:
    """Run; the exit status of the run."""
    found = measure()
    atexit.register(lambda: print(json.dumps(found)))
    from cntkpy.__main__ import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
