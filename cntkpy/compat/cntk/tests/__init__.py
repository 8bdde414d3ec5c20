"""cntk.tests: what programs use of CNTK's tests."""

from . import test_utils

__all__ = ["test_utils"]
