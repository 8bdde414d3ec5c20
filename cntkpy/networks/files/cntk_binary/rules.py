"""Rules that convert each operation of a CNTK model file.

A rule takes a record and makes nodes, or refuses. Kinds that may be missing in the node library are asked for by name
and by the options that the rule sets (`Target.needed`), so that a new kind is used as soon as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cntkpy.networks import nodes
from cntkpy.networks.files.cntk_binary.records import BATCH_AXIS, DEFAULT_AXIS, Axis, BadFile
from cntkpy.networks.files.cntk_binary.rules_images import IMAGES
from cntkpy.networks.files.cntk_binary.target import Target
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.observers import PROPERTIES

Rule = Callable[[Target], Node]

DELAYS = frozenset(("PastValue", "FutureValue"))

SAME = frozenset((
    "Abs", "ClassBasedCrossEntropyWithSoftmax", "ClassificationError", "Clip", "CosDistance",
    "CosDistanceWithNegativeSamples", "Cosine", "CrossEntropy", "CrossEntropyWithSoftmax", "DiagTimes", "Diagonal",
    "DummyCriterion", "ElementTimes", "EpochAccumulator", "Equal", "Exp", "Floor", "GatherPacked", "Greater",
    "GreaterEqual", "Hardmax", "If", "KhatriRaoProduct", "LabelsToGraph", "LambdaRank", "Less", "LessEqual", "Log",
    "LogPlus", "LogSoftmax", "Logistic", "LookupTable", "MatrixL1Reg", "MatrixL2Reg", "Minus", "NDCG1Eval",
    "Negate", "NotEqual", "PackedIndex", "PerDimMeanVarDeNormalization", "PerDimMeanVarNormalization", "Plus",
    "Reciprocal", "RectifiedLinear", "ScatterPacked", "Sigmoid", "Sin", "Softmax", "Sqrt", "SquareError",
    "StopGradient", "SumColumnElements", "SumElements", "Tanh",
))  # fmt: skip
"""Operations whose nodes have the same name and inputs here, and no options that the file would say."""

NO_COUNTERPART = {
    "LatticeSequenceWithSoftmax": "use CrossEntropyWithSoftmax on the frames",
}
"""Hints for operations that no node kind mentions."""


def rule(operation: str) -> Rule:
    """The rule of an operation."""
    if operation in SAME:
        return _same
    return _RULES.get(operation) or IMAGES.get(operation) or _refuse


def _refuse(t: Target) -> Node:
    raise t.refuse(hint=NO_COUNTERPART.get(t.record.operation, ""))


def _reconciled(t: Target) -> Node:
    return t.add("ReconcileDynamicAxis", t.inputs(2), **t.attributes)


def _same(t: Target) -> Node:
    kind = t.needed(t.record.operation)
    low, high = kind.arity()
    return t.add(kind, t.inputs(low, len(t.record.inputs) if high is None else high))


def _where(t: Target) -> Node:
    return t.add("Where", t.inputs(1), single=t.attributes.get("single", False))


def _called(name: str) -> Rule:
    """The operation has another name here."""
    return lambda t: t.add(t.needed(name), t.inputs(1))


def _element_function(t: Target) -> Node:
    return t.add(t.needed("ElementFunction"), t.inputs(1), function=t.record.operation.lower())


def _alias(t: Target) -> Node:
    """A node of its own, if there is a kind for it; else the operand itself takes the name's place."""
    (x,) = t.inputs(1)
    kind = t.kind("Pass")
    return x if kind is None else t.add(kind, [x])


# ---- leaves


def _parameter(t: Target) -> Node:
    record = t.record
    if record.shape is None or record.value is None or record.value.size != shapes.size(record.shape):
        raise BadFile(f"the parameter '{record.name}' has no value of its shape", record.at)
    node = t.add("LearnableParameter", t.inputs(0), shape=record.shape)
    node.learning_rate_multiplier = record.attributes["learningRateMultiplier"]
    node.value = record.value.reshape(tuple(reversed(record.shape)))
    return node


