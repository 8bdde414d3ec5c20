"""The parameters of tables, and the deserializers that are made from them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, ClassVar

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    PATH,
    TEXT,
    Declared,
    Parameter,
    Part,
    array,
    choice,
    sections_by_name,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.formats.image.options import SECTION_LIST, scaled_size, transform_parts
from cntkpy.readers.parameters import PATHS, check_one_defines_size, check_precision, stream_names

from .stream import TableStream

if TYPE_CHECKING:
    from cntkpy.readers.contracts import Deserializer
    from cntkpy.readers.formats.image.deserializer import Pictures
    from cntkpy.readers.registry import Setting

    from .conditions import Condition
    from .deserializer import TableDeserializer
    from .files import TableFile
    from .filters import Filter
    from .partitions import Partition


PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files."""


class TableStreamParameters(Declared):
    """One stream of a table: a column, or several columns of numbers side by side."""

    dim = Parameter(
        "dim",
        COUNT,
        default=None,
        own=True,
        help="Values per dense sample; classes of a sparse one are below it. Required but for pictures.",
    )
    format = Parameter(
        "format",
        choice("dense", "sparse", ignore_case=True),
        default="dense",
        help="sparse: classes (whole numbers, texts, dictionaries) or maps of index and value.",
    )
    alias = Parameter("alias", TEXT, default=None, own=True, help="Name of the column; that of the stream if absent.")
    columns = Parameter(
        "columns", array(TEXT), default=None, own=True, help="Names of columns of numbers that make one sample."
    )
    labels = Parameter(
        "labelMappingFile",
        PATH,
        default=None,
        own=True,
        help="Lists the classes of a column of texts, one a line; if absent, those that occur are sorted.",
    )
    missing = Parameter(
        "missing",
        array(TEXT),
        default=None,
        own=True,
        help="In place of missing values: a number for each column; of classes the name of one, or its number.",
    )
    unlisted = Parameter(
        "other", TEXT, default=None, own=True, help="Class of the texts that labelMappingFile does not list."
    )
    indicators = Parameter(
        "indicators", BOOLEAN, default="false", own=True, help="The values are 1 where a column has no value, else 0."
    )
    defines_mb_size = Parameter(
        "definesMBSize", BOOLEAN, default="false", own=True, help="Samples of this stream are the length of a sequence."
    )
    transforms = Parameter(
        "transforms",
        SECTION_LIST,
        default=None,
        own=True,
        help="The column has pictures as bytes: transforms as of an ImageDeserializer; may be empty.",
    )
    grayscale = Parameter("grayscale", BOOLEAN, default="false", own=True, help="Read pictures with one channel.")

    @property
    def is_picture(self) -> bool:
        """True if the column has pictures."""
        return self.transforms is not None

    def column(self, name: str) -> str:
        """Return the column of the stream of this name."""
        return str(self.alias) if self.alias is not None else name

    def named_parts(self) -> Iterator[Part]:
        """Return the transforms."""
        return transform_parts(self.transforms or ())

    def sample_size(self) -> int | None:
        """Elements of a sample; None if only the pictures say."""
        return scaled_size(self.transforms, None) if self.transforms is not None else self.dim

    def check_together(self) -> None:
        """Errors in what does not go together."""
        if self.transforms is not None:
            for name in (
                "dim",
                "format",
                "columns",
                "labelMappingFile",
                "definesMBSize",
                "missing",
                "other",
                "indicators",
            ):
                if self.given(name) is not None:
                    raise self.error(name, "is not there for pictures", "leave it out, or transforms", "Conflict")
            return
        if self.dim is None:
            raise self.error("dim", "is missing", "write dim = values of a sample", "MissingParameter")
        if self.dim == 0:
            raise self.error("dim", "0 is not a dimension", "write a number from 1 to 2147483647")
        self._check_missing()
        if self.columns is None:
            return
        if self.alias is not None:
            raise self.error("columns", "alias and columns both name columns", "write one of them", "Conflict")
        if self.format == "sparse":
            raise self.error("columns", "several columns make a dense sample", "write format = dense", "Conflict")
        if len(self.columns) != self.dim:
            count = len(self.columns)
            raise self.error("columns", f"there are {count} columns, but dim is {self.dim}", f"write dim = {count}")

    def _check_missing(self) -> None:
        """Errors in what stands for missing values."""
        if self.unlisted is not None and self.labels is None:
            raise self.error("other", "there is no labelMappingFile that lists classes", "leave it out", "Conflict")
        if self.indicators and self.given("missing") is not None:
            raise self.error("missing", "indicators have no missing values", "leave it out", "Conflict")
        if self.indicators and self.format == "sparse":
            raise self.error("indicators", "indicators are numbers", "write format = dense", "Conflict")
        if self.missing is None:
            return
        wanted = 1 if self.format == "sparse" else self.dim
        if len(self.missing) != wanted:
            count = len(self.missing)
            raise self.error("missing", f"there are {count} values for {wanted} columns", "write one for each column")
        if self.format == "sparse":
            return
        for value in map(str, self.missing):
            if not _is_finite(value):
                raise self.error("missing", f"'{value}' is not a number", "write a number for each column")

    def stream(self, name: str) -> TableStream:
        """Return the stream of this name."""
        self.check_together()
        columns = tuple(map(str, self.columns)) if self.columns is not None else (self.column(name),)
        listed = str(self.labels) if self.labels is not None else None
        return TableStream(
            name,
            self.dim or 0,
            self.format == "sparse",
            columns,
            self.defines_mb_size,
            listed,
            missing=tuple(map(str, self.missing or ())),
            unlisted=str(self.unlisted) if self.unlisted is not None else None,
            indicators=bool(self.indicators),
        )


