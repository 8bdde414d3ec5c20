"""Evaluation of expressions: when they are needed, and at most once. `expressions` says what each kind means.

Evaluation may nest as deep as a program asks: every step is a generator that yields the steps it depends on, and `run`
keeps them on a list of its own, so that Python's stack does not grow with the program's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic
from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.language.arithmetic import at_hand
from cntkpy.networks.builders.brainscript.language.parse import source_of
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import (
    Call,
    Expression,
    Infix,
    Literal,
    Name,
)
from cntkpy.networks.builders.brainscript.language.values import (
    PENDING,
    Applied,
    Array,
    Delayed,
    Function,
    Origin,
    Path,
    Record,
    Scope,
    joined,
    kind_of,
    number_text,
)

Step = Generator[Any, Any, Any]
"""A step of an evaluation: yields the steps it waits for, gets their values, returns its own."""

MAX_DEPTH = 60_000
"""Number of evaluations that may wait for each other."""
MAX_STEPS = 3_000_000
"""Number of steps that an evaluation may take: functions that call themselves twice would continue for years."""
MAX_ELEMENTS = 1_000_000
"""Number of elements of an array, at most, also after flattening."""
MAX_TEXT = 10_000_000
"""Number of characters of a text, at most."""


@dataclass(frozen=True)
class Class:
    """Return the value of `new NAME record`.

    Args:
        make: a step `(evaluator, record, origin)` that gives the value.
        own_names: the members of the record start from the empty path, not from that of the expression.
    """

    make: Callable[[Evaluator, Record, Origin], Step]
    own_names: bool = False


class Evaluator:
    """Evaluates expressions.

    Args:
        meaning: for each kind of expression the step that evaluates it: `(evaluator, expression, scope, path)`.
        classes: what `new` can make, by name.
        library: texts whose places mean nothing to the user; errors in them are shown at the call that led there.
        unsupported: names that programs may use elsewhere, and what to use instead.
        texts: what options take as texts, for which the network description language has no quotes.
    """

    def __init__(
        self,
        meaning: Mapping[type, Callable[..., Step]],
        classes: Mapping[str, Class],
        library: Iterable[Text] = (),
        unsupported: Mapping[str, str] | None = None,
        texts: Collection[str] = (),
    ) -> None:
        self.classes = classes
        self.unsupported = unsupported or {}
        self.texts = texts
        self.library = list(library)
        self.warnings: list[Diagnostic] = []
        self.prints = True
        """True if `Print` and `Debug` write into the log."""
        self._waiting: list[Step] = []
        self._steps = 0
        self._forcing: list[Delayed] = []
        self._meaning = meaning

    # ---------------------------------------------------------------------------------------------------- running

    def run(self, step: Step) -> Any:
        """The value of a step, after all that it depends on.

        Raises:
            ConfigError: what is wrong with the program, where, and which calls led there.
        """
        waiting, value = self._waiting, None
        bottom = len(waiting)
        try:
            while True:
                self._steps += 1
                if self._steps > MAX_STEPS:
                    raise self._too_long()
                try:
                    inner = step.send(value)
                except StopIteration as done:
                    value = done.value
                    if len(waiting) == bottom:
                        return value
                    step = waiting.pop()
                else:
                    waiting.append(step)
                    step, value = inner, None
        finally:
            step.close()
            while len(waiting) > bottom:
                waiting.pop().close()

    def value(self, expression: Any, place: Place) -> Any:
        """The value of something that may be delayed."""
        if type(expression) is not Delayed:
            return expression
        return expression.value if expression.value is not PENDING else self.run(self.force(expression, place))

    def evaluate(self, expression: Expression, scope: Scope, path: Path | None = None) -> Any:
        """The value of an expression."""
        return self.run(self.step(expression, scope, path))

    def step(self, expression: Any, scope: Any, path: Path | None) -> Step:
        """The step that evaluates an expression."""
        return self._meaning[type(expression)](self, expression, scope, path)

    def force(self, delayed: Delayed, place: Place) -> Step:
        """The value of a delayed expression, which `place` asks for."""
        if delayed.value is not PENDING:
            return delayed.value
        if delayed.busy:
            raise self._circular(delayed, place)
        self._check_depth(place, delayed.scope)
        delayed.busy = True
        self._forcing.append(delayed)
        try:
            value = delayed.value = yield self._meaning[type(delayed.expression)](
                self, delayed.expression, delayed.scope, delayed.path
            )
        finally:
            delayed.busy = False
            self._forcing.pop()
        return value

    def forced(self, expression: Any, place: Place) -> Step:
        """The value of something that may be delayed, as a step."""
        return (yield self.force(expression, place)) if type(expression) is Delayed else expression

    def delayed(self, expression: Expression, scope: Scope, path: Path | None) -> Any:
        """The value of an expression if it is at hand, else the expression with what it needs to be evaluated."""
        if isinstance(expression, Literal):
            return expression.value
        if isinstance(expression, Name | Infix):
            value = at_hand(expression, scope)
            if value is not PENDING:
                return value
        return Delayed(expression, scope, path)

    def flattened(self, value: Any, place: Place, scope: Scope | None, subject: str) -> Step:
        """The elements of an array and of the arrays in it; a single value is one element.

        Args:
            value: the array or value.
            place: where it is asked for.
            scope: the scope there.
            subject: name of the elements in messages.
        """
        result: list[Any] = []
        stack, arrays = [value], 0
        while stack:
            value = stack.pop()
            if type(value) is Delayed:
                value = value.value if value.value is not PENDING else (yield self.force(value, place))
            if type(value) is not Array:
                result.append(value)
                if len(result) > MAX_ELEMENTS:
                    raise self.error("TooMany", f"more than {MAX_ELEMENTS} {subject}", place, scope)
                continue
            arrays += 1
            if arrays > MAX_ELEMENTS:  # those without elements count, too
                raise self.error("TooMany", f"more than {MAX_ELEMENTS} arrays of {subject}", place, scope)
            if value.first != 0:
                message = f"an array of {subject} must start at index 0, this one starts at {value.first}"
                raise self.error("BadIndex", message, place, scope)
            stack.extend(reversed(value.items))
        return result

    # ------------------------------------------------------------------------------------------------------ errors

    def error(
        self, kind: str, message: str, place: Place, scope: Scope | None, hint: Any = None, notes: Iterable[str] = ()
    ) -> ConfigError:
        """An error with its place and the calls that led there, to be raised."""
        calls = [] if scope is None else list(islice(scope.calls(), 12))
        where = [place, *calls]
        shown = [place for place in where if place.text not in self.library]
        if scope is not None and not shown:
            shown = list(islice((call for call in scope.calls() if call.text not in self.library), 1))
        if not shown:  # a default of the library, which does not know who asked for it
            asking = [
                (delayed.expression, delayed.scope) for delayed in reversed(self._forcing) if delayed.scope is not None
            ]
            places = (
                place for expression, inside in asking for place in (expression.place, *islice(inside.calls(), 12))
            )
            shown = list(islice((place for place in places if place.text not in self.library), 1))
        if not shown:
            return ConfigError(kind, message, place.span, hint, [*place.notes, *notes])
        inner = where[0]
        frames = list(notes)
        if inner is not shown[0]:
            frames.append(f"it happens inside the library, at {inner}")
        frames += [
            f"called at {fromkey}: {_one_line(fromkey)}" for fromkey in dict.fromkeys(shown[1:6]) if fromkey != shown[0]
        ]
        return ConfigError(kind, message, shown[0].span, hint, [*shown[0].notes, *frames])

    def user_place(self, place: Place, scope: Scope | None) -> Place:
        """The place itself, or where it is inside the library the call that led there."""
        if place.text in self.library and scope is not None:
            return next((call for call in scope.calls() if call.text not in self.library), place)
        return place

    def warn(self, kind: str, message: str, place: Place, hint: str | None = None) -> None:
        """Keep a warning."""
        self.warnings.append(Diagnostic(kind, message, place.span, hint, place.notes, "warning"))

    def _check_depth(self, place: Place, scope: Scope | None) -> None:
        if len(self._waiting) > MAX_DEPTH:
            raise self.error(
                "TooDeep",
                "the evaluation is nested too deeply; this function probably never stops calling itself",
                place,
                scope,
                "give the recursion an end: if n == 0 then ... else ...",
            )

    def _too_long(self) -> ConfigError:
        """The error of an evaluation without an end, at the innermost place of the user's text that is known."""
        delayed = self._forcing[-1] if self._forcing else None
        if delayed is None:
            return ConfigError("TooMany", f"the evaluation takes more than {MAX_STEPS} steps")
        hint = "a function that calls itself twice takes twice as long for every level; give what it needs twice a name"
        place, message = delayed.expression.place, f"the evaluation takes more than {MAX_STEPS} steps"
        return self.error("TooMany", message, place, delayed.scope, hint)

    def _circular(self, delayed: Delayed, place: Place) -> ConfigError:
        cycle = self._forcing[self._forcing.index(delayed) :]
        names = [joined(delayed.path) or "?" for delayed in cycle]
        chain = " -> ".join([*(names if len(names) <= 6 else [*names[:5], "..."]), names[0]])
        return self.error(
            "CircularReference",
            f"circular reference: the value of '{names[0]}' is needed to compute itself ({chain})",
            place,
            delayed.scope,
            "a loop over time needs PastValue or FutureValue; a name cannot be defined by its own outer meaning",
        )

    def whole_number(self, value: Any, subject: str, place: Place, scope: Scope | None) -> int:
        """Return a whole number; messages call it `subject`."""
        if type(value) is not float:
            raise self.error("NoInteger", f"{subject} must be a whole number, not {kind_of(value)}", place, scope)
        if not math.isfinite(value) or value != int(value):
            message = f"expected integer: {subject} must be a whole number, not {_exact(value)}"
            raise self.error("NoInteger", message, place, scope)
        return int(value)

    def enter(self, function: Function, names: dict[str, Any], place: Place, scope: Scope, path: Path | None) -> Step:
        """The step that evaluates the body of a function."""
        self._check_depth(place, scope)
        inside = Scope(names, function.scope, place, scope)
        body = function.body
        step = self._meaning.get(type(body))
        if step is not None:
            return step(self, body, inside, path)
        assert callable(body)
        return body(self, names, path, inside)

    def apply(
        self,
        function: Any,
        positional: tuple[Any, ...],
        named: dict[str, Any],
        place: Place,
        scope: Scope,
        path: Path | None,
    ) -> Step:
        """The value of a function for arguments that are values already, or delayed."""
        if type(function) is not Function:
            raise self.error("NoFunction", f"a function is expected, not {kind_of(function)}", place, scope)
        if len(positional) != len(function.parameters):
            raise self.wrong_count(function, None, len(positional), scope, place)
        names = {**dict(zip(function.parameters, positional, strict=True)), **function.defaults, **named}
        return (yield self.enter(function, names, place, scope, path))

    def wrong_count(
        self, function: Function, e: Call | None, passed_count: int, scope: Scope, place: Place | None = None
    ) -> ConfigError:
        """The error of a call with a wrong number of arguments: `e`, or one of the library at `place`."""
        place = place or (e.place if e else function.place)
        count = len(function.parameters)
        expected = f"{count} positional argument{'' if count == 1 else 's'}"
        subject = f"'{function.name}'" if function.name else "the function"
        message = f"{subject} takes {expected}, {passed_count} given"
        hint = f"usage: {usage(function)}"
        if e is not None:
            for name, _, _ in e.named:
                if name in function.parameters:
                    hint += f"; '{name}' is passed by position, without its name"
        if passed_count > count and function.defaults:
            hint += "; the others are passed by name"
        return self.error("WrongArguments", message, place, scope, hint)

    # ------------------------------------------------------------------------------------- parameters of classes

    def parameter(self, record: Record, name: str, origin: Origin, default: Any = PENDING) -> Step:
        """The value of a parameter of a class: a member of its record, or a name of the scopes around it.

        Raises:
            ConfigError: it is not there and has no default.
        """
        member = record.find(name)
        if member is None:
            if default is PENDING:
                raise self.error(
                    "MissingParameter",
                    f"required parameter '{name}' not found",
                    origin.place,
                    origin.scope,
                    f"add {name} = ... to the record",
                )
            return default
        if type(member) is Delayed:
            return member.value if member.value is not PENDING else (yield self.force(member, origin.place))
        return member

    def of_type(self, kind: type, record: Record, name: str, origin: Origin, default: Any = PENDING) -> Step:
        """A parameter that must be a number (float), a text (str) or a truth value (bool)."""
        value = yield self.parameter(record, name, origin, default)
        if type(value) is not kind:
            wanted = {float: "a number", str: "a text", bool: "true or false"}[kind]
            place, scope = self.place_of(record, name, origin)
            raise self.error("BadValue", f"'{name}' must be {wanted}, not {kind_of(value)}", place, scope)
        return value

    def integer(self, record: Record, name: str, origin: Origin, default: Any = PENDING) -> Step:
        """A parameter that must be a whole number."""
        value = yield self.parameter(record, name, origin, default)
        place, scope = self.place_of(record, name, origin)
        return self.whole_number(value, f"'{name}'", place, scope)

    def place_of(self, record: Scope, name: str, origin: Origin) -> tuple[Place, Scope]:
        """Return the place where a parameter was written, and the scope there."""
        member = record.find(name)
        while type(member) is Delayed:
            expression, scope = member.expression, member.scope
            if type(expression) is Name and scope is not None:
                inner = scope.find(expression.name)
                if type(inner) is Delayed and inner.expression.place.text not in self.library:
                    member = inner
                    continue
            if scope is not None:
                return expression.place, scope
            break
        return origin.place, origin.scope


def usage(function: Function) -> str:
    """Arguments of a call of a function."""
    words = [*function.parameters]
    for name, default in function.defaults.items():
        if type(default) is Delayed:
            expression = default.expression
            text = "" if isinstance(expression, Applied) else source_of(expression)
            words.append(f"{name}={text if 0 < len(text) <= 20 else '...'}")
        else:
            words.append(f"{name}={_default_text(default)}")
    return f"{function.name or '(function)'} ({', '.join(words)})"


def _default_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return f"'{value}'" if isinstance(value, str) else "..."


def _exact(value: float) -> str:
    return number_text(value) if not math.isfinite(value) else repr(value)


def _one_line(place: Place) -> str:
    text = " ".join(place.string[:200].split())
    return text if len(text) <= 60 else text[:57] + "..."


__all__ = ["Class", "Evaluator", "Step", "usage"]
