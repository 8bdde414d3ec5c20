"""cntk.layers.layers: layers of samples."""

from cntkpy.networks.builders.python.layers import (
    Activation,
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution1D,
    Convolution2D,
    Convolution3D,
    ConvolutionTranspose,
    ConvolutionTranspose1D,
    ConvolutionTranspose2D,
    ConvolutionTranspose3D,
    Dense,
    Dropout,
    Embedding,
    GlobalAveragePooling,
    GlobalMaxPooling,
    Label,
    LayerNormalization,
    MaxPooling,
    MaxUnpooling,
    SequentialConvolution,
)

from ..missing import no_attribute
from ..ops import (
    batch_normalization,
    convolution,
    convolution_transpose,
    dropout,
    element_times,
    pooling,
    reduce_mean,
    reshape,
    splice,
    sqrt,
    unpooling,
)

SentinelValueForAutoSelectRandomSeed: int | None = None
"""A seed that is not given."""

__all__ = [
    "Activation", "AveragePooling", "BatchNormalization", "Convolution", "Convolution1D", "Convolution2D",
    "Convolution3D", "ConvolutionTranspose", "ConvolutionTranspose1D", "ConvolutionTranspose2D",
    "ConvolutionTranspose3D", "Dense", "Dropout", "Embedding", "GlobalAveragePooling", "GlobalMaxPooling", "Label",
    "LayerNormalization", "MaxPooling", "MaxUnpooling", "SentinelValueForAutoSelectRandomSeed", "SequentialConvolution",
    "batch_normalization", "convolution", "convolution_transpose", "dropout", "element_times", "pooling", "reduce_mean",
    "reshape", "splice", "sqrt", "unpooling",
]  # fmt: skip

__getattr__ = no_attribute("cntk.layers.layers", __all__)
