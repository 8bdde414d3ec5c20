"""Sequences written in CNTK text format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_dict, is_list
from cntkpy.readers.errors import ArgumentError


def sequence_to_cntk_text_format(seq_idx: int, alias_tensor_map: Mapping[str, Any]) -> str:
    """Return the lines of one sequence, without a newline at the end.

    Args:
        alias_tensor_map: for every input its samples: an array or nested lists (length, *sample), or, sparse, a list of
            dictionaries {index: value}. Lengths may differ.

    >>> print(sequence_to_cntk_text_format(3, {"q": [[1, 2], [3, 4]], "a": [{5: 1}]}))
    3	|a 5:1 |q 1 2
    3	|q 3 4
    """
    if not isinstance(alias_tensor_map, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"samples are a dictionary {{input: samples}}, not {type(alias_tensor_map).__name__}", '{"x": [[1, 2]]}'
        )
    texts = {alias: _samples(alias, tensor) for alias, tensor in sorted(alias_tensor_map.items())}
    lines: list[str] = []
    for step in range(max(map(len, texts.values()), default=0)):
        entries = [f"{alias} {samples[step]}" for alias, samples in texts.items() if step < len(samples)]
        lines.append(f"{seq_idx}\t|" + " |".join(entries))
    return "\n".join(lines)


def is_tensor(data: Any) -> bool:
    """Return whether data are an array, or lists in lists of numbers."""
    if isinstance(data, np.ndarray):
        return True
    innermost = data
    while is_list(innermost) and innermost:
        innermost = innermost[0]
    return innermost is not data and isinstance(innermost, int | float | np.number)


def _samples(alias: str, tensor: Any) -> list[str]:
    """Return the text of each sample."""
    if is_list(tensor) and tensor and all(is_dict(row) for row in tensor):
        return [" ".join(f"{k}:{v}" for k, v in sorted(row.items())) for row in tensor]
    if is_list(tensor) and not tensor:
        return []
    if not is_tensor(tensor):
        raise ValueError(
            f"expected a tensor (dense) or list of dicts (sparse) for '{alias}', but got {type(tensor).__name__}"
        )
    return [" ".join(str(value) for value in np.asarray(row).reshape(-1)) for row in tensor]
