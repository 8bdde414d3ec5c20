"""The parameters of tar shards, and the deserializer that is made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    PATH,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Part,
    array,
    choice,
    sections_by_name,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.beginnings import current
from cntkpy.readers.formats.image.options import SECTION_LIST, scaled_size, transform_parts
from cntkpy.readers.parameters import PATHS, check_one_defines_size, check_precision, stream_names

if TYPE_CHECKING:
    from cntkpy.readers.contracts import Deserializer
    from cntkpy.readers.registry import Setting

    from .shards import Shards
    from .values import MemberStream


class TarStreamParameters(Declared):
    """One stream of shards: pictures (with `transforms`) or numbers (with `dim`)."""

    member = Parameter(
        "member",
        array(TEXT),
        default=None,
        own=True,
        help="Endings of the names of its members, such as jpg:png; the name of the stream if absent.",
    )
    transforms = Parameter(
        "transforms", SECTION_LIST, default=None, own=True, help="Transforms of pictures, in order; may be empty."
    )
    dim = Parameter(
        "dim",
        COUNT,
        default=None,
        own=True,
        help="Values per dense sample; classes of a sparse one are below it.",
    )
    format = Parameter(
        "format", choice("dense", "sparse", ignore_case=True), default="dense", help="sparse: numbers of classes."
    )
    field = Parameter("field", TEXT, default=None, own=True, help="The name of the value, if a .json is an object.")
    labels = Parameter(
        "labelMappingFile", PATH, default=None, own=True, help="Lists the names of classes; a line of a member is one."
    )
    defines_mb_size = Parameter(
        "definesMBSize", BOOLEAN, default="false", own=True, help="Samples of this stream are the length of a sequence."
    )

    def sample_size(self) -> int | None:
        """Values of a sample; None if only the pictures says."""
        return self.dim if self.transforms is None else scaled_size(self.transforms, None)

    def named_parts(self) -> Iterator[Part]:
        """Return the transforms."""
        return transform_parts(self.transforms or ())

    def check_together(self) -> None:
        """Pictures or numbers."""
        if (self.transforms is None) == (self.dim is None):
            message = "a stream has either transforms, for pictures, or dim, for numbers"
            raise self.error("dim", message, "write transforms=([type=Scale ; ...]) or dim=10", "MissingParameter")
        if self.dim == 0:
            raise self.error("dim", "0 is not a dimension", "write a number from 1 to 2147483647")
        if self.labels is not None and self.format != "sparse":
            raise self.error("labelMappingFile", "names are classes", "write format = sparse", "Conflict")

    def endings(self, name: str) -> tuple[str, ...]:
        """Endings of the names of members, in lower case."""
        several = list(map(str, self.member)) if self.member is not None else [name]
        return tuple(value.lower().removeprefix(".") for value in several)

    def stream(self, name: str) -> MemberStream:
        """Return the stream of numbers of this name, with the numbers of its classes."""
        from .deserializer import number_classes
        from .values import MemberStream

        assert self.dim is not None
        listed = str(self.labels) if self.labels is not None else None
        field = str(self.field) if self.field is not None else None
        sparse = self.format == "sparse"
        member_stream = MemberStream(name, self.endings(name), self.dim, sparse, field, self.defines_mb_size, listed)
        number_classes(member_stream)
        return member_stream


class TarParameters(Declared):
    """Tar archives (WebDataset): members with the same name but for the ending are a sample, each ending a stream."""

    file = Parameter("file", PATHS, help="The archive, or several; compressed ones are unpacked as they are read.")
    input = Parameter(
        "input",
        sections_by_name("stream", "cntkpy.readers.formats.tar.parameters:TarStreamParameters"),
        help="One section for each stream.",
    )
    grayscale = Parameter("grayscale", BOOLEAN, default="false", help="Read pictures with one channel.")
    chunk_size = Parameter(
        "chunkSizeInBytes", SIZE, default="33554432", minimum=1, help="Size of the chunks for randomization."
    )

    def streams(self) -> list[tuple[str, TarStreamParameters]]:
        """Return the streams, in alphabetical order."""
        names = stream_names(self, "write input=[name=[dim=...]]")
        streams = [(name, TarStreamParameters(self.input.section(name))) for name in names]
        for _, stream in streams:
            stream.check_together()
        used: dict[str, tuple[str, ...]] = {}
        for name, stream in streams:
            several = stream.endings(name)
            for ending in several:
                if used.setdefault(ending, several) != several:
                    message = f"members .{ending} are read by '{name}' and by a stream with other endings"
                    raise self.error("input", message, "write the same endings, or no ending twice", "Conflict")
        check_one_defines_size(self, (stream for _, stream in streams))
        return streams

    def check_together(self) -> None:
        """Errors in what does not go together."""
        self.streams()

    def shards(self, most: int | None = None) -> Shards:
        """Return the archives, opened; `most` as of `open_shards`. Inside `first_records`, only the first samples."""
        from .shards import open_shards

        limits = current()
        if limits is not None:
            most = limits.records

        return open_shards([str(path) for path in self.file], endings_of(self.streams()), self.chunk_size, most)


def endings_of(streams: Sequence[tuple[str, TarStreamParameters]]) -> list[tuple[str, ...]]:
    """Return the endings of the members of streams, each group of them once."""
    return list(dict.fromkeys(stream.endings(name) for name, stream in streams))


def create_tar(section: ConfigParameters, setting: Setting) -> Deserializer:
    """TarDeserializer."""
    import numpy as np

    from cntkpy.readers.common.corpus import Corpus
    from cntkpy.readers.common.sequences import SequenceTable
    from cntkpy.readers.pipeline.bundle import SideBySide
    from cntkpy.readers.streams import DTYPES

    from .deserializer import TarValues, keys_of, lengths_of

    p = TarParameters(section)
    streams, shards = p.streams(), p.shards()
    dtype = np.dtype(DTYPES[check_precision(p.config, setting.precision)])
    endings = endings_of(streams)
    corpus = setting.corpus or Corpus()
    keys = keys_of(shards, corpus, primary=setting.primary)
    values = [stream.stream(name) for name, stream in streams if stream.transforms is None]
    parts: list[Any] = []
    if values:
        columns = [endings.index(value.endings) for value in values]
        lengths = lengths_of(shards, columns, values, dtype)
        table = SequenceTable(shards.first, lengths, keys, None if corpus.numeric else corpus)
        parts.append(TarValues(shards, columns, values, table, dtype))
    for name, stream in streams:
        if stream.transforms is not None:
            from cntkpy.readers.formats.image.deserializer import PictureFormat, Pictures
            from cntkpy.readers.formats.image.transforms.chain import make_chain

            from .deserializer import TarPictures

            chain = make_chain(stream.transforms, dtype, 1 if p.grayscale else 3, until_mean=False)
            listing = TarPictures(shards, endings.index(stream.endings(name)), keys)
            parts.append(Pictures(name, chain, listing, corpus, PictureFormat(dtype, p.grayscale), first=shards.first))
    return parts[0] if len(parts) == 1 else SideBySide(parts)
