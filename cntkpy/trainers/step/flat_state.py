"""Parameters and the arrays of their update rules, by name or in vectors: see `cntkpy.networks.compile.flat`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cntkpy.networks.compile.flat import Flat

Named = dict[str, Any]
"""By name of a parameter or key of a vector, an array."""


def apart(flats: Sequence[Flat], arrays: Named, fetch: Callable[[Any], Any]) -> Named:
    """Arrays by the names of parameters, sorted.

    Args:
        flats: vectors that may be among them.
        arrays: of parameters and vectors.
        fetch: makes an array one of NumPy.
    """
    found = dict(arrays)
    for flat in flats:
        if flat.key in found:
            found |= flat.split(fetch(found.pop(flat.key)))
    return dict(sorted(found.items()))


def updates_apart(flats: Sequence[Flat], updates: dict[str, Named], fetch: Callable[[Any], Any]) -> dict[str, Named]:
    """By name of the parameter, the arrays of its update rule; see `apart`."""
    found = dict(updates)
    for flat in flats:
        if flat.key in found:
            arrays = {key: flat.split(fetch(value)) for key, value in found.pop(flat.key).items()}
            found |= {name: {key: parts[name] for key, parts in arrays.items()} for name in flat.names}
    return dict(sorted(found.items()))


def joined_update(
    flat: Flat, updates: dict[str, Named], start: Callable[[Any], Named], vector: Any
) -> tuple[Named, dict[str, Named]]:
    """The arrays of an update rule for a vector.

    Args:
        flat: the vector.
        updates: by name of the parameter, the arrays that are known; those of the vector are removed.
        start: gives the arrays of a parameter before its first update.
        vector: the parameters.

    Returns:
        The arrays, and by name of the parameter what the rule does not know.
    """
    first = start(vector)
    if not any(name in updates for name in flat.names):
        return first, {}
    parts = flat.split(np.zeros(vector.shape, vector.dtype))
    rest = {name: dict(updates.pop(name)) if name in updates else start(part) for name, part in parts.items()}
    found = {key: flat.join({name: rest[name].pop(key) for name in flat.names}) for key in first}
    return {key: np.asarray(array, vector.dtype) for key, array in found.items()}, rest
