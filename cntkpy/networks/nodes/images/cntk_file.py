"""Rules for CNTK's model files: images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes.file_support.bodies import Body, BodyReader, layout_of
from cntkpy.networks.nodes.file_support.dictionary import Table
from cntkpy.networks.nodes.file_support.records import BadFile
from cntkpy.networks.nodes.file_support.rules import Rule
from cntkpy.networks.nodes.file_support.tables import Attributes, Operation, booleans_of, numbers_of
from cntkpy.networks.nodes.file_support.target import Target
from cntkpy.networks.nodes.images.geometry import extended


def _windows_body(body: Body) -> Attributes:
    """Return the attributes that convolution and pooling share since version 5."""
    r = body.reader
    attributes: Attributes = {"kernelShape": r.shape(), "mapShape": r.shape(), "stride": r.shape()}
    attributes["sharing"], attributes["autoPadding"] = r.booleans() or (True,), r.booleans() or (False,)
    attributes["lowerPad"], attributes["upperPad"] = r.shape(), r.shape()
    kind = r.i32()
    attributes["kind"] = {0: "none", 1: "max", 2: "average"}.get(kind, str(kind))
    attributes["imageLayout"] = layout_of(body, r.i32())
    r.u64()
    attributes["transpose"] = r.boolean() if body.version >= 9 else False
    output = r.shape() if body.version >= 20 else ()
    attributes["outputShape"] = () if not any(output) else output
    attributes["ceilOutDim"] = r.boolean() if body.version >= 21 else False
    attributes["includePad"] = r.boolean() if body.version >= 23 else False
    return attributes


def _convolution_body(body: Body) -> Attributes:
    r = body.reader
    if body.version < 5:
        width, height, x, y = r.u64(), r.u64(), r.u64(), r.u64()
        maps, layout, padding = r.u32(), layout_of(body, r.u32()), r.boolean()
        r.u64()
        return {
            "twoD": True,
            "kernelShape": (width, height, 1),
            "stride": (x, y, 1),
            "mapShape": (maps,),
            "autoPadding": (padding,),
            "imageLayout": layout,
        }
    attributes = _windows_body(body)
    attributes["twoD"] = r.boolean()
    if body.version >= 18:
        attributes["dilation"] = r.shape()
    return attributes


def _old_pooling_body(body: Body) -> Attributes:
    r = body.reader
    width, layout = r.u32(), layout_of(body, r.u32())
    height, x, y = r.u64(), r.u64(), r.u64()
    return {"kernelShape": (width, height), "stride": (x, y), "imageLayout": layout}


def _roi_pooling_body(body: Body) -> Attributes:
    r = body.reader
    shape = r.shape()
    kind, scale = (r.i32(), r.f64()) if body.version >= 26 else (1, 1 / 16)
    attributes = {"outputShape": shape, "kind": {1: "max", 2: "average"}.get(kind, str(kind)), "spatialScale": scale}
    return {**attributes, "relative": body.version < 26}


def _crop_body(body: Body) -> Attributes:
    return {"offsets": (body.reader.f64(), body.reader.f64())}


def _windows_attributes(table: Table, kernel: str) -> Attributes:
    return {
        "kernelShape": numbers_of(table, kernel),
        "stride": numbers_of(table, "strides") or (1,),
        "sharing": booleans_of(table, "sharing", True),
        "autoPadding": booleans_of(table, "autoPadding", False),
        "lowerPad": numbers_of(table, "lowerPad") or (0,),
        "upperPad": numbers_of(table, "upperPad") or (0,),
        "imageLayout": "CHW",
        "transpose": table.get("transpose", bool, False),
        "outputShape": _given_attributes(numbers_of(table, "outputShape")),
        "ceilOutDim": table.get("ceilOutDim", bool, False),
        "includePad": table.get("includePad", bool, False),
    }


def _given_attributes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape, or nothing if it is to be inferred."""
    return () if not any(shape) or max(shape) >= 2**63 else shape


def _pooling_attributes(table: Table) -> Attributes:
    kind = table.get("poolingType", int, 0)
    return {**_windows_attributes(table, "poolingWindowShape"), "kind": {0: "max", 1: "average"}.get(kind, str(kind))}


def _convolution_attributes(table: Table) -> Attributes:
    return {
        **_windows_attributes(table, "kernelShape"),
        "mapShape": (),
        "twoD": False,
        "dilation": numbers_of(table, "dilation"),
        "groups": table.get("groups", int, 1),
        "sequential": table.get("sequential", bool, False),
    }


def _roi_pooling_attributes(table: Table) -> Attributes:
    kind = table.get("poolingType", int, 0)
    return {
        "outputShape": numbers_of(table, "roiOutputShape"),
        "kind": {0: "max", 1: "average"}.get(kind, str(kind)),
        "spatialScale": table.get("spatialScale", float, 1 / 16),
        "relative": "spatialScale" not in table and "poolingType" not in table,
    }


def _crop_attributes(table: Table) -> Attributes:
    return {"offsets": tuple(float(n) for n in numbers_of(table, "offset")) or (math.nan, math.nan)}


def _crop(t: Target) -> Node:
    offsets = t.attributes["offsets"]
    if all(math.isnan(o) or o >= _NO_OFFSET for o in offsets):
        if len(t.record.inputs) == 3:
            raise BadFile(f"Crop '{t.record.name}' has 3 inputs", t.record.at)
        return t.add("Crop", t.inputs(2, 4))
    if len(offsets) != 2 or not all(0 <= o < 1 << 31 and o == int(o) for o in offsets):
        raise t.refuse("offsets that are no places: " + ", ".join(f"{o:g}" for o in offsets))
    operands = t.inputs(2, 4)[:2]
    return t.add("Crop", operands, offsetX=int(offsets[0]), offsetY=int(offsets[1]))


_NO_OFFSET = float(np.finfo(np.float64).max)
"""Stands for an offset that is to be found, as a number that is none does."""


_PADS = ("autoPadding", "lowerPad", "upperPad")


_LARGEST = 1 << 31


def _common(t: Target) -> dict[str, Any]:
    """Return the options that convolution and pooling share."""
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


def _groups(t: Target, x: Node, options: dict[str, object]) -> dict[str, object]:
    """Return the options of a convolution with groups: kernels have all channels of a group."""
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
    """Return the operand's shape, and kernel, stride and the three pads for each of its axes."""
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


def _ceiling_differs(t: Target, x: Node, options: dict[str, object]) -> bool:
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


BODIES: dict[str, BodyReader] = {
    "Crop": _crop_body,
    "Convolution": _convolution_body,
    "Pooling": _windows_body,
    "MaxUnpooling": _windows_body,
    "MaxPooling": _old_pooling_body,
    "AveragePooling": _old_pooling_body,
    "ROIPooling": _roi_pooling_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    17: Operation("Pooling", _pooling_attributes),
    33: Operation("Convolution", _convolution_attributes),
    47: Operation("ROIPooling", _roi_pooling_attributes),
    58: Operation("MaxUnpooling", lambda t: _windows_attributes(t, "unpoolingWindowShape")),
    84: Operation("Crop", _crop_attributes),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {
    "Crop": _crop,
    "Convolution": _convolution,
    "Pooling": _pooling,
    "MaxUnpooling": _unpooling,
    "MaxPooling": _old_pooling,
    "AveragePooling": _old_pooling,
    "ROIPooling": _roi_pooling,
}
"""By operation: makes nodes of a record."""
