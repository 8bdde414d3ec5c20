"""Goldens: configurations with what CNTK printed and wrote for them (`tests/goldens`), run and compared.

`cases()` lists them. A case knows how to run itself in an empty folder (`case.run(cntkpy, folder)`) and how to compare
what the run left with what CNTK left (`case.compare(found)`, a list of `Difference`). `declared()` are the differences
that are known, from `tests/goldens/differences.yaml`.
"""

from golden_cases import figures, lines, runs
from golden_cases.case import GOLDENS, Case, Difference
from golden_cases.known import Known, declared, known

__all__ = ["GOLDENS", "Case", "Difference", "Known", "cases", "declared", "known"]


def cases() -> list[Case]:
    """Every golden, in a fixed order."""
    return [*runs.cases(), *lines.random_cases(), *figures.cases(), *lines.cases()]
