"""What a golden is, whatever kind it has."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

GOLDENS = Path(__file__).resolve().parent.parent.parent / "goldens"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Result(Protocol):
    """What a run of the command line left: exit status and the two streams."""

    code: int
    out: str
    err: str


Runner = Callable[..., Result]
"""`runner(*words, cwd=folder)` runs the command line."""

Found = dict[str, Any]
"""What a run left, by part: `log`, `outputs`, ..."""


@dataclass(frozen=True)
class Difference:
    """One place where a run and CNTK disagree.

    Attributes:
        part: which part of what was left: `verdict`, `log`, `outputs`, `nodes`, `files`, ...
        text: what was expected there, and what was found.
    """

    part: str
    text: str

    def __str__(self) -> str:
        return f"{self.part}: {self.text}"


@dataclass(frozen=True)
class Case(ABC):
    """One configuration, and what CNTK made of it.

    Attributes:
        group: the folder below `tests/goldens`: `networks/mel`.
        name: its name there.
        accident: why CNTK's behaviour is an accident that is not worth reproducing; empty for all others.
    """

    group: str
    name: str
    accident: str = ""

    @property
    def id(self) -> str:
        """Its name among all cases."""
        return f"{self.group}/{self.name}"

    @abstractmethod
    def run(self, cntkpy: Runner, folder: Path) -> Found:
        """Run it in an empty folder; return what it left."""

    @abstractmethod
    def compare(self, found: Found) -> list[Difference]:
        """Return where that differs from what CNTK left."""


@functools.lru_cache(maxsize=8)
def load_yaml(path: Path) -> Any:
    """The content of a YAML file, which is read once while cases of one folder follow each other."""
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)
