"""The known differences: `tests/goldens/differences.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from golden_cases.case import GOLDENS, Case, load_yaml

Kind = Literal["on purpose", "unfinished"]


@dataclass(frozen=True)
class Known:
    """A case, or all cases of a folder, that are known to differ.

    Attributes:
        kind: `on purpose`: for good, with a line in docs/differences.md; `unfinished`: until somebody mends it.
        reason: the first words of that line, or what is missing.
        parts: the parts that differ, with a regular expression of what does; see `Case.compare`. Empty for folders:
            they differ wherever they want.
        changes: what to change in the case for a second run, which does what CNTK did; see `Case.changed`.
    """

    kind: Kind
    reason: str
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    changes: Mapping[str, str] = field(default_factory=dict[str, str])


def declared() -> dict[str, Known]:
    """The known differences by the id of the case or the name of the folder."""
    content = load_yaml(GOLDENS / "differences.yaml")
    on_purpose = {
        name: Known("on purpose", str(entry["reason"]), entry["differs"], entry.get("with", {}))
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
