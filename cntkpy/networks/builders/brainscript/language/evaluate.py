"""Evaluation of expressions: when they are needed, and at most once. `expressions` says what each kind means.

Evaluation may nest as deep as a program asks: every step is a generator that yields the steps it depends on, and `run`
keeps them on a list of its own, so that Python's stack does not grow with the program's. What is known without a step
is returned as it is, and may be yielded like a step: no value is a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.language.arithmetic import at_hand
from cntkpy.networks.builders.brainscript.language.messages import Messages
from cntkpy.networks.builders.brainscript.language.parse import source_of
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import (
    ArrayLiteral,
    Call,
    Expression,
    Infix,
    Lambda,
    Literal,
    Name,
    RecordLiteral,
)
from cntkpy.networks.builders.brainscript.language.values import (
    PENDING,
    Applied,
    Delayed,
    Function,
    Origin,
    Path,
    Record,
    Scope,
    kind_of,
)

Step = Generator[Any, Any, Any]
"""A step of an evaluation: yields the steps it waits for, gets their values, returns its own."""
STEP: type = GeneratorType
"""Type of steps."""
Result = Any
"""A value, or the step that gives it."""

MAX_DEPTH = 60_000
"""Number of evaluations that may wait for each other."""
MAX_STEPS = 3_000_000
"""Number of steps that an evaluation may take: functions that call themselves twice would continue for years."""
MAX_ELEMENTS = 1_000_000
"""Number of elements of an array, at most, also after flattening."""
MAX_TEXT = 10_000_000
"""Number of characters of a text, at most."""
AT_ONCE = frozenset({Literal, RecordLiteral, ArrayLiteral, Lambda})
"""Kinds of expressions that wait for nothing and cannot fail."""
ENDLESS = ("TooDeep", "TooMany", "CircularReference")
"""Kinds of errors that belong to no value by itself."""


@dataclass(frozen=True)
class Class:
    """A class that `new NAME record` can make.

    Args:
        make: `(evaluator, record, origin)` gives the value, or the step that gives it.
        own_names: the members of the record start from the empty path, not from that of the expression.
    """

    make: Callable[[Evaluator, Record, Origin], Result]
    own_names: bool = False


@dataclass
class Failures:
    """Expressions that errors have ended: an evaluation looks there for further errors.

    Attributes:
        expressions: Expressions with their scopes, innermost first.
        networks: Records of networks.
        delayed: Values that cannot be computed, and why.
        neighbours: Arrays of values, by their elements.
        waiting: Elements of arrays of which another one has failed.
        error: The last error.
    """

    expressions: list[tuple[Expression, Scope]] = field(default_factory=list["tuple[Expression, Scope]"])
    networks: list[tuple[Record, Origin]] = field(default_factory=list["tuple[Record, Origin]"])
    delayed: dict[Delayed, ConfigError] = field(default_factory=dict[Delayed, ConfigError])
    neighbours: dict[Delayed, list[Any]] = field(default_factory=dict[Delayed, list[Any]])
    waiting: list[Delayed] = field(default_factory=list[Delayed])
    error: ConfigError | None = None


class Evaluator:
    """Evaluates expressions.

    Args:
        meaning: for each kind of expression its value, or the step that gives it:
            `(evaluator, expression, scope, path)`.
        classes: what `new` can make, by name.
        library: texts whose places mean nothing to the user; errors in them are shown at the call that led there.
        unsupported: names that programs may use elsewhere, and what to use instead.
        texts: what options take as texts, for which the network description language has no quotes.
    """

    def __init__(
        self,
        meaning: Mapping[type, Callable[..., Result]],
        classes: Mapping[str, Class],
        library: Iterable[Text] = (),
        unsupported: Mapping[str, str] | None = None,
        texts: Collection[str] = (),
    ) -> None:
        self.classes = classes
        self.unsupported = unsupported or {}
        self.texts = texts
        self.messages = Messages(library)
        self.prints = True
        """True if `Print` and `Debug` write into the log."""
        self._waiting: list[Step] = []
        self._steps = 0
        self._meaning = meaning
        self.failures: Failures | None = None
        """Collects what an error has ended; None: nothing follows an error."""

    def run(self, step: Result) -> Any:
        """Return the value of a step, after all that it depends on; a value is returned as it is.

        Raises:
            ConfigError: what is wrong with the program, where, and which calls led there.
        """
        if type(step) is not STEP:
            return step
        waiting, value = self._waiting, None
        bottom = len(waiting)
        try:
            while True:
                self._steps += 1
                if self._steps > MAX_STEPS:
                    raise self.messages.too_long(MAX_STEPS)
                try:
                    inner = step.send(value)
                except StopIteration as done:
                    value = done.value
                    if len(waiting) == bottom:
                        return value
                    step = waiting.pop()
                else:
                    if type(inner) is STEP:
                        waiting.append(step)
                        step, value = inner, None
                    else:
                        value = inner
        except ConfigError as error:
            if self.failures is not None:
                self.failures.error = error
            raise
        finally:
            step.close()
            while len(waiting) > bottom:
                waiting.pop().close()

    def begin(self) -> None:
        """Count the steps of an evaluation anew, unless it is part of another one."""
        if not self._waiting:
            self._steps = 0

    def value(self, expression: object, place: Place) -> Any:
        """Return the value of something that may be delayed."""
        if type(expression) is not Delayed:
            return expression
        return self.run(self.force(expression, place))

    def evaluate(self, expression: Expression | Applied, scope: Scope, path: Path | None = None) -> Any:
        """Return the value of an expression."""
        return self.run(self._evaluated(expression, scope, path))

    def _evaluated(self, expression: Expression | Applied, scope: Scope, path: Path | None) -> Step:
        """Return the value of an expression, as a step: what is wrong with it is found while it runs."""
        return (yield self.step(expression, scope, path))

    def step(self, expression: object, scope: object, path: Path | None) -> Result:
        """Return the value of an expression, or the step that gives it."""
        return self._meaning[type(expression)](self, expression, scope, path)

    def force(self, delayed: Delayed, place: Place) -> Result:
        """Return the value of a delayed expression, which `place` asks for, or the step that gives it."""
        if delayed.value is PENDING and type(delayed.expression) in AT_ONCE:
            delayed.value = self.step(delayed.expression, delayed.scope, delayed.path)
        return delayed.value if delayed.value is not PENDING else self._forced(delayed, place)

    def _forced(self, delayed: Delayed, place: Place) -> Step:
        """Return the value of a delayed expression that may wait for others."""
        if delayed.value is not PENDING:
            return delayed.value
        if self.failures is not None and delayed in self.failures.delayed:
            raise self.failures.delayed[delayed]
        if delayed.busy:
            raise self.messages.circular(delayed, place)
        self._check_depth(place, delayed.scope)
        delayed.busy = True
        self.messages.forcing.append(delayed)
        try:
            value = self.step(delayed.expression, delayed.scope, delayed.path)
            if type(value) is STEP:
                value = yield value
            delayed.value = value
        except (ConfigError, GeneratorExit) as ending:
            self._note(ending)
            self._give_up(delayed)
            raise
        finally:
            delayed.busy = False
            self.messages.forcing.pop()
        return value

    def _note(self, ending: BaseException) -> None:
        """Keep the error that ends a step itself; where it ends one that the step waits for, `run` has kept it."""
        if self.failures is not None and isinstance(ending, ConfigError):
            self.failures.error = ending

    def _give_up(self, delayed: Delayed) -> None:
        """Keep the error of a value that cannot be computed, where errors are collected."""
        failures, expression = self.failures, delayed.expression
        if failures is None or failures.error is None or failures.error.kind in ENDLESS:
            return
        failures.delayed[delayed] = failures.error
        failures.waiting += (item for item in failures.neighbours.pop(delayed, ()) if type(item) is Delayed)
        if delayed.scope is not None and not isinstance(expression, Applied):
            failures.expressions.append((expression, delayed.scope))

    def forced(self, expression: object, place: Place) -> Step:
        """Return the value of something that may be delayed, as a step."""
        return (yield self.force(expression, place)) if type(expression) is Delayed else expression

    def delayed(self, expression: Expression, scope: Scope, path: Path | None) -> Any:
        """Return the value of an expression if it is at hand, else the expression with what it needs to be
        evaluated.
        """
        kind = type(expression)
        if kind is Name or kind is Infix or kind is Literal:
            value = at_hand(expression, scope)
            if value is not PENDING:
                return value
        return Delayed(expression, scope, path)

    def _check_depth(self, place: Place, scope: Scope | None) -> None:
        if len(self._waiting) > MAX_DEPTH:
            raise self.messages.error(
                "TooDeep",
                "the evaluation is nested too deeply; this function probably never stops calling itself",
                place,
                scope,
                "give the recursion an end: if n == 0 then ... else ...",
            )

    def enter(
        self, function: Function, names: dict[str, object], place: Place, scope: Scope, path: Path | None
    ) -> Result:
        """Return the value of the body of a function, or the step that gives it."""
        self._check_depth(place, scope)
        inside = Scope(names, function.scope, place, scope)
        body = function.body
        meaning = self._meaning.get(type(body))
        if meaning is None:
            assert callable(body)
            return body(self, names, path, inside)
        if type(body) in AT_ONCE:
            return meaning(self, body, inside, path)
        return self._entered(meaning, body, inside, path)

    def _entered(self, meaning: Callable[..., Result], body: Any, inside: Scope, path: Path | None) -> Step:
        """Evaluate the body of a function; keep it where an error ends it. It begins when `run` asks for it: calls of
        functions by functions do not nest in Python."""
        try:
            value = meaning(self, body, inside, path)
            return (yield value) if type(value) is STEP else value
        except (ConfigError, GeneratorExit) as ending:
            self._note(ending)
            if self.failures is not None:
                self.failures.expressions.append((body, inside))
            raise

    def apply(
        self,
        function: object,
        positional: tuple[object, ...],
        named: dict[str, object],
        place: Place,
        scope: Scope,
        path: Path | None,
    ) -> Result:
        """Return the value of a function, or the step that gives it; arguments are values already, or delayed."""
        if type(function) is not Function:
            raise self.messages.error("NoFunction", f"a function is expected, not {kind_of(function)}", place, scope)
        if len(positional) != len(function.parameters):
            raise wrong_count(self, function, None, len(positional), scope, place)
        names = {**dict(zip(function.parameters, positional, strict=True)), **function.defaults, **named}
        return self.enter(function, names, place, scope, path)


def wrong_count(
    evaluator: Evaluator,
    function: Function,
    e: Call | None,
    passed_count: int,
    scope: Scope,
    place: Place | None = None,
) -> ConfigError:
    """Return the error of a call with a wrong number of arguments: `e`, or one of the library at `place`."""
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
    return evaluator.messages.error("WrongArguments", message, place, scope, hint)


def usage(function: Function) -> str:
    """Return the form of a call of a function."""
    words = [*function.parameters]
    for name, default in function.defaults.items():
        if type(default) is Delayed:
            expression = default.expression
            text = "" if isinstance(expression, Applied) else source_of(expression)
            words.append(f"{name}={text if 0 < len(text) <= 20 else '...'}")
        else:
            words.append(f"{name}={_default_text(default)}")
    return f"{function.name or '(function)'} ({', '.join(words)})"


def _default_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return f"'{value}'" if isinstance(value, str) else "..."


__all__ = ["STEP", "Class", "Evaluator", "Result", "Step", "usage"]
