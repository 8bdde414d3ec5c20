"""Elementwise functions as tensor code."""

from __future__ import annotations

from collections.abc import Callable

from cntkpy.networks.nodes.elementwise.kinds import FUNCTIONS
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, SUM, NotExpressible, Value, dims_of, number


def text_of(value: Value) -> str:
    """Return the text of an operand, that of a constant of one element as a number."""
    return value.text if value.number is None else number(value.number)


def _function(name: str) -> Rule:
    return lambda use: use.value(f"{name}({use.values[0].text})", use.values[0].dims)


def _operator(symbol: str, level: int, associative: bool) -> Rule:
    def rule(use: Use) -> Value:
        left, right = use.aligned()
        texts = left.at(level), right.at(level if associative else level + 1)
        return use.value(f"{texts[0]} {symbol} {texts[1]}", use.broadcast([left, right]), level)

    return rule


def _comparison(symbol: str) -> Rule:
    def rule(use: Use) -> Value:
        left, right = use.aligned()
        text = f"({left.at(SUM)} {symbol} {right.at(SUM)})"
        return use.value(f"{text}.to({_dtype(use)})", use.broadcast([left, right]))

    return rule


def _dtype(use: Use) -> str:
    """The element type of data, in the code: that of an operand which is a tensor."""
    tensor = next((value for value in use.values if value.number is None), None)
    return f"{tensor.atom}.dtype" if tensor is not None and tensor.is_name else "torch.get_default_dtype()"


def _times(use: Use) -> Value:
    """A product; a column of scalars in front is a factor."""
    left, right = use.aligned()
    if left.number is not None:
        left, right = right, left
    return use.value(f"{left.at(PRODUCT)} * {right.at(PRODUCT)}", use.broadcast([left, right]), PRODUCT)


def _diag_times(use: Use) -> Value:
    """The columns of a sample are its rows here."""
    vector, matrix = use.flat(0), use.values[1]
    rank = len(matrix.dims)
    if vector.lead and rank > 1:
        vector = Value(f"{vector.atom}[{', '.join([':'] * vector.lead + ['None'] * (rank - 1))}]", vector.lead, ())
    return use.value(f"{vector.at(PRODUCT)} * {matrix.at(PRODUCT)}", matrix.dims, PRODUCT)


def _negate(use: Use) -> Value:
    return use.value(f"-{use.values[0].at(PRODUCT)}", use.values[0].dims, PRODUCT)


def _log(use: Use) -> Value:
    return use.value(f"{use.helper('log')}({use.values[0].text})", use.values[0].dims)


def _reciprocal(use: Use) -> Value:
    return use.value(f"{use.helper('reciprocal')}({use.values[0].text})", use.values[0].dims)


def _sqrt(use: Use) -> Value:
    return use.value(f"{use[0]}.clamp(min=0).sqrt()", use.values[0].dims)


def _power(use: Use) -> Value:
    base, exponent = use.aligned()
    dims = use.broadcast([base, exponent])
    if exponent.number is not None:
        value = exponent.number
        text = str(int(value)) if value.is_integer() else number(value)
        return use.value(f"{base.atom}.pow({text})", dims)
    return use.value(f"torch.pow({text_of(base)}, {exponent.text})", dims)


_ELEMENT_FUNCTIONS = {"erf": "torch.erf", "round": "torch.round"}


def _element_function(use: Use) -> Value:
    name = str(use.options["function"])
    if name not in FUNCTIONS:
        raise NotExpressible(f"its function is '{name}'")
    return use.value(f"{_ELEMENT_FUNCTIONS.get(name, f'torch.{name}')}({use.values[0].text})", use.values[0].dims)


def _log_plus(use: Use) -> Value:
    left, right = (_tensor(value) for value in use.aligned())
    name = "torch.logaddexp" if use.options.get("exact") else use.helper("log_plus")
    return use.value(f"{name}({left}, {right})", use.broadcast(use.aligned()))


def _tensor(value: Value) -> str:
    return value.text if value.number is None else f"torch.tensor({number(value.number)})"


def _clip(use: Use) -> Value:
    lowest, highest, x = use.aligned()
    dims = use.broadcast([lowest, highest, x])
    bounds = text_of(lowest), text_of(highest)
    if lowest.number is not None and highest.number is not None and lowest.number <= highest.number:
        return use.value(f"{x.atom}.clamp({', '.join(bounds)})", dims)
    return use.value(f"{use.helper('clip')}({x.text}, {', '.join(bounds)})", dims)


def _if(use: Use) -> Value:
    condition, chosen, operand = use.aligned()
    texts = [text_of(value) for value in (chosen, operand)]
    dims = use.broadcast([condition, chosen, operand])
    return use.value(f"torch.where({condition.at(SUM)} != 0, {texts[0]}, {texts[1]})", dims)


def over_sample(function: Callable[[Use, Value], str]) -> Rule:
    """Make a rule of a function along the last axis, of a sample with all its elements on one axis.

    The columns of a parameter are separate.
    """

    def rule(use: Use) -> Value:
        value = use.values[0]
        if not value.lead or len(value.dims) <= 1:
            return use.value(function(use, value), value.dims)
        flat = use.flat()
        joined = use.value(function(use, flat), flat.dims)
        return use.reshaped(joined, dims_of(use.node))

    return rule


RULES: dict[str, Rule] = {
    "Plus": _operator("+", SUM, True),
    "Minus": _operator("-", SUM, False),
    "ElementTimes": _times,
    "DiagTimes": _diag_times,
    "Negate": _negate,
    "Reciprocal": _reciprocal,
    "Abs": _function("torch.abs"),
    "Sqrt": _sqrt,
    "Exp": _function("torch.exp"),
    "Log": _log,
    "ElementPower": _power,
    "ElementFunction": _element_function,
    "LogPlus": _log_plus,
    "Sigmoid": _function("torch.sigmoid"),
    "Tanh": _function("torch.tanh"),
    "RectifiedLinear": _function("torch.relu"),
    "Cosine": _function("torch.cos"),
    "Sin": _function("torch.sin"),
    "StopGradient": lambda use: use.value(f"{use[0]}.detach()", use.values[0].dims),
    "Floor": _function("torch.floor"),
    "Clip": _clip,
    "If": _if,
    "Less": _comparison("<"),
    "LessEqual": _comparison("<="),
    "Greater": _comparison(">"),
    "GreaterEqual": _comparison(">="),
    "Equal": _comparison("=="),
    "NotEqual": _comparison("!="),
    "Dropout": lambda use: use.values[0],
    "Softmax": over_sample(lambda use, value: f"torch.softmax({value.text}, dim=-1)"),
    "LogSoftmax": over_sample(lambda use, value: f"torch.log_softmax({value.text}, dim=-1)"),
    "Hardmax": over_sample(lambda use, value: f"{use.helper('hardmax')}({value.text})"),
}

__all__ = ["RULES", "over_sample", "text_of"]
