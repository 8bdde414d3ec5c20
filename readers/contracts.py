"""What the parts of reading are to each other: protocols, and what each can do said explicitly.

Whether an object has an optional capability is asked by `isinstance` of one of the protocols here, never by looking for
attributes. `cntkpy.testing` checks an object against its contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    pass


@runtime_checkable
class ChunkSource(Protocol):
    """A deserializer as users write one: `UserDeserializer`, in CNTK's terms."""

    def stream_infos(self) -> list[Any]:
        """The streams, at least one."""
        ...

    def num_chunks(self) -> int:
        """Number of chunks, at least one."""
        ...

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        """The data of a chunk, by names of streams."""
        ...


class Writer(Protocol):
    """Takes data minibatch by minibatch."""

    def sections(self) -> dict[str, str]:
        """Names of the sections that can be written and their types; empty if the writer takes any."""
        ...

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write the next records, by name an array (records, dim). Returns whether it wants more."""
        ...

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Write the names of classes."""
        ...

    def close(self) -> None:
        """Everything has been written: finish the files."""
        ...

    def abandon(self) -> None:
        """Writing went wrong: leave no half files behind."""
        ...
