"""cntk.layers."""

from networks.builders.python.layers import (
    GRU,
    LSTM,
    Activation,
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution1D,
    Convolution2D,
    Delay,
    Dense,
    Dropout,
    Embedding,
    Fold,
    For,
    GlobalAveragePooling,
    GlobalMaxPooling,
    Label,
    LayerNormalization,
    MaxPooling,
    Recurrence,
    ResNetBlock,
    RNNStep,
    RNNUnit,
    Sequential,
    Stabilizer,
    default_options,
    default_options_for,
    identity,
)

from .missing import no_attribute

__all__ = [
    "GRU", "LSTM", "Activation", "AveragePooling", "BatchNormalization", "Convolution", "Convolution1D",
    "Convolution2D", "Delay", "Dense", "Dropout", "Embedding", "Fold", "For", "GlobalAveragePooling",
    "GlobalMaxPooling", "Label", "LayerNormalization", "MaxPooling", "RNNStep", "RNNUnit", "Recurrence", "ResNetBlock",
    "Sequential", "Stabilizer", "default_options", "default_options_for", "identity",
]  # fmt: skip

__getattr__ = no_attribute("cntk.layers", __all__)
