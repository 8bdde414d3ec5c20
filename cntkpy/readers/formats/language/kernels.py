"""The kernels of this format, or their fallbacks in Python, whichever takes less time."""

from __future__ import annotations

from typing import Any

from cntkpy.readers.kernels.budget import fits_budget


def scans(size: int, words: int) -> Any:
    """`text_kernels`, or the fallbacks if so many bytes, with so many words to look up, fit the budget."""
    if fits_budget(4 * size + 5 * words):
        from . import text_fallback as functions
    else:
        from . import text_kernels as functions
    return functions


def shuffles(count: int) -> Any:
    """`shuffle_kernels`, or the fallbacks for so many sentences."""
    if fits_budget(2000 + 40 * count):
        from . import shuffle_fallback as functions
    else:
        from . import shuffle_kernels as functions
    return functions


def layers(cells: int) -> Any:
    """`lay_kernels`, or the fallbacks for so many cells or sentences."""
    if fits_budget(4000 + 4 * cells):
        from . import lay_fallback as functions
    else:
        from . import lay_kernels as functions
    return functions
