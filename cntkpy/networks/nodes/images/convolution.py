"""Convolution and pooling (docs/specification/networks.md B.8).

In CHW the flat order of a sample is width, height, channel, so arrays are (T, S, C, H, W) and kernels (M, C, kH, kW).
In legacy HWC the real flat order of a sample is channel, height, width - arrays are (T, S, W, H, C) - although the
declared shape is `[C x W x H]`.

Specified in docs/specification/networks.md#b8-convolution-and-pooling.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.images import OneChannel, images_of, plain, value_of
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGERS,
    TEXT,
    Argument,
    NodeKind,
    Option,
    RecordForm,
)
from cntkpy.networks.nodes.images import pooling
from cntkpy.networks.nodes.images.geometry import (
    SHARED_PADDING,
    Geometry,
    Placing,
    extended,
    placing,
    several,
    transposed,
    windows,
)
from cntkpy.networks.nodes.images.sliding import band_of, convolve
from cntkpy.networks.nodes.inputs.kinds import IMAGE_LAYOUTS, is_chw

if TYPE_CHECKING:
    from cntkpy.networks.arrays.images import ChannelsLast, Turned
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


_SPATIAL = "DEFGHI"

CHANNEL_PADDING = Option(
    "channelPadding",
    BOOLEAN,
    False,
    "2-D form of CHW with zeroPadding: pad the axis of channels, too, as CNTK's CPU code does; a network that is built "
    "to run on a CPU has it, and a warning says so",
)


def is_two_d(options: dict[str, object]) -> bool:
    """Return whether these are the options of the 2-D form."""
    return "kernelWidth" in options


def _prepare(options: dict[str, object]) -> None:
    if not options["imageLayout"]:
        options["imageLayout"] = "HWC" if is_two_d(options) else "CHW"
    if not is_two_d(options) and not is_chw(options["imageLayout"]):
        raise ShapeProblem("this form of Convolution needs imageLayout=CHW")
    for key in ("kernelShape", "stride", "sharing", "autoPadding", "lowerPad", "upperPad", "outputShape", "dilation"):
        if key in options:
            value = options[key]
            options[key] = several(value)


# ---- the 2-D form


def geometry_2d(node: Node, x: Shape) -> tuple[Geometry, int]:
    """Windows over (width, height), and the number of input channels."""
    options = node.options
    chw = is_chw(options["imageLayout"])
    width, height, channels = x if chw else (x[1], x[2], x[0])
    auto = (bool(options["zeroPadding"]),) * 2
    kernel = (int(options["kernelWidth"]), int(options["kernelHeight"]))
    stride = (int(options["strideWidth"]), int(options["strideHeight"]))
    shared = bool(options["sharedPadding"])
    how = Placing(kernel, stride, auto, (0, 0), (0, 0), (1, 1), extra_left=not chw, shared=shared)
    return windows((width, height), how), channels


def _shape_2d(node: Node) -> Shape | None:
    weights, x = node.input(0), node.input(1)
    if weights.shape is None or x.shape is None or 0 in x.shape:
        return None
    if len(x.shape) != 3:
        raise ShapeProblem("the input of a 2-D convolution must be an image of three axes")
    geometry, channels = geometry_2d(node, x.shape)
    maps = int(node.options["maps"])
    if maps < 1:
        raise ShapeProblem("the number of maps must be at least 1")
    expected = (maps, shapes.size(geometry.kernel) * channels)
    rules.infer(weights, expected)
    if weights.shape != expected:
        raise ShapeProblem(f"the weights must be of shape {shapes.text(expected)}")
    width, height = geometry.outputs
    return (width, height, maps) if is_chw(node.options["imageLayout"]) else (maps, width, height)


def _forward_2d(call: Call, weights: Array, x: Array | ChannelsLast) -> Array | Turned:
    node = call.node
    geometry, channels = geometry_2d(node, node.input(1).shape)
    (kw, kh), (width, height) = geometry.kernel, geometry.inputs
    maps = int(node.options["maps"])
    if is_chw(node.options["imageLayout"]):
        kernel = weights.reshape(maps, channels, kh, kw)
        images = images_of(x, (channels, height, width))
        if node.options["channelPadding"] and (missed := missed_channels(node)):
            kernel, images = kernel[:, missed:], images[..., : channels - missed]
        out = convolve(images, kernel, geometry.reversed())
        return value_of(out, x, node.has_layout)
    x = plain(x)
    lead = x.shape[:2] if node.has_layout else ()
    kernel = weights.reshape(channels, kw, kh, maps).transpose(3, 0, 1, 2)
    out = convolve(x.reshape(-1, width, height, channels), kernel, geometry)
    return out.reshape(*lead, *reversed(node.shape))


def missed_channels(node: Node) -> int:
    """Of a validated node: how many of the last channels a kernel misses where `zeroPadding` pads the channels, too.

    The only window then starts before the first channel. 0 for other nodes and other layouts.
    """
    if node.operation != "Convolution" or not is_two_d(node.options):
        return 0
    options, x = node.options, node.input(1).shape
    if not is_chw(options["imageLayout"]) or not options["zeroPadding"]:
        return 0
    assert x is not None
    channels, shared = x[2:], bool(options["sharedPadding"])
    return windows(channels, Placing(channels, channels, (True,), (0,), (0,), (1,), shared=shared)).padding[0][0]


# ---- the N-D form


class Plan:
    """Everything the N-D form derives from its options and the input's shape.

    Attributes:
        transpose: whether the windows slide over the result.
        geometry: the windows.
        shape: of the result.
        maps, kernels: how many there are; more kernels than maps where they differ from position to position.
        sharing: per axis, whether all positions have the same kernel; `local`: not on every axis.
    """

    def __init__(self, node: Node, x: Shape) -> None:
        options, rank = node.options, len(x)
        if not x:
            raise ShapeProblem("the input is a single number, along which no window can slide")
        self.transpose = bool(options["transpose"])
        self.groups = int(options.get("groups", 1))
        maps = int(options["mapCount"])
        how = placing(options, rank, self._grouped(x), x)
        if min(how.kernel) < 1:
            raise ShapeProblem("kernel and stride must be at least 1")
        self.sharing = extended(options["sharing"], len(options["kernelShape"]), rank, [True] * rank)
        self.kernel = how.kernel
        """Of the weights: the last axis has the channels of one group."""
        self.maps = maps if maps > 0 else (_maps_of(node, how.kernel) if not self.transpose else 1)
        if self.transpose:
            if x[-1] % self.maps:
                raise ShapeProblem(f"the last axis of the input must be a multiple of mapCount = {self.maps}")
            folded = (*x[:-1], x[-1] // self.maps)
            sizes = options["outputShape"]
            if len(sizes) > rank:
                raise ShapeProblem(f"the shape of the result {shapes.text(sizes)} has more axes than the input")
            self.geometry = transposed(folded, how, sizes)
            self.shape = self.geometry.inputs
        else:
            how = replace(how, kernel=(*how.kernel[:-1], how.kernel[-1] * self.groups))
            self.geometry = windows(x, how)
            self.shape = (*self.geometry.outputs[:-1], self.geometry.outputs[-1] * self.maps)
        self.local = not all(self.sharing)
        self.kernels = self.maps
        if self.local:
            self.kernels *= shapes.size(
                n for n, share in zip(self.geometry.outputs, self.sharing, strict=True) if not share
            )
        if self.groups > 1:
            self._check_groups()

    def _grouped(self, x: Shape) -> Shape:
        """Return the axes of x, with the channels of one group."""
        if self.groups < 1 or x[-1] % self.groups:
            raise ShapeProblem(f"the {x[-1]} channels of the input are not {self.groups} groups of equal size")
        return (*x[:-1], x[-1] // self.groups)

    def _check_groups(self) -> None:
        if self.maps % self.groups:
            raise ShapeProblem(f"the {self.maps} maps are not {self.groups} groups of equal size")
        if self.transpose or self.local:
            raise ShapeProblem("groups need transpose=false and sharing=true")
        if not spans_channels(self.geometry.reversed()):
            channels = self.geometry.inputs[-1] // self.groups
            raise ShapeProblem(
                f"a kernel with {self.groups} groups has all {channels} channels of a group, without padding"
            )


def _maps_of(node: Node, kernel: Shape) -> int:
    weights = node.input(0).shape
    if weights is None or 0 in weights:
        raise ShapeProblem("mapCount is needed, because the shape of the weights is not given")
    count, remainder = divmod(shapes.size(weights), shapes.size(kernel))
    if remainder or count < 1:
        raise ShapeProblem(f"the weights do not hold whole kernels of shape {shapes.text(kernel)}")
    return count


def _shape_nd(node: Node) -> Shape | None:
    weights, x = node.input(0), node.input(1)
    if weights.shape is None or x.shape is None or 0 in x.shape:
        return None
    plan = Plan(node, x.shape)
    size = shapes.size(plan.kernel)
    if 0 in weights.shape:
        matrix = len(weights.shape) == 2
        rules.infer(weights, (plan.kernels, size) if matrix else (*plan.kernel, plan.kernels))
    if shapes.size(weights.shape) != plan.kernels * size:
        raise ShapeProblem(
            f"the weights must have {plan.kernels} x {size} elements ({plan.kernels} kernels of "
            f"{shapes.text(plan.kernel)})"
        )
    return plan.shape


def _forward_nd(call: Call, weights: Array, x: Array | Turned) -> Array | Turned:
    node = call.node
    plan = Plan(node, node.input(1).shape)
    geometry = plan.geometry.reversed()  # channel first
    kernel = weights.reshape(plan.kernels, *reversed(plan.kernel))
    if isinstance(x, OneChannel):
        plain_form = plan.kernels == 1 and not plan.transpose and not plan.local and spans_channels(geometry)
        if plain_form and (band := band_of(kernel, geometry)) is not None:
            return OneChannel(jnp.matmul(x.array, band, precision="highest"))
        x = plain(x)
    if not plan.transpose and not plan.local and spans_channels(geometry):
        images = images_of(x, geometry.inputs)
        return value_of(convolve(images, kernel, geometry.without_first(), plan.groups), x, node.has_layout)
    x = plain(x)
    lead = x.shape[:2] if node.has_layout else ()
    if plan.transpose:
        images = x.reshape(-1, *reversed(node.input(1).shape))
        result = jnp.zeros((len(images), *geometry.inputs), x.dtype)

        def forward(y: Array) -> Array:
            return _maps_last(_slide(y, kernel, geometry, plan))

        _, transpose = jax.vjp(forward, result)
        (out,) = transpose(images)
    else:
        out = _maps_last(_slide(x.reshape(-1, *geometry.inputs), kernel, geometry, plan))
    return out.reshape(*lead, *reversed(node.shape))


def spans_channels(geometry: Geometry) -> bool:
    """Return whether a window has all elements of the first axis."""
    return geometry.outputs[0] == 1 and geometry.padding[0] == (0, 0) and len(geometry.inputs) > 1


def _maps_last(out: Array) -> Array:
    """(N, M, C', ...) -> (N, M * C', ...): the maps of a channel position are neighbours in blocks of C'."""
    return out.reshape(out.shape[0], out.shape[1] * out.shape[2], *out.shape[3:])


