"""Rules of several operators for operations on each element, and those along the whole sample."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.elementwise.kinds import LOG_CLIPPED, LOG_SMALLEST, LOGPLUS_LARGEST
from cntkpy.networks.nodes.onnx_support.graph import Emitter
from cntkpy.networks.nodes.onnx_support.use import Rule, Use

FUNCTIONS = {
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "atanh": "Atanh",
    "erf": "Erf",
    "round": "Round",
}
"""Functions of ElementFunction by the names of ONNX operators."""


def function(use: Use) -> str:
    """ElementFunction."""
    return use.emit.op(FUNCTIONS[str(use.options["function"])], use.names[0])


def reciprocal(use: Use) -> str:
    """1 / x, and 0 at 0."""
    emit, x = use.emit, use.names[0]
    return emit.op("Where", emit.op("Equal", x, emit.real(0)), emit.real(0), emit.op("Reciprocal", x))


def root(use: Use) -> str:
    """Return the square root, and 0 below 0."""
    return use.emit.op("Sqrt", use.emit.op("Max", use.names[0], use.emit.real(0)))


def logarithm(use: Use) -> str:
    """Return the logarithm of the first operand."""
    return clipped_log(use.emit, use.names[0])


def clipped_log(emit: Emitter, x: str) -> str:
    """Return the logarithm, and CNTK's constant below its smallest argument."""
    least = emit.real(LOG_SMALLEST)
    return emit.op("Where", emit.op("Less", x, least), emit.real(LOG_CLIPPED), emit.op("Log", emit.op("Max", x, least)))


def log_plus(use: Use) -> str:
    """Return the logarithm of the sum of exponentials; the larger operand where the other is far below."""
    emit, (x, y) = use.emit, use.aligned()
    high, difference = emit.op("Max", x, y), emit.op("Neg", emit.op("Abs", emit.op("Sub", x, y)))
    known = emit.op("Where", emit.op("Equal", x, y), emit.real(0), difference)  # also where both are infinite
    excess = emit.op("Log", emit.op("Add", emit.real(1), emit.op("Exp", known)))
    far = emit.op("Less", known, emit.real(-LOGPLUS_LARGEST))
    return emit.op("Where", far, high, emit.op("Add", high, excess))


def clip(use: Use) -> str:
    """x limited to a range: the lower bound below it, else x or the upper bound, whichever is smaller."""
    low, high, x = use.aligned()
    return use.emit.op("Where", use.emit.op("Less", x, low), low, use.emit.op("Min", x, high))


def choice(use: Use) -> str:
    """Return the second operand where the first is not 0, else the third."""
    condition, chosen, alternative = use.aligned()
    return use.emit.op("Where", use.emit.op("Equal", condition, use.emit.real(0)), alternative, chosen)


def diag_times(use: Use) -> str:
    """Return the rows of x, each times an element of d."""
    d, x = use.operands
    rank = len(x.dims)
    flat = use.emit.reshape(d.name, d.lead, (*(1,) * (rank - 1), shapes.size(d.dims)))
    return use.emit.op("Mul", flat, x.name)


def hardmax(use: Use) -> str:
    """1 at the first largest element of a sample, 0 elsewhere. Hardmax of ONNX has no implementation in double."""
    emit, (name, dims) = use.emit, use.row()
    largest = emit.op("ArgMax", name, axis=-1, keepdims=1, select_last_index=0)
    chosen = emit.op("Equal", largest, emit.integers(range(dims[-1])))
    return use.shaped(emit.cast(chosen), dims)


RULES: dict[str, Rule] = {
    "DiagTimes": diag_times,
    "Reciprocal": reciprocal,
    "Sqrt": root,
    "Log": logarithm,
    "ElementFunction": function,
    "LogPlus": log_plus,
    "Clip": clip,
    "If": choice,
    "Hardmax": hardmax,
}
