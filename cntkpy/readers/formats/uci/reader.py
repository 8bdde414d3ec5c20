"""UCIFastReader: text, or its binary cache, in the order that was asked for."""

from __future__ import annotations

import logging
from dataclasses import replace

from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.beginnings import current
from cntkpy.readers.contracts import Data
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.errors import DataError
from cntkpy.readers.pipeline.records import RecordOrder
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.reader import Reader

from .cache import Cache, Stale
from .settings import UCISettings
from .text import UCIText

log = logging.getLogger("cntkpy.readers")


class UCIReader(Reader):
    """Reads text; where the section has a cache, the first worker writes it at the start of the first epoch."""

    def __init__(self, settings: UCISettings):
        self.settings = settings
        self._cache = Cache.of(settings)
        self._text: UCIText | None = None
        """Text source, unless the cache is read."""
        self._labels: dict[int, str] = {}
        super().__init__(self._open())

    def _open(self) -> Source:
        s = self.settings
        if self._cache is not None and self._cache.exists and not s.makes_map:
            try:
                data, self._labels = self._cache.read()
                if s.reader.trace_level > 0:
                    log.info("Reading the cache %s instead of %s", ", ".join(self._cache.paths), s.path)
                return self._source(data)
            except (Stale, DataError) as problem:
                if not exists(s.path):
                    raise DataError(
                        f"The cache {', '.join(self._cache.paths)} cannot be used, and {s.path}, from which it was "
                        f"made, is not there: {problem}",
                        path=self._cache.paths[0],
                        hint="restore the text; readerType=BinaryReader reads the records of files that are whole",
                    ) from None
                log.warning("Rebuilding the cache of %s: %s", s.path, str(problem))  # a record keeps what it names
        self._text = s.text()
        self._labels = self._text.labels.mapping()
        return self._source(self._text)

    def _source(self, data: Data) -> Source:
        s = self.settings
        order = RecordOrder(
            data.table, s.block, full=s.full, wraps=True, complain=lambda text: s.reader.error("randomize", text)
        )
        return Source(data, order, SourceOptions(frame_mode=True, prefetch=s.reader.prefetch))

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        if self._cache is not None and self._text is not None and request.worker == 0 and current() is None:
            self._write_cache(self._cache, self._text)
        if self.settings.reader.one_line:
            request = replace(request, minibatch_size=self.settings.reader.slices)
        super().start(request)

    def _write_cache(self, cache: Cache, text: UCIText) -> None:
        try:
            cache.write(text, self._labels)
            data, _ = cache.read()
        except (Stale, OSError) as problem:
            reason = (isinstance(problem, OSError) and problem.strerror) or problem
            log.warning("There is no cache of %s: %s", self.settings.path, reason)
            self._cache = None
            return
        self.source.close()
        self.source = self._source(data)
        self._text = None

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Names of classes of the section of labels."""
        return dict(self._labels) if name.lower() == self.settings.columns.labels.lower() else {}


def create_uci_reader(section: ConfigParameters, precision: str) -> UCIReader:
    """UCIFastReader."""
    return UCIReader(UCISettings(section, precision))
