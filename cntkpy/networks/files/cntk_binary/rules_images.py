"""Rules that convert convolution and pooling of a CNTK model file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cntkpy.networks.files.cntk_binary.records import BadFile
from cntkpy.networks.files.cntk_binary.target import Target
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes.images.geometry import extended

_PADS = ("autoPadding", "lowerPad", "upperPad")
_LARGEST = 1 << 31


def _common(t: Target) -> dict[str, Any]:
    """The options that convolution and pooling share."""
    attributes = t.attributes
    keys = ("stride", *_PADS, "imageLayout")
    if attributes["imageLayout"] != "CHW":
        raise t.refuse(f"windows over any number of axes in the layout {attributes['imageLayout']}")
    return {**{key: attributes[key] for key in keys}, "sharedPadding": t.shared_padding}


def _convolution(t: Target) -> Node:
    attributes = t.attributes
    weights, x = t.inputs(2)
    if attributes.get("sequential"):
        raise t.refuse("windows over the sequence")
    dilation = attributes.get("dilation", ()) or (1,)
    if attributes["twoD"]:
        if any(d != 1 for d in dilation):
            raise t.refuse(f"the dilation {shapes.text(dilation)}")
        return _two_d(t, weights, x)
    kernel, maps = attributes["kernelShape"], shapes.size(attributes["mapShape"])
    if not attributes["mapShape"]:
        weight_shape, rank = t.shape(weights), len(t.shape(x))
        if len(weight_shape) < rank:
            raise t.refuse(f"the kernel {shapes.text(weight_shape)} for an operand of {rank} axes")
        kernel, maps = weight_shape[:rank], shapes.size(weight_shape[rank:])
    options: dict[str, Any] = {**_common(t), "kernelShape": kernel, "mapCount": maps, "sharing": attributes["sharing"]}
    options["transpose"] = attributes["transpose"]
    options["dilation"] = (*dilation * (len(t.shape(x)) - 1), 1) if len(dilation) == 1 else dilation
    if attributes.get("groups", 1) > 1:
        options.update(_groups(t, x, options))
    if attributes["transpose"]:
        options["outputShape"] = attributes["outputShape"] or (0,)
    elif attributes["ceilOutDim"] and (_ceiling_differs(t, x, options) or any(d != 1 for d in dilation)):
        raise t.refuse("an output size that is rounded up")
    return t.add("Convolution", [weights, x], **options)


def _groups(t: Target, x: Node, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a convolution with groups: kernels have all channels of a group."""
    shape, (_, stride, auto, _, _) = _per_axis(t, x, options)
    return {"groups": t.attributes["groups"], "stride": (*stride[:-1], shape[-1]), "autoPadding": (*auto[:-1], False)}


def _two_d(t: Target, weights: Node, x: Node) -> Node:
    attributes = t.attributes
    kernel, stride = (*attributes["kernelShape"], 1), (*attributes["stride"], attributes["stride"][-1])
    node = t.add(
        "Convolution",
        [weights, x],
        kernelWidth=kernel[0],
        kernelHeight=kernel[1],
        maps=shapes.size(attributes["mapShape"]),
        strideWidth=stride[0],
        strideHeight=stride[1],
        zeroPadding=attributes["autoPadding"][0],
        imageLayout=attributes["imageLayout"],
        sharedPadding=t.shared_padding,
    )
    return node


def _pooling(t: Target) -> Node:
    attributes = t.attributes
    (x,) = t.inputs(1)
    if attributes["kind"] not in ("max", "average"):
        raise BadFile(f"the kind of pooling of '{t.record.name}' is {attributes['kind']}", t.record.at)
    if attributes["transpose"] or attributes["outputShape"]:
        raise t.refuse("transposed pooling")
    options: dict[str, Any] = {**_common(t), "kernelShape": attributes["kernelShape"], "kind": attributes["kind"]}
    if not options["kernelShape"] or max(options["kernelShape"]) >= _LARGEST:  # everything but the channels
        options.update(kernelShape=t.shape(x)[:-1] or (1,), stride=(1,), autoPadding=(False,))
    return t.add("Pooling", [x], **options, ceilOutDim=attributes["ceilOutDim"], includePad=attributes["includePad"])


def _unpooling(t: Target) -> Node:
    options = _common(t)
    del options["sharedPadding"]  # the steps leave nothing over
    return t.add("MaxUnpooling", t.inputs(2), **options, kernelShape=t.attributes["kernelShape"])


def _old_pooling(t: Target) -> Node:
    width, height = t.attributes["kernelShape"]
    x, y = t.attributes["stride"]
    return t.add(
        t.record.operation,
        t.inputs(1),
        windowWidth=width,
        windowHeight=height,
        strideWidth=x,
        strideHeight=y,
        imageLayout=t.attributes["imageLayout"],
    )


def _per_axis(t: Target, x: Node, options: dict[str, Any]) -> tuple[Shape, list[tuple[Any, ...]]]:
    """The operand's shape, and kernel, stride and the three pads for each of its axes."""
    shape, kernel = t.shape(x), options["kernelShape"]
    rank, own_count = len(shape), len(kernel)
    rests: Sequence[tuple[str, list[Any]]] = (
        ("stride", [1] * rank),
        ("autoPadding", [False] * rank),
        ("lowerPad", [0] * rank),
        ("upperPad", [0] * rank),
    )
    try:
        lists = [extended(kernel, own_count, rank, [1] * rank)]
        lists += [extended(options[key], own_count, rank, remainder) for key, remainder in rests]
    except ShapeProblem as problem:
        raise t.refuse(str(problem)) from None
    return shape, lists


def _ceiling_differs(t: Target, x: Node, options: dict[str, Any]) -> bool:
    """Return whether rounding the output size up gives another size than rounding it down."""
    shape, lists = _per_axis(t, x, options)
    for n, k, s, auto, lower, upper in zip(shape, *lists, strict=True):
        if not auto and s > 0 and (n + lower + upper - k) % s:
            return True
    return False


def _roi_pooling(t: Target) -> Node:
    attributes = t.attributes
    options = {"outputShape": attributes["outputShape"]}
    if not attributes["relative"]:
        if attributes["kind"] not in ("max", "average"):
            raise BadFile(f"the kind of pooling of '{t.record.name}' is {attributes['kind']}", t.record.at)
        options.update(kind=attributes["kind"], spatialScale=attributes["spatialScale"])
    return t.add("ROIPooling", t.inputs(2), **options)


IMAGES: dict[str, Callable[[Target], Node]] = {
    "Convolution": _convolution,
    "Pooling": _pooling,
    "MaxUnpooling": _unpooling,
    "MaxPooling": _old_pooling,
    "AveragePooling": _old_pooling,
    "ROIPooling": _roi_pooling,
}
