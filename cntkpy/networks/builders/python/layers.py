"""Layers: functions of functions with parameters of their own; those of the library of BrainScript, and others."""

from __future__ import annotations

from cntkpy.networks.builders.python.functions.defaults import default_options, default_options_for
from cntkpy.networks.builders.python.initializers import (
    bilinear,
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    initializer_with_rank,
    normal,
    truncated_normal,
    uniform,
    xavier,
)
from cntkpy.networks.builders.python.layer_kinds.base import (
    For,
    Layer,
    ResNetBlock,
    Sequential,
    SequentialClique,
    identity,
    makes_blocks,
)
from cntkpy.networks.builders.python.layer_kinds.convolutions import (
    Convolution,
    Convolution1D,
    Convolution2D,
    Convolution3D,
    ConvolutionTranspose,
    ConvolutionTranspose1D,
    ConvolutionTranspose2D,
    ConvolutionTranspose3D,
    SequentialConvolution,
)
from cntkpy.networks.builders.python.layer_kinds.dense import Activation, Dense, Dropout, Embedding, Label
from cntkpy.networks.builders.python.layer_kinds.library import bias_start, weights_start
from cntkpy.networks.builders.python.layer_kinds.normalization import BatchNormalization, LayerNormalization, Stabilizer
from cntkpy.networks.builders.python.layer_kinds.pooling import (
    AveragePooling,
    GlobalAveragePooling,
    GlobalMaxPooling,
    MaxPooling,
    MaxUnpooling,
)
from cntkpy.networks.builders.python.layer_kinds.recurrence import (
    GRU,
    LSTM,
    Cell,
    Delay,
    Fold,
    PastValueWindow,
    Recurrence,
    RecurrenceFrom,
    RNNStep,
    RNNUnit,
)

__all__ = [
    "GRU", "LSTM", "Activation", "AveragePooling", "BatchNormalization", "Cell", "Convolution", "Convolution1D",
    "Convolution2D", "Convolution3D", "ConvolutionTranspose", "ConvolutionTranspose1D", "ConvolutionTranspose2D",
    "ConvolutionTranspose3D", "Delay", "Dense", "Dropout", "Embedding", "Fold", "For", "GlobalAveragePooling",
    "GlobalMaxPooling", "Label", "Layer", "LayerNormalization", "MaxPooling", "MaxUnpooling", "PastValueWindow",
    "RNNStep", "RNNUnit", "Recurrence", "RecurrenceFrom", "ResNetBlock", "Sequential", "SequentialClique",
    "SequentialConvolution", "Stabilizer", "bias_start", "bilinear", "default_options", "default_options_for",
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "initializer_with_rank", "makes_blocks",
    "normal", "truncated_normal", "uniform", "weights_start", "xavier",
]  # fmt: skip
