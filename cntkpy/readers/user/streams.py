"""StreamInformation as CNTK's Python interface has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.readers import streams
from cntkpy.readers.common.arguments import whole_number
from cntkpy.readers.common.user_code import calling
from cntkpy.readers.errors import ArgumentError

FORMATS = {"dense": "dense", "sparse": "sparse"}


class StreamInformation(streams.StreamInformation):
    """Name, number, storage, element type and sample shape of a stream; a key of dictionaries of minibatch data.

    Args:
        storage_format: "dense" or "sparse".
        shape: shape of one sample, for instance `(3,)`.
        defines_mb_size: whether the samples of this stream are the length of a sequence.
    """

    m_id: int
    m_defines_mb_size: bool

    def __init__(
        self,
        name: str,
        stream_id: int,
        storage_format: str,
        dtype: Any,
        shape: Sequence[int],
        defines_mb_size: bool = False,
    ):
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"the name of a stream is a text, not {name!r}")
        if storage_format not in FORMATS:
            raise ArgumentError(f"storage_format of stream '{name}' is 'dense' or 'sparse', not {storage_format!r}")
        sizes = (shape,) if isinstance(shape, int | np.integer) else shape
        sizes = tuple(whole_number(n, f"The shape of stream '{name}'", 1) for n in sizes)
        super().__init__(name, sizes, FORMATS[storage_format] == "sparse", np.dtype(dtype))
        object.__setattr__(self, "m_id", stream_id)
        object.__setattr__(self, "m_defines_mb_size", bool(defines_mb_size))

    @property
    def storage_format(self) -> str:
        """ "dense" or "sparse"."""
        return "sparse" if self.sparse else "dense"

    m_storage_format = storage_format

    @property
    def shape(self) -> tuple[int, ...]:
        """The sample shape."""
        return self.sample_shape

    @property
    def m_name(self) -> str:
        """The name."""
        return self.name

    @property
    def m_element_type(self) -> np.dtype:
        """The element type."""
        return self.dtype

    @property
    def m_sample_layout(self) -> tuple[int, ...]:
        """The sample shape CNTK's way round: fastest axis first."""
        return self.sample_shape[::-1]

    def _identity(self) -> tuple[Any, ...]:
        return self.name, self.m_id, self.sparse, self.dtype, self.sample_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamInformation) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self.m_id)


def declared_streams(of: Any, if_missing: str | None = None) -> list[StreamInformation]:
    """Return the result of `stream_infos()` of a user's object: at least one stream, with unique names."""
    call = f"{type(of).__name__}.stream_infos()"
    with calling(call, if_missing):
        stream_infos = of.stream_infos()
    if not is_several(stream_infos) or not all(isinstance(s, StreamInformation) for s in stream_infos):
        inside = f" with {type(_other(stream_infos)).__name__}" if is_several(stream_infos) else ""
        raise ArgumentError(
            f"{call} gave a {type(stream_infos).__name__}{inside}, not a list of StreamInformation",
            'return [StreamInformation("x", 0, "dense", numpy.float32, (3,)), ...]',
        )
    names = [s.name for s in stream_infos]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"{call} gave two streams with the name '{name}'. Please rename the duplicate.")
    return list(stream_infos)


def _other(infos: Sequence[Any]) -> Any:
    return next(s for s in infos if not isinstance(s, StreamInformation))


def numbered(infos: Sequence[streams.StreamInformation]) -> list[StreamInformation]:
    """Streams of the pipeline, numbered in order."""
    return [
        s
        if isinstance(s, StreamInformation)
        else StreamInformation(s.name, i, "sparse" if s.sparse else "dense", s.dtype, s.sample_shape)
        for i, s in enumerate(infos)
    ]
