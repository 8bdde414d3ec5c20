"""The public names of the Python interfaces with their signatures: `python -m tools.public_api [--check]`.

They are in `tests/public_api.txt`, so that a change of the interface shows as a change of that file.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MODULES = ("cntkpy", "cntkpy.training", "cntkpy.testing", "cntkpy.cntk_config", "cntkpy.readers")
FILE = Path(__file__).resolve().parent.parent / "tests" / "public_api.txt"
HEAD = """\
# Public names of the Python interfaces, written by `python -m tools.public_api`.
# docs/stability.md says what stays from version to version.
"""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def text() -> str:
    """The whole file."""
    return HEAD + "".join(f"\n{module}\n" + "".join(f"  {line}\n" for line in lines_of(module)) for module in MODULES)


def lines_of(module: str) -> Iterator[str]:
    """A line for each public name of a module, and for each public member of its classes and modules.

    A class that two of these modules have is listed in both.
    """
    found = importlib.import_module(module)
    for name in sorted(found.__all__):
        yield from described(name, getattr(found, name))


def described(name: str, value: Any) -> Iterator[str]:
    """The lines of one public name."""
    if inspect.ismodule(value):
        yield f"{name}: module"
        for inner in names_of(value):
            yield from (f"  {line}" for line in described(inner, getattr(value, inner)))
    elif inspect.isclass(value):
        yield f"class {name}" + ("" if issubclass(value, enum.Enum) else _signature(value))
        yield from (f"  {line}" for line in _members(value))
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def names_of(module: Any) -> list[str]:
    """The public names of a module: its `__all__`, else what it defines or imports under its own name."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = (name for name, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__)
    return sorted(name for name in own if not name.startswith("_"))


def _members(kind: type) -> Iterator[str]:
    if issubclass(kind, enum.Enum):
        yield from (one.name for one in kind)
        return
    for name, value in members_of(kind):
        if isinstance(value, property):
            yield f"{name}: property"
        elif isinstance(value, staticmethod | classmethod):
            yield f"{name}{_signature(getattr(kind, name))}"
        elif callable(value):
            yield f"{name}{_signature(value)}"
        else:
            yield name


def members_of(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class by name, without those of Python's own classes; methods as they are defined."""
    for name in sorted(dir(kind)):
        if not name.startswith("_") and not hasattr(object, name) and not _is_of_python(kind, name):
            yield name, inspect.getattr_static(kind, name)


def _is_of_python(kind: type, name: str) -> bool:
    """Whether a member comes from a class of the standard library, `Exception` or `int`."""
    owner = next(one for one in kind.__mro__ if name in vars(one))
    return owner.__module__.partition(".")[0] in sys.stdlib_module_names


class _Plain(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _plain(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


def _signature(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    parameters = [one.replace(annotation=_plain(one.annotation)) for one in found.parameters.values()]
    found = found.replace(parameters=parameters, return_annotation=_plain(found.return_annotation))
    return _ADDRESS.sub("", str(found)).replace("typing.", "").replace("collections.abc.", "")


def main(words: list[str]) -> int:
    """Write the file; with `--check`, say whether it is old."""
    new = text()
    if words == ["--check"]:
        same = FILE.read_text("utf-8") == new
        print(f"tests/public_api.txt is {'up to date' if same else 'old; python -m tools.public_api writes it'}")
        return 0 if same else 1
    FILE.write_text(new, "utf-8")
    print(f"{FILE}: {new.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
