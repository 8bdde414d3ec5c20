"""The check of a builder: what a check of a configuration passes to it, and what it returns.

A builder names its check in its entry: a generator `check(section, context)` yields all problems of its section (of
BrainScript: of its text, a `ConfigValue`) and returns a `CheckedNetwork`, or None where an error among them would end a
run. What depends on something wrong is not reported again. A `UserError` is raised where nothing can be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span
    from cntkpy.networks.graph.network import Network, ValidatedNetwork


class CheckContext(NamedTuple):
    """The configuration around the section of a builder."""

    precision: str
    """A key of `cntkpy.networks.graph.precision.PRECISIONS`."""
    load: Callable[[str, str], Network]
    """Loads the network of a model file, by its path and precision, without values."""
    trains: bool = True
    strict: bool = True
    """Report what a run ignores."""
    named: Collection[str] = ()
    """The nodes that commands name."""


class Input(NamedTuple):
    """An input of a network, with the elements of a sample if they are known."""

    name: str
    size: int | None
    layer: str = ""
    """The layer of this size."""
    span: Span | None = None
    """The place of the size."""


@dataclass(frozen=True)
class CheckedNetwork:
    """The network of a builder, without start values."""

    make: Callable[[], Network | ValidatedNetwork]
    """Return the network."""
    inputs: list[Input] | None = None
    """The inputs of a feed-forward network, which are known without making it: `check` starts without NumPy."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Second names of members, in lower case, and the first ones."""
    reads_all_streams: bool = False
    """True if a stream of the reader that is not an input is reported."""
    remedies: Mapping[str, str] = field(default_factory=dict[str, str])
    """Operations of which the builder makes nodes on request, and what to write."""
    span: Span | None = None
    """The place of nodes that have none of their own."""


Check = Callable[[Any, CheckContext], "Generator[Diagnostic, None, CheckedNetwork | None]"]
