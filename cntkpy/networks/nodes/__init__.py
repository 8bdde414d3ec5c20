"""The node library: every function of the network language, declared once, in the folder of its family.

Importing it imports neither JAX nor rules: those for ONNX and for CNTK's model files are imported by `tables`. A module
with declarations is imported when one of its functions is asked for.

`find(name)` gives the declaration of a function by any of its names, `create` makes a node of it in a network.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import Span, UserError, suggestion
from cntkpy.networks.graph.initialize import Initializer
from cntkpy.networks.graph.shapes import ShapeProblem
from cntkpy.networks.nodes.declare import Argument, NodeKind, Option

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node

__all__ = [
    "Argument", "NodeKind", "Option", "create", "declared", "files", "find", "heading", "kinds", "missing", "operation",
    "operations", "tables",
]  # fmt: skip

_UNSUPPORTED = "unsupported.kinds"
_DECLARATIONS = {
    "inputs.kinds": "Inputs and parameters",
    "elementwise.kinds": "Elementwise",
    "linear.kinds": "Linear algebra and reductions",
    "criteria.losses": "Criteria",
    "normalisation.kinds": "Normalisation",
    "recurrence.kinds": "Recurrence",
    "shape.kinds": "Shape",
    "shape.axes": "Shape",
    "sequences.kinds": "Sequences",
    "sequences.made": "Sequences",
    "sequences.unpacked": "Sequences",
    "sequences.minibatch": "Sequences",
    "attention.kinds": "Sequences",
    "criteria.ranking": "Criteria",
    "criteria.ctc": "Criteria",
    "criteria.edit_distance": "Criteria",
    "images.regions": "Convolution and pooling",
    "images.convolution": "Convolution and pooling",
    "images.cropping": "Shape",
    "recurrence.stack": "Recurrence",
    "observers.kinds": "The run",
    "sampling.kinds": "The run",
    _UNSUPPORTED: "Not supported",
}
"""Modules with declarations, in the order of the documentation, and their headings there."""

_OF_PROGRAMS = ("host.kinds",)
"""Modules of kinds that no language has a name for; models may have nodes of them."""

MODULES = tuple(_DECLARATIONS)
"""Modules whose kinds languages have names for."""

FAMILIES = tuple(dict.fromkeys(module.split(".")[0] for module in (*MODULES, *_OF_PROGRAMS)))
"""Folders of families, each with all rules of its kinds."""

INDEX = Path(__file__).with_name("index.json")
"""By module: the names of its kinds, in lower case, and the operations of BrainScript that make nodes of them. A test
compares it with the declarations, and `python -m tools.grammar_tables` writes it."""


@cache
def declared(module: str) -> Sequence[NodeKind]:
    """Return the kinds that a module of this package declares."""
    return importlib.import_module(f"{__name__}.{module}").KINDS


@cache
def _index() -> tuple[dict[str, str], dict[str, str]]:
    """Return the modules of names of functions, and those of operations of BrainScript."""
    index: dict[str, list[list[str]]] = json.loads(INDEX.read_text(encoding="utf-8"))
    names, operations = ({name: module for module in index for name in index[module][part]} for part in (0, 1))
    return names, operations


def operations() -> dict[str, str]:
    """Return the operations of BrainScript, each with the module that declares the kind of its nodes."""
    return _index()[1]


def tables(part: str, table: str = "RULES") -> dict[Any, Any]:
    """Merge a table of all families that have it.

    Args:
        part: a module of families: `onnx_writing`, `onnx_reading`, `cntk_file`, `source_writing`.
        table: name of the table in the module.

    Returns:
        The entries of all families.

    Raises:
        AssertionError: two families have an entry with the same key.
    """
    merged: dict[Any, Any] = {}
    for family in FAMILIES:
        name = f"{__name__}.{family}.{part}"
        if importlib.util.find_spec(name) is None:
            continue
        entries: dict[Any, Any] = getattr(importlib.import_module(name), table, {})
        if repeated := merged.keys() & entries.keys():
            raise AssertionError(f"{table} of {name}: other families have entries for {sorted(repeated)}")
        merged.update(entries)
    return merged


def files(name: str) -> list[Path]:
    """Return the files of that name in folders of families: `library.bs`, `python.bs`."""
    paths = (Path(__file__).parent / family / name for family in FAMILIES)
    return [path for path in paths if path.exists()]


def kinds() -> list[NodeKind]:
    """Return all declared functions, in the order of the documentation."""
    return [kind for module in _DECLARATIONS for kind in declared(module)]


def missing() -> Sequence[NodeKind]:
    """Return the functions that CNTK has and cntkpy does not."""
    return declared(_UNSUPPORTED)


def heading(kind: NodeKind) -> str:
    """Return the heading of a kind in the documentation: `Criteria`, `Shape`; "" for kinds of programs."""
    return next((heading for module, heading in _DECLARATIONS.items() if kind in declared(module)), "")


@cache
def find(name: str) -> NodeKind | None:
    """Return the function of that name or alias (ignoring case), or None."""
    wanted = name.lower()
    module = _index()[0].get(wanted)
    return None if module is None else next(k for k in declared(module) if wanted in map(str.lower, k.names))


def operation(name: str) -> NodeKind:
    """Return the kind of a node by its operation's name.

    Raises:
        UserError: unknown or not supported, with a suggestion.
    """
    kind = find(name)
    if kind is None:
        of_programs = (kind for module in _OF_PROGRAMS for kind in declared(module) if kind.name == name)
        kind = next(of_programs, None)
    if kind is None:
        raise UserError(
            "UndefinedFunction",
            f"unknown operation '{name}'",
            hint=suggestion(name, [n for k in kinds() for n in k.names]),
        )
    if kind.unsupported:
        raise UserError("NotSupported", f"{kind.name} is not supported", hint=kind.unsupported)
    return kind


def create(
    network: Network,
    kind: NodeKind | str,
    name: str,
    inputs: Iterable[Node] = (),
    options: Mapping[str, object] | None = None,
    span: Span | None = None,
) -> Node:
    """Make a node of a function of the network language.

    Args:
        network: where to add it.
        kind: the function (or one of its names).
        name: full name of the node.
        inputs: its input nodes, in order; they may be attached later (`node.inputs`).
        options: values of scalar positional arguments and of optional arguments, by declared name and already of the
            declared type; what is not given takes its default.
        span: the statement, for messages.

    Returns:
        The node. A parameter has `init` set but no value yet: call `network.initialize(node, seeds)`.
    """
    kind = operation(kind) if isinstance(kind, str) else kind
    if kind.unsupported:
        raise UserError("NotSupported", f"{kind.name} is not supported", span=span, hint=kind.unsupported)
    values = kind.defaults()
    values.update(options or {})
    try:
        if kind.prepare is not None:
            kind.prepare(values)
    except ShapeProblem as problem:
        raise UserError("InvalidArgument", f"{kind.name} '{name}': {problem}", span=span, hint=problem.hint) from None
    shape = values.pop("shape", None)
    init = values.pop("initializer", None)
    multiplier = values.pop("learningRateMultiplier", 1.0)
    node = network.add(name, operation(kind.operation), inputs, values, shape=shape, span=span)
    if init is not None:
        assert isinstance(init, Initializer)
        init.span = span
        node.init = init
        node.learning_rate_multiplier = float(multiplier)
    return node