def _input(t: Target) -> Node:
    records = t.builder.records.records.values()
    axes = {r.attributes["dynamicAxis"] for r in records if r.operation in ("InputValue", "SparseInputValue")}
    axis = t.record.attributes["dynamicAxis"] if len(axes) > 1 else ""
    node = t.add(t.record.operation, t.inputs(0), shape=t.record.shape, dynamicAxis=_AXES.get(axis, axis))
    node.dynamic_axes = t.record.attributes.get("dynamicAxes")
    return node


_AXES = {BATCH_AXIS: ONE, DEFAULT_AXIS: ""}
"""Names of the input axes of the later format."""


def _dynamic_axis(t: Target) -> Node:
    return t.add("DynamicAxis", t.inputs(0))


def _statistic(t: Target) -> Node:
    node = t.add(t.record.operation, t.inputs(1))
    node.computed = t.attributes["computed"]
    node.value = t.record.value
    return node


def _constant_op(t: Target) -> Node:
    (x,) = t.inputs(1)
    shape = t.shape(x)
    if shapes.size(shape) > 1 << 20:
        raise t.refuse("a constant of more than a million elements")
    if not x.has_layout:
        return t.constants(shape, t.attributes["fillValue"])
    value = t.constants(shape, t.attributes["fillValue"], ".value")
    return t.add("ReconcileDynamicAxis", [value, x])  # it has the steps of x: ones_like may begin a recurrence


# ---- products and delays


def _times(t: Target) -> Node:
    rank = t.attributes["outputRank"]
    operands = t.inputs(2)
    if rank == 1:
        return t.add(t.record.operation, operands)
    kind = t.needed(t.record.operation, "outputRank", why=f"an output of rank {rank}")
    return t.add(kind, operands, outputRank=rank)


def _delay(t: Target) -> Node:
    count, steps = len(t.record.inputs), t.attributes["timeStep"]
    if not 1 <= count <= 2 or not 1 <= steps < 1 << 31:
        raise BadFile(f"{t.record.operation} '{t.record.name}' has {count} inputs and {steps} steps", t.record.at)
    initial, states = t.attributes.get("initial", 0.0), []
    if count == 2:
        constant = t.constant(1)
        if constant is None:
            why = "an initial state that is not a constant number"
            kind = t.needed(t.record.operation, inputs=2, why=why)
            states = [t.builder.made[t.record.inputs[1]]]
        else:
            kind, initial = t.needed(t.record.operation), _single(constant)
            t.use_up(1)
    else:
        kind = t.needed(t.record.operation)
    node = t.add(kind, states, timeStep=steps, defaultHiddenActivity=initial)
    node.options.pop("delayTime", None)
    source = t.builder.made.get(t.record.inputs[0])
    node.shape = t.record.shape if source is None else source.shape
    if node.shape is not None:
        node.options["rows"] = shapes.size(node.shape)
    t.builder.later.append((node, t.record.inputs[0]))
    return node


