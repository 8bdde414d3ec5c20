"""An environment in which only the packages of some extras can be imported, as their metadata say.

`environment` gives the variables of a process that finds cntkpy, what its extras require, what that requires, and the
standard library: the other packages of this environment are hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
HIDE = '''\
"""Hide modules of packages that do not belong to the environment."""
import sys

HIDDEN = frozenset({names!r})


class Hidden:
    """Refuse hidden modules."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Hidden())
'''


def distributions(extras: Iterable[str]) -> set[str]:
    """The packages that `pip install 'cntkpy[EXTRAS]'` brings, with cntkpy."""
    todo = [("cntkpy", frozenset(extras))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        name, wanted = item = todo.pop()
        if item in seen:
            continue
        seen.add(item)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue  # of another system
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                todo.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in seen}


def hidden(extras: Iterable[str]) -> list[str]:
    """The top modules that such an environment lacks."""
    kept = distributions(extras)
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if not any(canonicalize_name(owner) in kept for owner in owners)
    )


def environment(folder: Path, extras: Iterable[str]) -> dict[str, str]:
    """The variables of a process of such an environment; folder: where its start-up file is written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(HIDE.format(names=hidden(extras)), encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
