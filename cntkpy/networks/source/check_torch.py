"""Runs a written module of PyTorch."""

from __future__ import annotations

import importlib
import types
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.source.check_data import Data, Result, Run, fed, mask_of
from cntkpy.networks.source.export import Source


def torch() -> ModuleType:
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
    t, is_double = torch(), source.graph.network.precision == "double"
    module = getattr(loaded, source.name)().to(t.float64 if is_double else t.float32)
    module.load_state_dict({name: t.from_numpy(array.copy()) for name, array in source.arrays().items()})
    return module.eval()


def runner(source: Source) -> Run:
    """Return a runner of the module of a source.

    Raises:
        UserError: PyTorch is not installed.
    """
    torch()
    module = module_of(source)
    return lambda data, weights, gradients: computed(source, module, data, weights, gradients)


def computed(
    source: Source, module: Any, data: Data, weights: Mapping[str, np.ndarray], gradients: bool = True
) -> Result:
    """Return the results of the module; arrays have the layout of the module."""
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
