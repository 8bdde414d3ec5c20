"""Pictures as a deserializer: one sample per sequence, and its class."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.corpus import Corpus, repeated
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.contracts import Deserializer, LoadsWholeChunks, NamesClasses
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.image.transforms.chain import Chain, with_channels
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.streams import StreamInformation

from .decode import PictureError, decode
from .parameters import VIEWS

log = logging.getLogger("cntkpy.readers")
TRIED = 100
"""Pictures that are tried before there is none that tells the shape of all."""


class Listing(Protocol):
    """List of pictures: `MapFile` or `Base64File`. Records are numbered from 0."""

    path: str
    keys: np.ndarray | None
    classes: np.ndarray | None

    def __len__(self) -> int: ...

    @property
    def files(self) -> list[str]:
        """The files with the pictures."""
        ...

    def name(self, record: int) -> str:
        """Return the name of a picture."""
        ...

    def place(self, record: int) -> str:
        """Return the place in the list of a picture."""
        ...

    def source(self, record: int) -> tuple[str, int | None]:
        """Return the file that lists a picture, and its line, if it has lines."""
        ...

    def encoded(self, record: int) -> bytes:
        """Return the bytes of a picture."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...


@dataclass(frozen=True)
class PictureFormat:
    """The samples of pictures.

    Attributes:
        dtype: Their element type.
        grayscale: Whether they have one channel.
        views: Whether every record is ten sequences, cut differently.
    """

    dtype: np.dtype | type = np.float32
    grayscale: bool = False
    views: bool = False


class Pictures:
    """A stream of pictures, and one of labels.

    `load_sequences` gives the labels only: pictures are made when the sweep is known, by `sample`.

    Args:
        name: Of the stream.
        chain: The transforms.
        listing: The pictures.
        corpus: The keys.
        format: The samples.
        label: Name and number of classes of the stream of labels; None: there is none.
        first: As in `SequenceTable`; by default every sequence is a chunk.
        beside: Has the other streams of the same records, instead of labels; its chunks, lengths and keys count.
    """

    def __init__(
        self,
        name: str,
        chain: Chain,
        listing: Listing,
        corpus: Corpus,
        format: PictureFormat,
        *,
        label: tuple[str, int] | None = None,
        first: np.ndarray | None = None,
        beside: Deserializer | None = None,
    ):
        opencv()
        self.name, self.chain, self.listing, self.dtype = name, chain, listing, np.dtype(format.dtype)
        self._label, self._grayscale, self._views = label, format.grayscale, VIEWS if format.views else 1
        self._beside = beside
        if beside is not None:
            self.table, self.chunk_bytes = beside.table, beside.chunk_bytes
        else:
            self.table = self._own_table(corpus, first)
            self.chunk_bytes = np.diff(self.table.first) * 16
        self.class_names = dict(beside.class_names) if isinstance(beside, NamesClasses) else {}
        self.keep = False
        self._kept: dict[int, bytes] = {}
        shape = chain.shape(1 if format.grayscale else 3)
        self.shape = shape if shape is not None else self._shape_of_first()
        self.streams = [StreamInformation(name, self.shape, False, self.dtype)]
        if label is not None:
            self.streams.append(StreamInformation(label[0], (label[1],), True, self.dtype))
        if beside is not None:
            self.streams += beside.streams

    def _own_table(self, corpus: Corpus, first: np.ndarray | None) -> SequenceTable:
        keys = self.listing.keys
        if keys is not None and (same := repeated(keys)) is not None:
            text = "%s: the key %s is that of line %d, too; both pictures are read."
            place, key = self.listing.place(same[0]), corpus.name(int(keys[same[0]]))
            log.warning(text, place, key, same[1] + 1, extra=ABOUT_DATA)
        if keys is not None or self._views > 1:
            numbers = np.arange(len(self.listing), dtype=np.uint64) if keys is None else keys
            keys = np.repeat(numbers, self._views)
        first = np.arange(len(self.listing) * self._views + 1) if first is None else first
        return SequenceTable(first, np.ones(1, np.int32), keys, None if corpus.numeric else corpus)

    @property
    def whole_chunks(self) -> bool:
        """True if a single record takes as long to load as its chunk."""
        return isinstance(self._beside, LoadsWholeChunks) and self._beside.whole_chunks

    def _shape_of_first(self) -> tuple[int, ...]:
        """Shape of the samples if no Scale says so: that of the first picture that can be read."""
        first: PictureError | None = None
        for record in range(min(len(self.listing), TRIED)):
            try:
                return with_channels(self.chain.apply(self.read(record))).shape
            except PictureError as error:
                first = first or error
        assert first is not None
        raise first

    @property
    def channels_first(self) -> bool:
        """True if samples are (channels, height, width), else (height, width, channels)."""
        return self.chain.channels_first

    def read(self, record: int) -> np.ndarray:
        """Return the decoded picture. Raises PictureError with its place in the list."""
        try:
            data = self._kept.get(record)
            if data is None:
                data = self.listing.encoded(record)
                if self.keep:
                    self._kept[record] = data
            return decode(data, self._grayscale)
        except PictureError as error:
            path, line = self.listing.source(record)
            raise PictureError(
                f"Cannot open file '{self.listing.name(record)}' ({self.listing.place(record)}): "
                f"{error.diagnostic.message}.",
                path=path,
                line=line,
                hint=error.diagnostic.hint,
            ) from None

    def sample(self, sequence: int, sweep: int, number: int, into: np.ndarray) -> None:
        """Write the sample of a sequence into an array of the samples' shape.

        sweep and number (of the sequence among those of the reader) are what random transforms draw from. Raises
        PictureError if the picture cannot be read, DataError if it is of another shape than the first.
        """
        record, view = divmod(sequence, self._views)
        picture = self.read(record)
        path, line = self.listing.source(record)
        try:
            made = with_channels(self.chain.apply(picture, sweep, number, view))
        except DataError as error:
            raise DataError(
                f"{self.listing.name(record)} ({self.listing.place(record)}): {error.diagnostic.message}.",
                path=path,
                line=line,
                hint=error.diagnostic.hint,
            ) from None
        if made.shape != into.shape:
            raise DataError(
                "Packer currently does not support samples with varying shapes. Please make sure there is a transform "
                f"that unifies the shape of samples for input stream '{self.name}': {self.listing.name(record)} "
                f"({self.listing.place(record)}) has the shape {made.shape}, not {into.shape} as others have.",
                path=path,
                line=line,
                hint='add [type="Scale" ; width=... ; height=... ; channels=...]',
            )
        np.copyto(into, made, casting="unsafe")

    def load_chunk(self, chunk: int) -> Chunk:
        """Return the labels of a chunk."""
        return self.load_sequences(self.table.of_chunk(chunk))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return the labels of these sequences, or the streams beside."""
        if self._beside is not None:
            return self._beside.load_sequences(sequences)
        if self._label is None or self.listing.classes is None:
            return Chunk({})
        n = len(sequences)
        classes = self.listing.classes[sequences // self._views]
        ones = StreamData(
            self._label[1], np.ones(n, self.dtype), np.arange(n), np.arange(n + 1), np.ones(n, np.int32), classes
        )
        return Chunk({self._label[0]: ones}, 16 * n)

    @property
    def files(self) -> list[str]:
        """The files with the pictures."""
        return self.listing.files

    def close(self) -> None:
        """Let go of files."""
        self.listing.close()
