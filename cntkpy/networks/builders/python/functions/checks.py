"""Arguments of Python programs that make networks: each wrong one is an error that says what was expected."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import os
import zlib
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether it is a whole number, of Python or of numpy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_name(value: object) -> str:
    """Return the name of a function."""
    if not isinstance(value, str):
        raise CallError("WrongArguments", f"a name is a text, not {shorten(repr(value))}", hint="name='hidden'")
    return value


def check_flag(subject: str, value: object) -> bool:
    """Return an argument that is True or False."""
    if not isinstance(value, bool | np.bool_) and not (is_whole(value) and value in (0, 1)):
        raise CallError("WrongArguments", f"{subject} is True or False, not {shorten(repr(value))}")
    return bool(value)


def check_whole(subject: str, value: object, least: int | None = None) -> int:
    """Return an argument that is a whole number, perhaps not below another."""
    if not is_whole(value) or (least is not None and value < least):
        bound = "" if least is None else f" from {least} on"
        raise CallError("WrongArguments", f"{subject} is a whole number{bound}, not {shorten(repr(value))}")
    return int(value)


def check_number(subject: str, value: Any, least: float | None = None) -> float:
    """Return an argument that is a number, perhaps not below another."""
    kinds = int | float | np.integer | np.floating
    number = isinstance(value, kinds) and not isinstance(value, bool) and not math.isnan(value)
    if not number or (least is not None and value < least):
        bound = "" if least is None else f" from {least:g} on"
        raise CallError("WrongArguments", f"{subject} is a number{bound}, not {shorten(repr(value))}")
    return float(value)


def seed_option(value: object) -> int:
    """Return the `seed` option of a random node for a seed of a program; None: its place in the network counts.

    Options have 32 bits and count from 1, because 0 is no seed there; a checksum stands for a larger seed.
    """
    if value is None:
        return 0
    seed = check_whole("a seed", value, 0)
    return (seed if seed < 2**32 else zlib.crc32(seed.to_bytes(seed.bit_length() // 8 + 1))) + 1


def check_callable(subject: str, value: object, hint: str) -> None:
    """An argument that is a function."""
    if not callable(value):
        raise CallError("NoFunction", f"{subject} is a function, not {shorten(repr(value))}", hint=hint)


def is_path(value: object) -> TypeGuard[str | Path]:
    """Return whether it may be the name of a file."""
    return isinstance(value, str | os.PathLike) and bool(str(value))


def check_path(subject: str, value: object) -> str | Path:
    """Return the name of a file."""
    if not is_path(value):
        raise CallError("WrongArguments", f"{subject} is a text or a path, not {shorten(repr(value))}")
    return value


def as_array(subject: str, value: Any, dtype: DTypeLike) -> NDArray[np.generic]:
    """Numbers as an array."""
    if hasattr(value, "indptr"):  # a sparse matrix
        value = value.toarray()
    try:
        array = np.asarray(value)
    except UserError:  # a function without a value
        raise
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        message = f"{subject} is a number or an array of numbers, not {shorten(repr(value))}"
        raise CallError("WrongArguments", message)
    return array.astype(dtype, copy=False)
