"""Data in and out: formats, orders, packing, minibatches. Imports neither JAX nor Numba until data are read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cntkpy.readers.data_api.base import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, FULL_DATA_SWEEP, INFINITELY_REPEAT
    from cntkpy.readers.data_api.factories import (
        ArrowDeserializer,
        Base64ImageDeserializer,
        CBFDeserializer,
        CsvDeserializer,
        CTFDeserializer,
        HTKFeatureDeserializer,
        HTKMLFBinaryDeserializer,
        HTKMLFDeserializer,
        ImageDeserializer,
        KaldiFeatureDeserializer,
        KaldiLabelDeserializer,
        LatticeDeserializer,
        ParquetDeserializer,
        TarDeserializer,
    )
    from cntkpy.readers.data_api.from_data import MinibatchSourceFromData
    from cntkpy.readers.data_api.minibatch_source import MinibatchSource, TraceLevel
    from cntkpy.readers.data_api.text import sequence_to_cntk_text_format
    from cntkpy.readers.data_api.user_source import UserMinibatchSource
    from cntkpy.readers.data_api.value import MinibatchData, Value
    from cntkpy.readers.reader import Reader
    from cntkpy.readers.registry import create_reader
    from cntkpy.readers.user.deserializer import UserDeserializer
    from cntkpy.readers.user.reader import ChunksReader, RowsReader, SequencesReader, UserReader
    from cntkpy.readers.user.record import Record, StreamConfiguration, StreamDef, StreamDefs
    from cntkpy.readers.user.streams import StreamInformation

    from .errors import DataError
    from .minibatch import Layout, Minibatch

_WHERE = {
    "ArrowDeserializer": "data_api.factories",
    "Base64ImageDeserializer": "data_api.factories",
    "CBFDeserializer": "data_api.factories",
    "CTFDeserializer": "data_api.factories",
    "ChunksReader": "user.reader",
    "CsvDeserializer": "data_api.factories",
    "DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS": "data_api.base",
    "DataError": "errors",
    "FULL_DATA_SWEEP": "data_api.base",
    "INFINITELY_REPEAT": "data_api.base",
    "HTKFeatureDeserializer": "data_api.factories",
    "HTKMLFBinaryDeserializer": "data_api.factories",
    "HTKMLFDeserializer": "data_api.factories",
    "ImageDeserializer": "data_api.factories",
    "KaldiFeatureDeserializer": "data_api.factories",
    "KaldiLabelDeserializer": "data_api.factories",
    "LatticeDeserializer": "data_api.factories",
    "Layout": "minibatch",
    "Minibatch": "minibatch",
    "MinibatchData": "data_api.value",
    "MinibatchSource": "data_api.minibatch_source",
    "MinibatchSourceFromData": "data_api.from_data",
    "ParquetDeserializer": "data_api.factories",
    "Reader": "reader",
    "Record": "user.record",
    "RowsReader": "user.reader",
    "SequencesReader": "user.reader",
    "StreamConfiguration": "user.record",
    "StreamDef": "user.record",
    "StreamDefs": "user.record",
    "StreamInformation": "user.streams",
    "TarDeserializer": "data_api.factories",
    "TraceLevel": "data_api.minibatch_source",
    "UserDeserializer": "user.deserializer",
    "UserMinibatchSource": "data_api.user_source",
    "UserReader": "user.reader",
    "Value": "data_api.value",
    "create_reader": "registry",
    "sequence_to_cntk_text_format": "data_api.text",
}
__all__ = [
    "DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS",
    "FULL_DATA_SWEEP",
    "INFINITELY_REPEAT",
    "ArrowDeserializer",
    "Base64ImageDeserializer",
    "CBFDeserializer",
    "CTFDeserializer",
    "ChunksReader",
    "CsvDeserializer",
    "DataError",
    "HTKFeatureDeserializer",
    "HTKMLFBinaryDeserializer",
    "HTKMLFDeserializer",
    "ImageDeserializer",
    "KaldiFeatureDeserializer",
    "KaldiLabelDeserializer",
    "LatticeDeserializer",
    "Layout",
    "Minibatch",
    "MinibatchData",
    "MinibatchSource",
    "MinibatchSourceFromData",
    "ParquetDeserializer",
    "Reader",
    "Record",
    "RowsReader",
    "SequencesReader",
    "StreamConfiguration",
    "StreamDef",
    "StreamDefs",
    "StreamInformation",
    "TarDeserializer",
    "TraceLevel",
    "UserDeserializer",
    "UserMinibatchSource",
    "UserReader",
    "Value",
    "create_reader",
    "sequence_to_cntk_text_format",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'cntkpy.readers' has no attribute '{name}'")
    return getattr(importlib.import_module(f"cntkpy.readers.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
