"""The parameters of text format readers and deserializers, and what is made from them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    INTEGER,
    PATH,
    SECTIONS,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    choice,
    sections_by_name,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.parameters import DeserializerParameters, OrderParameters, check_keys, check_precision, stream_names

from .stream_format import StreamFormat

if TYPE_CHECKING:
    from cntkpy.readers.common.corpus import Corpus
    from cntkpy.readers.contracts import Deserializer
    from cntkpy.readers.reader import Reader
    from cntkpy.readers.registry import Setting

    from .deserializer import TextFormatDeserializer

log = logging.getLogger("cntkpy.readers")
ORDERED_CHUNK = 1 << 20
UNLIMITED = 2**62  # tolerated errors, where the section says -1


class StreamParameters(Declared):
    """One input of a text file."""

    dim = Parameter("dim", SIZE, help="Values per dense sample; indices of a sparse sample are below it.")
    format = Parameter("format", choice("dense", "sparse", ignore_case=True), help="How samples are written.")
    alias = Parameter(
        "alias", TEXT, default=None, own=True, help="Name of the input in the file; its own name if absent."
    )
    defines_mb_size = Parameter(
        "definesMBSize", BOOLEAN, default="false", own=True, help="Samples of this input are the length of a sequence."
    )

    transforms = Parameter(
        "transforms", SECTIONS, default=None, own=True, help="Of pictures only: all but Cast are refused here."
    )

    def sample_size(self) -> int:
        """Elements of a sample."""
        return self.dim

    def check_together(self) -> None:
        """Errors in what does not go together."""
        for transform in self.transforms or []:
            kind = DeserializerParameters.type.read(transform)
            if kind.lower() != "cast":  # that every stream has anyway
                raise kind.error(
                    "BadValue",
                    f"the transform '{kind}' changes pictures; data of text files are given as they stand",
                    "leave transforms out, or read pictures with ImageDeserializer",
                )


class TextFormatParameters(Declared):
    """A file in CNTK text format."""

    file = Parameter("file", PATH, help="The data file.")
    input = Parameter(
        "input",
        sections_by_name("stream", "cntkpy.readers.formats.text.options:StreamParameters"),
        help="One section for each stream to be read from the file.",
    )
    skip_sequence_ids = Parameter(
        "skipSequenceIds", BOOLEAN, default="false", help="Every line is a sequence, numbers at its start are ignored."
    )
    max_errors = Parameter(
        "maxErrors", SIZE, default="0", help="Malformed samples, rows and sequences that are tolerated."
    )
    trace_level = Parameter("traceLevel", INTEGER, default="1", help="0: errors only; 1: warnings as well.")
    chunk_size = Parameter(
        "chunkSizeInBytes", SIZE, default="33554432", minimum=1, help="Size of the chunks for randomization."
    )
    cache_index = Parameter("cacheIndex", BOOLEAN, default="false", help="Keep the index next to the file.")
    numeric_keys = Parameter(
        "useNumericSequenceKeys", BOOLEAN, default="true", help="Sequence ids are numbers; false: any text."
    )
    hash_keys = Parameter("hashSequenceKeys", BOOLEAN, default="false", help="Know text ids by a hash only.")
    chunks_to_cache = Parameter("numChunksToCache", SIZE, default=None, ignored="see keepDataInMemory.")

    def formats(self) -> list[StreamFormat]:
        """Return the streams, in alphabetical order."""
        formats: list[StreamFormat] = []
        for name in stream_names(self, "write input=[name=[dim=... ; format=dense]]"):
            stream = StreamParameters(self.input.section(name))
            alias = str(stream.alias) if stream.alias is not None else name
            self._check(stream, name, alias, formats)
            stream.check_together()
            formats.append(StreamFormat(name, alias, stream.dim, stream.format == "sparse", stream.defines_mb_size))
        return formats

    def _check(self, stream: StreamParameters, name: str, alias: str, earlier: list[StreamFormat]) -> None:
        where = "alias" if stream.alias is not None else "dim"
        if not alias or not all(32 < ord(c) < 127 and c != "|" for c in alias) or alias.startswith("#"):
            raise stream.error(
                where,
                f"'{alias}' cannot be the name of an input in the file",
                "a name is printable ASCII without blanks and '|' and does not begin with '#'",
            )
        double = next((f for f in earlier if f.alias == alias), None)
        if double is not None:
            raise stream.error(
                where, f"Alias {alias} is already mapped to input {double.name}", "each needs its own alias"
            )
        if not 0 < stream.dim < 2**31:
            raise stream.error("dim", f"{stream.dim} is not a dimension", "write a number from 1 to 2147483647")
        if stream.defines_mb_size and any(f.defines_mb_size for f in earlier):
            raise stream.error("definesMBSize", "only one input can define the size of the minibatch")

    def check_together(self) -> None:
        """Errors in what does not go together."""
        self.formats()
        check_keys(self)

    def corpus(self) -> Corpus:
        """Meaning of sequence ids."""
        from cntkpy.readers.common.corpus import Corpus

        check_keys(self)
        return Corpus(self.numeric_keys, self.hash_keys)

    def deserializer(
        self,
        precision: str,
        *,
        ordered: bool = False,
        corpus: Corpus | None = None,
        threads: int = 1,
        alone: bool = False,
    ) -> TextFormatDeserializer:
        """Index the file. ordered: it will be read from front to back, so chunks need not be large; alone: nothing is
        read beside it, so whole chunks are loaded."""
        from cntkpy.readers.streams import DTYPES

        from .deserializer import TextFormatDeserializer
        from .index import IndexOptions

        if self.given("numChunksToCache") is not None and self.trace_level > 0:
            log.warning("numChunksToCache is ignored; use keepDataInMemory=true to keep everything in memory.")
        return TextFormatDeserializer(
            str(self.file),
            self.formats(),
            DTYPES[precision],
            IndexOptions(
                skip_sequence_ids=self.skip_sequence_ids,
                chunk_size=min(self.chunk_size, ORDERED_CHUNK) if ordered else self.chunk_size,
                corpus=corpus or self.corpus(),
                cache=self.cache_index,
                threads=threads,
            ),
            max_errors=min(self.max_errors, UNLIMITED),
            trace_level=self.trace_level,
            parse_ahead=alone,
        )


class TextReaderParameters(TextFormatParameters, OrderParameters):
    """CNTKTextFormatReader: reads one file in CNTK text format."""

    truncation_length = Parameter(
        "truncationLength", SIZE, default=None, ignored="with truncated=true the pieces have minibatchSize steps."
    )


def create_text_reader(section: ConfigParameters, precision: str) -> Reader:
    """CNTKTextFormatReader."""
    from cntkpy.readers.pipeline.source import Source, SourceOptions
    from cntkpy.readers.reader import Reader

    p = TextReaderParameters(section)
    order, frame_mode, keep, prefetch = p.randomize, p.frame_mode, p.keep_in_memory, p.prefetch
    precision = check_precision(section, precision)
    threads = threads_for(p.threads)
    deserializer = p.deserializer(precision, ordered=not order, threads=threads, alone=True)
    timeline = p.timeline(deserializer)
    options = SourceOptions(frame_mode=frame_mode, keep_in_memory=keep, prefetch=prefetch, threads=threads)
    return Reader(Source(deserializer, timeline, options))


def create_deserializer(section: ConfigParameters, setting: Setting) -> Deserializer:
    """CNTKTextFormatDeserializer."""
    p = TextFormatParameters(section)
    for option, of_reader in (
        (TextFormatParameters.trace_level, setting.trace_level),
        (TextFormatParameters.max_errors, setting.max_errors),
    ):
        if of_reader is not None and not option.stands_in(section):
            section.insert(option.name, of_reader)
    precision = check_precision(section, setting.precision)
    return p.deserializer(precision, corpus=setting.corpus, threads=setting.threads, alone=setting.alone)
