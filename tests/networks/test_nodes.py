"""Every operation: values against independent numpy formulas, gradients against central differences."""

import numpy as np
import pytest
from numpy.linalg import norm

from networks import nodes

LENGTHS = [4, 1, 3]


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def flat(x):
    return x.reshape(-1, order="F")


def shaped(x, *shape):
    return x.reshape(shape, order="F")


def times(a, x):
    return np.tensordot(a, x, a.ndim - 1)


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


IMAGE = (5, 4, 2)
CHW = {"imageLayout": "CHW"}
CONV = {"kernelWidth": 3, "kernelHeight": 2, "maps": 3, "strideWidth": 1, "strideHeight": 2}
POOL = {"windowWidth": 2, "windowHeight": 2, "strideWidth": 2, "strideHeight": 2}

# name, kind, shapes of the operands ("P" before the shape: a parameter, ">" positive data), options, numpy formula
CASES = [
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
    ("row_slice", "RowSlice", [(5, 2)], {"start": 1, "count": 3}, lambda x: x[1:4]),
    ("row_stack", "RowStack", [(2, 2), ("P", 3, 1), (1, 2)], {}, lambda a, b, c: np.vstack([a, b @ [[1, 1]], c])),
    ("row_repeat", "RowRepeat", [(2, 3)], {"count": 2}, lambda x: np.tile(x, 2)),
    ("reshape", "Reshape", [(4, 3)], {"numRows": 12, "imageWidth": 2, "imageHeight": 3}, lambda x: shaped(x, 2, 2, 3)),
    ("crop", "Crop", [(5, 4, 2), (3, 2, 7)], {"offsetX": 1, "offsetY": 2}, lambda x, y: x[1:4, 2:4]),
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
    ("max_pooling", "MaxPooling", [(4, 6, 2)], POOL | CHW, lambda x: pool(x, 2, 2, 2, 2, np.max, 2, 3)),
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
]  # fmt: skip

# criteria: formula over the list of samples
CRITERIA = [
    ("ce", "CrossEntropyWithSoftmax", [("1", 4), (4, 1)], lambda y, z: -(y * np.log(softmax(flat(z)))).sum()),
    ("cross_entropy", "CrossEntropy", [("1", 4), ("s", 4)], lambda y, p: -(y * np.log(p)).sum()),
    ("square_error", "SquareError", [(3, 2), (3, 2)], lambda a, b: ((a - b) ** 2).sum()),
    ("logistic", "Logistic", [("b", 3), ("s", 3)], lambda y, p: -np.log(y * p + (1 - y) * (1 - p)).sum()),
    ("sum_elements", "SumElements", [(3, 2)], lambda x: x.sum()),
    ("l1", "MatrixL1Reg", [(3, 2)], lambda x: np.abs(x).sum()),
    ("error", "ClassificationError", [("1", 4), (4,)], lambda y, z: 1.0 * (y.argmax() != z.argmax())),
]


def _operand(s, spec, index):
    """A node for one operand; returns (node, cells -> numpy sample or parameter)."""
    if spec[0] == "P":
        node = s.parameter(f"p{index}", *spec[1:])
        return node, None
    kind = spec[0] if isinstance(spec[0], str) else ""
    dims = spec[1:] if kind else spec
    return s.input(f"x{index}", *dims), kind


def _data(random, kind, mask, dims):
    x = random.normal(size=(*mask.shape, *reversed(dims)))
    if kind == ">":
        x = np.abs(x) + 0.1
    if kind == "1":
        x = np.eye(dims[0])[random.integers(0, dims[0], mask.shape)]
    if kind == "b":
        x = (x > 0).astype(float)
    if kind == "s":
        x = 0.1 + 0.8 * random.random(x.shape)
    x[~mask] = 0
    return x


def _network(h, kind, specs, options):
    s = h.Sketch()
    mask, start, end = h.grid(LENGTHS)
    operands, data = [], {}
    for index, spec in enumerate(specs):
        node, how = _operand(s, spec, index)
        operands.append(node)
        if how is not None:
            data[node.name] = _data(s.random, how, mask, node.shape)
    initial = {node.name: node.matrix().copy() for node in operands if node.is_parameter}
    result = s(kind, *operands, name="result", **options)
    return s, operands, result, h.Batch(data, mask, start, end), initial


