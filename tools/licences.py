"""The licences of what cntkpy needs: `python -m tools.licences` writes docs/licences.md.

They are read from the metadata of the packages that are installed here, so run it where all extras are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cntkpy.cntk_config.base.extras import BUILT_ON, PACKAGES

PAGE = Path(__file__).parent.parent / "docs" / "licences.md"
BASE = ""
"""What is always installed."""
LONGEST = 60
"""Letters of a licence's name; a longer text is the licence itself."""
HEAD = """\
# Licences
cntkpy is under the MIT licence. It contains no other program; pip installs the packages below with it. The table
is made by `python -m tools.licences` from the metadata of the packages. A build has a bill of materials in CycloneDX's
format, too, with versions: see [developing.md](developing.md#the-package).

| package | licence | comes with |
|---|---|---|
"""
CLASSIFIER = "License :: OSI Approved :: "


def licence_of(found: Distribution) -> str:
    """The licence of a package: its SPDX expression, else its classifiers, else the word that it gives."""
    data = found.metadata.json
    expression = data.get("license_expression")
    if expression:
        return str(expression)
    named = [one.removeprefix(CLASSIFIER) for one in data.get("classifier", ()) if one.startswith(CLASSIFIER)]
    word = str(data.get("license", "")).strip().split("\n")[0]
    return ", ".join(named) or (word if 0 < len(word) <= LONGEST else "unknown")


def needed(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """The requirements of an installed package with some of its extras, on this system."""
    for text in distribution(name).requires or []:
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield one


def closure(extra: str) -> dict[str, Distribution]:
    """The packages that an extra brings, theirs included, by name."""
    found: dict[str, Distribution] = {}
    pending = [("cntkpy", frozenset({extra}))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        name, extras = pending.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for one in needed(name, extras):
            other = canonicalize_name(one.name)
            try:
                package = distribution(other)
            except PackageNotFoundError:
                continue
            if other != "cntkpy":
                found[other] = package
            pending.append((other, frozenset(one.extras)))
    return found


def _own(extras: list[str]) -> list[str]:
    """Extras without those that have a package from one that they are built on."""
    return [one for one in extras if not {*BUILT_ON.get(one, ())} & {*extras}]


def page() -> str:
    """The text of docs/licences.md."""
    with_: dict[str, list[str]] = {}
    packages: dict[str, Distribution] = {}
    for extra in (BASE, *PACKAGES):
        for name, package in closure(extra).items():
            packages[name] = package
            with_.setdefault(name, []).append(extra)
    rows = [
        f"| {name} | {licence_of(packages[name])} | {'always' if BASE in extras else ', '.join(_own(extras))} |\n"
        for name, extras in sorted(with_.items())
    ]
    return HEAD + "".join(rows)


def main() -> int:
    """Write the page, say which licences are not known."""
    text = page()
    PAGE.write_text(text, encoding="utf-8")
    unknown = [line.split("|")[1].strip() for line in text.splitlines() if "| unknown |" in line]
    print(f"{PAGE}: {text.count(chr(10)) - HEAD.count(chr(10))} packages; unknown: {', '.join(unknown) or 'none'}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
