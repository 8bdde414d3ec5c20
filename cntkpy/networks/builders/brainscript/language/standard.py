"""The classes that make numbers and texts: what `new StringFunction [ what = 'Replace' ; ... ]` and others give."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from typing import Any

from cntkpy.networks.builders.brainscript.language.evaluate import MAX_TEXT, Class, Evaluator, Step
from cntkpy.networks.builders.brainscript.language.parameters import flattened, integer, of_type, parameter, place_of
from cntkpy.networks.builders.brainscript.language.printing import text_of
from cntkpy.networks.builders.brainscript.language.values import Array, Effect, Origin, Record, kind_of, number_text

log = logging.getLogger("cntkpy.networks")

Maker = Callable[[Evaluator, Record, Origin], Step]

FORMAT = re.compile(r"[-+ #0]*[0-9]{0,4}(?:\.[0-9]{0,4})?")


def _choice(evaluator: Evaluator, record: Record, origin: Origin, makers: dict[str, Maker]) -> Step:
    """Return the value of the function that the parameter `what` names."""
    kind = yield of_type(evaluator, str, record, "what", origin)
    if kind not in makers:
        place, scope = place_of(evaluator, record, "what", origin)
        known = ", ".join(makers)
        raise evaluator.messages.error(
            "BadValue", f"'{kind}' is not a possible value of 'what'", place, scope, f"possible: {known}"
        )
    return (yield makers[kind](evaluator, record, origin))


def _class(**makers: Maker) -> Class:
    return Class(lambda evaluator, record, origin: _choice(evaluator, record, origin, makers))


# ---------------------------------------------------------------------------------------------------------------- texts


def _format(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return a value as text; `how` is the middle of a printf directive."""
    value = yield parameter(evaluator, record, "arg", origin)
    how = yield of_type(evaluator, str, record, "how", origin)
    if not FORMAT.fullmatch(how):
        place, scope = place_of(evaluator, record, "how", origin)
        hint = "only what is between '%' and the letter in C: '.2', '5', '-8'"
        raise evaluator.messages.error("BadValue", f"'{how}' is no format", place, scope, hint)
    if type(value) is float:
        return _formatted(value, how)
    text = value if type(value) is str else (yield text_of(evaluator, value, origin))
    return f"%{how.replace('+', '').replace('0', '', 1) if how[:1] in '+0' else how}s" % text


def _formatted(value: float, how: str) -> str:
    """Return a number as printf writes it: `d` if it is whole (and within 32 bits), else `f`."""
    flags = how[: len(how) - len(how.lstrip("-+ #0"))]
    form = how[len(flags) :]
    if math.isfinite(value):
        whole = number_text(value).lstrip("-").isdigit()
        if whole and "." in form:  # the precision gives the zeros
            flags = flags.replace("0", "")
        return f"%{flags}{form}d" % int(value) if whole else f"%{flags}{form}f" % value
    text = number_text(value)
    sign = "" if text.startswith("-") else "+" if "+" in flags else " " if " " in flags else ""
    return f"%{'-' if '-' in flags else ''}{form.partition('.')[0]}s" % (sign + text)