def _slide(x: Array, kernel: Array, geometry: Geometry, plan: Plan) -> Array:
    """Windows of x (N, C, ...) with kernels (M, kC, ...): (N, M, C', ...)."""
    if plan.local:
        return _slide_local(x, kernel, geometry, plan)
    if spans_channels(geometry):
        out = convolve(jnp.moveaxis(x, 1, -1), kernel, geometry.without_first())
        return jnp.moveaxis(out, -1, 1)[:, :, None]
    return jnp.moveaxis(convolve(x[..., None], kernel[:, None], geometry), -1, 1)


def _slide_local(x: Array, kernel: Array, geometry: Geometry, plan: Plan) -> Array:
    """Kernels that differ from position to position: kernel index = position (x fastest), then map."""
    rank = len(geometry.inputs)
    spatial = _SPATIAL[:rank]
    dimensions = (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
    patches = jax.lax.conv_general_dilated_patches(
        x[:, None],
        geometry.kernel,
        geometry.stride,
        geometry.padding,
        rhs_dilation=geometry.dilation,
        dimension_numbers=dimensions,
        precision=jax.lax.Precision.HIGHEST,
    )
    kernel_counts = [1 if share else n for n, share in zip(geometry.outputs, reversed(plan.sharing), strict=True)]
    weights = kernel.reshape(plan.maps, *kernel_counts, -1)
    weights = jnp.broadcast_to(weights, (plan.maps, *geometry.outputs, weights.shape[-1]))
    positions = spatial.lower()
    return jnp.einsum(f"nk{positions},m{positions}k->nm{positions}", patches, weights, precision="highest")


def _shape(node: Node) -> Shape | None:
    """Per axis the number of windows, and the number of maps in place of the channels."""
    rules.constants(node.input(0))
    return _shape_2d(node) if is_two_d(node.options) else _shape_nd(node)


def _forward(call: Call, weights: Array, x: Array | Turned) -> Array | Turned:
    if is_two_d(call.node.options):
        return _forward_2d(call, weights, plain(x) if isinstance(x, OneChannel) else x)
    return _forward_nd(call, weights, x)


def geometry_of(node: Node) -> tuple[Node, Geometry, bool] | None:
    """Of a convolution: its image, the windows, and whether they slide over the result instead (transposed)."""
    if node.operation != "Convolution":
        return None
    image = node.input(1)
    assert image.shape is not None
    if is_two_d(node.options):
        return image, geometry_2d(node, image.shape)[0], False
    plan = Plan(node, image.shape)
    return image, plan.geometry, plan.transpose


_W, _X, _KERNEL = Argument("W"), Argument("x"), Argument("kernelShape", INTEGERS)
_TWO_D = tuple(Argument(n, INTEGER) for n in ("kernelWidth", "kernelHeight", "maps", "strideWidth", "strideHeight"))

KINDS = [
    NodeKind(
        "Convolution",
        ((_W, _X, *_TWO_D), (_W, _X, _KERNEL)),
        "Cross-correlation of an image with kernels (not flipped, no bias): for two axes, or any number of axes.",
        "out[p, m] = sum_k W[m, k] x[stride p + k - padding]",
        _shape,
        _forward,
        aliases=("Convolve",),
        options=(
            Option("zeroPadding", BOOLEAN, False, "2-D form: pad so that the output has ceil(input / stride) cells"),
            Option("imageLayout", TEXT, "", "HWC in the 2-D form, CHW in the other", (*IMAGE_LAYOUTS, "")),
            Option("maxTempMemSizeInSamples", INTEGER, 0, ignored="XLA plans the workspace."),
            Option("mapCount", INTEGER, 0, "number of kernels"),
            Option("stride", INTEGERS, (1,), "step per axis"),
            Option("sharing", BOOLEANS, (True,), "false: a kernel of its own for every position on that axis"),
            Option("autoPadding", BOOLEANS, (True,), "padding so that windows are centred on the elements, per axis"),
            Option("lowerPad", INTEGERS, (0,), "padding before, per axis, where not automatic"),
            Option("upperPad", INTEGERS, (0,), "padding after, per axis, where not automatic"),
            Option("transpose", BOOLEAN, False, "transposed convolution (deconvolution)"),
            Option("dilation", INTEGERS, (1,), "distance between neighbours in a window, per axis"),
            Option("groups", INTEGER, 1, "groups of channels; each makes the maps of one group"),
            Option("outputShape", INTEGERS, (0,), "transposed convolution: size of the result per axis; 0: inferred"),
            SHARED_PADDING,
            CHANNEL_PADDING,
        ),
        prepare=_prepare,
        images=True,
        width="short",
        record=RecordForm(
            names={"kernelShape": "kernelDims", "mapCount": "mapDims"},
            types={"mapCount": INTEGERS},
            optional=("maxTempMemSizeInSamples", "dilation", "outputShape"),
            without=("zeroPadding", "groups", "sharedPadding", "channelPadding", *(a.name for a in _TWO_D)),
        ),
        example="h = Convolution(Parameter(16, 27), picture, 3, 3, 16, 1, 1, zeroPadding=true, imageLayout=CHW)",
    ),
    *pooling.KINDS,
]
