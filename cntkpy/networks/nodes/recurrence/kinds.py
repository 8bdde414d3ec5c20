"""Delay nodes; evaluated by `cntkpy.networks.compile.recurrence`.

Specified in docs/specification/networks.md#b7-recurrence.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import INTEGER, INTEGERS, REAL, Argument, NodeKind, Option, RecordForm, TimeRule

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


def _prepare(options: dict[str, float]) -> None:
    delay = options.pop("delayTime")
    if options["timeStep"] == 1:
        options["timeStep"] = delay
    if options["timeStep"] < 1:
        raise ShapeProblem("timeStep must be at least 1")
    options.pop("cols", None)
    options["defaultHiddenActivity"] = array("f", [options["defaultHiddenActivity"]])[0]


def _shape(node: Node) -> Shape | None:
    """Return the shape of x, or as long as that is not known, the given dimensions."""
    known = node.input(0).shape
    if known is None:
        dims = tuple(node.options.get("dims") or ())
        rows = node.options.get("rows")
        known = dims if dims and 0 not in dims else (int(rows),) if rows else None
    if len(node.inputs) == 1 or known is None:
        return known
    initial = node.input(1)
    if initial.has_layout and initial.axis != ONE:
        raise ShapeProblem("the initial state must not have several steps in a sequence")
    rules.infer(initial, known)
    return known if initial.shape is None or 0 in initial.shape else shapes.broadcast([known, initial.shape])


_ROWS, _COLS, _X = Argument("rows", INTEGER), Argument("cols", INTEGER), Argument("x")
_OPTIONS = (
    Option("timeStep", INTEGER, 1, "how many steps"),
    Option("delayTime", INTEGER, 1, "used when timeStep is 1"),
    Option("defaultHiddenActivity", REAL, 0.1, "the value outside the sequence (rounded to single precision)"),
)


def _delay(name: str, direction: int, meaning: str, formula: str, **fields: Any) -> NodeKind:
    return NodeKind(
        name,
        ((_ROWS, _X), (_ROWS, _COLS, _X), (_ROWS, _COLS, _X, Argument("initialState"))),
        meaning,
        formula,
        _shape,
        options=_OPTIONS,
        time=TimeRule(delay=direction),
        prepare=_prepare,
        record=RecordForm(
            names={"rows": "dims", "defaultHiddenActivity": "defaultHiddenActivation"},
            types={"rows": INTEGERS},
            optional=("rows",),
            without=("cols", "delayTime"),
        ),
        **fields,
    )


KINDS = [
    _delay(
        "PastValue",
        -1,
        "The value some steps earlier in the same sequence.",
        "x(t - k), a constant before the start",
        aliases=("Delay",),
        example="before = PastValue(4, x)",
    ),
    _delay(
        "FutureValue",
        1,
        "The value some steps later in the same sequence.",
        "x(t + k), a constant after the end",
        example="after = FutureValue(4, x)",
    ),
]
