"""Expansion of an NDL script: scopes, constants, macros and names. The result is a flat list of calls of functions.

A name is looked up when its statement is reached. A name that is not known yet stays a `Reference` and is looked up
again at the end, so that nodes (not constants) may be used before their definition.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from cntkpy.cntk_config.base.diagnostics import ConfigError, suggestion
from cntkpy.networks.builders.ndl.definitions import Definitions
from cntkpy.networks.builders.ndl.groups import ARRAYS
from cntkpy.networks.builders.ndl.parse import Array, Assignment, Call, Macro, Option, Statement, Word
from cntkpy.networks.builders.ndl.scope import (
    NUMBER,
    Constant,
    DependsOnFailed,
    Expansion,
    Instance,
    NodeCall,
    Reference,
    Scope,
    Symbol,
    Value,
    Values,
    followed,
)
from cntkpy.networks.builders.ndl.tags import array_without_effect, tagged_group
from cntkpy.networks.builders.ndl.text import Place, error

MAX_DEPTH = 100  # macros inside macros, calls inside calls
MAX_CALLS = 100_000  # expanded calls of one script
MAX_WORK = 300_000  # expanded statements and arguments of one script


class Expander:
    """Expands scripts one after the other into one `Expansion`.

    Args:
        functions: names of all functions, in the spelling to be shown.
        undefined: makes the error for a function that does not exist, from its call's name.
        macros: the macros known already; those of the scripts are added.
        existing: the names of nodes that are in the network already.
    """

    def __init__(
        self,
        functions: Iterable[str],
        undefined: Callable[[Word], ConfigError | None],
        macros: dict[str, Macro],
        existing: Container[str],
    ) -> None:
        self.existing = existing
        self.expansion = Expansion()
        self.definitions = Definitions(functions, undefined, macros, self.expansion)
        self._work = 0

    def define_macros(self, statements: Iterable[Statement]) -> None:
        """Take the macros of a macro file; its other statements have no effect."""
        for statement in statements:
            if isinstance(statement, Macro):
                self.definitions.define(statement)

    def run(self, statements: list[Statement]) -> None:
        """Expand a script in the top scope."""
        self.definitions.later = {s.name.text.lower(): s for s in reversed(statements)}
        for statement in statements:
            if isinstance(statement, Macro):
                self.definitions.define(statement)
            else:
                self._try_assign(statement, self.expansion.top, 0)
        self.definitions.later = {}

    def _try_assign(self, statement: Assignment, scope: Scope, depth: int) -> bool:
        """Expand a statement; where errors are collected, return False for a wrong one and lose its name."""
        try:
            self._assign(statement, scope, depth)
        except ConfigError as problem:
            scope.lost.add(statement.name.text.lower())
            self.expansion.note(problem)
        except DependsOnFailed:
            scope.lost.add(statement.name.text.lower())
        else:
            return True
        return False

    # -- statements --------------------------------------------------------------------------------------------------

    def _assign(self, statement: Assignment, scope: Scope, depth: int) -> None:
        name, value = statement.name, statement.value
        self.definitions.check_left(name, scope)
        if isinstance(value, Call):
            result = self._call(value, scope, name.text, depth)
        elif isinstance(value, Array):
            result = self._array(value, scope)
        else:
            result = self._named(name, value, scope)
        scope.symbols[name.text.lower()] = Symbol(name, result)
        if scope.owner is None and name.text.lower() in ARRAYS:
            self.expansion.arrays.append((name.text.lower(), result, value.place))
        elif isinstance(value, Array):
            self.expansion.warnings += array_without_effect(name)

    def _named(self, name: Word, word: Word, scope: Scope) -> Value:
        """`name = word`: a constant, or a second name for a node, which then is called by the new name."""
        symbol = scope.symbols.get(word.text.lower())
        value = scope.find(word, strict=True)
        if value is None:
            if not word.quoted and NUMBER.fullmatch(word.text):
                return Constant(word)
            self.expansion.require_known(word, scope)
            message = f"'{word.text}' is not defined before its use in '{name.text} = {word.place.one_line}'"
            if word.quoted:
                hint = "NDL has no text variables; a text can be inserted with $name$"
            elif word.text in self.existing:
                message = f"'{word.text}' is a node of the model, it cannot get a second name"
                hint = f"Rename({word.text}, {name.text}) changes its name"
            elif scope.owner is None and word.text.lower() in self.definitions.later:
                hint = f"it is defined later, at {self.definitions.later[word.text.lower()].name.place.short}"
            else:
                hint = self._suggest(word, scope)
            raise error("UndefinedNode", message, word.place, hint)
        through_parameter = symbol.parameter if symbol else self._through_parameter(word, scope)
        if isinstance(value, NodeCall | Instance) and not through_parameter:
            value.local = name.text
        return value

    @staticmethod
    def _through_parameter(word: Word, scope: Scope) -> bool:
        symbol = scope.symbols.get(word.text.lower().partition(".")[0])
        return symbol is not None and symbol.parameter

    # -- expressions -------------------------------------------------------------------------------------------------

    def _word(self, word: Word, scope: Scope) -> Value:
        value = scope.find(word)
        if value is not None:
            return Constant(value.word, word) if isinstance(value, Constant) else value
        return Constant(word) if NUMBER.fullmatch(word.text) else Reference(word, scope)

    def _array(self, array: Array, scope: Scope) -> Values:
        return Values(tuple(self._word(item, scope) for item in array.items), array.place)

    def _argument(self, argument: Word | Call | Array, scope: Scope, depth: int) -> Value:
        if isinstance(argument, Word):
            return self._word(argument, scope)
        if isinstance(argument, Array):
            return self._array(argument, scope)
        return self._call(argument, scope, None, depth)

    def _call(self, call: Call, scope: Scope, local: str | None, depth: int) -> NodeCall | Instance:
        if depth >= MAX_DEPTH:
            raise error("TooDeep", f"calls and macros are nested more than {MAX_DEPTH} deep", call.place)
        self._count(1 + len(call.arguments), call.place)
        self.definitions.check_known(call.function, call.place)
        arguments = self._arguments(call, scope, depth + 1)
        options = tuple((option, self._option(option, scope)) for option in call.options)
        macro = self.definitions.macros.get(call.function.text.lower())
        result: NodeCall | Instance
        if macro is not None:
            result = self._expand(macro, call, scope, local, arguments, options, depth)
        else:
            result = NodeCall(call, scope, local, arguments, tuple(o for o in options if not _is_tag(o[0])))
            self.expansion.created.append(result)
        for option, value in options:
            if _is_tag(option):
                try:
                    if group := tagged_group(option, value):
                        self.expansion.tags.append((group, result, option.name.place))
                except ConfigError as problem:
                    self.expansion.note(problem)
        return result

    def _arguments(self, call: Call, scope: Scope, depth: int) -> tuple[Value, ...]:
        """Expand the arguments of a call, all of them also after a wrong one."""
        values: list[Value] = []
        for argument in call.arguments:
            try:
                values.append(self._argument(argument, scope, depth))
            except ConfigError as problem:
                self.expansion.note(problem)
            except DependsOnFailed:
                continue
        if len(values) < len(call.arguments):
            raise DependsOnFailed
        return tuple(values)

    def _count(self, work: int, place: Place) -> None:
        """Macros in macros can grow exponentially: stop before it hurts."""
        self._work += work
        if self._work > MAX_WORK or len(self.expansion.created) >= MAX_CALLS:
            raise error("TooLarge", "the script expands to too many calls and statements", place)

    def _option(self, option: Option, scope: Scope) -> Value:
        if isinstance(option.value, Array):
            return self._array(option.value, scope)
        value = followed(self._word(option.value, scope))
        return value if isinstance(value, Constant | Reference | Values) else Reference(option.value, scope)

    def _expand(
        self,
        macro: Macro,
        call: Call,
        scope: Scope,
        local: str | None,
        arguments: tuple[Value, ...],
        options: tuple[tuple[Option, Value], ...],
        depth: int,
    ) -> Instance:
        if len(arguments) != len(macro.parameters):
            raise _wrong_count(macro, call)
        instance = Instance(macro, call, scope, local)
        self.expansion.created.append(instance)
        symbols = instance.scope.symbols
        for option, value in reversed(options):
            if not _is_tag(option):
                symbols[option.name.text.lower()] = Symbol(option.name, value, parameter=True)
        for parameter, value in zip(macro.parameters, arguments, strict=True):
            symbols[parameter.text.lower()] = Symbol(parameter, value, parameter=True)
        self._count(len(macro.body), call.place)
        last: Value | None = None
        for statement in macro.body:
            if isinstance(statement, Call):
                last = self._call(statement, instance.scope, None, depth + 1)
            elif self._try_assign(statement, instance.scope, depth + 1) and isinstance(statement.value, Call):
                last = symbols[statement.name.text.lower()].value
        symbol = symbols.get(macro.name.text.lower())
        instance.result = symbol.value if symbol is not None and not symbol.parameter else last
        return instance

    def _suggest(self, word: Word, scope: Scope) -> str | None:
        return suggestion(word.text, [symbol.name.text for symbol in scope.symbols.values()])


def _is_tag(option: Option) -> bool:
    return option.name.text.lower() == "tag"


def _wrong_count(macro: Macro, call: Call) -> ConfigError:
    """Return the error of a call of a macro with too few or too many arguments."""
    count, expected = len(call.arguments), len(macro.parameters)
    names = ", ".join(parameter.text for parameter in macro.parameters)
    plural = "" if expected == 1 else "s"
    message = f"the macro '{macro.name.text}' takes {expected} argument{plural}, {count} given"
    message += f" in '{call.place.one_line}'"
    if count < expected and count + len(call.options) >= expected:
        message += f"; an optional argument is in the place of '{macro.parameters[count].text}'"
    note = f"{macro.name.text}({names}) is defined at {macro.name.place.short}"
    return error("MacroArguments", message, call.place, notes=(note,))
