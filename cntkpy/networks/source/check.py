"""The written module compared with the network: values and gradients, on random data and on given data."""

from __future__ import annotations

import importlib
import importlib.util
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for
from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.compile.differentiable import check_gradient
from cntkpy.networks.compile.evaluate import compile_network, own_mask
from cntkpy.networks.graph.axes import ONE, equal_lengths
from cntkpy.networks.graph.network import Node
from cntkpy.networks.onnx import ours
from cntkpy.networks.source.export import Source
from cntkpy.networks.source.values import dims_of

VALUES, GRADIENTS = 1e-5, 1e-4
"""Bounds of the differences of values and gradients, relative to the largest of them if that is larger than 1."""

WITHOUT_GRADIENT = 1e30
"""Gradients beyond this are those of functions where they have none."""

OF_LABELS = ("CrossEntropyWithSoftmax", "CrossEntropy", "ClassificationError")
"""Criteria whose first operand is one-hot, or sums to 1."""

STEPS, SEQUENCES = (1, 5), 3


class Difference(NamedTuple):
    """Distance of two arrays.

    Attributes:
        name: of the output, or of what the gradient is of.
        largest: the largest difference, relative to the largest element if that is larger than 1.
        allowed: whether it is within the bound.
    """

    name: str
    largest: float
    allowed: bool


def installed() -> bool:
    """Return whether PyTorch and JAX are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "jax"))


def torch() -> Any:
    """Import PyTorch.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as problem:
        message = f"comparing the source with the network needs PyTorch, which cannot be imported: {problem}"
        raise UserError("MissingPackage", message, hint=f"install it: {command_for(['torch'])}") from None


def module_of(source: Source) -> Any:
    """Return the module of PyTorch that the source describes, with its weights."""
    loaded = types.ModuleType("exported_model")
    exec(compile(source.text, "model.py", "exec"), loaded.__dict__)
    module = getattr(loaded, source.name)()
    module.load_state_dict({name: torch().from_numpy(array.copy()) for name, array in source.arrays().items()})
    return module.eval()


class Data(NamedTuple):
    """A minibatch.

    Attributes:
        values: by name of the input node, `(steps, sequences, ...)`.
        lengths: by time axis, the steps of each sequence.
    """

    values: Mapping[str, np.ndarray]
    lengths: Mapping[str, np.ndarray]


def random_data(source: Source, seed: int = 1) -> Iterator[Data]:
    """Yield minibatches of normal numbers, one-hot vectors for sparse inputs and labels."""
    random, graph = np.random.default_rng(seed), source.graph
    labels = {node.name for node in graph.network.groups["label"]}
    labels |= {node.input(0).name for node in graph.users if node.operation in OF_LABELS}
    tied, classes = _tied_axes(source), _classes(source)
    for steps in STEPS if graph.along_time else (1,):
        lengths: dict[str, np.ndarray] = {}
        values: dict[str, np.ndarray] = {}
        for node in graph.plan.inputs:
            axis = str(node.axis)
            chief = tied.get(axis, axis)
            entry = 1 if ONE in (node.axis, chief) else steps
            if axis not in lengths and node.axis != ONE and graph.along_time:
                if chief not in lengths:
                    lengths[chief] = np.array([entry, *random.integers(1, entry + 1, SEQUENCES - 1)])
                lengths[axis] = lengths[chief]
            array = random.normal(size=(entry, SEQUENCES, *reversed(node.shape or ())))
            if node.name in classes:
                array = _word_labels(random, array.shape, *classes[node.name])
            elif node.operation == "SparseInputValue" or node.name in labels:
                flat = np.zeros_like(array).reshape(entry, SEQUENCES, -1)
                places = random.integers(0, flat.shape[-1], (entry, SEQUENCES, 1))
                np.put_along_axis(flat, places, 1, axis=2)
                array = flat.reshape(array.shape)
            values[node.name] = array.astype(graph.network.dtype)
        yield Data(values, lengths)


def _classes(source: Source) -> dict[str, tuple[int, int]]:
    """Return, for labels of criteria with word classes, the numbers of words and of classes."""
    return {
        node.input(0).name: ((node.input(2).shape or (1, 1))[1], (node.input(3).shape or (1,))[0])
        for node in source.graph.users
        if node.operation == "ClassBasedCrossEntropyWithSoftmax"
    }


def _word_labels(random: np.random.Generator, shape: tuple[int, ...], words: int, classes: int) -> np.ndarray:
    """Return labels: word, class, first word of the class, word behind the last one of the class."""
    result = np.zeros(shape)
    word = random.integers(0, words, shape[:2])
    bounds = np.linspace(0, words, classes + 1).astype(int)
    group = np.searchsorted(bounds, word, side="right") - 1
    for place, number in enumerate((word, group, bounds[group], bounds[group + 1])):
        result.reshape(*shape[:2], -1)[..., place] = number
    return result


