"""Layers of CNTK's."""

import math

import cntk as C
from cntk.default_options import default_override_or, get_default_override, is_default_override
from cntk.initializer import glorot_uniform
from cntk.internal import _as_tuple
from cntk.internal.utils import Record
from cntk.layers import Dense, Sequential
from cntk.layers.blocks import (
    _INFERRED,
    UntestedBranchError,
    _get_initial_state_or_default,
    _initializer_for,
    _inject_name,
    identity,
)
from cntk.layers.sequence import _santize_step_function
from cntk.ops import times
from cntk.ops.functions import BlockFunction
from cntk.variables import Parameter

from . import ops


def QuasiRNN(
    hidden,
    window=2,
    activation=C.tanh,
    init=default_override_or(glorot_uniform()),
    init_bias=default_override_or(0),
    name="",
):
    activation = get_default_override(C.layers.Dense, activation=activation)
    init = get_default_override(QuasiRNN, init=init)
    init_bias = get_default_override(QuasiRNN, init_bias=init_bias)
    gates = C.layers.Convolution((window,), 3 * hidden, sequential=True, pad=True, init=init, init_bias=init_bias)
    dense = C.layers.Dense(3 * hidden, init=init, init_bias=init_bias)

    @C.BlockFunction("QuasiRNN", name)
    def model(x):
        z = dense(ops.sequence.window(x, window))
        a, f, o = (C.slice(z, -1, k * hidden, (k + 1) * hidden) for k in range(3))
        candidate, forget, output = activation(a), C.sigmoid(f), C.sigmoid(o)

        def step(c, fx):
            gate, value = C.slice(fx, -1, 0, hidden), C.slice(fx, -1, hidden, 2 * hidden)
            return gate * c + (1 - gate) * value

        return output * C.layers.Recurrence(step)(C.splice(forget, candidate))

    return model


def IndRNNStep(
    shape,
    activation=default_override_or(C.relu),
    init=default_override_or(glorot_uniform()),
    init_bias=default_override_or(0),
    name="",
):
    activation = get_default_override(IndRNNStep, activation=activation)
    init = get_default_override(IndRNNStep, init=init)
    init_bias = get_default_override(IndRNNStep, init_bias=init_bias)
    shape = _as_tuple(shape)
    if len(shape) != 1:
        UntestedBranchError("IndRNNStep of several axes")
    b = Parameter(shape, init=init_bias, name="b")
    W = Parameter(_INFERRED + shape, init=init, name="W")
    u = Parameter(shape, init=1, name="u")

    def ind_rnn(dh, x):
        return activation(times(x, W) + u * dh + b)

    function = C.BlockFunction("IndRNN", name)(ind_rnn)
    return function


def WeightMaskedLSTM(shape, activation=default_override_or(C.tanh), name="WeightMaskedLSTM"):
    activation = get_default_override(WeightMaskedLSTM, activation=activation)
    shape = _as_tuple(shape)
    stacked = tuple(4 * n for n in shape)
    b = Parameter(stacked, init=0, name="b")
    W = Parameter(_INFERRED + stacked, init=glorot_uniform(), name="W")
    H = Parameter(shape + stacked, init=glorot_uniform(), name="H")

    @C.BlockFunction("LSTM", name)
    def lstm(dh, dc, x):
        proj = b + times(x, W) + times(C.dropout(dh, 0.1), H)
        n = shape[-1]
        it = C.sigmoid(C.slice(proj, -1, 0, n))
        bit = it * activation(C.slice(proj, -1, n, 2 * n))
        ft = C.sigmoid(C.slice(proj, -1, 2 * n, 3 * n))
        ct = ft * dc + bit
        ot = C.sigmoid(C.slice(proj, -1, 3 * n, 4 * n))
        return ot * activation(ct), ct

    return lstm


def Recurrence(step, go_backwards=False, initial_state=0, return_full_state=False, name=""):
    step = _santize_step_function(step)
    initial_state = _get_initial_state_or_default(initial_state)
    return _inject_name(C.layers.Recurrence(step, go_backwards, initial_state, return_full_state), name)


def LayerNormDense(
    units, activation=default_override_or(identity), init=default_override_or(glorot_uniform()), name=""
):
    activation = get_default_override(LayerNormDense, activation=activation)
    init = _initializer_for(get_default_override(LayerNormDense, init=init), Record(output_rank=-1))
    shape = _as_tuple(units)
    W = Parameter(_INFERRED + shape, init=init, name="W")
    scale, bias = Parameter(_INFERRED, init=1, name="scale"), Parameter(_INFERRED, init=0, name="bias")

    @BlockFunction("LayerNormDense", name)
    def apply(x):
        mean = C.reduce_mean(x)
        centred = x - mean
        normed = centred / C.sqrt(C.reduce_mean(C.square(centred)) + 1e-5)
        return activation(times(normed * scale + bias, W))

    return apply


def PositionalEmbedding(max_length, dim, init=default_override_or(glorot_uniform()), name=""):
    init = get_default_override(PositionalEmbedding, init=init)
    table = Parameter((max_length, dim), init=init, name="E")

    @C.Function
    def embed(x):
        position = C.reshape(ops.sequence.position(x), ())
        return C.times(C.one_hot(position, max_length), table)

    return _inject_name(embed, name)


def ScaledDotProductAttention(name=""):
    @C.BlockFunction("Attention", name)
    def attention(query, key, value):
        dk = query.shape[0]
        unpacked_key = C.sequence.unpack(key, 0, no_mask_output=True)
        unpacked_value = C.sequence.unpack(value, 0, no_mask_output=True)
        keys = C.sequence.broadcast_as(unpacked_key, query)
        values = C.sequence.broadcast_as(unpacked_value, query)
        scores = C.times_transpose(query, keys) / math.sqrt(dk)
        return C.times(C.softmax(scores, axis=-1), values)

    return attention


def PyramidalBiRecurrence(layers, hidden, width=2, name=""):
    lstms = [
        (C.layers.Recurrence(C.layers.LSTM(hidden)), C.layers.Recurrence(C.layers.LSTM(hidden), go_backwards=True))
        for _ in range(layers)
    ]

    def inner(x):
        h = x
        for forward, backward in lstms:
            window = ops.sequence.window(h, width)
            h = C.splice(forward(window), backward(window), axis=-1)
        return _inject_name(h, name)

    return inner


def SqueezeExcite(ratio=2, name=""):
    def inner(x):
        channels = x.shape[0]
        pooled = C.layers.GlobalAveragePooling()(x)
        gate = Sequential([Dense((channels // ratio, 1, 1), C.relu), Dense((channels, 1, 1), C.sigmoid)])(pooled)
        return _inject_name(x * gate, name)

    return inner


def is_overridden(option):
    return is_default_override(option)
