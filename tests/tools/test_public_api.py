"""The public names of the Python interfaces stay as `tests/public_api.txt` has them."""

import difflib
import enum
import sys

import pytest

from tools.public_api import FILE, MODULES, described, text


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python print some signatures otherwise")
def test_names_and_signatures() -> None:
    kept, now = FILE.read_text("utf-8").splitlines(), text().splitlines()
    changes = "\n".join(difflib.unified_diff(kept, now, "tests/public_api.txt", "now", lineterm="", n=0))
    assert kept == now, f"{changes}\nIs the change wanted? docs/stability.md; `python -m tools.public_api` keeps it."


def test_every_module_is_there() -> None:
    kept = FILE.read_text("utf-8").splitlines()
    assert all(module in kept for module in MODULES)
    for line in ("  load(argv: Sequence[str]) -> ConfigParameters", "  Dense", "  class Trainer"):
        assert any(one.startswith((line, f"  {line}")) for one in kept), line


class Sample:
    """A class."""

    def method(self, one: "int", *, two: float = 1.5) -> "str | None":
        """A method."""

    @property
    def value(self) -> int:
        """A property."""
        return 1

    @classmethod
    def made(cls) -> "Sample":
        """Another way to make one."""
        return cls()

    def _private(self) -> None:
        """Not listed."""


class Colour(enum.Enum):
    """A choice."""

    RED = 1


def test_what_is_listed() -> None:
    assert list(described("Sample", Sample)) == [
        "class Sample()",
        "  made() -> Sample",
        "  method(self, one: int, *, two: float = 1.5) -> str | None",
        "  value: property",
    ]
    assert list(described("Colour", Colour)) == ["class Colour", "  RED"]
    assert list(described("x", 1)) == ["x: int"]
