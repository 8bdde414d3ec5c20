"""Operators of CNTK's."""

import cntk as C
import numpy as np
from cntk.internal import sanitize_axis, sanitize_input, sanitize_shape, typemap
from cntk.internal.utils import get_data_type
from cntk.ops import associative_multi_arg


@C.typemap
def cumsum(x, axis=-1, name=""):
    @C.BlockFunction("CumSum", name)
    def inner(a):
        size = a.shape[axis]
        lower = C.Constant(np.triu(np.ones((size, size), np.float32)))
        return C.times(a, lower)

    return inner(x)


@typemap
def batchmatmul(left, right, name=""):
    """Products of matrices, one for each slice of the leading axis."""
    left, right = sanitize_input(left, get_data_type(right)), sanitize_input(right, get_data_type(left))

    @C.BlockFunction("BatchMatMul", name)
    def inner(a, b):
        a = C.expand_dims(a, -1)  # (n, i, k, 1)
        b = C.expand_dims(b, -3)  # (n, 1, k, j)
        return C.squeeze(C.reduce_sum(a * b, axis=-2), axes=-2)

    return inner(left, right)


@C.BlockFunction("Swish", "")
def swish(x):
    return x * C.sigmoid(x)


def scalar(x, name=""):
    @C.BlockFunction("Scalar", name)
    def inner(a):
        return C.sequence.last(C.reshape(a, (1,))) if len(a.dynamic_axes) == 2 else C.reshape(a, (1,))

    return inner(x)


def upsample(x, factor=2):
    """Nearest neighbours of a picture (c, h, w)."""
    xr = C.reshape(x, (x.shape[0], x.shape[1], 1, x.shape[2], 1))
    xx = C.splice(*[xr] * factor, axis=-1)
    xy = C.splice(*[xx] * factor, axis=-3)
    return C.reshape(xy, (x.shape[0], x.shape[1] * factor, x.shape[2] * factor))


@typemap
def maxed(x, axis=None, name=""):
    axis = sanitize_axis(axis)
    return C.alias(C.reduce_max(sanitize_input(x), axis=axis), name)


def centre_crop(larger, smaller, name=""):
    (h, w), (a, b) = sanitize_shape(larger.shape[-2:]), sanitize_shape(smaller.shape[-2:])
    top, left = (h - a) // 2, (w - b) // 2
    return C.slice(larger, [-2, -1], [top, left], [top + a, left + b], name=name)


@associative_multi_arg
@typemap
def element_average(left, right, name=""):
    return C.alias((left + right) / 2, name)


class SequenceOps:
    """Operators along sequences."""

    @staticmethod
    def position(x, name=""):
        @C.BlockFunction("position", name)
        def inner(a):
            ones = C.ones_like(C.slice(a, -1, 0, 1)) if a.shape else C.ones_like(a)
            return C.layers.Recurrence(C.plus)(ones) - 1

        return inner(x)

    @staticmethod
    def window(x, width, slide=1, name=""):
        @C.BlockFunction("window", name)
        def inner(a):
            pieces = [C.sequence.past_value(a, time_step=step) if step else a for step in range(width)]
            return C.splice(*reversed(pieces), axis=-1)

        return inner(x)

    @staticmethod
    def reverse(x, name=""):
        @C.Function
        def last(previous, value):
            return value

        return C.layers.Recurrence(lambda h, v: v, go_backwards=True, name=name)(x)

    @staticmethod
    def length(x, name=""):
        @C.BlockFunction("length", name)
        def inner(a):
            mask = C.sequence.broadcast_as(1, a)
            return C.sequence.reduce_sum(mask)

        return inner(x)

    @staticmethod
    def reduce_mean(x, name=""):
        return C.alias(C.sequence.reduce_sum(x) / SequenceOps.length(x), name)


sequence = SequenceOps
