"""Values of JSON that somebody else may have written: each is what it should be, or what stands for nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

MAX_COUNT = 2**53
"""Greater whole numbers are not exact in JSON."""


CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "?")
"""Characters with which a text could move the cursor of a terminal, or that no XML may have."""


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Return the objects of JSON lines; a damaged line, such as the last one of a run that was killed, has none.

    Lines end at line feeds only: texts may have other characters that break lines. Half a surrogate pair, which no file
    and no terminal takes, becomes `?`.
    """
    for line in text.split("\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield _whole(value) if "\\u" in line else cast("dict[str, Any]", value)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(name): _whole(part) for name, part in cast("dict[str, Any]", value).items()}
    return [_whole(part) for part in cast("list[Any]", value)] if isinstance(value, list) else value


def is_count(value: object) -> bool:
    """Return whether it is a whole number from 0 on, of a size that counts have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT


def count(value: object) -> int:
    """Return a whole number from 0 on; 0 if it is anything else."""
    return cast("int", value) if is_count(value) else 0


def number(value: object) -> float | None:
    """Return a number; None if it is anything else, or a whole number that no float has."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_COUNT:
        return float(value)
    return None


def finite(value: object) -> float | None:
    """Return a number that is finite; None if it is anything else."""
    value_number = number(value)
    return value_number if value_number is not None and math.isfinite(value_number) else None


def text(value: object) -> str:
    """Return a text; empty if it is anything else."""
    return value if isinstance(value, str) else ""


def table(value: object) -> dict[str, Any]:
    """Return an object; empty if it is anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def rows(value: object) -> list[Any]:
    """Return a list; empty if it is anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def tables(value: object) -> Iterator[dict[str, Any]]:
    """Return the objects of a list."""
    return (cast("dict[str, Any]", row) for row in rows(value) if isinstance(row, dict))


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [row for row in rows(value) if isinstance(row, str)]


def texts_by_name(value: object) -> dict[str, str]:
    """Return the texts of an object."""
    return {name: value for name, value in table(value).items() if isinstance(value, str)}


def numbers_by_name(value: object) -> dict[str, float]:
    """Return the numbers of an object."""
    numbers = {name: number(value) for name, value in table(value).items()}
    return {name: value for name, value in numbers.items() if value is not None}


def counts(value: object) -> list[int]:
    """Return the whole numbers of a list."""
    return [cast("int", row) for row in rows(value) if is_count(row)]


def time(value: object) -> datetime | None:
    """Return a time in ISO 8601 with its zone; None if it is anything else."""
    try:
        moment = datetime.fromisoformat(text(value))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
