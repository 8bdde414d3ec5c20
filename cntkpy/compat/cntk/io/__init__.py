"""cntk.io: data."""

from collections.abc import Sequence

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

from ..missing import no_attribute, warn_beta
from . import transforms

DEFAULT_RANDOMIZATION_WINDOW = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS
INFINITE_SAMPLES = INFINITELY_REPEAT
MAX_UI64 = 0xFFFFFFFFFFFFFFFF
"""The largest number of samples, which older programs give for no limit."""


def text_format_minibatch_source(
    path: str,
    stream_configs: Sequence[StreamConfiguration],
    epoch_size: int = INFINITELY_REPEAT,
    randomize: bool = True,
    distributed_after: int = INFINITE_SAMPLES,
) -> MinibatchSource:
    """Return a source of a file in CNTK text format: the name that betas of CNTK 2.0 had for it.

    Args:
        path: the file.
        stream_configs: its streams.
        epoch_size: samples after which the data end; `FULL_DATA_SWEEP`: after each sample once.
        randomize: shuffle the data.
        distributed_after: no effect, as a distributed learner asks for its worker's share.

    Raises:
        UserError: the file cannot be read, or a stream is not described.

    Warns:
        DeprecationWarning: always; Python shows it once.
    """
    warn_beta("cntk.io.text_format_minibatch_source", "MinibatchSource(CTFDeserializer(...))")
    streams = {
        stream.name: StreamDef(
            field=stream.stream_alias or stream.name,
            shape=stream.dim,
            is_sparse=stream.is_sparse,
            defines_mb_size=stream.defines_mb_size,
        )
        for stream in stream_configs
    }
    return MinibatchSource(CTFDeserializer(path, StreamDefs(**streams)), max_samples=epoch_size, randomize=randomize)


__all__ = [
    "DEFAULT_RANDOMIZATION_WINDOW", "DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS", "FULL_DATA_SWEEP", "INFINITELY_REPEAT",
    "INFINITE_SAMPLES", "MAX_UI64",
    "Base64ImageDeserializer", "CBFDeserializer", "CTFDeserializer", "HTKFeatureDeserializer",
    "HTKMLFBinaryDeserializer", "HTKMLFDeserializer", "ImageDeserializer", "LatticeDeserializer", "MinibatchData",
    "MinibatchSource", "MinibatchSourceFromData", "StreamConfiguration", "StreamDef", "StreamDefs",
    "StreamInformation", "UserDeserializer", "UserMinibatchSource", "sequence_to_cntk_text_format",
    "text_format_minibatch_source", "transforms",
]  # fmt: skip

__getattr__ = no_attribute("cntk.io", __all__)
