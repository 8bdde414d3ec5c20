"""Settings of UCIFastReader, and the data they select."""

from __future__ import annotations

import logging

import numpy as np

from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.beginnings import current
from cntkpy.readers.common.labels import LabelMap, load_labels
from cntkpy.readers.formats.binary.parameters import BinaryWriterParameters
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.streams import DTYPES

from .parameters import UCIReaderParameters, classify
from .text import UCIText

log = logging.getLogger("cntkpy.readers")


class UCISettings:
    """All a section says: which fields are what, the label map, the order. Nothing is read but the label map."""

    def __init__(self, section: ConfigParameters, precision: str):
        self.config, self.reader = section, UCIReaderParameters(section)
        self.dtype = np.dtype(DTYPES[check_precision(section, precision)])
        self.features, self.labels = self.reader.features(), self.reader.labels()
        self.path, self.columns = self.reader.path(), self.reader.columns()
        if self.labels is None and self.reader.trace_level > 0:
            log.warning("The reader %s has no section of labels; only features are read.", section.path)
        sections = classify(section)
        for kind, names in (("features", sections.features), ("labels", sections.labels)):
            # A section of the cache alone (sectionType) is read elsewhere.
            remaining_names = [
                name for name in names[1:] if not BinaryWriterParameters.section_type.stands_in(section.section(name))
            ]
            if remaining_names:
                log.warning(
                    "UCIFastReader has one section of %s, '%s', the first in alphabetical order; not read: '%s'.",
                    kind,
                    names[0],
                    "', '".join(remaining_names),
                )
        self.block, self.full = self.reader.randomize, self.reader.minibatch_mode == "full"

    @property
    def mapping_path(self) -> str:
        """The label mapping file, empty if there is none."""
        return str(self.labels.mapping or "") if self.labels is not None else ""

    @property
    def makes_map(self) -> bool:
        """True if the label mapping file is to be made from the data."""
        return self.columns.kind == "category" and self.reader.create_map and not exists(self.mapping_path)

    def label_map(self) -> LabelMap:
        """Return the labels that are known before the data are read."""
        if self.columns.kind != "category" or self.makes_map:
            return LabelMap()
        return load_labels(self.mapping_path)

    @property
    def classes(self) -> int:
        """labelDim."""
        return self.labels.label_dim if self.labels is not None else 0

    def text(self) -> UCIText:
        """Return the data file; makes the label mapping file if that was asked for."""
        data = UCIText(
            self.path, self.columns, self.dtype, self.label_map(), classes=self.classes, may_add=self.makes_map
        )
        if data.may_add:
            for chunk in range(data.table.num_chunks):
                data.load_chunk(chunk)
            if current() is None:
                data.labels.save(self.mapping_path)
            data.may_add = False
        return data
