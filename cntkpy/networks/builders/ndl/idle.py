"""What is wrong in NDL that is read and not expanded: macros that nothing calls, files opened by themselves, commands.

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
"""How alike two names are if one is meant to be the other, 0 to 1."""
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
    macros = {**macros, **{one.name.text.lower(): one for one in statements if isinstance(one, Macro)}}
    top = [*(names or ()), *(one.name.text for one in statements)]
    for one in statements:
        body: Sequence[Assignment | Call] = one.body if isinstance(one, Macro) else [one]
        own = _own_names(one) if isinstance(one, Macro) else []
        for call in calls_in(body):
            yield from _call_problems(call, macros)
            if names is not None:
                yield from _function_problems(call.function, macros)
                words = [word for word in call.arguments if isinstance(word, Word)]
                yield from (found for word in words for found in _word_problems(word, own, top))


def _own_names(macro: Macro) -> list[str]:
    inside = (part.name.text for part in macro.body if isinstance(part, Assignment))
    return [*(word.text for word in macro.parameters), *inside]


def uncalled(macros: Mapping[str, Macro], called: Iterable[Macro]) -> list[Macro]:
    """The macros that no call has expanded."""
    known = {one.name.text.lower() for one in called}
    return [macro for name, macro in macros.items() if name not in known]


def _call_problems(call: Call, macros: Mapping[str, Macro]) -> Iterator[Diagnostic]:
    function = call.function
    macro, kind = macros.get(function.text.lower()), nodes.find(function.text)
    if macro is not None:
        given, expected = len(call.arguments), len(macro.parameters)
        if given != expected:
            message = f"the macro '{macro.name.text}' takes {expected} argument{'s' * (expected != 1)}, {given} given"
            shown = ", ".join(word.text for word in macro.parameters)
            yield warning("MacroArguments", message, call.place, f"it is {macro.name.text}({shown})")
    elif kind is not None:
        names = ["tag", *(name for one in kind.options for name in (one.name, *one.aliases))]
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
    meant = nearest(function.text, [*_functions(), *(one.name.text for one in macros.values())], MIN_SIMILARITY)
    if meant and not _is_numbered_like(meant, function.text):
        message = f"undefined function or macro '{function.text}'"
        yield warning("UndefinedFunction", message, function.place, f"did you mean '{meant}'?")


def _word_problems(word: Word, own: Sequence[str], top: Sequence[str]) -> Iterator[Diagnostic]:
    """A name that is not defined; `own`: the names of the macro, `top`: those of the text."""
    known = {name.lower() for name in (*own, *top)}
    text = word.text.partition(".")[0]
    if word.quoted or "$" in word.text or NUMBER.fullmatch(word.text) or text.lower() in known:
        return
    meant = nearest(text, own or top, MIN_SIMILARITY) if len(text) > 2 else None
    if meant and not _is_numbered_like(meant, text):
        yield warning("UndefinedNode", f"'{text}' is not defined here", word.place, f"did you mean '{meant}'?")


def _is_numbered_like(name: str, other: str) -> bool:
    """Whether two names differ by their numbers: then both exist, one of them elsewhere."""
    return DIGITS.sub("", name.lower()) == DIGITS.sub("", other.lower())


@functools.cache
def _functions() -> tuple[str, ...]:
    """The names of all functions."""
    return tuple(name for kind in nodes.kinds() if not kind.unsupported for name in kind.names)
