"""Written source compared with the network: values and gradients, on random data and on given data."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import Array
from cntkpy.networks.compile.differentiable import check_gradient
from cntkpy.networks.compile.evaluate import PROBLEM, compile_network, network_state, own_mask
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.onnx import ours
from cntkpy.networks.source import check_jax, check_torch
from cntkpy.networks.source.check_data import Data, Result, Run, fed, mask_of, random_data
from cntkpy.networks.source.export import Source

if TYPE_CHECKING:
    from jax.typing import ArrayLike
    from numpy.typing import DTypeLike

VALUES, GRADIENTS = 1e-5, 1e-4
"""Bounds of the differences of values and gradients, relative to the largest of them if that is larger than 1."""

LENGTHS = (1, 2, 3, 5, 9, 17)
"""Steps of the shortest sequences that are tried."""

WITHOUT_GRADIENT = 1e30
"""Gradients beyond this are those of functions where they have none."""


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


def installed(framework: str) -> bool:
    """Return whether JAX is installed, and the framework of a source."""
    needed = ("torch", "jax") if framework == "pytorch" else ("jax",)
    return all(importlib.util.find_spec(name) is not None for name in needed)


def expected(source: Source, data: Data, seed: int = 3, gradients: bool = True) -> tuple[Result, dict[str, np.ndarray]]:
    """Return the results of the network, and the weights of outputs whose sum was differentiated."""
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

    def run(inputs: Mapping[str, ArrayLike], weights: Mapping[str, ArrayLike]) -> dict[str, Array]:
        entry = Batch({**data.values, **inputs}, batch.mask, batch.to_start, batch.to_end, batch.axes)
        return function(weights, {}, entry)[0]

    def slopes(
        inputs: Mapping[str, ArrayLike], weights: Mapping[str, ArrayLike], directions: Mapping[str, Array]
    ) -> dict[str, Array]:
        values, back = jax.vjp(run, inputs, weights)
        zeros = {key: np.zeros(value.shape, _tangent(value)) for key, value in values.items()}
        by_input, by_parameter = back({**zeros, **directions})
        return {**by_input, **by_parameter}

    # One program compiles faster than one for each operation.
    result = jax.jit(run)(dense, parameters)
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
    if gradients:
        made = {name: np.asarray(array) for name, array in jax.jit(slopes)(dense, parameters, weights).items()}
    return Result(values, made, plain_masks), weights


def _tangent(value: Array) -> DTypeLike:
    jax: Any = importlib.import_module("jax")
    return value.dtype if np.issubdtype(value.dtype, np.floating) else jax.dtypes.float0


def _computed(run: Run, data: Data, weights: Mapping[str, np.ndarray], gradients: bool) -> Result:
    try:
        return run(data, weights, gradients)
    except UserError:
        raise
    except Exception as problem:  # of written code anything may come
        message = f"the source cannot be computed: {type(problem).__name__}: {problem}"
        raise UserError("NotSupported", message, hint="--no-check writes it; please report the network") from problem


def compare(source: Source, run: Run, data: Data, gradients: bool = True) -> list[Difference]:
    """Return the differences of values, and of gradients by inputs and by parameters."""
    wanted, weights = expected(source, data, gradients=gradients)
    got = _computed(run, data, weights, gradients)
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
    """Yield the differences of gradients by parameters of the source."""
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
    """Return the difference of two arrays; elements that are equal, infinite or not numbers in both count as 0."""
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
    run = (check_torch if source.framework == "pytorch" else check_jax).runner(source)
    gradients = _differentiable(source)
    result: dict[str, Difference] = {}
    for minibatch in (*random_data(source, shortest=_shortest(source)), *data):
        for item in compare(source, run, minibatch, gradients):
            leading = result.get(item.name, item)
            result[item.name] = Difference(
                item.name, max(leading.largest, item.largest), leading.allowed and item.allowed
            )
    return list(result.values())


def _shortest(source: Source) -> int:
    """Return how many steps sequences need for nodes that select steps to keep one; 1 where no number does."""
    network = source.graph.filled()
    names = [node.name for node in source.outputs]
    if not any(node.kind.time.keeps_steps for node in network.below([network.find(name) for name in names])):
        return 1
    function = compile_network(network, names)
    for shortest in LENGTHS:
        minibatch = next(random_data(source, shortest=shortest))
        _, state = function(
            {}, network_state(network), ours.minibatch(network, names, minibatch.values, minibatch.lengths)
        )
        if not any(name.endswith(PROBLEM) and np.any(np.asarray(entry)) for name, entry in state.items()):
            return shortest
    return 1


def _differentiable(source: Source) -> bool:
    """Return whether all outputs have gradients."""
    network = source.graph.filled()
    try:
        for node in source.outputs:
            check_gradient(network, network.find(node.name))
    except UserError:
        return False
    return True


__all__ = ["Data", "Difference", "check", "compare", "installed", "random_data"]