def _samples(operands, batch, initial, t, s):
    return [initial[node.name] if node.is_parameter else batch.inputs[node.name][t, s].transpose() for node in operands]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_value(case, helpers):
    _, kind, specs, options, formula = case
    s, operands, result, batch, initial = _network(helpers, kind, specs, options)
    value = helpers.run(s.network, ["result"], batch)["result"]
    assert value.shape == (*batch.mask.shape, *reversed(result.shape))
    for t, slot in zip(*np.nonzero(batch.mask), strict=True):
        expected = np.asarray(formula(*_samples(operands, batch, initial, t, slot)))
        got = value[t, slot].transpose()
        assert np.squeeze(got).shape == np.squeeze(expected).shape
        np.testing.assert_allclose(np.squeeze(got), np.squeeze(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CRITERIA, ids=lambda case: case[0])
def test_criterion_value(case, helpers):
    _, kind, specs, formula = case
    s, operands, result, batch, initial = _network(helpers, kind, specs, {})
    value = helpers.run(s.network, ["result"], batch)["result"]
    cells = zip(*np.nonzero(batch.mask), strict=True)
    expected = sum(formula(*_samples(operands, batch, initial, t, slot)) for t, slot in cells)
    assert value.shape == (1,) and result.shape == (1,)
    np.testing.assert_allclose(value[0], expected, rtol=1e-12)


def _check_gradient(h, case):
    """d (sum of weight * result) / d parameters, where every data operand is x * p + q with parameters p, q."""
    _, kind, specs, options = case[:4] if isinstance(case[3], dict) else (*case[:3], {})
    s = h.Sketch()
    mask, start, end = h.grid(LENGTHS)
    operands, data = [], {}
    for index, spec in enumerate(specs):
        node, how = _operand(s, spec, index)
        if how is not None:
            data[node.name] = _data(s.random, how, mask, node.shape)
            if how not in ("1", "b"):
                p = s.parameter(f"scale{index}", *node.shape)
                p.value = 1 + 0.1 * p.value
                node = s("ElementTimes", node, p)
            if how == "":
                q = s.parameter(f"shift{index}", *node.inputs[0].shape)
                node = s("Plus", node, q)
        operands.append(node)
    result = s(kind, *operands, name="result", **options)
    s.network.validate()
    if result.has_layout:
        weight = s.input("weight", *result.shape)
        data["weight"] = s.random.normal(size=(*mask.shape, *reversed(result.shape)))
        result = s("SumElements", s("ElementTimes", result, weight), name="total")
    batch = h.Batch(data, mask, start, end)
    total, found = h.gradients(s.network, result.name, batch)
    assert np.isfinite(total)
    for name, (chosen, slopes) in h.central_differences(s.network, result.name, batch).items():
        if case[0] == "clip" and name.startswith("p"):
            assert (found[name] == 0).all()  # no gradient to the limits
            continue
        got = found[name].reshape(-1)[chosen]
        scale = max(1.0, np.abs(slopes).max())
        assert np.isfinite(found[name]).all()
        np.testing.assert_allclose(got, slopes, rtol=1e-6, atol=1e-6 * scale, err_msg=name)


# gradients only: the values are compared elsewhere
FURTHER = [
    (
        "convolution_transposed",
        "Convolution",
        [("P", 3, 2, 2, 2), (3, 2, 2)],
        {"kernelShape": (3, 2, 2), "mapCount": 2, "stride": (2, 1, 2), "autoPadding": (False,), "transpose": True},
    ),
    (
        "convolution_not_shared",
        "Convolution",
        [("P", 0, 0), (4, 3, 1)],
        {"kernelShape": (2, 2, 1), "mapCount": 2, "autoPadding": (False,), "sharing": (False,)},
    ),
    (
        "convolution_strides",
        "Convolution",
        [("P", 2, 18), (7, 6, 2)],
        {"kernelShape": (3, 3, 2), "mapCount": 2, "stride": (3, 2, 2), "autoPadding": (True, False, False)},
    ),
    ("l2", "MatrixL2Reg", [("P", 3, 2)], {}),
    ("diagonal", "Diagonal", [("P", 3, 3)], {}),
    ("past", "PastValue", [(3, 2)], {"rows": 3, "timeStep": 2}),
    ("future", "FutureValue", [(3, 2)], {"rows": 3, "timeStep": 1}),
    ("denormalisation", "PerDimMeanVarDeNormalization", [(3,), ("P", 3, 1), ("P", 3, 1)], {}),
]

DIFFERENTIABLE = [
    c for c in (*CASES, *CRITERIA, *FURTHER) if nodes.find(c[1]).differentiable and c[0] not in ("floor",)
]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case[0])
def test_gradient(case, helpers):
    _check_gradient(helpers, case)


def test_every_operation_is_covered():
    elsewhere = [
        "InputValue",
        "SparseInputValue",
        "ImageInput",
        "SparseImageInput",
        "LearnableParameter",
        "ImageParameter",
        "Constant",
        "PastValue",
        "FutureValue",
        "Mean",
        "InvStdDev",
        "PerDimMeanVarNormalization",
        "PerDimMeanVarDeNormalization",
        "BatchNormalization",
        "MatrixL2Reg",
        "CosDistanceWithNegativeSamples",
        "Diagonal",
        "MaxUnpooling",
        "ClassBasedCrossEntropyWithSoftmax",
        "DummyCriterion",
    ]
    covered = {nodes.find(case[1]).operation for case in (*CASES, *CRITERIA)} | set(elsewhere)
    assert {kind.name for kind in nodes.kinds() if not kind.unsupported} == covered
