"""All rules of source by the operation, and the operations without one."""

from __future__ import annotations

from cntkpy.networks.source.rules import (
    attention,
    criteria,
    elementwise,
    images,
    linear,
    normalisation,
    run,
    sequences,
    shape,
)
from cntkpy.networks.source.use import Rule

_FAMILIES = (elementwise, linear, shape, criteria, images, normalisation, attention, sequences, run)

RULES: dict[str, Rule] = {name: rule for family in _FAMILIES for name, rule in family.RULES.items()}

REFUSED: dict[str, str] = {**criteria.REFUSED, **sequences.REFUSED, **run.REFUSED}
"""Why an operation has no code."""
