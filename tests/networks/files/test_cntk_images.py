"""Convolution and pooling of CNTK's model files, against windows written out in NumPy."""

import itertools

import cntk_v1_writer as w
import cntk_v2_writer as v
import numpy as np
import pytest
from cntk_models import assert_all_close

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.cntk_binary.load import read_cntk

RANDOM = np.random.default_rng(11)


def assert_images(contents, x, expected, name="z"):
    """The node z has that value for one image in all files."""
    assert_all_close(contents, {"x": x[None]}, expected[None], name)


def lower_pad(n, k, s, shared):
    """Where automatic padding puts the first window: so far before the first element."""
    count = (n - 1) // s + 1
    extra = n - ((count - 1) * s + 1)
    return (k - 1) // 2 - (extra // 2 if shared else 0)


def cells(n, k, s, pad, position):
    """The elements that a window covers, with their places in the kernel."""
    first = position * s - pad
    return [(first + i, i) for i in range(k) if 0 <= first + i < n]


def slide(x, kernel, strides, pads, counts, function):
    """Apply `function(values, weights)` to every window over all axes of x."""
    out = np.zeros(counts)
    for position in np.ndindex(*counts):
        axes = [cells(n, k, s, p, at) for n, k, s, p, at in zip(x.shape, kernel, strides, pads, position, strict=True)]
        places = list(itertools.product(*axes))
        values = np.array([x[tuple(a for a, _ in place)] for place in places])
        out[position] = function(values, [tuple(b for _, b in place) for place in places])
    return out


def convolved(x, weights, strides, pads, counts):
    """weights: kernel axes, then maps; the maps take the place of the channels."""
    kernel = weights.shape[:-1]
    maps = [
        slide(
            x,
            kernel,
            strides,
            pads,
            counts,
            lambda values, places, m=m: values @ np.array([weights[(*place, m)] for place in places]),
        )
        for m in range(weights.shape[-1])
    ]
    return np.concatenate(maps, axis=-1)


def v1_windows(
    version, kernel, maps, stride, padding, kind=0, transpose=False, output=(0,), ceil=False, include=False, layout=1
):
    body = w.shape(*kernel) + w.shape(maps) + w.shape(*stride) + w.booleans(True) + w.booleans(*padding)
    body += w.shape(0) + w.shape(0) + w.i32(kind) + w.i32(layout) + w.u64(0)
    body += w.boolean(transpose) if version >= 9 else b""
    body += w.shape(*output) if version >= 20 else b""
    body += w.boolean(ceil) if version >= 21 else b""
    body += w.boolean(include) if version >= 23 else b""
    return body


def v1_convolution(version, *arguments, two_d=False, dilation=1, **more):
    tail = w.boolean(two_d) + (w.shape(dilation) if version >= 18 else b"")
    return v1_windows(version, *arguments, **more) + tail


def first(version, x, operation, body, weights=None):
    f = w.Writer(version, "double")
    f.input("x", *x.shape)
    if weights is not None:
        f.parameter("W", weights.reshape(weights.shape[0], -1, order="F"), *weights.shape)
    f.node(operation, "z", body, "x" if weights is None else "W x")
    return f.content


def later(x, op, weights=None, extra=(), **attributes):
    f = v.Writer(double=True)
    f.input("x", *x.shape, axes=[v.BATCH])
    links = ["Input_x"] if weights is None else [f.parameter("W", weights), "Input_x"]
    f.function(op, "F1", *links, *extra, name="z", **attributes)
    return f.content("F1")


