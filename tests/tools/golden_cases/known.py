"""The known differences: `tests/goldens/differences.yaml`."""

from dataclasses import dataclass
from typing import Literal

from golden_cases.case import GOLDENS, Case, load_yaml

Kind = Literal["on purpose", "unfinished"]


@dataclass(frozen=True)
class Known:
    """A case, or all cases of a folder, that are known to differ.

    Attributes:
        kind: `on purpose`: for good, with a line in docs/differences.md; `unfinished`: until somebody mends it.
        reason: the first words of that line, or what is missing.
        parts: the parts that differ. Empty for folders: they differ wherever they want.
    """

    kind: Kind
    reason: str
    parts: tuple[str, ...] = ()


def declared() -> dict[str, Known]:
    """The known differences by the id of the case or the name of the folder."""
    content = load_yaml(GOLDENS / "differences.yaml")
    on_purpose = {
        name: Known("on purpose", str(entry["reason"]), tuple(entry["differs"]))
        for name, entry in (content["on purpose"] or {}).items()
    }
    unfinished = {name: Known("unfinished", str(reason)) for name, reason in (content["unfinished"] or {}).items()}
    twice = on_purpose.keys() & unfinished.keys()
    if twice:
        raise ValueError(f"declared twice in differences.yaml: {', '.join(sorted(twice))}")
    return on_purpose | unfinished


def known(case: Case, table: dict[str, Known]) -> Known | None:
    """The known difference of a case, its folder's if it has none of its own."""
    return table.get(case.id) or table.get(case.group)
