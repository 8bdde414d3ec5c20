"""Elementwise operations.

Specified in docs/specification/networks.md#b4-elementwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.largest import first_largest
from cntkpy.networks.arrays.lazy import (
    Array,
    Gradients,
    Residuals,
    custom_gradient,
    gradient_by_operands,
    gradient_by_result,
    jax,
    jnp,
)
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call
from cntkpy.networks.nodes.declare import BOOLEAN, TEXT, NodeKind, Option, RecordForm, inputs, unchanged

if TYPE_CHECKING:
    from jaxtyping import Float

    from cntkpy.networks.graph.node import Node
    from cntkpy.networks.graph.shapes import Shape
    from cntkpy.networks.nodes.onnx_support.use import Use


_Binary = Callable[[Call, Array, Array], Array]
_Ternary = Callable[[Call, Array, Array, Array], Array]

#: CNTK's Log: below this the result is the constant, single precision even in double runs
LOG_SMALLEST = 1e-37
LOG_CLIPPED = -85.09999847412109375
LOGPLUS_LARGEST = 9.2103404


def _log(x: Array) -> Array:
    return jnp.where(x < LOG_SMALLEST, jnp.asarray(LOG_CLIPPED, x.dtype), jnp.log(jnp.maximum(x, LOG_SMALLEST)))


clipped_log = gradient_by_result(_log, lambda out, g: (g * jnp.exp(-out),))


def _sqrt(x: Array) -> Array:
    return jnp.sqrt(jnp.maximum(x, 0))


_root = gradient_by_result(_sqrt, lambda out, g: (g / (2 * out),))


def _reciprocal(x: Array) -> Array:
    zero = x == 0
    return jnp.where(zero, jnp.zeros_like(x), 1 / jnp.where(zero, jnp.ones_like(x), x))


_inverse = gradient_by_result(_reciprocal, lambda out, g: (-g * out * out,))


def absolute(x: Float[Array, " *axes"]) -> Float[Array, " *axes"]:
    """|x| with derivative 0 at 0."""
    return jax.lax.stop_gradient(jnp.sign(x)) * x


def _clip_forward(low: Array, high: Array, x: Array) -> tuple[Array, Residuals]:
    out = jnp.where(x < low, low, jnp.minimum(x, high))
    return out, (out == x, low, high)


def _clip_backward(residuals: Residuals, g: Array) -> Gradients:
    same, low, high = residuals
    return jnp.zeros_like(low), jnp.zeros_like(high), jnp.where(same, g, jnp.zeros_like(g))


_clipped = custom_gradient(_clip_forward, _clip_backward)


def _logplus(x: Array, y: Array) -> Array:
    high, low = jnp.maximum(x, y), jnp.minimum(x, y)
    difference = jnp.where(x == y, 0, low - high)  # also where both are infinite
    return jnp.where(difference < -LOGPLUS_LARGEST, high, high + jnp.log1p(jnp.exp(difference)))


def _logplus_backward(residuals: Residuals, g: Array) -> Gradients:
    x, y = residuals
    difference = jnp.where(x == y, 0, x - y)
    return g * jax.nn.sigmoid(difference), g * jax.nn.sigmoid(-difference)


_log_plus = gradient_by_operands(_logplus, _logplus_backward)


def _logplus_exact(x: Array, y: Array) -> Array:
    high, difference = jnp.maximum(x, y), jnp.where(x == y, 0, jnp.minimum(x, y) - jnp.maximum(x, y))
    return high + jnp.log1p(jnp.exp(difference))


_log_plus_exact = gradient_by_operands(_logplus_exact, _logplus_backward)


def _log_plus_of(call: Call, x: Array, y: Array) -> Array:
    """Without the cut where the option says so: that of CNTK 2."""
    return (_log_plus_exact if call.options.get("exact") else _log_plus)(*jnp.broadcast_arrays(x, y))


def _power_forward(x: Array, y: Array) -> tuple[Array, Residuals]:
    out = jnp.power(x, y)
    return out, (x, y, out)


def _power_backward(residuals: Residuals, g: Array) -> Gradients:
    x, y, out = residuals
    to_base = jnp.where(y == 0, jnp.zeros_like(x), y * jnp.power(x, y - 1))
    return g * to_base, g * out * jnp.log(jnp.where(x <= 0, jnp.ones_like(x), x))


_power = custom_gradient(_power_forward, _power_backward)


def _broadcast_then(function: Callable[..., Array]) -> Callable[..., Array]:
    """Broadcast first, so that a custom gradient sees equal shapes and sums over broadcast axes come from JAX."""

    def forward(call: Call, *arrays: Array) -> Array:
        return function(*jnp.broadcast_arrays(*arrays))

    return forward


def _dropout(call: Call, x: Array) -> Array:
    """Inverted dropout; one mask element per element of the minibatch. A node of a Python program has a rate of its
    own, and perhaps a seed."""
    rate, key = call.options.get("rate", call.context.settings.dropout_rate), call.context.key
    if not call.context.training or rate is None or key is None:
        return x
    bits = jax.random.bits(call.random_key(key), x.shape, jnp.uint32)
    rate = jnp.asarray(rate, x.dtype)
    keep = bits.astype(x.dtype) * jnp.asarray(2.0**-32, x.dtype) >= rate
    return jnp.where(keep, x / (1 - rate), jnp.zeros_like(x))


def _columns(call: Call, x: Array) -> Array:
    """Columns of the matrix view in the last axis: whole samples, or the columns of a parameter."""
    return call.flat(x) if call.node.input(0).has_layout else x.reshape(-1, x.shape[-1] if x.ndim else 1)


def _softmax(call: Call, x: Array) -> Array:
    return jax.nn.softmax(_columns(call, x), axis=-1).reshape(x.shape)


def _log_softmax(call: Call, x: Array) -> Array:
    return jax.nn.log_softmax(_columns(call, x), axis=-1).reshape(x.shape)


def _hardmax(call: Call, x: Array) -> Array:
    flat = jax.lax.stop_gradient(_columns(call, x))
    return jax.nn.one_hot(first_largest(flat), flat.shape[-1], dtype=x.dtype).reshape(x.shape)


FUNCTIONS = {
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "erf": "",
    "round": "round",
}
"""Functions of ElementFunction by names of jax.numpy; the error function is none of them."""


def _function(call: Call, x: Array) -> Array:
    name = FUNCTIONS[str(call.options["function"])]
    return getattr(jnp, name)(x) if name else jax.scipy.special.erf(x)


def _unary(name: str, meaning: str, forward: Callable[[Call, Array], Array], formula: str, **fields: Any) -> NodeKind:
    fields = {"example": f"h = {name}(x)", "pointwise": True, **fields}
    return NodeKind(name, (inputs("x"),), meaning, formula, rules.same, forward, **fields)


def _nary(
    name: str, names: tuple[str, ...], meaning: str, forward: _Binary | _Ternary, formula: str, **fields: Any
) -> NodeKind:
    fields.setdefault("example", f"h = {name}({', '.join(names)})")
    return NodeKind(
        name,
        (inputs(*names),),
        meaning,
        formula,
        rules.elementwise,
        forward,
        elementwise=True,
        pointwise=True,
        **fields,
    )


def _comparison(name: str, formula: str, operator: Callable[[Array, Array], Array], onnx: str) -> NodeKind:
    """Return a comparison; `onnx`: the ONNX operator of its truth values."""

    def forward(call: Call, x: Array, y: Array) -> Array:
        return operator(jax.lax.stop_gradient(x), jax.lax.stop_gradient(y)).astype(x.dtype)

    def rule(use: Use) -> str:
        return use.emit.cast(use.emit.op(onnx, *use.aligned()))

    return _nary(name, ("x", "y"), "Comparison, 0 or 1.", forward, formula, onnx=rule)


def _not_equal(use: Use) -> str:
    return use.emit.cast(use.emit.op("Not", use.emit.op("Equal", *use.aligned())))


def _along_sample(operator: str) -> Callable[[Use], str]:
    """Return an operator of ONNX of all elements of a sample together."""

    def rule(use: Use) -> str:
        name, dims = use.row()
        return use.shaped(use.emit.op(operator, name, axis=-1), dims)

    return rule


def _diag_times_shape(node: Node) -> Shape | None:
    """Return the shape of x; d has as many rows."""
    d, x = node.input(0), node.input(1)
    if x.shape is None or 0 in x.shape:
        return x.shape
    rules.infer(d, x.shape[:1])
    if d.shape is None or 0 in d.shape:
        return x.shape
    if len([n for n in d.shape if n != 1]) > 1 or d.shape[0] != rules.shapes.size(d.shape):
        raise rules.ShapeProblem("the first operand must be a column vector")
    if d.shape[0] != x.shape[0]:
        raise rules.ShapeProblem("the column vector must have as many rows as the second operand")
    return x.shape


def _diag_times(call: Call, d: Array, x: Array) -> Array:
    d_node, x_node = call.node.input(0), call.node.input(1)
    rank = len(x_node.shape or ())
    if d_node.has_layout:
        return d.reshape(*d.shape[:2], *(1,) * (rank - 1), -1) * x
    return d.reshape(*(1,) * (rank - 1), -1) * x


KINDS = [
    _nary("Plus", ("x", "y"), "Sum.", lambda call, x, y: x + y, "x + y", onnx="Add"),
    _nary("Minus", ("x", "y"), "Difference.", lambda call, x, y: x - y, "x - y", onnx="Sub"),
    _nary(
        "ElementTimes",
        ("x", "y"),
        "Elementwise product; the column-, row- and scalar-wise products of older scripts are the same.",
        lambda call, x, y: x * y,
        "x * y",
        aliases=("ColumnElementTimes", "RowElementTimes", "Scale"),
        onnx="Mul",
    ),
    NodeKind(
        "DiagTimes",
        (inputs("d", "x"),),
        "Rows of x scaled by the elements of the column vector d.",
        "d_i * x_ij",
        _diag_times_shape,
        _diag_times,
        example="h = DiagTimes(b, z)",
    ),
    _unary("Negate", "Negation.", lambda call, x: -x, "-x", onnx="Neg"),
    _unary("Reciprocal", "Reciprocal, 0 at 0.", lambda call, x: _inverse(x), "1 / x; gradient -g * out^2", gaps=1.0),
    _unary("Abs", "Absolute value.", lambda call, x: absolute(x), "|x|; gradient sign(x), 0 at 0", onnx="Abs"),
    _unary("Sqrt", "Square root.", lambda call, x: _root(x), "sqrt(max(x, 0)); gradient g / (2 out)", gaps=1.0),
    _unary("Exp", "Exponential.", lambda call, x: jnp.exp(x), "e^x", gaps=0.0, onnx="Exp"),
    _unary(
        "Log",
        "Natural logarithm, clipped.",
        lambda call, x: clipped_log(x),
        "ln x; -85.1 (in single precision) where x < 1e-37; gradient g * exp(-out)",
        gaps=1.0,
    ),
    _nary(
        "ElementPower",
        ("x", "y"),
        "The power; a base below 0 has one for whole exponents only, else the result is not a number.",
        _broadcast_then(_power),
        "x^y; gradients y * x^(y-1), 0 where y = 0, and x^y * ln x, 0 where x <= 0",
        example="h = ElementPower(Abs(x), Constant(1.5))",
        gaps=1.0,
        onnx="Pow",
    ),
    _unary(
        "ElementFunction",
        "A function of each element; no number where it is not defined.",
        _function,
        "",
        options=(Option("function", TEXT, "tan", "which one", tuple(FUNCTIONS)),),
        example="h = ElementFunction(x, function=sinh)",
        gaps=0.0,
    ),
    _nary(
        "LogPlus",
        ("x", "y"),
        "Logarithm of the sum of exponentials.",
        _log_plus_of,
        "ln(e^x + e^y); the larger where the other is more than 9.21 below, unless exact",
        record=RecordForm(without=("exact",)),
        options=(Option("exact", BOOLEAN, False, "no cut where one operand is far below the other, as in CNTK 2"),),
    ),
    _unary("Sigmoid", "Logistic function.", lambda call, x: jax.nn.sigmoid(x), "1 / (1 + e^-x)", onnx="Sigmoid"),
    _unary("Tanh", "Hyperbolic tangent.", lambda call, x: jnp.tanh(x), "tanh x", onnx="Tanh"),
    _unary(
        "RectifiedLinear",
        "Positive part.",
        lambda call, x: jax.nn.relu(x),
        "max(x, 0); derivative 0 at 0",
        aliases=("ReLU",),
        onnx="Relu",
    ),
    _unary("Cosine", "Cosine.", lambda call, x: jnp.cos(x), "cos x", aliases=("Cos",), onnx="Cos"),
    _unary("Sin", "Sine.", lambda call, x: jnp.sin(x), "sin x", onnx="Sin"),
    _unary(
        "StopGradient",
        "The operand itself, through which no gradient flows.",
        lambda call, x: jax.lax.stop_gradient(x),
        "x; gradient 0",
        onnx=unchanged,
    ),
    _unary("Floor", "Largest integer not above.", lambda call, x: jnp.floor(x), "floor(x); gradient 0", onnx="Floor"),
    _nary(
        "Clip",
        ("lowest", "highest", "x"),
        "x limited to a range.",
        _broadcast_then(_clipped),
        "x < lowest ? lowest : min(x, highest); gradient where x is not changed",
        example="h = Clip(Constant(0), Constant(1), x)",
    ),
    _nary(
        "If",
        ("c", "a", "b"),
        "Choice by condition.",
        lambda call, c, a, b: jnp.where(c != 0, a, b),
        "c != 0 ? a : b; no gradient to c",
        example="h = If(Greater(x, y), x, y)",
    ),
    _comparison("Less", "x < y", lambda x, y: x < y, "Less"),
    _comparison("LessEqual", "x <= y", lambda x, y: x <= y, "LessOrEqual"),
    _comparison("Greater", "x > y", lambda x, y: x > y, "Greater"),
    _comparison("GreaterEqual", "x >= y", lambda x, y: x >= y, "GreaterOrEqual"),
    _comparison("Equal", "x == y", lambda x, y: x == y, "Equal"),
    _nary(
        "NotEqual",
        ("x", "y"),
        "Comparison, 0 or 1.",
        lambda call, x, y: (jax.lax.stop_gradient(x) != jax.lax.stop_gradient(y)).astype(x.dtype),
        "x != y",
        onnx=_not_equal,
    ),
    _unary(
        "Dropout",
        "In training, elements set to zero at random; the rate is `dropoutRate` of the SGD section.",
        _dropout,
        "x * m, m = 0 with probability rate, else 1 / (1 - rate)",
        random=True,
        pointwise=False,
        elsewhere={"dropoutrate": "give dropoutRate in the SGD section"},
        onnx=unchanged,
    ),
    _unary(
        "Softmax",
        "Softmax over all rows of a column.",
        _softmax,
        "e^x_i / sum_j e^x_j",
        pointwise=False,
        onnx=_along_sample("Softmax"),
    ),
    _unary(
        "LogSoftmax",
        "Logarithm of the softmax.",
        _log_softmax,
        "x_i - ln sum_j e^x_j",
        pointwise=False,
        onnx=_along_sample("LogSoftmax"),
    ),
    _unary("Hardmax", "One-hot vector of the first largest row.", _hardmax, "gradient 0", pointwise=False),
]
