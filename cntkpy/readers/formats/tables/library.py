"""pyarrow, imported when the first table is about to be read or written."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install

BROKEN = (OSError, EOFError, ValueError, LookupError, TypeError, NotImplementedError, MemoryError, OverflowError)
"""Exceptions of pyarrow for a damaged file; its own exceptions are derived from these, but for one."""


@cache
def arrow() -> Any:
    """Return the module pyarrow.

    Raises:
        UserError: it is not installed; the hint says how to install it.
    """
    return _module("pyarrow")


@cache
def parquet() -> Any:
    """Return the module pyarrow.parquet; the same error as `arrow`."""
    arrow()
    return _module("pyarrow.parquet")


@cache
def compute() -> Any:
    """Return the module pyarrow.compute; the same error as `arrow`."""
    arrow()
    return _module("pyarrow.compute")


@cache
def arrow_csv() -> Any:
    """Return the module pyarrow.csv; the same error as `arrow`."""
    arrow()
    return _module("pyarrow.csv")


@cache
def broken() -> tuple[type[BaseException], ...]:
    """Return the exceptions of pyarrow on a damaged file."""
    return (*BROKEN, arrow().ArrowException)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            "MissingPackage",
            f"tables (Parquet, Arrow, CSV) are read by pyarrow, which is not installed: {error}",
            hint=how_to_install("tables"),
        ) from error
