"""True if data are read in pure Python, because importing Numba would take longer.

Importing Numba and loading its kernels takes as long as parsing millions of bytes in pure Python; compiling them, when
none are kept yet, ten times longer. So each text kernel has a fallback in Python and NumPy (modules called `fallback`
and `*_fallback`), with the same results and the same errors. A process uses fallbacks until their work has cost as much
as importing Numba, or half as much as compiling kernels where none are kept; from then on, and for anything that
exceeds the budget at once, it uses kernels. So no run takes more than twice as long as with the better choice.
"""

from __future__ import annotations

from cntkpy.readers.kernels.kept import are_kept

BUDGET = 24_000_000
"""Bytes of text that a process may parse in pure Python: 25 to 75 ns each, importing takes 1.3 s."""

BUDGET_WITHOUT_KERNELS = 60_000_000
"""The same where no kernels are kept: compiling them takes 11 s."""

CALL = 400
"""The cost of calling NumPy at all, in bytes of text."""

_left = BUDGET
_may_grow = True


def fits_budget(work: int) -> bool:
    """Return whether pure Python does this work, in bytes of text. Once false, it stays false."""
    global _left
    _left = _left - work - CALL if make_room(work) else 0
    return _left > 0


def make_room(work: int) -> bool:
    """Return whether this work would fit the budget that is left, which is raised once where no kernels are kept."""
    global _left, _may_grow
    if work + CALL > _left and _may_grow:
        _may_grow = False
        _left += 0 if are_kept() else BUDGET_WITHOUT_KERNELS - BUDGET
    return work + CALL <= _left


def reset(budget: int) -> None:
    """Start over with a budget, for tests; it is the same whether kernels are kept or not."""
    global _left, _may_grow
    _left, _may_grow = budget, False
