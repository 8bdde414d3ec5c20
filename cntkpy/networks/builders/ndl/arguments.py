"""Arguments and options of calls of NDL: the form that fits, and values of the declared types."""

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.networks.builders.ndl.parse import Word
from cntkpy.networks.builders.ndl.scalars import Scalar, convert_word
from cntkpy.networks.builders.ndl.scope import Constant, Expansion, NodeCall, Reference, Value, Values, followed
from cntkpy.networks.builders.ndl.text import Place, error, warning
from cntkpy.networks.nodes import NodeKind
from cntkpy.networks.nodes.declare import BOOLEAN, BOOLEANS, INTEGER, INTEGERS, NODE, PATH, TEXT, Argument, Signature

ELEMENT = {INTEGERS: INTEGER, BOOLEANS: BOOLEAN}

OptionValue = Scalar | tuple["OptionValue", ...]


class Arguments:
    """Reads arguments and options of calls.

    Args:
        expansion: takes warnings.
        strict: an option that a function does not know is an error among the expansion's warnings.
    """

    def __init__(self, expansion: Expansion, strict: bool) -> None:
        self.expansion = expansion
        self.strict = strict
        self._warned: set[tuple[str, str]] = set()

    def scalars(self, kind: NodeKind, call: NodeCall) -> dict[str, OptionValue]:
        """Return the values of scalar arguments and of options, by declared name."""
        values: dict[str, OptionValue] = {}
        for argument, arguments in matched(signature_of(kind, call), call):
            if argument.type == NODE:
                continue
            where = f"'{argument.name}' of {call.call.function.text}"
            read = [self._convert(value, argument.type, where, argument.choices, place) for value, place in arguments]
            values[argument.name] = tuple(read) if argument.many else read[0]
        return values | self._options(kind, call)

    def _options(self, kind: NodeKind, call: NodeCall) -> dict[str, OptionValue]:
        result: dict[str, OptionValue] = {}
        for option, value in call.options:
            declared = kind.option(option.name.text)
            if declared is None:
                self._unknown_option(kind, call, option.name)
            elif declared.name not in result:  # the first one wins
                where = f"the option '{declared.name}' of {call.call.function.text}"
                place = option.value.place
                if declared.ignored and self.strict:
                    message = f"{where} has no effect"
                    self.expansion.warnings.append(
                        error("IgnoredParameter", message, place, declared.ignored).diagnostic
                    )
                result[declared.name] = self._convert(value, declared.type, where, declared.choices, place)
        return result

    def _unknown_option(self, kind: NodeKind, call: NodeCall, name: Word) -> None:
        message = f"{call.call.function.text} has no option '{name.text}'; it is ignored"
        hint = kind.elsewhere.get(name.text.lower()) or suggestion(
            name.text, ["tag", *(o.name for o in kind.options), *(a for o in kind.options for a in o.aliases)]
        )
        if self.strict:
            diagnostic = error("IgnoredOption", message.removesuffix("; it is ignored"), name.place, hint).diagnostic
            self.expansion.warnings.append(diagnostic)
            return
        key = (kind.name, name.text.lower())
        if key not in self._warned:
            self._warned.add(key)
            self.expansion.warnings.append(warning("IgnoredOption", message, name.place, hint))

    def _convert(self, value: Value, type_: str, where: str, choices: tuple[str, ...], place: Place) -> OptionValue:
        """Return a value as the declared type."""
        if type_ in ELEMENT:
            items = value.items if isinstance(value, Values) else (value,)
            return tuple(self._convert(item, ELEMENT[type_], where, (), place) for item in items)
        if isinstance(value, Constant | Reference):
            if isinstance(value, Reference) and type_ not in (TEXT, PATH, BOOLEAN) and not choices:
                self.expansion.require_known(value.word, value.scope)
            return convert_word(value, type_, where, choices)
        if isinstance(value, Values):
            raise error("BadValue", f"{where} takes one value, not an array", value.place)
        word = value.call.place
        subject = f"'{value.local or word.one_line}'"
        message = f"scalar expected for {where}: {subject} is a node, it must be a number or a constant"
        raise error("ConstantExpected", message, place)


def signature_of(kind: NodeKind, call: NodeCall) -> Signature:
    """Return the form of the function that fits the positional arguments."""
    count = len(call.arguments)
    fitting = [s for s in kind.signatures if count == len(s) or (s and s[-1].many and count > len(s))]
    for signature in fitting:  # of several, the one that takes numbers where numbers are
        pairs = zip(signature, call.arguments, strict=False)
        if len(fitting) == 1 or all(isinstance(followed(v), Constant) == (a.type != NODE) for a, v in pairs):
            return signature
    if fitting:
        return fitting[0]
    function = call.call.function.text
    counts = sorted({f"{len(s)} or more" if s and s[-1].many else str(len(s)) for s in kind.signatures})
    expected = " or ".join(counts)
    if all(argument.type == NODE for signature in kind.signatures for argument in signature):
        message = f"{function} '{call.name}' expects {expected} input{'' if expected == '1' else 's'}, {count} given"
    else:
        message = f"{function} expects {expected} positional argument{'' if expected == '1' else 's'}, {count} given"
    message += f" in '{call.call.place.one_line}'"
    raise error("FunctionArguments", message, call.call.place, hint=f"usage: {kind.usage()}")


def matched(signature: Signature, call: NodeCall) -> list[tuple[Argument, list[tuple[Value, Place]]]]:
    """Return the declared arguments with the values given for them, and where these stand."""
    values = [(value, word.place) for value, word in zip(call.arguments, call.call.arguments, strict=True)]
    return [(argument, values[i:] if argument.many else [values[i]]) for i, argument in enumerate(signature)]
