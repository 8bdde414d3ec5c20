"""Whether data is so little that NumPy has read it before Numba is imported.

Importing Numba and loading kernels takes as long as reading millions of bytes without them; compiling kernels, when
there are none yet, ten times longer. So what the kernels of text do has a twin in Python and NumPy, which gives the
same results and finds the same mistakes (modules called `plain` and `*_plain`). The twins are used until a process has
done as much work that way as importing Numba would have cost; from then on, and for what is too much at once, kernels
are. So no run waits for Numba in vain, and none takes more than twice as long as with the better choice.
"""

from __future__ import annotations

BUDGET = 12_000_000
"""Work that may be done without kernels, in bytes of text: about 50 ns each."""

CALL = 400
"""Work that calls of NumPy are, however little the data is."""

_left = BUDGET


def is_little(work: int) -> bool:
    """Whether to do so much work (in bytes of text) without kernels. A no is final: kernels are there from then on."""
    global _left
    _left = _left - work - CALL if work + CALL <= _left else 0
    return _left > 0


def allow(work: int) -> None:
    """Begin anew, with so much work that may be done without kernels."""
    global _left
    _left = work
