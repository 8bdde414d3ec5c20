"""Arguments of Python programs that make networks: each wrong one is an error that says what was expected."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import os
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError, shorten


def is_whole(given: Any) -> bool:
    """Whether it is a whole number, of Python or of numpy."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def check_name(given: Any) -> str:
    """The name of a function."""
    if not isinstance(given, str):
        raise UserError("WrongArguments", f"a name is a text, not {shorten(repr(given))}", hint="name='hidden'")
    return given


def check_flag(what: str, given: Any) -> bool:
    """An argument that is True or False."""
    if not isinstance(given, bool | np.bool_) and not (is_whole(given) and given in (0, 1)):
        raise UserError("WrongArguments", f"{what} is True or False, not {shorten(repr(given))}")
    return bool(given)


def check_whole(what: str, given: Any, least: int | None = None) -> int:
    """An argument that is a whole number, perhaps not below another."""
    if not is_whole(given) or (least is not None and given < least):
        bound = "" if least is None else f" from {least} on"
        raise UserError("WrongArguments", f"{what} is a whole number{bound}, not {shorten(repr(given))}")
    return int(given)


def check_number(what: str, given: Any, least: float | None = None) -> float:
    """An argument that is a number, perhaps not below another."""
    kinds = int | float | np.integer | np.floating
    number = isinstance(given, kinds) and not isinstance(given, bool) and not math.isnan(given)
    if not number or (least is not None and given < least):
        bound = "" if least is None else f" from {least:g} on"
        raise UserError("WrongArguments", f"{what} is a number{bound}, not {shorten(repr(given))}")
    return float(given)


def seed_option(given: Any) -> int:
    """The `seed` option of a random node for a seed of a program; None: its place in the network counts.

    Options have 32 bits and count from 1, because 0 is no seed there; a checksum stands for a larger seed.
    """
    if given is None:
        return 0
    seed = check_whole("a seed", given, 0)
    return (seed if seed < 2**32 else zlib.crc32(seed.to_bytes(seed.bit_length() // 8 + 1))) + 1


def check_callable(what: str, given: Any, hint: str) -> None:
    """An argument that is a function."""
    if not callable(given):
        raise UserError("NoFunction", f"{what} is a function, not {shorten(repr(given))}", hint=hint)


def is_path(given: Any) -> bool:
    """Whether it may be the name of a file."""
    return isinstance(given, str | os.PathLike) and bool(str(given))


def check_path(what: str, given: Any) -> Any:
    """The name of a file."""
    if not is_path(given):
        raise UserError("WrongArguments", f"{what} is a text or a path, not {shorten(repr(given))}")
    return given


def as_array(what: str, given: Any, dtype: Any) -> NDArray[Any]:
    """Numbers as an array."""
    try:
        found = np.asarray(given)
    except UserError:  # a function without a value
        raise
    except ValueError:
        found = np.asarray(None)
    if found.dtype.kind not in "fiub":
        message = f"{what} is a number or an array of numbers, not {shorten(repr(given))}"
        raise UserError("WrongArguments", message)
    return found.astype(dtype, copy=False)
