"""Interfaces under the names of other programs: `cntk/` is CNTK's Python package.

`install()` makes `import cntk` give that package, `python -m cntkpy.compat PROGRAM` runs a program after it.
"""

from cntkpy.compat.alias import install

__all__ = ["install"]