@pytest.mark.parametrize("versions", [(5, 9, 15), (16, 18, 20, 21, 23, 30)])
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.sampled
def test_padding_follows_the_program_that_wrote_the_file(versions, stride):
    x, weights = RANDOM.normal(size=(8, 7, 2)), RANDOM.normal(size=(3, 5, 2, 2))
    strides = (stride, stride, 2)
    pads = [lower_pad(n, k, stride, versions[0] >= 16) for n, k in ((8, 3), (7, 5))]
    counts = ((8 - 1) // stride + 1, (7 - 1) // stride + 1, 1)
    expected = convolved(x, weights, strides, (*pads, 0), counts)
    contents = [
        first(n, x, "Convolution", v1_convolution(n, (3, 5, 2), 2, strides, (True, True, False)), weights)
        for n in versions
    ]
    assert_images(contents, x, expected)


def v2_convolution(x, weights, strides, padding, **more):
    return later(
        x,
        33,
        weights,
        strides=v.Shape(strides),
        sharing=[True],
        autoPadding=list(padding),
        lowerPad=v.Shape((0,)),
        upperPad=v.Shape((0,)),
        **{"transpose": False, "maxTempMemSizeInSamples": 0, **more},
    )


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_convolutions_of_the_later_format(stride):
    x, weights = RANDOM.normal(size=(8, 7, 2)), RANDOM.normal(size=(3, 4, 2, 3))
    pads = [lower_pad(n, k, stride, True) for n, k in ((8, 3), (7, 4))]
    counts = ((8 - 1) // stride + 1, (7 - 1) // stride + 1, 1)
    expected = convolved(x, weights, (stride, stride, 1), (*pads, 0), counts)
    for padding in ((True, True, False),):
        content = v2_convolution(x, weights, (stride, stride), padding)
        assert_images([content], x, expected)
    counts = ((8 - 3) // stride + 1, (7 - 4) // stride + 1, 1)
    expected = convolved(x, weights, (stride, stride, 1), (0, 0, 0), counts)
    assert_images([v2_convolution(x, weights, (stride,), (False,))], x, expected)


@pytest.mark.parametrize("channels", [2, 3, 4, 5])
@pytest.mark.sampled
def test_automatic_padding_of_the_channels_contracts_them_all(channels):
    """The default of the programs that write the later format: {true, true, true} with the channels as stride."""
    x, weights = RANDOM.normal(size=(4, 5, channels)), RANDOM.normal(size=(3, 3, channels, 2))
    expected = convolved(x, weights, (1, 1, channels), (1, 1, 0), (4, 5, 1))
    content = v2_convolution(x, weights, (1, 1, channels), (True, True, True))
    assert_images([content], x, expected)
    body = v1_convolution(23, (3, 3, channels), 2, (1, 1, channels), (True, True, True))
    assert_images([first(23, x, "Convolution", body, weights)], x, expected)


@pytest.mark.parametrize("version", [4, 5, 15, 18, 23])
def test_two_dimensional_convolution(version):
    x, weights = RANDOM.normal(size=(7, 5, 2)), RANDOM.normal(size=(3, 18))
    stored = weights.reshape(-1, order="F").reshape(3, 3, 2, 3, order="F")  # x, y, channel, map
    pads = (1, 1, 0)
    expected = convolved(x, stored, (2, 2, 1), pads, (4, 3, 1))
    if version < 5:
        body = w.u64(3, 3, 2, 2) + w.u32(3, 1) + w.boolean(True) + w.u64(0)
    else:
        body = v1_convolution(version, (3, 3, 1), 3, (2, 2, 1), (True,), two_d=True)
    assert_images([first(version, x, "Convolution", body, weights)], x, expected)


def spread(x, weights, strides, pads, sizes):
    """Transposed: each element adds its kernel; weights: kernel axes, result's channels, operand's channels."""
    out = np.zeros((*sizes, weights.shape[2]))
    for a, b, c in np.ndindex(*x.shape):
        for i, j in np.ndindex(*weights.shape[:2]):
            p, q = a * strides[0] + i - pads[0], b * strides[1] + j - pads[1]
            if 0 <= p < sizes[0] and 0 <= q < sizes[1]:
                out[p, q] += x[a, b, c] * weights[i, j, :, c]
    return out


@pytest.mark.parametrize("given", [False, True])
def test_transposed_convolution(given):
    x, weights = RANDOM.normal(size=(3, 4, 2)), RANDOM.normal(size=(3, 3, 5, 2))
    sizes = (6, 8) if given else (5, 7)
    pads = [lower_pad(n, 3, 2, True) for n in sizes]
    expected = spread(x, weights, (2, 2), pads, sizes)
    shape = (*sizes, 5) if given else (0,)
    content = v2_convolution(x, weights, (2, 2), (True, True, False), transpose=True, outputShape=v.Shape(shape))
    assert_images([content], x, expected)
    body = v1_convolution(23, (3, 3, 5), 2, (2, 2, 5), (True, True, False), transpose=True, output=shape)
    assert_images([first(23, x, "Convolution", body, weights)], x, expected)


POOLS = {"max": np.max, "average": np.mean}


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("versions", [(5, 15), (16, 20, 21, 23, 30, "later")])
def test_pooling(kind, padding, versions):
    x, stride = RANDOM.normal(size=(8, 6, 2)), 3
    shared = versions[0] >= 16
    pads = [lower_pad(n, k, stride, shared) if padding else 0 for n, k in ((8, 3), (6, 2))]
    counts = [(n - 1) // stride + 1 if padding else (n - k) // stride + 1 for n, k in ((8, 3), (6, 2))]
    expected = slide(x, (3, 2, 1), (3, 3, 1), (*pads, 0), (*counts, 2), lambda values, _: POOLS[kind](values))
    number = list(POOLS).index(kind)
    contents = []
    for version in versions:
        if version == "later":
            content = later(
                x,
                17,
                poolingType=number,
                poolingWindowShape=v.Shape((3, 2)),
                strides=v.Shape((3, 3)),
                autoPadding=[padding, padding],
                lowerPad=v.Shape((0,)),
                upperPad=v.Shape((0,)),
                ceilOutDim=False,
                includePad=False,
            )
        else:
            body = v1_windows(version, (3, 2), 1, (3, 3), (padding, padding), number + 1)
            content = first(version, x, "Pooling", body)
        contents.append(content)
    assert_images(contents, x, expected)


def test_pooling_of_the_whole_image():
    x = RANDOM.normal(size=(4, 3, 2))
    content = later(
        x, 17, poolingType=1, poolingWindowShape=v.Shape((v.UNKNOWN,)), strides=v.Shape((1,)), autoPadding=[False]
    )
    assert_images([content], x, x.mean((0, 1), keepdims=True))


def test_older_pooling():
    x = RANDOM.normal(size=(4, 6, 2))
    for name, function in (("MaxPooling", np.max), ("AveragePooling", np.mean)):
        content = first(30, x, name, w.u32(2, 1) + w.u64(3, 2, 3))
        expected = slide(x, (2, 3, 1), (2, 3, 1), (0, 0, 0), (2, 2, 2), lambda values, _, f=function: f(values))
        assert_images([content], x, expected)


@pytest.mark.parametrize("version", [5, 23, "later"])
def test_unpooling(version):
    x = RANDOM.normal(size=(4, 6, 2))
    pooled = slide(x, (2, 2, 1), (2, 2, 1), (0, 0, 0), (2, 3, 2), lambda values, _: values.max())
    expected = np.where(np.kron(pooled, np.ones((2, 2, 1))) == x, x, 0)
    if version == "later":
        f = v.Writer(double=True)
        f.input("x", 4, 6, 2, axes=[v.BATCH])
        common = {"strides": v.Shape((2, 2)), "autoPadding": [False]}
        p = f.function(17, "P", "Input_x", poolingType=0, poolingWindowShape=v.Shape((2, 2)), **common)
        f.function(58, "U", p, "Input_x", name="z", unpoolingWindowShape=v.Shape((2, 2)), **common)
        content = f.content("U")
    else:
        f = w.Writer(version, "double")
        f.input("x", 4, 6, 2)
        f.node("Pooling", "p", v1_windows(version, (2, 2), 1, (2, 2), (False,), 1), "x")
        f.node("MaxUnpooling", "z", v1_windows(version, (2, 2), 1, (2, 2), (False,), 1), "p x")
        content = f.content
    assert_images([content], x, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sequential": True}, "Convolution ('z': windows over the sequence)"),
        ({"ceilOutDim": True, "autoPadding": [False]}, "Convolution ('z': an output size that is rounded up)"),
    ],
)
def test_convolutions_that_cannot_be_used(change, message):
    x, weights = np.zeros((6, 5, 2)), np.zeros((3, 3, 2, 4))
    attributes = {"strides": v.Shape((2, 2)), "autoPadding": [True, True, False], **change}
    with pytest.raises(UserError) as caught:
        read_cntk(later(x, 33, weights, **attributes))
    assert message in str(caught.value)


def test_means_over_the_padding_and_windows_behind_the_end():
    x = RANDOM.normal(size=(6, 5, 2))
    common = {"poolingType": 1, "poolingWindowShape": v.Shape((3, 3)), "strides": v.Shape((2, 2))}
    files = [later(x, 17, includePad=True, autoPadding=[True, True], **common)]
    files.append(first(30, x, "Pooling", v1_windows(30, (3, 3), 1, (2, 2), (True, True, False), 2, include=True)))
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    assert_images(files, x, slide(padded, (3, 3, 1), (2, 2, 1), (0, 0, 0), (3, 3, 2), lambda values, _: values.mean()))
    files = [later(x, 17, ceilOutDim=True, autoPadding=[False], **common)]
    files.append(first(30, x, "Pooling", v1_windows(30, (3, 3), 1, (2, 2), (False,), 2, ceil=True)))
    assert_images(files, x, slide(x, (3, 3, 1), (2, 2, 1), (0, 0, 0), (3, 2, 2), lambda values, _: values.mean()))


def test_groups_and_dilation():
    x, weights = RANDOM.normal(size=(7, 6, 4)), RANDOM.normal(size=(3, 2, 2, 6))
    parts = [convolved(x[..., 2 * g : 2 * g + 2], weights[..., 3 * g : 3 * g + 3], (2, 1, 2), (0, 0, 0), (3, 5, 1))
             for g in range(2)]  # fmt: skip
    expected = np.concatenate(parts, axis=-1)
    for padding in ([False], [False, False, True]):
        assert_images([v2_convolution(x, weights, (2, 1, 2), padding, groups=2)], x, expected)
    wide = np.zeros((5, 3, 4, 2))
    wide[::2, ::2] = RANDOM.normal(size=(3, 2, 4, 2))
    expected = convolved(x, wide, (1, 1, 4), (0, 0, 0), (3, 4, 1))
    for dilation in ((2,), (2, 2, 1)):
        content = v2_convolution(x, wide[::2, ::2], (1, 1, 4), [False], dilation=v.Shape(dilation))
        assert_images([content], x, expected)


def test_poolings_that_cannot_be_used():
    x = np.zeros((6, 5, 2))
    body = v1_windows(30, (3, 3), 1, (2, 2), (True,), 0)
    with pytest.raises(UserError, match="the kind of pooling of 'z' is none"):
        read_cntk(first(30, x, "Pooling", body))