def _is_finite(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return isfinite(float(text))
    except ValueError:
        return False


class TableParameters(Declared):
    """A table: each row is a sequence, each column a stream."""

    endings: ClassVar[tuple[str, ...]] = ()
    """Suffixes of the files in a folder."""
    file = Parameter("file", PATHS, help="The data file, or several with the same columns; a folder; a pattern with *.")
    input = Parameter(
        "input",
        sections_by_name("stream", "cntkpy.readers.formats.tables.parameters:TableStreamParameters"),
        help="One section for each stream to be read from the table.",
    )
    key_column = Parameter(
        "keyColumn", TEXT, default=None, own=True, help="The column with the keys of sequences; if absent, row numbers."
    )

    filter = Parameter(
        "filter", TEXT, default=None, own=True, help="What rows have to fulfil: \"label < 5 and split == 'train'\"."
    )

    def condition(self) -> Filter | None:
        """Return the filter; None without one."""
        if (parsed := self._parsed()) is None:
            return None
        from .filters import Filter

        return Filter(parsed)

    def _parsed(self) -> Condition | None:
        if self.filter is None:
            return None
        from .conditions import BadConditionError, condition_of

        try:
            return condition_of(str(self.filter))
        except BadConditionError as error:
            raise self.error("filter", str(error), error.hint) from None

    def streams(self) -> list[TableStream]:
        """Return the streams, in alphabetical order."""
        names = stream_names(self, "write input=[name=[dim=...]]")
        sections = {name: TableStreamParameters(self.input.section(name)) for name in names}
        streams = [section.stream(name) for name, section in sections.items() if not section.is_picture]
        check_one_defines_size(self, streams)
        return streams

    def pictures(self) -> list[tuple[str, TableStreamParameters]]:
        """Names and sections of the streams of pictures, in alphabetical order."""
        every = [(name, TableStreamParameters(section)) for name, section in self.input.inner()]
        pictures = sorted((pair for pair in every if pair[1].is_picture), key=lambda pair: pair[0].lower())
        for _, p in pictures:
            p.check_together()
        return pictures

    def check_together(self) -> None:
        """Errors in what does not go together."""
        self.streams()
        self.pictures()
        self._parsed()

    def files(self) -> list[tuple[str, Partition]]:
        """Return the files, and the columns that their folders are."""
        from .partitions import files_of, partitions_of

        paths = files_of([str(path) for path in self.file], self.endings)
        return list(zip(paths, partitions_of(paths), strict=True))

    def tables(self) -> list[TableFile]:
        """Return the files, opened."""
        raise NotImplementedError


class ParquetParameters(TableParameters):
    """A Parquet file: each row is a sequence, each column a stream."""

    endings = (".parquet", ".pq")

    def tables(self) -> list[TableFile]:
        """Return the files, opened."""
        from .files import ParquetTable

        return [ParquetTable(path, partition) for path, partition in self.files()]


class ArrowParameters(TableParameters):
    """A file in Arrow's file format (Feather): each row is a sequence, each column a stream."""

    endings = (".arrow", ".feather", ".ipc")

    def tables(self) -> list[TableFile]:
        """Return the files, opened."""
        from .files import ArrowTable

        return [ArrowTable(path, partition) for path, partition in self.files()]


class CsvParameters(TableParameters):
    """A CSV file: each row is a sequence, each column a stream."""

    endings = tuple(name + packed for name in (".csv", ".tsv", ".tab") for packed in ("", *PACKED_ENDINGS))

    def tables(self) -> list[TableFile]:
        """Return the files, opened: each is parsed once for the types of its columns, which are the same in all
        files.
        """
        from .csv.table import CsvTable, give_same_kinds

        csv_tables = [CsvTable(path, partition, self._texts()) for path, partition in self.files()]
        give_same_kinds(csv_tables)
        return list(csv_tables)

    def _texts(self) -> set[str]:
        """Columns that are texts whatever they look like: classes that a file lists, and keys."""
        streams, condition = self.streams(), self.condition()
        columns = {column for s in streams if s.listed is not None for column in s.columns}
        remaining = {column for s in streams for column in s.columns} | set(condition.columns if condition else ())
        return columns | ({str(self.key_column)} if self.key_column is not None else set()) - remaining


def create_parquet(section: ConfigParameters, setting: Setting) -> Deserializer:
    """ParquetDeserializer."""
    return _create(ParquetParameters(section), setting)


def create_arrow(section: ConfigParameters, setting: Setting) -> Deserializer:
    """ArrowDeserializer."""
    return _create(ArrowParameters(section), setting)


def create_csv(section: ConfigParameters, setting: Setting) -> Deserializer:
    """CsvDeserializer."""
    return _create(CsvParameters(section), setting)


def _create(p: TableParameters, setting: Setting) -> Deserializer:
    from cntkpy.readers.streams import DTYPES

    from .deserializer import RowKeys, TableDeserializer

    streams, pictures = p.streams(), p.pictures()
    precision = check_precision(p.config, setting.precision)
    data = TableDeserializer(
        p.tables(),
        streams,
        DTYPES[precision],
        RowKeys(str(p.key_column) if p.key_column is not None else None, setting.corpus, setting.primary),
        threads=setting.threads > 1,
        condition=p.condition(),
        pictures=[item.column(name) for name, item in pictures],
    )
    if not pictures:
        return data
    from cntkpy.readers.pipeline.bundle import SideBySide

    parts = [_pictures(*picture, data, setting, with_rows=not number) for number, picture in enumerate(pictures)]
    return parts[0] if len(parts) == 1 else SideBySide(parts)


def _pictures(
    name: str, p: TableStreamParameters, data: TableDeserializer, setting: Setting, with_rows: bool
) -> Pictures:
    """Return a stream of pictures; with_rows: together with the other streams of the rows."""
    from cntkpy.readers.common.corpus import Corpus
    from cntkpy.readers.formats.image.deserializer import PictureFormat, Pictures
    from cntkpy.readers.formats.image.transforms.chain import make_chain

    from .pictures import PictureColumn

    chain = make_chain(p.transforms or (), data.dtype, 1 if p.grayscale else 3, until_mean=False)
    listing = PictureColumn(data.groups, p.column(name), data.table.keys)
    corpus, first = setting.corpus or Corpus(), data.table.first
    rows = data if with_rows else None
    return Pictures(name, chain, listing, corpus, PictureFormat(data.dtype, p.grayscale), first=first, beside=rows)
