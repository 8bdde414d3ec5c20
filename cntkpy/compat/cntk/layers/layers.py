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

__all__ = [
    "Activation", "AveragePooling", "BatchNormalization", "Convolution", "Convolution1D", "Convolution2D",
    "Convolution3D", "ConvolutionTranspose", "ConvolutionTranspose1D", "ConvolutionTranspose2D",
    "ConvolutionTranspose3D", "Dense", "Dropout", "Embedding", "GlobalAveragePooling", "GlobalMaxPooling", "Label",
    "LayerNormalization", "MaxPooling", "MaxUnpooling", "SequentialConvolution",
]  # fmt: skip

__getattr__ = no_attribute("cntk.layers.layers", __all__)
