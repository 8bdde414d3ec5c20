"""Parameters of classes: members of the record of `new NAME record`, or names of the scopes around it."""

from __future__ import annotations

import math
from typing import Any

from cntkpy.networks.builders.brainscript.language.evaluate import MAX_ELEMENTS, STEP, Evaluator, Result, Step
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import Name
from cntkpy.networks.builders.brainscript.language.values import (
    PENDING,
    Array,
    Delayed,
    Origin,
    Record,
    Scope,
    kind_of,
    number_text,
)


def parameter(evaluator: Evaluator, record: Record, name: str, origin: Origin, default: object = PENDING) -> Result:
    """Return the value of a parameter of a class: a member of its record, or a name of the scopes around it; or the
    step that gives it.

    Raises:
        ConfigError: it is not there and has no default.
    """
    member = record.find(name)
    if member is None:
        if default is PENDING:
            raise evaluator.messages.error(
                "MissingParameter",
                f"required parameter '{name}' not found",
                origin.place,
                origin.scope,
                f"add {name} = ... to the record",
            )
        return default
    return evaluator.force(member, origin.place) if type(member) is Delayed else member


def of_type(
    evaluator: Evaluator, kind: type, record: Record, name: str, origin: Origin, default: object = PENDING
) -> Result:
    """Return a parameter that must be a number (float), a text (str) or a truth value (bool), or the step that gives
    it."""
    value = parameter(evaluator, record, name, origin, default)
    return value if type(value) is kind else _of_type(evaluator, kind, value, record, name, origin)


def _of_type(evaluator: Evaluator, kind: type, asked: Result, record: Record, name: str, origin: Origin) -> Step:
    value = yield asked
    if type(value) is not kind:
        wanted = {float: "a number", str: "a text", bool: "true or false"}[kind]
        place, scope = place_of(evaluator, record, name, origin)
        raise evaluator.messages.error("BadValue", f"'{name}' must be {wanted}, not {kind_of(value)}", place, scope)
    return value


def integer(evaluator: Evaluator, record: Record, name: str, origin: Origin, default: object = PENDING) -> Result:
    """Return a parameter that must be a whole number, or the step that gives it."""
    value = parameter(evaluator, record, name, origin, default)
    if type(value) is float and value.is_integer():
        return int(value)
    return _integer(evaluator, value, record, name, origin)


def _integer(evaluator: Evaluator, asked: Result, record: Record, name: str, origin: Origin) -> Step:
    value = yield asked
    place, scope = place_of(evaluator, record, name, origin)
    return whole_number(evaluator, value, f"'{name}'", place, scope)


def place_of(evaluator: Evaluator, record: Scope, name: str, origin: Origin) -> tuple[Place, Scope]:
    """Return the place where a parameter was written, and the scope there."""
    member = record.find(name)
    while type(member) is Delayed:
        expression, scope = member.expression, member.scope
        if type(expression) is Name and scope is not None:
            inner = scope.find(expression.name)
            if type(inner) is Delayed and inner.expression.place.text not in evaluator.messages.library:
                member = inner
                continue
        if scope is not None:
            return expression.place, scope
        break
    return origin.place, origin.scope


def whole_number(evaluator: Evaluator, value: object, subject: str, place: Place, scope: Scope | None) -> int:
    """Return a whole number; messages call it `subject`."""
    if type(value) is not float:
        raise evaluator.messages.error(
            "NoInteger", f"{subject} must be a whole number, not {kind_of(value)}", place, scope
        )
    if not math.isfinite(value) or value != int(value):
        message = f"expected integer: {subject} must be a whole number, not {_exact(value)}"
        raise evaluator.messages.error("NoInteger", message, place, scope)
    return int(value)


def flattened(evaluator: Evaluator, value: object, place: Place, scope: Scope | None, subject: str) -> Result:
    """Return the elements of an array and of the arrays in it, or the step that gives them; a single value is one
    element.

    Args:
        value: the array or value.
        place: where it is asked for.
        scope: the scope there.
        subject: name of the elements in messages.
    """
    return _flattened(evaluator, value, place, scope, subject) if type(value) in (Array, Delayed) else [value]


def _flattened(evaluator: Evaluator, value: object, place: Place, scope: Scope | None, subject: str) -> Step:
    result: list[Any] = []
    stack, arrays = [value], 0
    while stack:
        value = stack.pop()
        if type(value) is Delayed:
            value = evaluator.force(value, place)
            if type(value) is STEP:
                value = yield value
        if type(value) is not Array:
            result.append(value)
            if len(result) > MAX_ELEMENTS:
                raise evaluator.messages.error("TooMany", f"more than {MAX_ELEMENTS} {subject}", place, scope)
            continue
        arrays += 1
        if arrays > MAX_ELEMENTS:  # those without elements count, too
            raise evaluator.messages.error("TooMany", f"more than {MAX_ELEMENTS} arrays of {subject}", place, scope)
        if value.first != 0:
            message = f"an array of {subject} must start at index 0, this one starts at {value.first}"
            raise evaluator.messages.error("BadIndex", message, place, scope)
        stack.extend(reversed(value.items))
    return result


def _exact(value: float) -> str:
    return number_text(value) if not math.isfinite(value) else repr(value)
