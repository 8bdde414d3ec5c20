"""UCIFastReader made from its parameters."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from cntk_config.parameters import ConfigParameters
from readers.common.labels import LabelMap, load_labels
from readers.parameters import check_precision
from readers.streams import DTYPES

from .parameters import FeatureParameters, LabelParameters, Sections, UCIReaderParameters, classify
from .reader import UCIReader
from .text import Columns, UCIText

log = logging.getLogger("cntkpy.readers")


class UCISettings:
    """All a section says: which fields are what, the label map, the order. Nothing is read but the label map."""

    def __init__(self, section: ConfigParameters, precision: str):
        self.config, self.reader = section, UCIReaderParameters(section)
        self.dtype = np.dtype(DTYPES[check_precision(section, precision)])
        sections = classify(section)
        if not sections.features:
            raise section.error(
                "", "the reader has no section of features", "add features=[dim=... ; start=...]", "MissingParameter"
            )
        self.features = FeatureParameters(section.section(sections.features[0]))
        self.path = str(self.features.file)
        self.labels = LabelParameters(section.section(sections.labels[0])) if sections.labels else None
        self.columns = self._columns(sections)
        self.block, self.full = self.reader.randomize, self.reader.minibatch_mode.lower() != "partial"

    def _columns(self, sections: Sections) -> Columns:
        delimiter, point = self._character("customDelimiter"), self._character("customDecimalPoint")
        if delimiter and delimiter == point:
            raise self.reader.error("customDelimiter", "is the same as customDecimalPoint", "use two characters")
        if delimiter and (delimiter in "0123456789+-" or (delimiter == "." and not point)):
            raise self.reader.error("customDelimiter", f"'{delimiter}' is a part of numbers")
        if point and point in "0123456789+- eE":
            raise self.reader.error("customDecimalPoint", f"'{point}' is another part of numbers, or a blank")
        first, dim = self.features.start, self.features.dim
        if not 0 < dim < 2**31:
            raise self.features.error("dim", f"{dim} is not a number of features", "write 1 or more")
        for one in filter(None, (self.features, self.labels)):
            if one.start >= 2**31:
                raise one.error("start", "fields are counted from 0", "write 0 or more")
        name, p = sections.features[0], self.labels
        if p is None:
            if self.reader.trace_level > 0:
                log.warning("The reader %s has no section of labels; only features are read.", self.config.path)
            return Columns(name, first, dim, delimiter=delimiter, decimal_point=point)
        if str(p.file) != self.path:
            raise p.error("file", "features and labels must come from one file", "give file in the reader's section")
        kind = p.label_type
        if kind == "none":
            return Columns(name, first, dim, delimiter=delimiter, decimal_point=point)
        label_dim = 1 if p.dim is None else p.dim
        if kind == "category":
            label_dim = label_dim or 1
            if label_dim != 1:
                raise p.error("dim", "labels of type category are a single field", "write dim=1")
            if not p.mapping:
                raise p.error("labelMappingFile", "the label mapping file is missing", None, "MissingParameter")
        elif label_dim == 0:
            raise p.error("dim", "0 is not a number of labels", "write 1 or more")
        if max(first, p.start) < min(first + dim, p.start + label_dim):
            raise p.error(
                "start", f"fields {p.start} to {p.start + label_dim - 1} are labels, but {first} to {first + dim - 1} "
                "are features", "the two must not overlap",
            )  # fmt: skip
        return Columns(name, first, dim, sections.labels[0], kind, p.start, label_dim, delimiter, point)

    def _character(self, name: str) -> str:
        value = self.reader.given(name)
        if not value:
            return ""
        if ord(value[0]) >= 128 or value[0] in "\n\0":
            raise value.error("BadValue", f"{name} must be an ASCII character", None)
        return str(value[0])

    @property
    def mapping_path(self) -> str:
        """The label mapping file, empty if there is none."""
        return str(self.labels.mapping or "") if self.labels is not None else ""

    @property
    def makes_map(self) -> bool:
        """Whether the label mapping file is to be made from the data."""
        return self.columns.kind == "category" and self.reader.create_map and not Path(self.mapping_path).exists()

    def label_map(self) -> LabelMap:
        """The labels that are known before the data are read."""
        if self.columns.kind != "category" or self.makes_map:
            return LabelMap()
        return load_labels(self.mapping_path)

    @property
    def classes(self) -> int:
        """labelDim."""
        return self.labels.label_dim if self.labels is not None else 0

    def text(self) -> UCIText:
        """The data file; makes the label mapping file if that was asked for."""
        data = UCIText(
            self.path, self.columns, self.dtype, self.label_map(), classes=self.classes, may_add=self.makes_map
        )
        if data.may_add:
            for chunk in range(data.table.num_chunks):
                data.load_chunk(chunk)
            data.labels.save(self.mapping_path)
            data.may_add = False
        return data


def create_uci_reader(section: ConfigParameters, precision: str) -> UCIReader:
    """UCIFastReader."""
    return UCIReader(UCISettings(section, precision))
