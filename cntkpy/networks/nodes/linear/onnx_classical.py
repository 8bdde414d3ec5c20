"""Operators of ai.onnx.ml that are linear: what skl2onnx writes for scalers, linear models and their probabilities."""

from __future__ import annotations

import numpy as np

from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.model import Unreadable
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Unusable, Value

DOMAIN = "ai.onnx.ml."


def _vector(use: Use, name: str) -> np.ndarray:
    return np.array([float(number) for number in use.get(name) or ()], np.float64)


def _rows(use: Use) -> Data:
    """Return the operand: a vector for each sample."""
    x = use.data()
    if len(x.dims) != 1 or x.axes[-1:] != x.dims:
        raise Unusable(f"its operand must have the axes batch and elements, not {list(x.axes)}")
    return x


def scaled(use: Use) -> list[Value]:
    """Scaler: (x - offset) * scale."""
    x, offset, scale = _rows(use), _vector(use, "offset"), _vector(use, "scale")
    if any(array.size not in (1, x.dims[0]) for array in (offset, scale)):
        raise Unusable(f"its offsets and scales are not those of {x.dims[0]} elements")
    return [use.part("Mul", use.part("Sub", x, Array(offset)), Array(scale))]


def normalised(use: Use) -> list[Value]:
    """Normalizer: each vector divided by its norm."""
    x, kinds = _rows(use), {"L1": "ReduceL1", "L2": "ReduceL2", "MAX": "ReduceMax"}
    kind = kinds.get(use.get("norm", "MAX"))
    if kind is None:
        raise Unusable(f"norm = {use.get('norm')} is not supported")
    size = use.part(kind, x, Array(np.array([len(x.axes) - 1])), keepdims=1)
    return [use.part("Div", x, size)]


def _transformed(use: Use, x: Value) -> Value:
    how = use.get("post_transform", "NONE")
    kind = {"NONE": "", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}.get(how)
    if kind is None:
        raise Unusable(f"post_transform = {how} is not supported")
    return use.part(kind, x, **({"axis": -1} if kind == "Softmax" else {})) if kind else x


def _linear(use: Use, count: int) -> Value:
    """Return the product with the matrix of coefficients, and the intercepts."""
    x, matrix, shift = _rows(use), _vector(use, "coefficients"), _vector(use, "intercepts")
    if matrix.size != count * x.dims[0] or shift.size not in (0, count):
        raise Unusable(
            f"{matrix.size} coefficients and {shift.size} intercepts for {count} results of {x.dims[0]} elements"
        )
    product = use.part("MatMul", x, Array(matrix.reshape(count, -1).T))
    return use.part("Add", product, Array(shift)) if shift.size else product


def regression(use: Use) -> list[Value]:
    """LinearRegressor."""
    return [_transformed(use, _linear(use, use.integer("targets", 1)))]


def classification(use: Use) -> list[Value | Unreadable]:
    """LinearClassifier: the scores of its classes; the label is none."""
    classes = len(use.get("classlabels_ints") or ()) or len(use.get("classlabels_strings") or ())
    intercepts = max(1, len(use.get("intercepts") or ()))
    scores = _linear(use, intercepts)
    if intercepts == 1 and classes == 2:
        if use.get("post_transform", "NONE") == "LOGISTIC":
            positive = use.part("Sigmoid", scores)
            negative = use.part("Sub", Array(np.array(1.0)), positive)
        elif use.get("post_transform", "NONE") == "NONE":
            positive, negative = scores, use.part("Neg", scores)
        else:
            raise Unusable(
                "of two classes with one row of coefficients only post_transform LOGISTIC and NONE are supported"
            )
        scores = use.part("Concat", negative, positive, axis=-1)
    else:
        scores = _transformed(use, scores)
    return [Unreadable("the label of a class is no value of a network; use the scores"), scores]


def plain(use: Use) -> list[Value]:
    """ZipMap: the numbers without the names of their classes."""
    return [use.value(0)]


RULES: dict[str, Rule] = {
    DOMAIN + "Scaler": scaled,
    DOMAIN + "Normalizer": normalised,
    DOMAIN + "LinearRegressor": regression,
    DOMAIN + "LinearClassifier": classification,  # type: ignore[dict-item]
    DOMAIN + "ZipMap": plain,
}