def _replace(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return all occurrences of a text replaced."""
    text = yield of_type(evaluator, str, record, "arg", origin)
    pattern = yield of_type(evaluator, str, record, "replacewhat", origin)
    by = yield of_type(evaluator, str, record, "withwhat", origin)
    if not pattern:
        return text
    if len(text) + text.count(pattern) * len(by) > MAX_TEXT:
        raise evaluator.messages.error(
            "TooMany", f"a text of more than {MAX_TEXT} characters", origin.place, origin.scope
        )
    return text.replace(pattern, by)


def _substr(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return some characters; a negative begin counts from the end, a negative number means all that follow."""
    text = yield of_type(evaluator, str, record, "arg", origin)
    begin = yield integer(evaluator, record, "pos", origin)
    count = yield integer(evaluator, record, "chars", origin)
    begin = max(0, begin + len(text)) if begin < 0 else begin
    return text[begin:] if count < 0 else text[begin : begin + count]


def _chr(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return one character."""
    code = yield integer(evaluator, record, "arg", origin)
    if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        place, scope = place_of(evaluator, record, "arg", origin)
        raise evaluator.messages.error("BadValue", f"there is no character of number {code}", place, scope)
    return chr(code)


# -------------------------------------------------------------------------------------------------------------- numbers


def _floor(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the largest whole number that is not larger."""
    value: float = yield of_type(evaluator, float, record, "arg", origin)
    return float(math.floor(value)) if math.isfinite(value) else value


def _length(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the number of elements of an array, or of characters of a text."""
    value = yield parameter(evaluator, record, "arg", origin)
    place, scope = place_of(evaluator, record, "arg", origin)
    if type(value) is str:
        return float(len(value))
    if type(value) is not Array:
        message = f"a length is that of an array or of a text, not of {kind_of(value)}"
        raise evaluator.messages.error("NoArray", message, place, scope, "an array of one element is [| x |]")
    if value.first != 0:
        message = f"Length needs an array that starts at index 0, this one starts at {value.first}"
        raise evaluator.messages.error("BadIndex", message, place, scope)
    return float(len(value.items))


def _two_integers(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    value = yield parameter(evaluator, record, "args", origin)
    place, scope = place_of(evaluator, record, "args", origin)
    numbers = yield flattened(evaluator, value, place, scope, "numbers")
    if len(numbers) != 2:
        raise evaluator.messages.error("BadValue", f"two numbers are expected, {len(numbers)} given", place, scope)
    for number in numbers:
        if type(number) is not float or not number.is_integer():
            description = number_text(number) if type(number) is float else kind_of(number)
            raise evaluator.messages.error(
                "NoInteger", f"expected integer: {description} is not a whole number", origin.place, origin.scope
            )
    if numbers[1] == 0:
        raise evaluator.messages.error("BadValue", "a whole number cannot be divided by 0", origin.place, origin.scope)
    return int(numbers[0]), int(numbers[1])


def _mod(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the remainder, with the sign of the dividend."""
    a, b = yield _two_integers(evaluator, record, origin)
    return float(abs(a) % abs(b) if a >= 0 else -(abs(a) % abs(b)))


def _int_div(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return the quotient without its fraction."""
    a, b = yield _two_integers(evaluator, record, origin)
    quotient = abs(a) // abs(b)
    return float(quotient if (a < 0) == (b < 0) else -quotient)


# ---------------------------------------------------------------------------------------------------------- comparisons


def _same(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Return whether two values are the same one: numbers that were computed twice are not."""
    args = yield parameter(evaluator, record, "args", origin)
    place, scope = place_of(evaluator, record, "args", origin)
    if type(args) is not Array or len(args.items) != 2:
        raise evaluator.messages.error("BadValue", "two values are expected", place, scope)
    values: list[Any] = []
    for item in args.items:
        values.append((yield evaluator.forced(item, place)))
    a, b = values
    return a is b or (type(a) is type(b) and isinstance(a, str | bool) and a == b)


def _is(kind: type) -> Maker:
    def maker(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
        return type((yield parameter(evaluator, record, "arg", origin))) is kind

    return maker


# -------------------------------------------------------------------------------------------------------------- effects


def _print(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    value = yield parameter(evaluator, record, "what", origin)
    text = yield text_of(evaluator, value, origin)
    if evaluator.prints:
        log.info("%s", text)
    return Effect()


def _fail(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    message = yield of_type(evaluator, str, record, "what", origin)
    place, scope = origin.place, origin.scope
    raise evaluator.messages.error("Fail", message, place, scope)


def _debug(evaluator: Evaluator, record: Record, origin: Origin) -> Step:
    """Prints a value and gives it."""
    value = yield parameter(evaluator, record, "value", origin)
    enabled = yield of_type(evaluator, bool, record, "enabled", origin, True)
    say = yield of_type(evaluator, str, record, "say", origin, "")
    if enabled and evaluator.prints:
        text = yield text_of(evaluator, value, origin)
        log.info("%s%s", say and f"{say} ", text)
    return value


CLASSES: dict[str, Class] = {
    "StringFunction": _class(Format=_format, Chr=_chr, Substr=_substr, Replace=_replace),
    "NumericFunction": _class(Floor=_floor, Length=_length, Mod=_mod, IntDiv=_int_div),
    "CompareFunction": _class(IsSameObject=_same, IsArray=_is(Array), IsDouble=_is(float), IsBool=_is(bool)),
    "PrintAction": Class(_print),
    "FailAction": Class(_fail),
    "Debug": Class(_debug),
}
