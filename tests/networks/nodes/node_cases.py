"""The values of every function of the network language as independent NumPy formulas."""

import numpy as np
from numpy.linalg import norm
from scipy.special import erf


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def flat(x):
    return x.reshape(-1, order="F")


def shaped(x, *shape):
    return x.reshape(shape, order="F")


def times(a, x):
    return np.tensordot(a, x, a.ndim - 1)


def times_of_rank(outputs):
    return lambda a, x: np.tensordot(a, x, a.ndim - outputs)


def regions(x, rois, w, h, what=np.max, scale=None):
    """The largest elements, or the means, in a grid over each region, by loops over all cells.

    scale: of corners in pixels; without it a region is left, top, width and height relative to the image.
    """
    width, height, channels = x.shape
    out = np.zeros((w, h, channels, rois.shape[1]))
    for r, four in enumerate(rois.T):
        four = np.floor(four * ([width, height] * 2 if scale is None else scale) + 0.5)
        left, top = four[:2]
        wide, high = np.maximum(four[2:] if scale is None else four[2:] - four[:2] + 1, 1)
        for i, j in np.ndindex(w, h):
            columns = [a for a in range(width) if left + i * wide // w <= a < left - (-(i + 1) * wide // w)]
            rows = [b for b in range(height) if top + j * high // h <= b < top - (-(j + 1) * high // h)]
            if columns and rows:
                out[i, j, :, r] = what(x[np.ix_(columns, rows)], axis=(0, 1))
    return out


def conv(w, x, kw, kh, maps, sw=1, sh=1, left=0, top=0, width=None, height=None):
    """CHW: w is the flat column-major buffer read as [kw x kh x c x maps]; x is [W x H x C]."""
    k = flat(w).reshape((kw, kh, x.shape[2], maps), order="F")
    out = np.zeros((width, height, maps))
    for p, q, m in np.ndindex(out.shape):
        for i, j in np.ndindex(kw, kh):
            a, b = p * sw + i - left, q * sh + j - top
            if 0 <= a < x.shape[0] and 0 <= b < x.shape[1]:
                out[p, q, m] += x[a, b] @ k[i, j, :, m]
    return out


def conv_of_groups(w, x, groups, stride=(1, 1), dilation=(1, 1), pad=(0, 0)):
    """Kernels w [kw x kh x C / groups x maps], slid element by element; each group of maps sees its channels."""
    kw, kh, own, maps = w.shape
    reach = ((kw - 1) * dilation[0] + 1, (kh - 1) * dilation[1] + 1)
    padded = np.pad(x, ((pad[0],) * 2, (pad[1],) * 2, (0, 0)))
    out = np.zeros(((padded.shape[0] - reach[0]) // stride[0] + 1, (padded.shape[1] - reach[1]) // stride[1] + 1, maps))
    for p, q, m in np.ndindex(out.shape):
        a, b, c = p * stride[0], q * stride[1], m // (maps // groups) * own
        seen = padded[a : a + reach[0] : dilation[0], b : b + reach[1] : dilation[1], c : c + own]
        out[p, q, m] = (seen * w[..., m]).sum()
    return out


def conv_hwc(w, x, kw, kh, maps, left, top):
    """Legacy: element (c, y, x) lies at c + C (y + H x); columns of w are y fastest, then x, then channel."""
    channels, width, height = x.shape
    image = flat(x).reshape((channels, height, width), order="F")
    k = w.reshape((maps, kh, kw, channels), order="F")
    out = np.zeros((maps, height, width))
    for q, p in np.ndindex(height, width):
        for i, j in np.ndindex(kw, kh):
            a, b = p + i - left, q + j - top
            if 0 <= a < width and 0 <= b < height:
                out[:, q, p] += k[:, j, i] @ image[:, b, a]
    return flat(out).reshape((maps, width, height), order="F")


def pool(x, kw, kh, sw, sh, f, width, height, left=0, top=0):
    out = np.zeros((width, height, x.shape[2]))
    for p, q in np.ndindex(width, height):
        a, b = p * sw - left, q * sh - top
        out[p, q] = f(x[max(a, 0) : a + kw, max(b, 0) : b + kh], axis=(0, 1))
    return out


def along(w, x, axis, around, stride=1, dilation=1):
    """One kernel along an axis, with zeros in front of the first and behind the last element."""
    w, x = w.reshape(-1), np.moveaxis(x, axis, -1)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(around, around)])
    reach = (len(w) - 1) * dilation + 1
    firsts = range(0, padded.shape[-1] - reach + 1, stride)
    return np.moveaxis(np.stack([padded[..., f : f + reach : dilation] @ w for f in firsts], axis=-1), -1, axis)


def transposed(w, x, stride):
    """Each input element adds its kernel; the last axis of x lists the maps."""
    kw, kh, depth, _ = w.shape
    out = np.zeros(((x.shape[0] - 1) * stride[0] + kw, (x.shape[1] - 1) * stride[1] + kh, depth))
    for p, q, m in np.ndindex(x.shape):
        a, b = p * stride[0], q * stride[1]
        out[a : a + kw, b : b + kh] += x[p, q, m] * w[:, :, :, m]
    return out


def not_shared(w, x, kw, kh, maps):
    """Kernels of their own for every position; kernel index: x fastest, then y, then map."""
    width, height = x.shape[0] - kw + 1, x.shape[1] - kh + 1
    kernels = flat(w).reshape((kw, kh, width, height, maps), order="F")
    out = np.zeros((width, height, maps))
    for p, q, m in np.ndindex(out.shape):
        out[p, q, m] = (x[p : p + kw, q : q + kh, 0] * kernels[:, :, p, q, m]).sum()
    return out


def doubled(x):
    """Every element of the first two axes becomes 2 x 2 elements."""
    return np.kron(x, np.ones((2, 2, 1)))


IMAGE = (5, 4, 2)
CHW = {"imageLayout": "CHW"}
CONV = {"kernelWidth": 3, "kernelHeight": 2, "maps": 3, "strideWidth": 1, "strideHeight": 2}
POOL = {"windowWidth": 2, "windowHeight": 2, "strideWidth": 2, "strideHeight": 2}

# A case: name, kind, shapes of the operands, options, numpy formula. Before the shape of an operand may be its kind:
# "P" a parameter, ">" positive data, "1" one-hot, "b" 0 or 1, "s" between 0 and 1, "c" word, class and range of class.
# The formula is of one sample ([W x H x C] arrays) and of the parameters.
CELLS = [
    ("plus", "Plus", [(3,), ("P", 3, 2)], {}, lambda x, y: x[:, None] + y),
    ("minus", "Minus", [(3, 1), (3, 2)], {}, lambda x, y: x - y),
    ("element_times", "ElementTimes", [(3, 1, 2), ("P", 1, 4)], {}, lambda x, y: x * y[:, :, None]),
    ("scale", "Scale", [("P", 1, 1), (3,)], {}, lambda x, y: x * y[:, None]),
    ("diag_times", "DiagTimes", [("P", 3, 1), (3, 2)], {}, lambda d, x: d * x),
    ("diag_times_data", "DiagTimes", [(3,), (3, 2)], {}, lambda d, x: d[:, None] * x),
    ("negate", "Negate", [(3, 2)], {}, lambda x: -x),
    ("reciprocal", "Reciprocal", [(">", 3, 2)], {}, lambda x: 1 / x),
    ("abs", "Abs", [(3, 2)], {}, np.abs),
    ("sqrt", "Sqrt", [(">", 3, 2)], {}, np.sqrt),
    ("exp", "Exp", [(3, 2)], {}, np.exp),
    ("log", "Log", [(">", 3, 2)], {}, np.log),
    ("log_plus", "LogPlus", [(3,), ("P", 3, 1)], {}, lambda x, y: np.logaddexp(x[:, None], y)),
    ("sigmoid", "Sigmoid", [(3, 2)], {}, lambda x: 1 / (1 + np.exp(-x))),
    ("tanh", "Tanh", [(3, 2)], {}, np.tanh),
    ("relu", "RectifiedLinear", [(3, 2)], {}, lambda x: np.maximum(x, 0)),
    ("cosine", "Cos", [(3, 2)], {}, np.cos),
    ("sin", "Sin", [(3, 2)], {}, np.sin),
    ("floor", "Floor", [(3, 2)], {}, np.floor),
    ("stop", "StopGradient", [(3, 2)], {}, lambda x: x),
    ("clip", "Clip", [("P", 1, 1), ("P", 3, 1), (3, 2)], {}, lambda lo, hi, x: np.where(x < lo, lo, np.minimum(x, hi))),
    ("if", "If", [(3,), ("P", 3), (3,)], {}, lambda c, a, b: np.where(c != 0, a, b)),
    ("less", "Less", [(3,), (3,)], {}, lambda x, y: 1.0 * (x < y)),
    ("less_equal", "LessEqual", [(3,), (3,)], {}, lambda x, y: 1.0 * (x <= y)),
    ("greater", "Greater", [(3,), (3,)], {}, lambda x, y: 1.0 * (x > y)),
    ("greater_equal", "GreaterEqual", [(3,), (3,)], {}, lambda x, y: 1.0 * (x >= y)),
    ("equal", "Equal", [(3,), (3,)], {}, lambda x, y: 1.0 * (x == y)),
    ("not_equal", "NotEqual", [(3,), (3,)], {}, lambda x, y: 1.0 * (x != y)),
    ("dropout_off", "Dropout", [(3, 2)], {}, lambda x: x),
    ("softmax", "Softmax", [(3, 2)], {}, softmax),
    ("log_softmax", "LogSoftmax", [(3, 2)], {}, lambda x: np.log(softmax(x))),
    ("hardmax", "Hardmax", [(4,)], {}, lambda x: np.eye(4)[np.argmax(x)]),
    ("times", "Times", [("P", 4, 3), (3,)], {}, times),
    ("times_tensor", "Times", [("P", 4, 3, 2), (3, 2, 2)], {}, times),
    ("times_column", "Times", [("P", 4, 3), (3, 1)], {}, times),
    ("times_flattened", "Times", [("P", 4, 12), (2, 3, 2)], {}, lambda a, x: a @ flat(x)),
    ("times_data", "Times", [(4, 3), (3, 2)], {}, times),
    ("times_data_parameter", "Times", [(4, 3), ("P", 3, 2)], {}, times),
    ("transpose_times", "TransposeTimes", [("P", 3, 4), (3, 2)], {}, lambda a, x: a.T @ x),
    ("transpose_times_data", "TransposeTimes", [(3, 4), (3, 2)], {}, lambda a, x: a.T @ x),
    ("sum_column_elements", "SumColumnElements", [(3, 2)], {}, lambda x: x.sum()),
    ("khatri_rao", "KhatriRaoProduct", [(3,), (2,)], {}, lambda x, y: flat(np.outer(x, y))),
    ("cos_distance", "CosDistance", [(3, 2), (3, 2)], {}, lambda x, y: (x * y).sum() / norm(x) / norm(y)),
    ("transpose", "Transpose", [(3, 2)], {}, np.transpose),
    ("transpose_3", "Transpose", [(3, 2, 2)], {}, lambda x: x.swapaxes(0, 1)),
    ("lookup", "LookupTable", [("P", 2, 3), (6,)], {}, lambda e, x: flat(e @ shaped(x, 3, 2))),
    ("slice", "Slice", [(3, 5, 2)], {"beginIndex": -4, "endIndex": -1, "axis": 2}, lambda x: x[:, 1:4]),
    ("new_reshape", "NewReshape", [(2, 6, 3)], {"dims": (0, 3), "beginAxis": 2, "endAxis": 3},
     lambda x: shaped(x, 2, 2, 3, 3)),
    ("transpose_axes", "TransposeDimensions", [(2, 3, 4)], {"axis1": 3, "axis2": 1}, lambda x: x.swapaxes(0, 2)),
    ("transpose_behind", "TransposeDimensions", [(2, 3)], {"axis1": 1, "axis2": 3},
     lambda x: x[None].transpose(0, 2, 1)),
    ("reduce_sum", "ReduceElements", [(2, 3, 2)], {"axis": 2}, lambda x: x.sum(1, keepdims=True)),
    ("reduce_mean", "ReduceElements", [(2, 3)], {"reductionOp": "Mean"}, lambda x: x.mean()),
    ("reduce_log_sum", "ReduceElements", [(2, 3)], {"axis": 1, "reductionOp": "LogSum"},
     lambda x: np.log(np.exp(x).sum(0))),
    ("reduce_max", "ReduceElements", [(2, 3)], {"axis": 2, "reductionOp": "Max"}, lambda x: x.max(1, keepdims=True)),
    ("reduce_min", "ReduceElements", [(2, 3)], {"reductionOp": "Min"}, lambda x: x.min()),
    ("pass", "Pass", [(3, 2)], {}, lambda x: x),
    ("times_two_outputs", "Times", [("P", 2, 4, 3), (3, 2)], {"outputRank": 2}, times_of_rank(2)),
    ("times_outer", "Times", [("P", 2, 3), (3, 2)], {"outputRank": 2}, times_of_rank(2)),
    ("row_slice", "RowSlice", [(5, 2)], {"start": 1, "count": 3}, lambda x: x[1:4]),
    ("row_stack", "RowStack", [(2, 2), ("P", 3, 1), (1, 2)], {}, lambda a, b, c: np.vstack([a, b @ [[1, 1]], c])),
    ("row_repeat", "RowRepeat", [(2, 3)], {"count": 2}, lambda x: np.tile(x, 2)),
    ("reshape", "Reshape", [(4, 3)], {"numRows": 12, "imageWidth": 2, "imageHeight": 3}, lambda x: shaped(x, 2, 2, 3)),
    ("crop", "Crop", [(5, 4, 2), (3, 2, 7)], {"offsetX": 1, "offsetY": 2}, lambda x, y: x[1:4, 2:4]),
    ("regions", "ROIPooling", [(5, 4, 2), ("s", 4, 2)], {"outputShape": (2, 3)}, lambda x, r: regions(x, r, 2, 3)),
    (
        "regions_mean",
        "ROIPooling",
        [(5, 4, 2), ("s", 4, 2)],
        {"outputShape": (2, 2), "kind": "average"},
        lambda x, r: regions(x, r, 2, 2, np.mean),
    ),
    (
        "regions_in_pixels",
        "ROIPooling",
        [(5, 4, 2), ("s", 4, 3)],
        {"outputShape": (2, 3), "spatialScale": 4.0},
        lambda x, r: regions(x, r, 2, 3, scale=4.0),
    ),
    (
        "regions_in_pixels_mean",
        "ROIPooling",
        [(5, 4, 2), ("s", 4, 3)],
        {"outputShape": (2, 3), "spatialScale": 5.0, "kind": "average"},
        lambda x, r: regions(x, r, 2, 3, np.mean, 5.0),
    ),
    ("reconcile", "ReconcileDynamicAxis", [(3,), (2,)], {}, lambda x, y: x),
    (
        "convolution",
        "Convolution",
        [("P", 3, 12), IMAGE],
        CONV | CHW,
        lambda w, x: conv(w, x, 3, 2, 3, 1, 2, width=3, height=2),
    ),
    (
        "convolution_padded",
        "Convolution",
        [("P", 3, 12), IMAGE],
        CONV | CHW | {"zeroPadding": True},
        lambda w, x: conv(w, x, 3, 2, 3, 1, 2, 1, 0, 5, 2),
    ),
    (
        "convolution_padded_channels",  # only width and height are padded, as on a GPU
        "Convolution",
        [("P", 2, 12), (4, 2, 4)],
        CONV | CHW | {"kernelHeight": 1, "maps": 2, "strideHeight": 1, "zeroPadding": True},
        lambda w, x: conv(w, x, 3, 1, 2, 1, 1, 1, 0, 4, 2),
    ),
    (
        "convolution_padded_channels_of_a_cpu",  # the window starts before the first channel, as random/ndl_77_23 shows
        "Convolution",
        [("P", 2, 12), (4, 2, 4)],
        CONV | CHW | {"kernelHeight": 1, "maps": 2, "strideHeight": 1, "zeroPadding": True, "channelPadding": True},
        lambda w, x: conv(w, np.pad(x, ((0, 0), (0, 0), (1, 0)))[..., :4], 3, 1, 2, 1, 1, 1, 0, 4, 2),
    ),
    (
        "convolution_hwc",
        "Convolution",
        [("P", 3, 12), (2, 5, 4)],
        CONV | {"zeroPadding": True, "strideHeight": 1},
        lambda w, x: conv_hwc(w, x, 3, 2, 3, 1, 1),
    ),
    (
        "convolution_nd",
        "Convolution",
        [("P", 3, 18), (5, 4, 2)],
        {"kernelShape": (3, 3, 2), "mapCount": 3, "stride": (2, 1, 2), "autoPadding": (True, True, False)},
        lambda w, x: conv(w, x, 3, 3, 3, 2, 1, 1, 1, 3, 4),
    ),
    (
        "convolution_nd_deep",
        "Convolution",
        [("P", 2, 8), (4, 3, 3)],
        {"kernelShape": (2, 2, 2), "mapCount": 2, "autoPadding": (False,)},
        lambda w, x: np.concatenate(
            [
                conv(w, x[:, :, c : c + 2], 2, 2, 2, width=3, height=2)[:, :, [m]]
                for m in range(2)
                for c in range(2)
            ],
            axis=2,
        ),
    ),
    (
        "convolution_of_groups",
        "Convolution",
        [("P", 2, 3, 2, 4), (5, 4, 4)],
        {"kernelShape": (2, 3), "mapCount": 4, "stride": (2, 1), "autoPadding": (False,), "groups": 2},
        lambda w, x: conv_of_groups(w, x, 2, (2, 1)),
    ),
    (
        "convolution_of_each_channel",
        "Convolution",
        [("P", 3, 3, 1, 6), (5, 4, 3)],
        {"kernelShape": (3, 3, 1), "mapCount": 6, "autoPadding": (True, True, False), "groups": 3},
        lambda w, x: conv_of_groups(w, x, 3, pad=(1, 1)),
    ),
    (
        "convolution_of_each_channel_dilated",
        "Convolution",
        [("P", 2, 2, 1, 3), (5, 6, 3)],
        {"kernelShape": (2, 2), "stride": (1, 2), "dilation": (3, 2), "autoPadding": (False,), "groups": 3},
        lambda w, x: conv_of_groups(w, x, 3, (1, 2), (3, 2)),
    ),
    (
        "convolution_dilated",
        "Convolution",
        [("P", 3, 3, 2, 2), (6, 5, 2)],
        {"kernelShape": (3, 3), "mapCount": 2, "dilation": (2, 3), "autoPadding": (True,)},
        lambda w, x: conv_of_groups(w, x, 1, (1, 1), (2, 3), (2, 3)),
    ),
    (
        "convolution_not_shared_dilated",
        "Convolution",
        [("P", 9, 2), (5, 3, 1)],
        {"kernelShape": (2, 1, 1), "mapCount": 1, "autoPadding": (False,), "sharing": (False,), "dilation": (2, 1, 1)},
        lambda w, x: (np.stack([x[:3], x[2:]]) * flat(w).reshape((2, 3, 3, 1), order="F")).sum(0),
    ),
    (
        "convolution_along_channels",
        "Convolution",
        [("P", 1, 1, 5, 1), (3, 2, 7, 1)],
        {"kernelShape": (1, 1, 5), "mapCount": 1},
        lambda w, x: along(w, x, 2, 2),
    ),
    (
        "convolution_along_the_width",
        "Convolution",
        [("P", 1, 3), (9, 2, 1)],
        {"kernelShape": (3, 1, 1), "mapCount": 1, "stride": (2, 1, 1), "dilation": (2, 1, 1), "lowerPad": (1, 0, 0),
         "upperPad": (1, 0, 0), "autoPadding": (False,)},
        lambda w, x: along(w, x, 0, 1, 2, 2),
    ),
    ("max_pooling", "MaxPooling", [(4, 6, 2)], POOL | CHW, lambda x: pool(x, 2, 2, 2, 2, np.max, 2, 3)),
    (
        "pooling_average_of_channels",
        "Pooling",
        [(3, 2, 7)],
        {"kind": "average", "kernelShape": (1, 1, 5), "autoPadding": (False, False, True)},
        lambda x: np.stack([x[:, :, max(c - 2, 0) : c + 3].mean(2) for c in range(7)], axis=2),
    ),
    (
        "pooling_ceiling",
        "Pooling",
        [(6, 5, 2)],
        {"kind": "max", "kernelShape": (3, 2), "stride": (2, 2), "autoPadding": (False,), "ceilOutDim": True},
        lambda x: pool(x, 3, 2, 2, 2, np.max, 3, 3),
    ),
    (
        "pooling_average_ceiling_with_padding",
        "Pooling",
        [(6, 5, 2)],
        {
            "kind": "average", "kernelShape": (3, 2), "stride": (2, 2), "autoPadding": (True, False),
            "ceilOutDim": True, "includePad": True,
        },
        lambda x: pool(np.pad(x, ((1, 1), (0, 1), (0, 0))), 3, 2, 2, 2, np.mean, 3, 3),
    ),
    ("max_pooling_rest", "MaxPooling", [IMAGE], POOL | CHW, lambda x: pool(x, 2, 2, 2, 2, np.max, 2, 2)),
    (
        "max_pooling_hwc",
        "MaxPooling",
        [(2, 4, 6)],
        POOL,
        lambda x: flat(pool(flat(x).reshape((2, 6, 4), order="F").transpose(2, 1, 0), 2, 2, 2, 2, np.max, 2, 3)
            .transpose(2, 1, 0)).reshape((2, 2, 3), order="F"),
    ),
    ("average_pooling", "AveragePooling", [(4, 6, 2)], POOL | CHW, lambda x: pool(x, 2, 2, 2, 2, np.mean, 2, 3)),
    (
        "pooling_overlap",
        "Pooling",
        [IMAGE],
        {"kind": "max", "kernelShape": (3, 3), "stride": (2, 1)},
        lambda x: pool(x, 3, 3, 2, 1, np.max, 3, 4, 1, 1),
    ),
    (
        "pooling_average_padded",
        "Pooling",
        [IMAGE],
        {"kind": "average", "kernelShape": (3, 3), "stride": (2, 1)},
        lambda x: pool(x, 3, 3, 2, 1, np.mean, 3, 4, 1, 1),
    ),
    (
        "batch_normalisation",
        "BatchNormalization",
        [(3, 2), ("P", 6, 1), ("P", 6, 1), ("P", 6, 1), ("PP", 6, 1)],
        {"epsilon": 0.1},
        lambda x, a, b, m, v: shaped(a[:, 0] * (flat(x) - m[:, 0]) / np.sqrt(v[:, 0] + 0.1) + b[:, 0], 3, 2),
    ),
    (
        "batch_normalisation_spatial",
        "BatchNormalization",
        [(2, 2, 3), ("P", 3, 1), ("P", 3, 1), ("P", 3, 1), ("PP", 3, 1)],
        {"epsilon": 0.1, "spatial": True},
        lambda x, a, b, m, v: a[:, 0] * (x - m[:, 0]) / np.sqrt(v[:, 0] + 0.1) + b[:, 0],
    ),
    ("normalisation", "PerDimMVNorm", [(3,), ("P", 3, 1), ("P", 3, 1)], {}, lambda x, m, s: (x[:, None] - m) * s),
    (
        "denormalisation",
        "PerDimMVDeNorm",
        [(3,), ("P", 3, 1), ("P", 3, 1)],
        {},
        lambda x, m, s: x[:, None] / s + m,
    ),
    ("trace", "Trace", [(3, 2)], {"say": "x"}, lambda x: x),
    (
        "lstm_along_an_axis",
        "OptimizedRNNStack",
        [("P", 2, 48), (2, 3)],
        {"hiddenDims": 2, "axis": 2, "bidirectional": True},
        lambda w, x: np.stack(recurrent_units(w, list(x.T), 2, lstm, 4, ways=2)).T,
    ),
    (
        "max_unpooling",
        "MaxUnpooling",
        [(2, 3, 2), (4, 6, 2)],
        {"kernelShape": (2, 2), "stride": (2, 2), "autoPadding": (False,)},
        lambda x, of: doubled(x) * (of == doubled(pool(of, 2, 2, 2, 2, np.max, 2, 3))),
    ),
    (
        "convolution_transposed",
        "Convolution",
        [("P", 3, 2, 2, 2), (3, 2, 2)],
        {"kernelShape": (3, 2), "mapCount": 2, "stride": (2, 1), "autoPadding": (False,), "transpose": True},
        lambda w, x: transposed(w, x, (2, 1)),
    ),
    (
        "convolution_transposed_dilated",
        "Convolution",
        [("P", 2, 2, 2, 2), (3, 2, 2)],
        {
            "kernelShape": (2, 2), "mapCount": 2, "stride": (2, 1), "autoPadding": (False,), "transpose": True,
            "dilation": (2, 1),
        },
        lambda w, x: transposed(np.insert(w, 1, 0, axis=0), x, (2, 1)),
    ),
    (
        "convolution_not_shared",
        "Convolution",
        [("P", 12, 4), (4, 3, 1)],
        {"kernelShape": (2, 2, 1), "mapCount": 2, "autoPadding": (False,), "sharing": (False,)},
        lambda w, x: not_shared(w, x, 2, 2, 2),
    ),
    (
        "convolution_strides",
        "Convolution",
        [("P", 2, 18), (7, 6, 2)],
        {"kernelShape": (3, 3, 2), "mapCount": 2, "stride": (3, 2, 2), "autoPadding": (True, False, False)},
        lambda w, x: conv(w, x, 3, 3, 2, 3, 2, 1, 0, 3, 2),
    ),
    (
        "convolution_shared_padding",
        "Convolution",
        [("P", 2, 18), (8, 7, 2)],
        {"kernelShape": (3, 3, 2), "mapCount": 2, "stride": (4, 3, 2), "autoPadding": (True,), "sharedPadding": True},
        lambda w, x: conv(w, x, 3, 3, 2, 4, 3, 0, 1, 2, 3),
    ),
    (
        "convolution_shared_padding_of_small_kernels",  # the first windows lie inside, elements 1 and 4
        "Convolution",
        [("P", 2, 2), (6, 6, 2)],
        CONV | CHW | {"kernelWidth": 1, "kernelHeight": 1, "maps": 2, "strideWidth": 3, "strideHeight": 3,
                      "zeroPadding": True, "sharedPadding": True},
        lambda w, x: conv(w, x, 1, 1, 2, 3, 3, -1, -1, 2, 2),
    ),
    (
        "pooling_shared_padding",
        "Pooling",
        [(6, 9, 2)],
        {"kind": "max", "kernelShape": (1, 2), "stride": (3, 3), "sharedPadding": True},
        lambda x: pool(x, 1, 2, 3, 3, np.max, 2, 3, -1, -1),
    ),
    (
        "pooling_average_shared_padding",
        "Pooling",
        [(6, 9, 2)],
        {"kind": "average", "kernelShape": (1, 4), "stride": (3, 3), "sharedPadding": True},
        lambda x: pool(x, 1, 4, 3, 3, np.mean, 2, 3, -1, 0),
    ),
]  # fmt: skip


def class_based(label, h, weights, score):
    word, group, first, last = label.astype(int)
    in_class = softmax(weights[:, first:last].T @ h)[word - first]
    return -np.log(softmax(score)[group]) - np.log(in_class)


# criteria: the value is the sum over the samples
SUMS = [
    ("ce", "CrossEntropyWithSoftmax", [("1", 4), (4, 1)], {}, lambda y, z: -(y * np.log(softmax(flat(z)))).sum()),
    ("cross_entropy", "CrossEntropy", [("1", 4), ("s", 4)], {}, lambda y, p: -(y * np.log(p)).sum()),
    ("square_error", "SquareError", [(3, 2), (3, 2)], {}, lambda a, b: ((a - b) ** 2).sum()),
    ("logistic", "Logistic", [("b", 3), ("s", 3)], {}, lambda y, p: -np.log(y * p + (1 - y) * (1 - p)).sum()),
    ("sum_elements", "SumElements", [(3, 2)], {}, lambda x: x.sum()),
    ("l1", "MatrixL1Reg", [(3, 2)], {}, lambda x: np.abs(x).sum()),
    ("error", "ClassificationError", [("1", 4), (4,)], {}, lambda y, z: 1.0 * (y.argmax() != z.argmax())),
    ("class_based", "ClassBasedCrossEntropyWithSoftmax", [("c", 4), (3,), ("P", 3, 6), (2,)], {}, class_based),
    ("dummy", "DummyCriterion", [(3,), (2,), (2,)], {}, lambda o, g, z: o.sum()),
]


def shifted(x, steps, default):
    """The sequence `steps` later (earlier where negative)."""
    edge = [np.full_like(x[0], np.float32(default))] * min(abs(steps), len(x))
    return edge + x[: len(x) - len(edge)] if steps > 0 else x[len(edge) :] + edge


def negatives(x, y, shift, count):
    """Cosines with the matching and with the following columns of the minibatch."""
    x, y = ([step for sequence in operand for step in sequence] for operand in (x, y))
    others = [0, *(int(shift.item()) + k for k in range(int(count.item())))]
    cosine = [[a @ y[(j + k) % len(y)] / norm(a) / norm(y[(j + k) % len(y)]) for k in others] for j, a in enumerate(x)]
    return [[np.array(row)] for row in cosine]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent_units(weights, sequence, hidden, units, gates, layers=1, ways=1):
    """A stack of layers, gate by gate and step by step; `weights` are the matrices of all layers, then the biases."""
    flat, x = flat_of(weights), [np.squeeze(step) for step in sequence]
    sizes = [len(x[0]) if layer == 0 else ways * hidden for layer in range(layers)]
    at, bias_at = 0, sum(ways * gates * hidden * (size + hidden) for size in sizes)
    for size in sizes:
        results = []
        for way in range(ways):
            matrices = []
            for width in [size] * gates + [hidden] * gates:
                matrices.append(flat[at : at + hidden * width].reshape(hidden, width))
                at += hidden * width
            bias = flat[bias_at : bias_at + 2 * gates * hidden].reshape(2 * gates, hidden)
            bias_at += 2 * gates * hidden
            h, c, out = np.zeros(hidden), np.zeros(hidden), []
            for step in x if way == 0 else x[::-1]:
                a = [matrices[g] @ step + bias[g] for g in range(gates)]
                b = [matrices[gates + g] @ h + bias[gates + g] for g in range(gates)]
                h, c = units(a, b, h, c)
                out.append(h)
            results.append(out if way == 0 else out[::-1])
        x = [np.concatenate(parts) for parts in zip(*results, strict=True)]
    return x


def flat_of(weights):
    return weights.T.reshape(-1)


def lstm(a, b, h, c):
    i, f, g, o = (sigmoid(a[k] + b[k]) if k != 2 else np.tanh(a[k] + b[k]) for k in range(4))
    c = f * c + i * g
    return o * np.tanh(c), c


def gru(a, b, h, c):
    r, u = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    return (1 - u) * np.tanh(a[2] + r * b[2]) + u * h, c


def unit(function):
    return lambda a, b, h, c: (function(a[0] + b[0]), c)


def stacks(*arguments, **options):
    return lambda weights, x: [recurrent_units(weights, sequence, *arguments, **options) for sequence in x]


def over_samples(function):
    return lambda x: function(np.array([one for sequence in x for one in sequence]), axis=0)


# the value depends on more than one sample: a formula of lists of sequences, which are lists of samples
BATCHES = [
    ("sum_over_minibatch", "SumOverMinibatch", [(3, 2)], {}, lambda x: sum(sum(s) for s in x)),
    ("past", "PastValue", [(3, 2)], {"rows": 3, "timeStep": 2}, lambda x: [shifted(s, 2, 0.1) for s in x]),
    ("delay", "Delay", [(3,)], {"rows": 3, "defaultHiddenActivity": 0.5}, lambda x: [shifted(s, 1, 0.5) for s in x]),
    (
        "past_initial",
        "PastValue",
        [(3, 2), ("P", 3)],
        {"rows": 3, "timeStep": 2},
        lambda x, h: [[np.tile(h[:, None], 2)] * min(2, len(s)) + s[:-2] for s in x],
    ),
    ("future", "FutureValue", [(3, 2)], {"rows": 3, "timeStep": 1}, lambda x: [shifted(s, -1, 0.1) for s in x]),
    (
        "lstm_stack",  # 2 layers: 4 * 3 (2 + 3) + 4 * 3 (3 + 3) weights and 2 * 24 biases
        "OptimizedRNNStack",
        [("P", 3, 60), (2,)],
        {"hiddenDims": 3, "numLayers": 2},
        stacks(3, lstm, 4, layers=2),
    ),
    (
        "gru_both_ways",
        "OptimizedRNNStack",
        [("P", 3, 108), (2,)],
        {"hiddenDims": 3, "numLayers": 2, "bidirectional": True, "recurrentOp": "gru"},
        stacks(3, gru, 3, layers=2, ways=2),
    ),
    (
        "tanh_stack",
        "OptimizedRNNStack",
        [("P", 2, 7), (3, 1)],
        {"hiddenDims": 2, "recurrentOp": "rnnTanh"},
        stacks(2, unit(np.tanh), 1),
    ),
    (
        "relu_stack",
        "OptimizedRNNStack",
        [("P", 2, 7), (3,)],
        {"hiddenDims": 2, "recurrentOp": "rnnReLU"},
        stacks(2, unit(lambda x: np.maximum(x, 0)), 1),
    ),
    ("l2", "MatrixL2Reg", [(3, 2)], {}, lambda x: norm(np.concatenate([flat(v) for s in x for v in s]))),
    ("l2_of_a_parameter", "L2Reg", [("P", 3, 2)], {}, norm),
    ("diagonal", "Diagonal", [("P", 3, 3)], {}, lambda x: np.diag(x)[None]),
    ("negative_samples", "CosWithNegSamples", [(2,), (2,), ("K", 1), ("K", 2)], {}, negatives),
    *[
        (f"minibatch_{how}", "ReduceMinibatch", [(3, 2)], {"reductionOp": how}, over_samples(function))
        for how, function in (("Mean", np.mean), ("Max", np.max), ("Min", np.min), ("Prod", np.prod))
    ],
    (
        "minibatch_LogSum",
        "ReduceMinibatch",
        [(3, 2)],
        {"reductionOp": "LogSum"},
        over_samples(lambda x, axis: np.log(np.exp(x).sum(axis))),
    ),
]
FRAMES_ONLY = {"negative_samples"}

# the data of a case depend on its number, so new ones are at the end
MORE_CELLS = [
    ("reduce_prod", "ReduceElements", [(2, 3)], {"axis": 2, "reductionOp": "Prod"}, lambda x: x.prod(1, keepdims=True)),
    ("top_k", "TopK", [(4, 3)], {"k": 2, "axis": 1}, lambda x: -np.sort(-x, axis=0)[:2]),
    ("top_k_numbers", "TopK", [(4, 3)], {"k": 2, "axis": 2, "numbers": True}, lambda x: np.argsort(-x, axis=1)[:, :2]),
    ("power", "ElementPower", [(">", 3, 2), ("P", 3, 1)], {}, lambda x, y: x**y),
    *[
        (name, "ElementFunction", [(3, 2)], {"function": name}, function)
        for name, function in (
            ("tan", np.tan),
            ("atan", np.arctan),
            ("sinh", np.sinh),
            ("cosh", np.cosh),
            ("asinh", np.arcsinh),
            ("erf", erf),
        )
    ],
    ("round", "ElementFunction", [(3, 2)], {"function": "round"}, np.round),
]
CASES = [*CELLS, *SUMS, *BATCHES, *MORE_CELLS]