def _single(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


# ---- axes


def _static(t: Target, axis: Axis, x: Node) -> int:
    """The position of an axis of x."""
    if axis.kind != "static":
        raise t.refuse(f"the axis is {axis}")
    return axis.number if axis.number >= 0 else axis.number + len(t.shape(x))


def _swapped(t: Target, x: Node, first: int, second: int, suffix: str = "") -> Node:
    """x with two axes exchanged."""
    first, second = sorted((first, second))
    if first < 0:
        raise t.refuse("an axis before the first")
    if (first, second) == (0, 1):
        return t.add("Transpose", [x], suffix)
    kind = t.needed("TransposeDimensions", "axis1", "axis2", why=f"exchanging the axes {first + 1} and {second + 1}")
    return t.add(kind, [x], suffix, axis1=first + 1, axis2=second + 1)


def _transpose(t: Target) -> Node:
    (x,) = t.inputs(1)
    if "axes" in t.attributes:
        first, second = (_static(t, axis, x) for axis in t.attributes["axes"])
        return _alias(t) if first == second else _swapped(t, x, first, second)
    wanted = list(t.attributes["permutation"])
    current = list(range(len(wanted)))
    swaps: list[tuple[int, int]] = []
    for place, axis in enumerate(wanted):
        other_position = current.index(axis)
        if other_position != place:
            current[place], current[other_position] = current[other_position], current[place]
            swaps.append((place, other_position))
    for number, (first, second) in enumerate(swaps, 1):
        x = _swapped(t, x, first, second, "" if number == len(swaps) else f".swap{number}")
    return x if swaps else _alias(t)


def _slice(t: Target) -> Node:
    (x,) = t.inputs(1)
    parts = t.attributes["slices"]
    for number, (axis, begin, end, stride) in enumerate(parts, 1):
        if stride != 1:
            raise t.refuse(f"a stride of {stride}")
        last = number == len(parts)
        x = _sliced(t, x, _static(t, axis, x), begin, end, "" if last else f".axis{number}")
    return x


def _sliced(t: Target, x: Node, axis: int, begin: int, end: int, suffix: str) -> Node:
    if axis == 0:
        return t.add("RowSlice", [x], suffix, start=begin, count=end - begin)
    kind = t.kind("Slice", "beginIndex", "endIndex", "axis")
    if kind is not None:
        return t.add(kind, [x], suffix, beginIndex=begin, endIndex=end, axis=axis + 1)
    turned = _swapped(t, x, 0, axis, suffix + ".turned")
    rows = t.add("RowSlice", [turned], suffix + ".rows", start=begin, count=end - begin)
    return _swapped(t, rows, 0, axis, suffix)


def _row_stack(t: Target) -> Node:
    operands = t.inputs(1, len(t.record.inputs))
    axis = _static(t, t.attributes["axis"], operands[0])
    if axis == 0:
        return t.add("RowStack", operands)
    turned = [_swapped(t, x, 0, axis, f".turned{number}") for number, x in enumerate(operands, 1)]
    return _swapped(t, t.add("RowStack", turned, ".rows"), 0, axis)


def _reduce(t: Target) -> Node:
    (x,) = t.inputs(1)
    axes, reduction = t.attributes["axes"], t.attributes["reduction"]
    if t.input_record(0).operation == "UnpackSequence":
        return _reduced_steps(t, x)
    kinds = {axis.kind for axis in axes}
    if kinds in ({"all"}, {"batch"}) and reduction in _ONE_BY_ONE:
        samples = x if kinds == {"batch"} else t.add("ReduceElements", [x], ".samples", reductionOp=reduction, axis=0)
        return t.add("ReduceMinibatch", [samples], reductionOp=reduction)
    whole = kinds == {"all static"}
    if kinds == {"static"} and x.shape is not None:
        reduced = {_static(t, axis, x) for axis in axes}
        whole = all(size == 1 or place in reduced for place, size in enumerate(x.shape))
    if whole and reduction == "Sum":
        return t.add("SumColumnElements" if x.has_layout else "SumElements", [x])
    listed = ", ".join(map(str, axes))
    why = f"{reduction} over {'axis ' if kinds == {'static'} else ''}{listed}"
    if not whole and kinds != {"static"}:
        raise t.refuse(why)
    kind = t.needed("ReduceElements", "reductionOp", "axis", why=why)
    choices = kind.option("reductionOp")
    if choices is None or reduction not in choices.choices:
        raise t.refuse(why)
    if whole:
        return t.add(kind, [x], reductionOp=reduction, axis=0)
    places = sorted({_static(t, axis, x) for axis in axes})
    if len(places) > 1 and reduction not in _ONE_BY_ONE:
        raise t.refuse(why)
    keep = t.attributes["keepDimensions"]
    for number, place in enumerate(places, 1):
        suffix = "" if keep and number == len(places) else f".axis{number}"
        x = t.add(kind, [x], suffix, reductionOp=reduction, axis=place + 1)
    return x if keep else _without(t, x, set(places))


_ONE_BY_ONE = ("Sum", "LogSum", "Max", "Min", "Mean", "Prod")
"""Reductions over several axes that may be taken over one axis after the other."""


# ---- reductions over the steps of a sequence, which later programs write as those over an axis that holds the steps

_STEPS = ("Sum", "Prod", "Max", "Min", "LogSum")


def _unpacked(t: Target) -> Node:
    """The sequence itself, if everything that takes its steps as an axis reduces that axis."""
    (x,) = t.inputs(1)
    records = t.builder.records
    users = [record for record in records.records.values() if t.record.name in record.inputs]
    if any(t.record.name in names for names in records.groups.values()) or not users:
        raise t.refuse("its value", _UNPACKED)
    for user in users:
        axes = user.attributes.get("axes", ())
        last = len(axes) == 1 and axes[0].kind == "static" and axes[0].number in (-1, len(t.shape(x)))
        if user.operation != "ReduceElements" or not last:
            raise t.refuse(f"taken by {user.operation} '{user.name}'", _UNPACKED)
        if user.attributes["reduction"] not in _STEPS:
            raise t.refuse(f"{user.attributes['reduction']} over the steps and the padding", _UNPACKED)
        if user.attributes["reduction"] == "Sum" and t.attributes["padding"]:
            raise t.refuse(f"the sum of a padding of {t.attributes['padding']:g}", _UNPACKED)
    return x


_UNPACKED = "only sequence.reduce_sum, reduce_max and other reductions over the steps are possible"


def _reduced_steps(t: Target, x: Node) -> Node:
    """A recurrence over the steps, and its value in the last one."""
    reduction, shape = t.attributes["reduction"], t.shape(x)
    zeros = t.add("ReconcileDynamicAxis", [t.number(0, ".zero"), x], ".zeros", broadcast=True)
    previous_node = _previous(t, "PastValue", None, ".before", 1 if reduction == "Prod" else 0, shape)
    if reduction in ("Sum", "Prod"):
        total = t.add({"Sum": "Plus", "Prod": "ElementTimes"}[reduction], [previous_node, x], ".total")
    else:
        first = _previous(t, "PastValue", zeros, ".first", 1, (1,))
        if reduction == "LogSum":
            both = t.add("LogPlus", [previous_node, x], ".both")
        else:
            better = t.add({"Max": "Greater", "Min": "Less"}[reduction], [previous_node, x], ".better")
            both = t.add("If", [better, previous_node, x], ".both")
        total = t.add("If", [first, x, both], ".total")
    previous_node.inputs.insert(0, total)
    steps = t.add("Where", [_previous(t, "FutureValue", zeros, ".last", 1, (1,))], ".steps")
    index = t.add("PackedIndex", [total, steps], ".index")
    keep = t.attributes["keepDimensions"]
    end = t.add("GatherPacked", [index, total], ".end" if keep else "")
    return _shaped(t, end, (*shape, 1)) if keep else end


def _previous(t: Target, operation: str, x: Node | None, suffix: str, initial: float, shape: Shape) -> Node:
    """A delay by one step; that of a loop gets its input later."""
    node = t.add(operation, [] if x is None else [x], suffix, timeStep=1, defaultHiddenActivity=initial)
    node.options.pop("delayTime", None)
    node.shape, node.options["rows"] = shape, shapes.size(shape)
    return node


# ---- shapes


def _reshape(t: Target) -> Node:
    (x,) = t.inputs(1)
    begin, end, new = t.attributes["begin"], t.attributes["end"], t.attributes["newShape"]
    kind = t.kind("NewReshape", "dims", "beginAxis", "endAxis")
    if kind is not None and begin.kind == "static" and begin.number >= 0 and _is_end(end):
        last = 0 if end.kind == "end" else end.number + 1
        return t.add(kind, [x], dims=new, beginAxis=begin.number + 1, endAxis=last)
    if begin == Axis("static", 0) and end.kind == "end" and new and 0 not in new:
        return _shaped(t, x, new)
    shape = t.shape(x)
    first = _static(t, begin, x) if begin.kind != "end" else len(shape)
    last = len(shape) if end.kind == "end" else _static(t, end, x)
    if not 0 <= first <= last <= len(shape):
        raise BadFile(f"the axes {first} to {last} of Reshape '{t.record.name}' do not exist", t.record.at)
    return _shaped(t, x, (*shape[:first], *_inferred(t, new, shapes.size(shape[first:last])), *shape[last:]))


def _is_end(axis: Axis) -> bool:
    """Return whether an axis can be given without knowing how many there are."""
    return axis.kind == "end" or (axis.kind == "static" and axis.number >= 0)


def _inferred(t: Target, shape: Shape, elements: int) -> Shape:
    """A shape whose one dimension 0 is what is left of the elements."""
    missing = shape.count(0)
    known = shapes.size(d for d in shape if d)
    if missing > 1 or (missing and elements % known):
        raise BadFile(f"Reshape '{t.record.name}': {shapes.text(shape)} is not {elements} elements", t.record.at)
    return tuple(d or elements // known for d in shape)


def _shaped(t: Target, x: Node, shape: Shape) -> Node:
    """x in another shape."""
    kind = t.kind("NewReshape", "dims", "beginAxis", "endAxis")
    if kind is not None:
        return t.add(kind, [x], dims=shape or (1,), beginAxis=0, endAxis=0)
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) > 3:
        raise t.refuse(f"the shape {shapes.text(shape)}")
    width, height, channels = shapes.padded(shape, 3)
    return t.add(
        "Reshape",
        [x],
        numRows=shapes.size(shape),
        imageWidth=width,
        imageHeight=height,
        imageChannels=channels,
        imageLayout="CHW",
    )


def _legacy_reshape(t: Target) -> Node:
    (x,) = t.inputs(1)
    rows, image = t.attributes["rows"], t.attributes["image"]
    sizes = tuple(d for d in image if d)
    if not sizes:
        return t.add("Reshape", [x], numRows=rows)
    if len(sizes) != 3:
        raise t.refuse(f"the shape {shapes.text(image)}")
    return _shaped(t, x, sizes)


def _squeeze(t: Target) -> Node:
    (x,) = t.inputs(1)
    shape = t.shape(x)
    axes = {_static(t, axis, x) for axis in t.attributes["axes"]} or {i for i, d in enumerate(shape) if d == 1}
    if any(not 0 <= axis < len(shape) or shape[axis] != 1 for axis in axes):
        raise BadFile(f"Squeeze '{t.record.name}' leaves out an axis that is not 1", t.record.at)
    return _without(t, x, axes)


def _without(t: Target, x: Node, axes: set[int]) -> Node:
    """x without axes that have one element."""
    return _shaped(t, x, tuple(d for axis, d in enumerate(t.shape(x)) if axis not in axes) or (1,))


def _row_repeat(t: Target) -> Node:
    return t.add("RowRepeat", t.inputs(1), count=t.attributes["count"])


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


# ---- functions made of others


def _elu(t: Target) -> Node:
    """max(x, 0) + alpha (e^min(x, 0) - 1)."""
    (x,) = t.inputs(1)
    positive = t.add("RectifiedLinear", [x], ".positive")
    power = t.add("Exp", [t.add("Minus", [x, positive], ".negative")], ".power")
    remainder = t.add("Minus", [power, t.number(1, ".one")], ".rest")
    alpha = t.attributes["alpha"]
    if alpha != 1:
        remainder = t.add("ElementTimes", [t.number(alpha, ".alpha"), remainder], ".scaled")
    return t.add("Plus", [positive, remainder])


def _pow(t: Target) -> Node:
    """Products for a whole constant exponent, else a power."""
    x, exponents = t.inputs(2)
    exponent = t.constant(1)
    if exponent is None or exponent not in range(1, _LARGEST_POWER + 1):
        return t.add("ElementPower", [x, exponents])
    t.use_up(1)
    power = x
    for number in range(2, int(exponent) + 1):
        power = t.add("ElementTimes", [power, x], "" if number == exponent else f".power{number}")
    return t.add("Pass", [x]) if exponent == 1 else power


_LARGEST_POWER = 16
"""The largest exponent that becomes products."""


def _dropout(t: Target) -> Node:
    rate = t.attributes.get("dropoutRate")
    if rate is not None:
        note = f"Dropout '{t.record.name}' had the rate {rate:g}: give dropoutRate in the SGD section to train on"
        t.builder.records.notes.append(note)
    return t.add("Dropout", t.inputs(1))


# ---- normalisation


def _batch_normalization(t: Target) -> Node:
    operands = t.inputs(5, 6)
    options = t.attributes
    samples = options.pop("samples", 0)
    if "ownEngine" in options:
        options["engine"] = "cntk" if options.pop("ownEngine") else "cudnn"
    if len(operands) == 6:
        record = t.input_record(5)
        if record.value is None or record.value.size != 1 or record.operation != "LearnableParameter":
            raise BadFile(f"the sample count of '{t.record.name}' is not a number", record.at)
        count = float(record.value.reshape(()))
        samples = int(count) if 0 <= count < 2**63 else 0
        t.use_up(5)
    node = t.add("BatchNormalization", operands[:5], **options)
    node.samples = min(samples, 2**63)
    return node


def _sample(t: Target) -> Node:
    count, again = t.attributes["samples"], t.attributes["allowDuplicates"]
    return t.add(t.record.operation, t.inputs(1), numSamples=count, sampleWithReplacement=again)


def _recurrent_stack(t: Target) -> Node:
    attributes = dict(t.attributes)
    names = nodes.operation("OptimizedRNNStack").option("recurrentOp")
    assert names is not None
    attributes["recurrentOp"] = next(
        (name for name in names.choices if name.lower() == attributes["recurrentOp"].lower()), None
    )
    if attributes["recurrentOp"] is None:
        raise t.refuse(f"units called '{t.attributes['recurrentOp']}'")
    weights = t.inputs(2)[0]
    most = shapes.size(t.shape(weights))
    if not all(0 < attributes[key] <= most for key in ("hiddenDims", "numLayers")) or attributes["axis"] not in (-1, 2):
        raise BadFile(f"OptimizedRNNStack '{t.record.name}' has sizes or an axis that it cannot have", t.record.at)
    return t.add("OptimizedRNNStack", t.inputs(2), **attributes)


_NOT_SAID = "the format does not say how its options are written; build the criterion again after loading"


def _forward_backward(t: Target) -> Node:
    if "blank" not in t.attributes:
        raise t.refuse("its options", _NOT_SAID)
    blank, delay = t.attributes["blank"], t.attributes["delayConstraint"]
    return t.add("ForwardBackward", t.inputs(2), blankTokenId=blank, delayConstraint=delay)


def _edit_distance(t: Target) -> Node:
    attributes = t.attributes
    if "squashInputs" not in attributes:
        raise t.refuse("its options", _NOT_SAID)
    penalties = {f"{word[:3]}Pen": attributes[f"{word}Penalty"] for word in ("substitution", "deletion", "insertion")}
    options = {name: attributes[name] for name in ("squashInputs", "tokensToIgnore")}
    return t.add("EditDistanceError", t.inputs(2), **penalties, **options)


def _trace(t: Target) -> Node:
    return t.add("Trace", t.inputs(1), **t.attributes)


def _environment(t: Target) -> Node:
    name = t.attributes["propertyName"]
    if name not in PROPERTIES:
        raise t.refuse(f"the property '{name}'")
    return t.add("EnvironmentInput", t.inputs(0), propertyName=name)


_RULES: dict[str, Rule] = {
    "LearnableParameter": _parameter,
    "InputValue": _input,
    "SparseInputValue": _input,
    "DynamicAxis": _dynamic_axis,
    "Mean": _statistic,
    "InvStdDev": _statistic,
    "ConstantOp": _constant_op,
    "Times": _times,
    "TransposeTimes": _times,
    "PastValue": _delay,
    "FutureValue": _delay,
    "TransposeDimensions": _transpose,
    "UnpackSequence": _unpacked,
    "Slice": _slice,
    "RowStack": _row_stack,
    "RowRepeat": _row_repeat,
    "ReduceElements": _reduce,
    "Reshape": _reshape,
    "LegacyReshape": _legacy_reshape,
    "Squeeze": _squeeze,
    "Crop": _crop,
    "StableSigmoid": _called("Sigmoid"),
    "Pass": _alias,
    "ReconcileDynamicAxis": _reconciled,
    "Where": _where,
    "Trace": _trace,
    "ForwardBackward": _forward_backward,
    "EditDistanceError": _edit_distance,
    "OptimizedRNNStack": _recurrent_stack,
    "RandomSample": _sample,
    "RandomSampleInclusionFrequency": _sample,
    "EnvironmentInput": _environment,
    **dict.fromkeys(("Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh"), _element_function),
    "ELU": _elu,
    "Pow": _pow,
    "Dropout": _dropout,
    "BatchNormalization": _batch_normalization,
}
"""By operation; those of images are in `rules_images`."""