def _tied_axes(source: Source) -> dict[str, str]:
    """Return, for time axes whose sequences have the lengths of another one, that one."""
    network = source.graph.filled()
    below = network.below([network.find(node.name) for node in source.outputs])
    result: dict[str, str] = {}
    for _, first, second in equal_lengths(below):
        axes = sorted({str(first.axis), str(second.axis)}, key=lambda axis: (axis != ONE, axis))
        for axis in axes:
            result[axis] = result.get(axes[0], axes[0])
    return result


class Result(NamedTuple):
    """Values and gradients, by the names of outputs, inputs and parameters."""

    values: dict[str, np.ndarray]
    gradients: dict[str, np.ndarray]
    masks: dict[str, np.ndarray | None]


def expected(source: Source, data: Data, seed: int = 3, gradients: bool = True) -> tuple[Result, dict[str, np.ndarray]]:
    """Return what the network computes, and the weights of outputs whose sum was differentiated."""
    jax: Any = importlib.import_module("jax")
    network = source.graph.filled()
    names = [node.name for node in source.outputs]
    batch = ours.minibatch(network, names, data.values, data.lengths)
    function = compile_network(network, names)
    dense = {name: array for name, array in data.values.items() if name not in {node.name for node in source.indices}}
    parameters = {
        node.name: np.asarray(node.value)
        for node in network.below([network.find(name) for name in names])
        if node.is_parameter and node.trainable
    }

    def run(inputs: Any, weights: Any) -> Any:
        entry = Batch({**data.values, **inputs}, batch.mask, batch.to_start, batch.to_end, batch.axes)
        return function(weights, {}, entry)[0]

    if gradients:
        result, back = jax.vjp(run, dense, parameters)
    else:
        result, back = run(dense, parameters), None
    values = {name: np.asarray(result[name]) for name in names}
    masks = {name: own_mask(network.find(name), result[name], batch, result) for name in names}
    plain_masks = {name: None if mask is None else np.asarray(mask) for name, mask in masks.items()}
    random = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}
    for name in names:
        weight = random.normal(size=values[name].shape)
        mask = plain_masks[name]
        if mask is not None:
            weight[~mask] = 0
        weights[name] = weight.astype(values[name].dtype)
    made: dict[str, np.ndarray] = {}
    if back is not None:
        zeros = {key: np.zeros(np.shape(value), _tangent(value)) for key, value in result.items()}
        by_input, by_parameter = back({**zeros, **weights})
        made = {name: np.asarray(array) for name, array in {**by_input, **by_parameter}.items()}
    return Result(values, made, plain_masks), weights


def _tangent(value: Any) -> Any:
    jax: Any = importlib.import_module("jax")
    array = np.asarray(value)
    return array.dtype if np.issubdtype(array.dtype, np.floating) else jax.dtypes.float0


def fed(source: Source, node: Node, array: np.ndarray) -> np.ndarray:
    """Return `(steps, sequences, ...)` of a node as the module has it."""
    if not node.has_layout:
        return array.reshape(dims_of(node))
    if node in source.indices:
        array = array.argmax(-1)
        return np.ascontiguousarray(array.swapaxes(0, 1))
    if not source.graph.along_time or node.axis == ONE:
        return array[0].reshape(array.shape[1], *dims_of(node))
    dims = array.shape[2:] if node.operation == "AttentionWeights" else dims_of(node)
    return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(array.shape[1], array.shape[0], *dims)


def computed(
    source: Source, module: Any, data: Data, weights: Mapping[str, np.ndarray], gradients: bool = True
) -> Result:
    """Return what the module computes; arrays are laid out as the module has them."""
    t = torch()
    inputs = {
        name: t.from_numpy(fed(source, node, data.values[node.name]).copy()) for name, node in source.arguments.items()
    }
    for name, node in source.arguments.items():
        if node not in source.indices and gradients:
            inputs[name].requires_grad_(True)
    masks = {name: t.from_numpy(mask_of(source, data, axis)) for name, axis in source.masks.items()}
    module.zero_grad()
    result = module(**inputs, **masks)
    results: list[Any] = [result] if len(source.outputs) == 1 else list(result)
    outputs = dict(zip((node.name for node in source.outputs), results, strict=True))
    made: dict[str, np.ndarray] = {}
    if gradients:
        total: Any = 0
        for node in source.outputs:
            weight = t.from_numpy(np.asarray(fed(source, node, weights[node.name])).copy())
            value = outputs[node.name]
            if node.has_layout and source.graph.along_time and node.axis != ONE:
                steps = min(value.shape[1], weight.shape[1])
                value, weight = value[:, :steps], weight[:, :steps]
            total = total + (value.reshape(weight.shape) * weight).sum()
        if total.requires_grad:
            total.backward()
        for name, node in source.arguments.items():
            if inputs[name].grad is not None:
                made[node.name] = inputs[name].grad.numpy()
        for name, parameter in module.named_parameters():
            made[f"/{name}"] = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
    return Result({name: value.detach().numpy() for name, value in outputs.items()}, made, {})


