"""Memory that is used again: pages that are new to the process take as long as a scan of the text in them."""

from __future__ import annotations

import numpy as np


class Scratch:
    """Arrays by name, each as long as the longest that was asked for; what is in them is of no use."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._text = bytearray()

    def room(self, name: str, size: int, dtype: type[np.generic]) -> np.ndarray:
        """Return an array of this size; one of the same name has the same memory."""
        kept = self._arrays.get(name)
        if kept is None or len(kept) < size:
            kept = self._arrays[name] = np.empty(size, dtype)
        return kept[:size]

    def text(self, size: int) -> bytearray:
        """Return this many bytes, or more."""
        if len(self._text) < size:
            self._text = bytearray(size)
        return self._text
