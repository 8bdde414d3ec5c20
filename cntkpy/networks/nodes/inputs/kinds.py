"""Inputs, parameters and constants.

Specified in docs/specification/networks.md#b3-inputs-parameters-constants.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from cntkpy.networks.graph import initialize
from cntkpy.networks.graph.initialize import Initializer
from cntkpy.networks.graph.shapes import ShapeProblem
from cntkpy.networks.nodes.declare import BOOLEAN, INTEGER, PATH, REAL, TEXT, Argument, NodeKind, Option, RecordForm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.graph.shapes import Shape


IMAGE_LAYOUTS = ("HWC", "CHW", "legacy", "cudnn")
IMAGE_LAYOUT = Option(
    "imageLayout",
    TEXT,
    "HWC",
    "order of the axes: CHW (cudnn) is [W x H x C], HWC (legacy) is [C x W x H]",
    IMAGE_LAYOUTS,
)
DYNAMIC_AXIS = Option(
    "dynamicAxis",
    TEXT,
    "",
    "the time axis: a name, the same for all inputs whose sequences have equal lengths; # is one sample per sequence",
)
_DIMS = (Argument("dims", INTEGER, many=True),)
_IMAGE = (
    (Argument("width", INTEGER), Argument("height", INTEGER), Argument("channels", INTEGER)),
    (
        Argument("width", INTEGER),
        Argument("height", INTEGER),
        Argument("channels", INTEGER),
        Argument("images", INTEGER),
    ),
)


def is_chw(layout: object) -> bool:
    """Return whether an `imageLayout` value means `[W x H x C]`."""
    return str(layout).lower() in ("chw", "cudnn")


def image_shape(width: int, height: int, channels: int, layout: object) -> tuple[int, int, int]:
    """Return the sample shape of an image in that layout."""
    return (width, height, channels) if is_chw(layout) else (channels, width, height)


def _own_shape(node: Node) -> Shape | None:
    """As given."""
    return node.shape


def _input(options: dict[str, object]) -> None:
    options["shape"] = _positive(tuple(cast("Sequence[int]", options.pop("dims"))))


def _positive(dims: tuple[int, ...]) -> tuple[int, ...]:
    if any(d < 1 for d in dims):
        raise ShapeProblem("the dimensions of an input must be at least 1")
    return dims


def _sparse_input(options: dict[str, object]) -> None:
    _input(options)


def _image_input(options: dict[str, Any]) -> None:
    options.pop("images", None)
    layout = options.pop("imageLayout")
    dims = image_shape(options.pop("width"), options.pop("height"), options.pop("channels"), layout)
    options["shape"] = _positive(dims)


_GRADIENT_FLAGS = ("needGradient", "needsGradient", "computeGradient")
_INIT_NAMES = {kind.lower(): kind for kind in initialize.KINDS}


def _parameter(options: dict[str, Any]) -> None:
    dims = tuple(options.pop("dims"))
    if any(d < 0 for d in dims):
        raise ShapeProblem("the dimensions of a parameter must not be negative")
    options["shape"] = dims
    kind = _INIT_NAMES.get(str(options.pop("init")).lower())
    if kind is None:
        raise ShapeProblem("unknown kind of init", hint="permitted: " + ", ".join(initialize.KINDS))
    path = options.pop("initFromFilePath")
    if kind == "fromFile" and not path:
        raise ShapeProblem("init=fromFile needs initFromFilePath")
    literal = options.pop("initFromLiteral")
    if kind == "fromLiteral" and not literal.strip():
        raise ShapeProblem("init=fromLiteral needs initFromLiteral")
    kernel = (options.pop("kernelWidth"), options.pop("kernelHeight"))
    options.pop("initOnCPUOnly", None)
    options["initializer"] = Initializer(
        kind,
        options.pop("initValueScale"),
        options.pop("value"),
        path or None,
        None,
        kernel,
        literal=literal,
        filter_rank=options.pop("initFilterRank"),
        output_rank=options.pop("initOutputRank"),
    )
    multiplier = options["learningRateMultiplier"]
    if multiplier < 0 or math.isnan(multiplier):
        raise ShapeProblem("learningRateMultiplier must not be negative")
    flags = [options.pop(flag) for flag in _GRADIENT_FLAGS]
    if not all(flags):
        options["learningRateMultiplier"] = 0.0


def _image_parameter(options: dict[str, object]) -> None:
    dims = list(cast("Sequence[int]", options["dims"]))
    layout = cast("str", options.pop("imageLayout"))
    if len(dims) < 3:
        raise ShapeProblem("ImageParameter needs at least width, height and channels")
    options["dims"] = (*dims[:-3], *image_shape(dims[-3], dims[-2], dims[-1], layout))
    _parameter(options)


def _constant(options: dict[str, object]) -> None:
    options["shape"] = (cast("int", options.pop("rows")), cast("int", options.pop("cols")))
    if any(d < 1 for d in options["shape"]):
        raise ShapeProblem("rows and cols must be at least 1")
    options["initializer"] = Initializer("fixedValue", value=cast("float", options.pop("value")))
    options["learningRateMultiplier"] = 0.0
    options["randomSeed"] = -1


_PARAMETER_OPTIONS = (
    Option("init", TEXT, "uniform", "how the start value is made", initialize.KINDS),
    Option("initValueScale", REAL, 1.0, "factor of the random range (uniform: 0.05 x scale on both sides)"),
    Option("value", REAL, 0.0, "the value of init=fixedValue"),
    Option("initFromFilePath", PATH, "", "text file for init=fromFile, one matrix row a line"),
    Option("initFromLiteral", TEXT, "", "the matrix of init=fromLiteral, one row a line"),
    Option("initFilterRank", INTEGER, 0, "how many first axes are those of a filter; they scale the random range"),
    Option("initOutputRank", INTEGER, 1, "how many axes after them (if negative, at the end) count outputs"),
    Option("initOnCPUOnly", BOOLEAN, False, ignored="parameters start where they stay."),
    Option("randomSeed", INTEGER, -1, "seed of this parameter; -1: the next of the counter"),
    Option("kernelWidth", INTEGER, 0, "kernel width for init=bilinear"),
    Option("kernelHeight", INTEGER, 0, "kernel height for init=bilinear"),
    Option("learningRateMultiplier", REAL, 1.0, "factor of the learning rate; 0 freezes the parameter"),
    Option("needGradient", BOOLEAN, True, "false freezes the parameter"),
    Option("needsGradient", BOOLEAN, True, "the same"),
    Option("computeGradient", BOOLEAN, True, "the same"),
)

KINDS = [
    NodeKind(
        "InputValue",
        (_DIMS,),
        "Data of the reader's stream of the same name.",
        aliases=("Input",),
        options=(DYNAMIC_AXIS,),
        shape=_own_shape,
        layout="always",
        prepare=_input,
        record=RecordForm(optional=("dynamicAxis",)),
        example="features = Input(4, tag=feature)",
    ),
    NodeKind(
        "SparseInputValue",
        (_DIMS,),
        "As InputValue, with values kept sparse.",
        aliases=("SparseInput",),
        options=(DYNAMIC_AXIS,),
        shape=_own_shape,
        layout="always",
        prepare=_sparse_input,
        sparse=True,
        record=RecordForm(optional=("dynamicAxis",)),
        example="pages = SparseInput(10000, tag=feature)",
    ),
    NodeKind(
        "ImageInput",
        _IMAGE,
        "Images of the reader's stream of the same name.",
        aliases=("Image",),
        options=(IMAGE_LAYOUT, DYNAMIC_AXIS),
        makes="InputValue",
        prepare=_image_input,
        example="digit = ImageInput(28, 28, 1, imageLayout=CHW, tag=feature)",
    ),
    NodeKind(
        "SparseImageInput",
        _IMAGE,
        "As ImageInput, with values kept sparse.",
        aliases=("SparseImage",),
        options=(IMAGE_LAYOUT, DYNAMIC_AXIS),
        makes="SparseInputValue",
        prepare=_image_input,
        example="strokes = SparseImageInput(28, 28, 1, imageLayout=CHW, tag=feature)",
    ),
    NodeKind(
        "LearnableParameter",
        (_DIMS,),
        "A parameter that training changes; dimensions of 0 are inferred.",
        aliases=("Parameter",),
        options=_PARAMETER_OPTIONS,
        shape=_own_shape,
        layout="none",
        parameter=True,
        prepare=_parameter,
        example="V = Parameter(4, 3, init=gaussian, initValueScale=0.5)",
    ),
    NodeKind(
        "ImageParameter",
        (_DIMS,),
        "A parameter whose last three dimensions are width, height, channels in the given layout.",
        options=(*_PARAMETER_OPTIONS, IMAGE_LAYOUT),
        makes="LearnableParameter",
        prepare=_image_parameter,
        example="M = ImageParameter(28, 28, 1, init=fixedValue, value=0, imageLayout=CHW)",
    ),
    NodeKind(
        "Constant",
        ((Argument("value", REAL),),),
        "A number, as a matrix of equal elements that training does not change.",
        aliases=("Const",),
        options=(Option("rows", INTEGER, 1, "rows"), Option("cols", INTEGER, 1, "columns")),
        makes="LearnableParameter",
        prepare=_constant,
        example="half = Constant(0.5)",
    ),
]
