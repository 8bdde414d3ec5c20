"""Elementwise functions as tensor code."""

from __future__ import annotations

from collections.abc import Callable

from cntkpy.networks.nodes.elementwise.kinds import FUNCTIONS
from cntkpy.networks.nodes.source_support.dialect import Spellings, both
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, SUM, NotExpressible, Value, dims_of, number


def text_of(value: Value) -> str:
    """Return the text of an operand, that of a constant of one element as a number."""
    return value.text if value.number is None else number(value.number)


def _function(name: str) -> Rule:
    return lambda use: use.value(use.say(name, use.values[0]), use.values[0].dims)


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
        return use.value(use.say("cast", text, _dtype(use)), use.broadcast([left, right]))

    return rule


def _dtype(use: Use) -> str:
    """Return the element type of data, in the code: that of an operand which is a tensor."""
    tensor = next((value for value in use.values if value.number is None), None)
    return f"{tensor.atom}.dtype" if tensor is not None and tensor.is_name else use.say("default_dtype")


def _times(use: Use) -> Value:
    """Return a product; a column of scalars in front is a factor."""
    left, right = use.aligned()
    if left.number is not None:
        left, right = right, left
    return use.value(f"{left.at(PRODUCT)} * {right.at(PRODUCT)}", use.broadcast([left, right]), PRODUCT)


def _diag_times(use: Use) -> Value:
    """Return the columns of a sample are its rows here."""
    vector, matrix = use.flat(0), use.values[1]
    rank = len(matrix.dims)
    if vector.lead and rank > 1:
        vector = Value(f"{vector.atom}[{', '.join([':'] * vector.lead + ['None'] * (rank - 1))}]", vector.lead, ())
    return use.value(f"{vector.at(PRODUCT)} * {matrix.at(PRODUCT)}", matrix.dims, PRODUCT)


def _negate(use: Use) -> Value:
    return use.value(f"-{use.values[0].at(PRODUCT)}", use.values[0].dims, PRODUCT)


def _power(use: Use) -> Value:
    base, exponent = use.aligned()
    dims = use.broadcast([base, exponent])
    if exponent.number is not None:
        value = exponent.number
        text = str(int(value)) if value.is_integer() else number(value)
        return use.value(use.say("power", base, text), dims)
    return use.value(use.say("power_of", text_of(base), exponent), dims)


def _element_function(use: Use) -> Value:
    name = str(use.options["function"])
    if name not in FUNCTIONS:
        raise NotExpressible(f"its function is '{name}'")
    return use.value(use.say("element_function", name, use.values[0]), use.values[0].dims)


def _torch_function(use: Use, name: str, x: Value) -> str:
    return f"torch.{name}({x.text})"


def _jax_function(use: Use, name: str, x: Value) -> str:
    return f"jax.scipy.special.erf({x.text})" if name == "erf" else f"jnp.{FUNCTIONS[name]}({x.text})"


def _log_plus(use: Use) -> Value:
    left, right = (
        value if value.number is None else use.say("tensor", number(value.number)) for value in use.aligned()
    )
    word = "log_of_sum" if use.options.get("exact") else "log_plus"
    return use.value(use.say(word, left, right), use.broadcast(use.aligned()))


def _clip(use: Use) -> Value:
    lowest, highest, x = use.aligned()
    dims = use.broadcast([lowest, highest, x])
    bounds = text_of(lowest), text_of(highest)
    if lowest.number is not None and highest.number is not None and lowest.number <= highest.number:
        return use.value(use.say("clamp", x, *bounds), dims)
    return use.value(f"{use.helper('clip')}({x.text}, {', '.join(bounds)})", dims)


def _if(use: Use) -> Value:
    condition, chosen, operand = use.aligned()
    texts = [text_of(value) for value in (chosen, operand)]
    dims = use.broadcast([condition, chosen, operand])
    return use.value(use.say("where", f"{condition.at(SUM)} != 0", *texts), dims)


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


NUMBERS = dict.fromkeys(
    (
        "Plus",
        "Minus",
        "ElementTimes",
        "ElementPower",
        "Clip",
        "If",
        "LogPlus",
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "Equal",
        "NotEqual",
    )
)
"""Operations whose constants of one element are numbers."""

RULES: dict[str, Rule] = {
    "Plus": _operator("+", SUM, True),
    "Minus": _operator("-", SUM, False),
    "ElementTimes": _times,
    "DiagTimes": _diag_times,
    "Negate": _negate,
    "Reciprocal": _function("reciprocal"),
    "Abs": _function("abs"),
    "Sqrt": _function("sqrt"),
    "Exp": _function("exp"),
    "Log": _function("log"),
    "ElementPower": _power,
    "ElementFunction": _element_function,
    "LogPlus": _log_plus,
    "Sigmoid": _function("sigmoid"),
    "Tanh": _function("tanh"),
    "RectifiedLinear": _function("relu"),
    "Cosine": _function("cos"),
    "Sin": _function("sin"),
    "StopGradient": _function("detach"),
    "Floor": _function("floor"),
    "Clip": _clip,
    "If": _if,
    "Less": _comparison("<"),
    "LessEqual": _comparison("<="),
    "Greater": _comparison(">"),
    "GreaterEqual": _comparison(">="),
    "Equal": _comparison("=="),
    "NotEqual": _comparison("!="),
    "Dropout": lambda use: use.values[0],
    "Softmax": over_sample(lambda use, value: use.say("softmax", value)),
    "LogSoftmax": over_sample(lambda use, value: use.say("log_softmax", value)),
    "Hardmax": over_sample(lambda use, value: use.say("hardmax", value)),
}

SPELLINGS: Spellings = {
    "cast": ("{0.atom}.to({1})", "{0.atom}.astype({1})"),
    "default_dtype": ("torch.get_default_dtype()", "float"),
    "tensor": ("torch.tensor({0})", "{0}"),
    "detach": ("{0.atom}.detach()", "jax.lax.stop_gradient({0})"),
    "sqrt": ("{0.atom}.clamp(min=0).sqrt()", "jnp.sqrt(jnp.maximum({0}, 0))"),
    "power": ("{0.atom}.pow({1})", "jnp.power({0}, {1})"),
    "power_of": ("torch.pow({0}, {1})", "jnp.power({0}, {1})"),
    "element_function": (_torch_function, _jax_function),
    "softplus": ("F.softplus({0})", "jax.nn.softplus({0})"),
    "log_of_sum": ("torch.logaddexp({0}, {1})", "jnp.logaddexp({0}, {1})"),
    "clamp": ("{0.atom}.clamp({1}, {2})", "jnp.clip({0}, {1}, {2})"),
    "where": ("torch.where({0}, {1}, {2})", "jnp.where({0}, {1}, {2})"),
    "softmax": ("torch.softmax({0}, dim=-1)", "jax.nn.softmax({0})"),
    "log_softmax": ("torch.log_softmax({0}, dim=-1)", "jax.nn.log_softmax({0})"),
    "sigmoid": ("torch.sigmoid({0})", "jax.nn.sigmoid({0})"),
    "relu": ("torch.relu({0})", "jax.nn.relu({0})"),
    **{name: (f"torch.{name}({{0}})", f"jnp.{name}({{0}})") for name in ("abs", "exp", "tanh", "cos", "sin", "floor")},
    **{name: both(f"{name}({{0}})") for name in ("log", "reciprocal", "hardmax")},
    "log_plus": both("log_plus({0}, {1})"),
}
