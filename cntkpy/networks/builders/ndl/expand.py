"""Expansion of an NDL script: scopes, constants, macros and names. The result is a flat list of calls of functions.

A name is looked up when its statement is reached. A name that is not known yet stays a `Reference` and is looked up
again at the end, so that nodes (not constants) may be used before their definition.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from cntkpy.cntk_config.base.diagnostics import ConfigError, nearest, suggestion
from cntkpy.networks.builders.ndl.groups import ARRAYS, GROUP_ARRAYS
from cntkpy.networks.builders.ndl.parse import Array, Assignment, Call, Macro, Option, Statement, Word, calls_in
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
from cntkpy.networks.builders.ndl.text import Place, error, warning
from cntkpy.networks.graph.network import GROUPS

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
        self.functions = {name.lower(): name for name in functions}
        self.undefined = undefined
        self.macros = macros
        self.existing = existing
        self.expansion = Expansion()
        self._later: dict[str, Statement] = {}
        self._wrong_macros: set[str] = set()
        self._work = 0

    def define_macros(self, statements: Iterable[Statement]) -> None:
        """Take the macros of a macro file; its other statements have no effect."""
        for statement in statements:
            if isinstance(statement, Macro):
                self._try_define(statement)

    def run(self, statements: list[Statement]) -> None:
        """Expand a script in the top scope."""
        self._later = {s.name.text.lower(): s for s in reversed(statements)}
        for statement in statements:
            if isinstance(statement, Macro):
                self._try_define(statement)
            else:
                self._try_assign(statement, self.expansion.top, 0)
        self._later = {}

    def _try_define(self, macro: Macro) -> None:
        """Define a macro; where errors are collected, a wrong one is noted."""
        try:
            self._define(macro)
        except ConfigError as problem:
            self._wrong_macros.add(macro.name.text.lower())
            self.expansion.note(problem)

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

    # -- macros ------------------------------------------------------------------------------------------------------

    def _define(self, macro: Macro) -> None:
        name, key = macro.name, macro.name.text.lower()
        if key in self.functions:
            message = f"'{name.text}' is already defined: it is a function, a macro needs another name"
            raise error("Redefinition", message, name.place)
        if key in self.macros:
            old_place = self.macros[key].name.place
            if old_place.short == name.place.short and old_place.document.text == macro.name.place.document.text:
                return  # one section, named in `load` and in `run`
            note = f"defined before at {self.macros[key].name.place.short}"
            raise error("Redefinition", f"the macro '{name.text}' is already defined", name.place, notes=(note,))
        if key in self.expansion.top.symbols:
            note = f"defined before at {self.expansion.top.symbols[key].name.place.short}"
            raise error("Redefinition", f"'{name.text}' is already defined", name.place, notes=(note,))
        seen: set[str] = set()
        for parameter in macro.parameters:
            self._check_number(parameter)
            self._check_reserved(parameter, f"a parameter of the macro '{name.text}'")
            if parameter.text.lower() in seen:
                message = f"the macro '{name.text}' has two parameters called '{parameter.text}'"
                raise error("Redefinition", message, parameter.place)
            seen.add(parameter.text.lower())
        for called in calls_in(macro.body):
            if called.function.text.lower() == key:
                raise error("RecursiveMacro", f"the macro '{name.text}' calls itself", called.function.place)
            try:
                self._check_known(called.function, called.place)
            except ConfigError as problem:
                self.expansion.note(problem)
            except DependsOnFailed:
                continue
        self.macros[key] = macro

    def _check_known(self, function: Word, place: Place) -> None:
        key = function.text.lower()
        if key in self.macros or key in self.functions:
            return
        if key in self._wrong_macros or key in self.expansion.lost:
            raise DependsOnFailed
        problem = self.undefined(function)
        if problem is not None:
            raise problem
        if isinstance(self._later.get(key), Macro):
            hint = (
                f"it is defined later, at {self._later[key].name.place.short}; a macro must be defined before its use"
            )
        else:
            hint = suggestion(function.text, [*self.functions.values(), *(m.name.text for m in self.macros.values())])
        message = f"undefined function or macro '{function.text}' in '{place.one_line}'"
        raise error("UndefinedFunction", message, function.place, hint)

    # -- statements --------------------------------------------------------------------------------------------------

    def _assign(self, statement: Assignment, scope: Scope, depth: int) -> None:
        name, value = statement.name, statement.value
        self._check_left(name, scope)
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
            self._check_group(name, scope)

    def _check_group(self, name: Word, scope: Scope) -> None:
        """Help with an array that has no effect, because it is inside a macro or its name is misspelt."""
        if name.text.lower() in ARRAYS:
            message, hint = f"'{name.text}' has no effect inside a macro", "use the option tag= there"
        elif meant := nearest(name.text, GROUP_ARRAYS):
            message, hint = f"'{name.text}' is not the name of a group of nodes", f"did you mean '{meant}'?"
        else:
            return
        self.expansion.warnings.append(warning("UnknownGroup", message, name.place, hint))

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
            elif scope.owner is None and word.text.lower() in self._later:
                hint = f"it is defined later, at {self._later[word.text.lower()].name.place.short}"
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

    def _check_left(self, name: Word, scope: Scope) -> None:
        self._check_number(name)
        self._check_reserved(name, "a name on the left of '='")
        old = scope.symbols.get(name.text.lower())
        if old is None:
            return
        if old.parameter and scope.owner is not None:
            message = f"'{name.text}' hides the parameter of the same name of the macro '{scope.owner.macro.name.text}'"
            self.expansion.warnings.append(warning("HiddenParameter", message, name.place))
            return
        was = old.value.word.text if isinstance(old.value, Constant) else _place(old.value).one_line
        message = f"'{name.text}' is already defined as '{was}'; reassigning is not allowed"
        hint = None
        if old.name.text != name.text:
            hint = f"letter case does not count: '{old.name.text}' and '{name.text}' are one name; take '{name.text}1'"
        raise error("Redefinition", message, name.place, hint, notes=(f"defined before at {old.name.place.short}",))

    @staticmethod
    def _check_number(name: Word) -> None:
        if NUMBER.fullmatch(name.text) and name.text[-1].isdigit():
            raise error("InvalidName", f"'{name.text}' is a number and cannot be a name", name.place)

    def _check_reserved(self, name: Word, role: str) -> None:
        if name.text.lower() in self.functions:
            message = f"'{name.text}' cannot be {role}: it is reserved, because it is the name of a function"
            raise error("ReservedName", message, name.place, hint=f"take another name, such as '{name.text}1'")

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
        self._check_known(call.function, call.place)
        arguments = self._arguments(call, scope, depth + 1)
        options = tuple((option, self._option(option, scope)) for option in call.options)
        macro = self.macros.get(call.function.text.lower())
        result: NodeCall | Instance
        if macro is not None:
            result = self._expand(macro, call, scope, local, arguments, options, depth)
        else:
            result = NodeCall(call, scope, local, arguments, tuple(o for o in options if not _is_tag(o[0])))
            self.expansion.created.append(result)
        for option, value in options:
            if _is_tag(option):
                try:
                    self._tag(option, value, result)
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

    def _tag(self, option: Option, value: Value, result: NodeCall | Instance) -> None:
        word = value.word if isinstance(value, Reference | Constant) else option.name
        tag = word.text.lower()
        if tag == "multiseq":
            return
        group = "criterion" if tag == "criteria" else "evaluation" if tag.startswith("eval") else tag
        if group not in GROUPS:
            hint = suggestion(word.text, GROUPS)
            raise error("BadTag", f"unknown tag '{word.text}'; the tags are {', '.join(GROUPS)}", word.place, hint)
        self.expansion.tags.append((group, result, option.name.place))

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
        count, expected = len(arguments), len(macro.parameters)
        if count != expected:
            names = ", ".join(p.text for p in macro.parameters)
            plural = "" if expected == 1 else "s"
            message = f"the macro '{macro.name.text}' takes {expected} argument{plural}, {count} given"
            message += f" in '{call.place.one_line}'"
            if count < expected and count + len(call.options) >= expected:
                message += f"; an optional argument is in the place of '{macro.parameters[count].text}'"
            note = f"{macro.name.text}({names}) is defined at {macro.name.place.short}"
            raise error("MacroArguments", message, call.place, notes=(note,))
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


def _place(value: Value) -> Place:
    return value.call.place if isinstance(value, NodeCall | Instance) else value.place
