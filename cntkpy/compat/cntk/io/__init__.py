"""cntk.io: data."""

from readers import (
    DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS,
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    Base64ImageDeserializer,
    CBFDeserializer,
    CTFDeserializer,
    HTKFeatureDeserializer,
    HTKMLFBinaryDeserializer,
    HTKMLFDeserializer,
    ImageDeserializer,
    LatticeDeserializer,
    MinibatchData,
    MinibatchSource,
    MinibatchSourceFromData,
    StreamConfiguration,
    StreamDef,
    StreamDefs,
    StreamInformation,
    UserDeserializer,
    UserMinibatchSource,
    sequence_to_cntk_text_format,
)

from ..missing import no_attribute
from . import transforms

DEFAULT_RANDOMIZATION_WINDOW = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS

__all__ = [
    "DEFAULT_RANDOMIZATION_WINDOW", "DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS", "FULL_DATA_SWEEP", "INFINITELY_REPEAT",
    "Base64ImageDeserializer", "CBFDeserializer", "CTFDeserializer", "HTKFeatureDeserializer",
    "HTKMLFBinaryDeserializer", "HTKMLFDeserializer", "ImageDeserializer", "LatticeDeserializer", "MinibatchData",
    "MinibatchSource", "MinibatchSourceFromData", "StreamConfiguration", "StreamDef", "StreamDefs",
    "StreamInformation", "UserDeserializer", "UserMinibatchSource", "sequence_to_cntk_text_format", "transforms",
]  # fmt: skip

__getattr__ = no_attribute("cntk.io", __all__)
