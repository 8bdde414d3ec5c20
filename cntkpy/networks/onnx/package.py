"""The packages `onnx` and `onnxruntime`, imported where they are needed."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install


def onnx() -> ModuleType:
    """Return the package `onnx`.

    Raises:
        UserError: it is not installed.
    """
    return _package("onnx", "ONNX models need the package onnx")


def onnxruntime() -> ModuleType:
    """Return the package `onnxruntime`.

    Raises:
        UserError: it is not installed.
    """
    return _package("onnxruntime", "checking an ONNX model needs the package onnxruntime")


def require_jax() -> None:
    """Make sure that values can be computed here.

    Raises:
        UserError: JAX is not installed.
    """
    _package("jax", "computing values of a network needs JAX", "train")


def can_compare() -> bool:
    """Return whether onnxruntime and JAX are installed, so that both can compute a model."""
    return all(importlib.util.find_spec(name) is not None for name in ("onnxruntime", "jax"))


def _package(name: str, why: str, extra: str = "onnx") -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        message = f"{why}, which cannot be imported: {problem}"
        raise UserError("MissingPackage", message, hint=how_to_install(extra)) from None
