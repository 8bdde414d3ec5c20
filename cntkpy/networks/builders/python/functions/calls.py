"""Functions of BrainScript's library, called with Python's values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import CallError, ConfigError, UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language.evaluate import Evaluator, Step
from cntkpy.networks.builders.brainscript.language.library import library_members
from cntkpy.networks.builders.brainscript.language.source import Place, joined_text
from cntkpy.networks.builders.brainscript.language.values import Applied, Array, Function, Origin, Record
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.brainscript.program import evaluator_with, root_scope

if TYPE_CHECKING:
    from cntkpy.networks.builders.brainscript.language.values import Path as ValuePath

LIBRARY = Path(__file__).parents[1] / "library.bs"

UNSEEDED = -1
"""The seed of a random parameter that has none yet; it gets one with its value, see `graph`."""

MARK = "#"
"""Stands in paths between the name of what is called and the number of the call."""

_calls = itertools.count(1)


class _Later:
    """Seeds that are handed out when a network is made."""

    def next(self) -> int:
        return UNSEEDED

    def given(self, seed: int) -> int:
        return seed


@cache
def _library() -> tuple[Evaluator, Record, Place]:
    evaluator = evaluator_with(_Later())
    names = {"precision": "float", "deviceId": -1.0, "traceLevel": 0.0}
    core = root_scope(evaluator, names)
    text = joined_text([*nodes.files("python.bs"), LIBRARY], "<Python's library>")
    evaluator.messages.library.append(text)
    return evaluator, evaluator.evaluate(library_members(text), core), Place(text, 0, 0)


def evaluator() -> Evaluator:
    """Return the evaluator of all calls."""
    return _library()[0]


def origin(name: str) -> Origin:
    """Return the origin of a node that Python makes: a unique path that begins with the name."""
    _, scope, place = _library()
    return Origin((None, f".{marked(name)}"), place, scope)


def marked(name: str) -> str:
    """Return the name, with a number that no other call has: nodes whose paths begin with it belong together."""
    return f"{name}{MARK}{next(_calls)}"


def call(function: str | Function, *arguments: object, name: str = "", **named: object) -> Any:
    """Return the value of a function of the library.

    Args:
        function: its name (`BS.Sequences.Last`), or one that another call gave.
        arguments: what is passed by position, in Python's terms (see `to_value`).
        name: begins the names of the nodes that are made; one of `marked` if several calls make one thing.
        named: what is passed by name.

    Returns:
        A node, a number, a text, a record, an array or a function of the language.

    Raises:
        UserError: what is wrong with the arguments.
    """
    evaluator, scope, place = _library()
    evaluator.begin()  # a process may make any number of functions
    path = (None, f".{name if MARK in name else marked(name or 'node')}")
    try:
        procedure = _find(function) if isinstance(function, str) else function
        positional = tuple(to_value(argument) for argument in arguments)
        keywords = {key: to_value(value) for key, value in named.items()}
        unknown = [key for key in keywords if key not in procedure.defaults]
        if unknown:
            raise CallError("UnknownArgument", f"{procedure.name} has no parameter '{unknown[0]}'")
        return evaluator.evaluate(Applied(place, procedure, positional, keywords), scope, path)
    except ConfigError as error:
        kind = CallError if str(error.kind) == "WrongArguments" else UserError
        raise kind(str(error.kind), error.message, hint=error.hint) from None


def member(record: Record, name: str) -> Any:
    """Return the value of a member of a record."""
    evaluator, _, place = _library()
    return evaluator.value(record.names[name], place)


def as_list(value: Any) -> list[Any]:
    """Return the elements of a list or tuple; a list of anything else."""
    return list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]


def record(**members: NodeValue) -> Record:
    """Return a record of nodes."""
    _, scope, place = _library()
    return Record(dict(members), scope, place, None)


def inputs_of(node: NodeValue) -> tuple[NodeValue, ...]:
    """Return the inputs of a node; those of a delay node are evaluated now."""
    from cntkpy.networks.builders.brainscript.nodes import attach_inputs

    if not isinstance(node.inputs, tuple):
        try:
            evaluator().run(attach_inputs(node))
        except ConfigError as error:
            raise UserError(str(error.kind), error.message, hint=error.hint) from None
    assert isinstance(node.inputs, tuple)
    return node.inputs


_steps_being_made = 0


def is_inside_step() -> bool:
    """Return whether a step of a recurrence is being made: the inputs of its delay nodes are not known then."""
    return _steps_being_made > 0


def step_function(function: Callable[[NodeValue, Sequence[NodeValue]], Sequence[NodeValue]], names: str) -> Function:
    """Return a function of the input and a record of states (`names`, a letter each) that Python computes."""
    _, scope, place = _library()

    def body(evaluator: Evaluator, members: dict[str, object], path: ValuePath, inside: object) -> Step:
        x = yield evaluator.forced(members["x"], place)
        earlier = yield evaluator.forced(members["before"], place)
        states: list[NodeValue] = []
        for name in names:
            states.append((yield evaluator.forced(earlier.names[name], place)))
        global _steps_being_made
        _steps_being_made += 1
        try:
            after = function(x, states)
        finally:
            _steps_being_made -= 1
        return Record(dict(zip(names, after, strict=True)), scope, place, path)

    return Function("step", ("x", "before"), {}, body, scope, place)


def to_value(value: Any) -> Any:
    """Return a value of Python as one of BrainScript: numbers, texts, tuples and lists; nodes and functions as they
    are.
    """
    if value is None:
        return _find("None")
    if isinstance(value, bool | str | NodeValue | Function | Record | Array):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, tuple | list):
        return Array([to_value(item) for item in as_list(value)])
    raise CallError("WrongArguments", f"a {type(value).__name__} cannot be an argument here")


def _find(name: str) -> Any:
    evaluator, scope, place = _library()
    first, *tail = name.split(".")
    value = evaluator.value(scope.find(first), place)
    for part in tail:
        value = member(value, part)
    return value
