"""cntk.io: data."""

from cntkpy.readers import (
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
INFINITE_SAMPLES = INFINITELY_REPEAT
MAX_UI64 = 0xFFFFFFFFFFFFFFFF
"""The largest number of samples, which older programs give for no limit."""

__all__ = [
    "DEFAULT_RANDOMIZATION_WINDOW", "DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS", "FULL_DATA_SWEEP", "INFINITELY_REPEAT",
    "INFINITE_SAMPLES", "MAX_UI64",
    "Base64ImageDeserializer", "CBFDeserializer", "CTFDeserializer", "HTKFeatureDeserializer",
    "HTKMLFBinaryDeserializer", "HTKMLFDeserializer", "ImageDeserializer", "LatticeDeserializer", "MinibatchData",
    "MinibatchSource", "MinibatchSourceFromData", "StreamConfiguration", "StreamDef", "StreamDefs",
    "StreamInformation", "UserDeserializer", "UserMinibatchSource", "sequence_to_cntk_text_format", "transforms",
]  # fmt: skip

__getattr__ = no_attribute("cntk.io", __all__)
