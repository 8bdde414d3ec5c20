"""The framework that source is written for: how it spells what rules say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cntkpy.networks.nodes.source_support.values import Dims, Value

Word = str | Callable[..., str]
"""A template of operands (`{0.text}`, `{0.atom}`), or a function of a use and operands."""

Spellings = Mapping[str, tuple[Word, Word]]
"""By word, its spelling in PyTorch and in JAX."""


def both(text: str) -> tuple[str, str]:
    """Return a spelling that frameworks share."""
    return text, text


@dataclass(frozen=True)
class Dialect:
    """A framework.

    Args:
        name: of the framework.
        words: how it spells what rules say.
        helpers: texts of functions that it lacks, by name.
        names: those that a written file has already.
        reshape: writes a value with other sample axes of as many elements; the first argument gives it a name.
        static: whether shapes do not depend on values.
    """

    name: str
    words: Mapping[str, Word]
    helpers: Mapping[str, str]
    names: frozenset[str]
    reshape: Callable[[Callable[[Value], Value], Value, Dims], str]
    static: bool = False

    @property
    def reserved(self) -> frozenset[str]:
        """The names that no value can have."""
        return self.names | self.helpers.keys()
