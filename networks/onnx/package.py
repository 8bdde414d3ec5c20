"""The packages `onnx` and `onnxruntime`, imported where they are needed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from cntk_config.base.diagnostics import UserError


def onnx() -> Any:
    """The package `onnx`.

    Raises:
        UserError: it is not installed.
    """
    return _package("onnx", "ONNX models need the package onnx")


def onnxruntime() -> Any:
    """The package `onnxruntime`.

    Raises:
        UserError: it is not installed.
    """
    return _package("onnxruntime", "checking an ONNX model needs the package onnxruntime")


def has_onnxruntime() -> bool:
    """Whether the package `onnxruntime` is installed."""
    return importlib.util.find_spec("onnxruntime") is not None


def _package(name: str, why: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        message = f"{why}, which cannot be imported: {problem}"
        raise UserError("MissingPackage", message, hint="pip install 'cntkpy[onnx]'") from None
