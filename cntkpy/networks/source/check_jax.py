"""Runs written functions of JAX."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.source.check_data import Data, Result, Run, fed, mask_of
from cntkpy.networks.source.export import Source

Array = Any
"""An array of JAX."""

Tree = dict[str, Any]
"""Arrays, or dicts of them."""

Dense = dict[str, np.ndarray]
"""Inputs that have a gradient, by name."""


def trees_of(source: Source) -> list[Tree]:
    """Return the nested dicts of arrays that the function takes."""
    tree: Tree = {}
    for name, array in source.arrays().items():
        *outer, last = name.split(".")
        inner = tree
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = array
    return [tree] if source.file.trees == ("params",) else [tree[name] for name in source.file.trees]


def runner(source: Source) -> Run:
    """Return a runner of the function of a source."""
    loaded = types.ModuleType("exported_model")
    exec(compile(source.text, "model.py", "exec"), loaded.__dict__)
    function = loaded.__dict__[source.name]
    return lambda data, weights, gradients: computed(source, function, data, weights, gradients)


def computed(
    source: Source, function: Callable[..., Any], data: Data, weights: Mapping[str, np.ndarray], gradients: bool
) -> Result:
    """Return the results of the compiled function; arrays have the layout of the function."""
    jax: Any = importlib.import_module("jax")
    inputs = {name: fed(source, node, data.values[node.name]) for name, node in source.arguments.items()}
    options: dict[str, Any] = {name: mask_of(source, data, axis) for name, axis in source.masks.items()}
    if source.file.draws:
        options["key"] = jax.random.key(0)
    whole = {name: inputs.pop(name) for name, node in source.arguments.items() if node in source.indices}

    def outputs(trees: list[Tree], dense: Dense) -> list[Array]:
        result = function(*trees, **dense, **whole, **options)
        result = result[0] if source.file.renews else result
        return [result] if len(source.outputs) == 1 else list(result)

    def total(trees: list[Tree], dense: Dense) -> tuple[Array, list[Array]]:
        results = outputs(trees, dense)
        return sum(_weighted(source, results, weights)), results

    trees = trees_of(source)
    slopes: Any = ({}, {})
    if gradients:
        (_, results), slopes = jax.jit(jax.value_and_grad(total, (0, 1), has_aux=True))(trees, inputs)
    else:
        results = jax.jit(outputs)(trees, inputs)
    values = {node.name: np.asarray(result) for node, result in zip(source.outputs, results, strict=True)}
    made: dict[str, np.ndarray] = {source.arguments[name].name: np.asarray(slopes[1][name]) for name in slopes[1]}
    of_trees: dict[str, Tree] = dict(zip(source.file.trees, slopes[0], strict=True)) if gradients else {}
    for name in source.tensors if gradients else ():
        tree, *path = name.split(".") if "state" in source.file.trees else ("params", *name.split("."))
        slope: Any = of_trees[tree]
        for part in path:
            slope = slope[part]
        made[f"/{name}"] = np.asarray(slope)
    return Result(values, made, {})


def _weighted(source: Source, results: list[Array], weights: Mapping[str, np.ndarray]) -> list[Array]:
    """Return the sums of outputs times their weights."""
    sums: list[Array] = []
    for node, value in zip(source.outputs, results, strict=True):
        weight = np.asarray(fed(source, node, weights[node.name]))
        if node.has_layout and source.graph.along_time and node.axis != ONE:
            steps = min(value.shape[1], weight.shape[1])
            value, weight = value[:, :steps], weight[:, :steps]
        sums.append((value.reshape(weight.shape) * weight).sum())
    return sums
