"""What a golden is, whatever kind it has."""

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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

NO_MASKS: Mapping[str, str] = {}


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

    def masked(self, masks: Mapping[str, str]) -> bool:
        """Whether it does not count: the first word of its text matches."""
        mask = masks.get(self.part)
        return mask is not None and re.fullmatch(mask, self.text.split(" ", 1)[0]) is not None


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
    def compare(self, found: Found, masks: Mapping[str, str] = NO_MASKS) -> list[Difference]:
        """Return where that differs from what CNTK left.

        Args:
            found: what `run` returned.
            masks: by part, a regular expression of what does not count: pieces of lines, or the text of a `Difference`
                up to its first blank.
        """

    def changed(self, changes: Mapping[str, str]) -> "Case":
        """The case with pieces of its script and of its words replaced; an empty key adds a word."""
        raise NotImplementedError


@functools.lru_cache(maxsize=8)
def load_yaml(path: Path) -> Any:
    """The content of a YAML file, which is read once while cases of one folder follow each other."""
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """A script with pieces replaced; each has to be there."""
    for old, new in changes.items():
        assert old in text or not old, f"{old!r} is not in the script"
        text = text.replace(old, new) if old else text
    return text
