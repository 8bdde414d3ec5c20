"""Checks of NDL that is parsed but not expanded: macros without calls, single files, commands.

Names may come from elsewhere: one is taken for misspelt only if a name that is known here is nearly the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cntkpy.cntk_config.base.diagnostics import Diagnostic, nearest
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.parse import Assignment, Call, Macro, Statement, Word, calls_in
from cntkpy.networks.builders.ndl.scope import NUMBER
from cntkpy.networks.builders.ndl.text import warning

MIN_SIMILARITY = 0.66
"""Least similarity, 0 to 1, of a misspelt name and the intended name."""
DIGITS = re.compile(r"[0-9]")


def idle_problems(
    statements: Sequence[Statement], macros: Mapping[str, Macro], names: Iterable[str] | None = None
) -> Iterator[Diagnostic]:
    """Warnings of names, options and numbers of arguments.

    Args:
        statements: a whole text, or some of it.
        macros: those that may be called, by their names in lower case; the ones among the statements are added.
        names: those that are known besides; None: names of functions and others are not looked at.
    """
    macros = {
        **macros,
        **{statement.name.text.lower(): statement for statement in statements if isinstance(statement, Macro)},
    }
    top = [*(names or ()), *(statement.name.text for statement in statements)]
    for statement in statements:
        body: Sequence[Assignment | Call] = statement.body if isinstance(statement, Macro) else [statement]
        local_names = _own_names(statement) if isinstance(statement, Macro) else []
        for call in calls_in(body):
            yield from _call_problems(call, macros)
            if names is not None:
                yield from _function_problems(call.function, macros)
                words = [word for word in call.arguments if isinstance(word, Word)]
                yield from (problem for word in words for problem in _word_problems(word, local_names, top))


def _own_names(macro: Macro) -> list[str]:
    inside = (part.name.text for part in macro.body if isinstance(part, Assignment))
    return [*(word.text for word in macro.parameters), *inside]


def uncalled(macros: Mapping[str, Macro], called: Iterable[Macro]) -> list[Macro]:
    """Return the macros that no call has expanded."""
    known = {macro.name.text.lower() for macro in called}
    return [macro for name, macro in macros.items() if name not in known]


def _call_problems(call: Call, macros: Mapping[str, Macro]) -> Iterator[Diagnostic]:
    function = call.function
    macro, kind = macros.get(function.text.lower()), nodes.find(function.text)
    if macro is not None:
        count, expected = len(call.arguments), len(macro.parameters)
        if count != expected:
            message = f"the macro '{macro.name.text}' takes {expected} argument{'s' * (expected != 1)}, {count} given"
            shown = ", ".join(word.text for word in macro.parameters)
            yield warning("MacroArguments", message, call.place, f"it is {macro.name.text}({shown})")
    elif kind is not None:
        names = ["tag", *(name for option in kind.options for name in (option.name, *option.aliases))]
        for option in call.options:
            name = option.name
            if name.text.lower() != "tag" and kind.option(name.text) is None:
                meant = nearest(name.text, names)
                hint = kind.elsewhere.get(name.text.lower()) or (meant and f"did you mean '{meant}'?")
                message = f"{function.text} has no option '{name.text}'"
                yield warning("IgnoredOption", message, name.place, hint or f"see `cntkpy help {kind.name}`")


def _function_problems(function: Word, macros: Mapping[str, Macro]) -> Iterator[Diagnostic]:
    if function.text.lower() in macros or nodes.find(function.text) is not None:
        return
    meant = nearest(function.text, [*_functions(), *(macro.name.text for macro in macros.values())], MIN_SIMILARITY)
    if meant and not _is_numbered_like(meant, function.text):
        message = f"undefined function or macro '{function.text}'"
        yield warning("UndefinedFunction", message, function.place, f"did you mean '{meant}'?")


def _word_problems(word: Word, local_names: Sequence[str], top: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield a name that is not defined; `local_names`: the names of the macro, `top`: those of the text."""
    known = {name.lower() for name in (*local_names, *top)}
    text = word.text.partition(".")[0]
    if word.quoted or "$" in word.text or NUMBER.fullmatch(word.text) or text.lower() in known:
        return
    meant = nearest(text, local_names or top, MIN_SIMILARITY) if len(text) > 2 else None
    if meant and not _is_numbered_like(meant, text):
        yield warning("UndefinedNode", f"'{text}' is not defined here", word.place, f"did you mean '{meant}'?")


def _is_numbered_like(name: str, other_name: str) -> bool:
    """Return whether two names differ by their numbers: then both exist, one of them elsewhere."""
    return DIGITS.sub("", name.lower()) == DIGITS.sub("", other_name.lower())


@functools.cache
def _functions() -> tuple[str, ...]:
    """Return the names of all functions."""
    return tuple(name for kind in nodes.kinds() if not kind.unsupported for name in kind.names)