def mask_of(source: Source, data: Data, axis: str) -> np.ndarray:
    """Return where the sequences of an axis have steps, `(sequences, steps)`."""
    node = next(node for node in source.graph.plan.inputs if str(node.axis) == axis)
    steps, count = (int(size) for size in data.values[node.name].shape[:2])
    numbers: Any = np.arange(steps)
    ends: Any = data.lengths.get(axis)
    if ends is None:
        return np.ones((count, steps), bool)
    return np.less(numbers[None], np.asarray(ends)[:, None])


def compare(source: Source, module: Any, data: Data, gradients: bool = True) -> list[Difference]:
    """Return the differences of values, and of gradients by inputs and by parameters."""
    wanted, weights = expected(source, data, gradients=gradients)
    got = computed(source, module, data, weights, gradients)
    result: list[Difference] = []
    drawn = any(node.kind.random and node.operation != "Dropout" for node in source.graph.users)
    if drawn:  # other numbers in each
        return [
            Difference(node.name, 0.0, got.values[node.name].size == fed(source, node, wanted.values[node.name]).size)
            for node in source.outputs
        ]
    for node in source.outputs:
        mask = wanted.masks[node.name]
        ours_, theirs = fed(source, node, wanted.values[node.name]), got.values[node.name]
        if node.has_layout and source.graph.along_time and node.axis != ONE:
            steps = min(ours_.shape[1], theirs.shape[1])
            ours_, theirs = ours_[:, :steps], theirs[:, :steps]
            if mask is not None:
                inside = mask.T[:, :steps]
                ours_, theirs = ours_[inside], theirs[inside]
        result.append(difference(node.name, theirs.reshape(ours_.shape), ours_, VALUES))
    if not gradients:
        return result
    for node in source.arguments.values():
        if node.name in wanted.gradients and node not in source.indices:
            theirs = got.gradients.get(node.name)
            ours_ = fed(source, node, wanted.gradients[node.name])
            if source.graph.along_time and node.axis != ONE and str(node.axis) in data.lengths:
                inside = mask_of(source, data, str(node.axis))
                ours_ = ours_[inside]
                theirs = None if theirs is None else theirs[inside]
            theirs = np.zeros_like(ours_) if theirs is None else theirs
            result.append(difference(f"gradient by {node.name}", theirs, ours_, GRADIENTS))
    return [*result, *_of_parameters(source, wanted, got)]


def _of_parameters(source: Source, wanted: Result, got: Result) -> Iterator[Difference]:
    """Yield the differences of gradients by parameters of the module."""
    for name, tensor in source.tensors.items():
        theirs, joined = got.gradients.get(f"/{name}"), tensor.joined
        if theirs is None:
            continue
        if joined is not None and joined.sources and all(item.name in wanted.gradients for item in joined.sources):
            known = joined.known
            entry = joined.arrange([wanted.gradients[item.name] for item in joined.sources])[known]
            yield difference(f"gradient by {name}", theirs[known], entry, GRADIENTS)
        elif tensor.source is not None and tensor.arrange is not None and tensor.source.name in wanted.gradients:
            entry = tensor.arrange(wanted.gradients[tensor.source.name])
            yield difference(f"gradient by {name}", theirs, entry, GRADIENTS)


def difference(name: str, got: np.ndarray, wanted: np.ndarray, bound: float) -> Difference:
    """Return how far two arrays are apart; elements that are equal, infinite or not numbers in both, are not."""
    if got.shape != wanted.shape:
        return Difference(name, float("inf"), False)
    mine, theirs = np.asarray(wanted, np.float64), np.asarray(got, np.float64)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    if bound == GRADIENTS:  # of functions where they have none, as a root below 0
        same |= ~(np.abs(mine) < WITHOUT_GRADIENT)
        mine = np.where(np.abs(mine) < WITHOUT_GRADIENT, mine, 0)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(mine - theirs))
    finite = np.abs(mine[np.isfinite(mine)])
    largest = float(np.max(apart, initial=0)) / max(1.0, float(np.max(finite, initial=0)))
    return Difference(name, largest, largest <= bound)


def check(source: Source, data: Iterable[Data] = ()) -> list[Difference]:
    """Return, for each output and gradient, the largest difference on random data and on given data.

    Args:
        source: the module.
        data: minibatches beside random ones.

    Raises:
        UserError: PyTorch or JAX is not installed.
    """
    ours.require_jax()
    torch()
    module = module_of(source)
    gradients = _differentiable(source)
    result: dict[str, Difference] = {}
    for minibatch in (*random_data(source), *data):
        for item in compare(source, module, minibatch, gradients):
            leading = result.get(item.name, item)
            result[item.name] = Difference(
                item.name, max(leading.largest, item.largest), leading.allowed and item.allowed
            )
    return list(result.values())


def _differentiable(source: Source) -> bool:
    """Return whether all outputs have gradients."""
    network = source.graph.filled()
    try:
        for node in source.outputs:
            check_gradient(network, network.find(node.name))
    except UserError:
        return False
    return True


__all__ = ["Data", "Difference", "check", "compare", "installed", "module_of", "random_data"]
