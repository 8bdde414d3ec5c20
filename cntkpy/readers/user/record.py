"""Records, and descriptions of streams made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LISTED = 30
"""Most names that a message lists."""


class Record(dict[str, Any]):
    """An immutable dictionary whose values are attributes as well.

    >>> Record(a=1).a
    1
    """

    def __init__(self, **values: Any):
        super().__init__(values)

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        known = ", ".join(self) if len(self) <= LISTED else f"{len(self)} names"
        raise AttributeError(f"record has no attribute '{name}'; there are: {known}" if self else "the record is empty")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise AttributeError("record is immutable")

    __setattr__ = __delattr__ = __setitem__ = __delitem__ = _refuse  # type: ignore[assignment]
    update = clear = pop = popitem = setdefault = __ior__ = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return _make, (dict(self),)

    def updated_with(self, **values: Any) -> Record:
        """Return a record with some values added or replaced."""
        return Record(**{**self, **values})


def _make(values: dict[str, Any]) -> Record:
    return Record(**values)


StreamDefs = Record


def StreamDef(
    field: str | None = None,
    shape: Any = None,
    is_sparse: bool = False,
    transforms: Any = None,
    context: Any = None,
    scp: Any = None,
    mlf: Any = None,
    broadcast: bool | None = None,
    defines_mb_size: bool = False,
    max_sequence_length: int = 65535,
) -> Record:
    """Define a stream of a file. field: its name in the file; shape: values per sample."""
    settings = {
        "dim": shape,
        "transforms": transforms,
        "context": context,
        "scp": scp,
        "mlf": mlf,
        "broadcast": broadcast,
    }
    return Record(
        stream_alias=field,
        is_sparse=is_sparse or mlf is not None,
        **{name: value for name, value in settings.items() if value is not None},
        defines_mb_size=defines_mb_size,
        max_sequence_length=max_sequence_length,
    )


@dataclass
class StreamConfiguration:
    """One stream of a text file: name, values per sample, storage, name in the file."""

    name: str
    dim: int
    is_sparse: bool = False
    stream_alias: str = ""
    defines_mb_size: bool = False
