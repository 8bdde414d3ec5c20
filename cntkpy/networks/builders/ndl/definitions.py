"""Definitions of an NDL script: which names stand for macros and functions, and which may be given to something new."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cntkpy.cntk_config.base.diagnostics import ConfigError, suggestion
from cntkpy.networks.builders.ndl.parse import Macro, Statement, Word, calls_in
from cntkpy.networks.builders.ndl.scope import NUMBER, Constant, DependsOnFailed, Expansion, Instance, NodeCall, Scope
from cntkpy.networks.builders.ndl.text import Place, error, warning


class Definitions:
    """Functions and macros by name.

    Args:
        functions: names of all functions, in the spelling to be shown.
        undefined: makes the error for a function that does not exist, from its call's name.
        macros: the macros known already; those of the scripts are added.
        expansion: takes errors and warnings; its top scope has the names of the script.
    """

    def __init__(
        self,
        functions: Iterable[str],
        undefined: Callable[[Word], ConfigError | None],
        macros: dict[str, Macro],
        expansion: Expansion,
    ) -> None:
        self.functions = {name.lower(): name for name in functions}
        self.undefined = undefined
        self.macros = macros
        self.expansion = expansion
        self.later: dict[str, Statement] = {}
        """Statements of the script that is being read, by name."""
        self._wrong_macros: set[str] = set()

    def define(self, macro: Macro) -> None:
        """Define a macro; where errors are collected, a wrong one is noted."""
        try:
            self._define(macro)
        except ConfigError as problem:
            self._wrong_macros.add(macro.name.text.lower())
            self.expansion.note(problem)

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
                self.check_known(called.function, called.place)
            except ConfigError as problem:
                self.expansion.note(problem)
            except DependsOnFailed:
                continue
        self.macros[key] = macro

    def check_known(self, function: Word, place: Place) -> None:
        """Refuse a call of what is no function and no macro.

        Raises:
            ConfigError: It is neither.
            DependsOnFailed: Its definition is wrong.
        """
        key = function.text.lower()
        if key in self.macros or key in self.functions:
            return
        if key in self._wrong_macros or key in self.expansion.lost:
            raise DependsOnFailed
        problem = self.undefined(function)
        if problem is not None:
            raise problem
        if isinstance(self.later.get(key), Macro):
            hint = f"it is defined later, at {self.later[key].name.place.short}; a macro must be defined before its use"
        else:
            hint = suggestion(function.text, [*self.functions.values(), *(m.name.text for m in self.macros.values())])
        message = f"undefined function or macro '{function.text}' in '{place.one_line}'"
        raise error("UndefinedFunction", message, function.place, hint)

    def check_left(self, name: Word, scope: Scope) -> None:
        """Refuse a name on the left of `=` that cannot be given, or not again."""
        self._check_number(name)
        self._check_reserved(name, "a name on the left of '='")
        old = scope.symbols.get(name.text.lower())
        if old is None:
            return
        if old.parameter and scope.owner is not None:
            message = f"'{name.text}' hides the parameter of the same name of the macro '{scope.owner.macro.name.text}'"
            self.expansion.warnings.append(warning("HiddenParameter", message, name.place))
            return
        was = (
            old.value.word.text
            if isinstance(old.value, Constant)
            else (old.value.call.place if isinstance(old.value, NodeCall | Instance) else old.value.place).one_line
        )
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
