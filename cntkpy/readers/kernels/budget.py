"""True if data are read in pure Python, because importing Numba would take longer.

Importing Numba and loading its kernels takes as long as parsing millions of bytes in pure Python; compiling them, when
none are cached yet, ten times longer. So each text kernel has a fallback in Python and NumPy (modules called `fallback`
and `*_fallback`), with the same results and the same errors. A process uses fallbacks until their work has cost as much
as importing Numba; from then on, and for anything that exceeds the budget at once, it uses kernels. So no run takes
more than twice as long as with the better choice.
"""

from __future__ import annotations

BUDGET = 12_000_000
"""Bytes of text that a process may parse in pure Python, at about 50 ns each."""

CALL = 400
"""The cost of calling NumPy at all, in bytes of text."""

_left = BUDGET


def fits_budget(work: int) -> bool:
    """Return whether pure Python does this work, in bytes of text. Once false, it stays false."""
    global _left
    _left = _left - work - CALL if work + CALL <= _left else 0
    return _left > 0


def reset(budget: int) -> None:
    """Start over with a budget, for tests."""
    global _left
    _left = budget
