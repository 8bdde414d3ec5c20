"""Numbers and texts of NDL, read as the type that a function declares."""

from __future__ import annotations

import re

from cntkpy.cntk_config.base.diagnostics import ConfigError, suggestion
from cntkpy.networks.builders.ndl.scope import Constant, Reference, followed
from cntkpy.networks.builders.ndl.text import error
from cntkpy.networks.nodes.declare import BOOLEAN, INTEGER, PATH, REAL, TEXT

Scalar = str | bool | int | float

INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,18}")
REAL_TEXT = re.compile(
    r"([+-]?)(?:(0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?)|((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))(#[iI][nN][fF])?"
)
INFINITY = re.compile(r"([+-]?)(inf|infinity|#inf|nan)", re.IGNORECASE)
BOOLEANS_TEXT = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE", ""), False),
}


def convert_word(value: Constant | Reference, type_: str, where: str, choices: tuple[str, ...] = ()) -> Scalar:
    """Return a number or a text as the declared type; a name that stands for no constant is a text."""
    word = value.word
    text = word.text
    if choices:
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        message = f"{value.shown} is not a value of {where}; permitted: {', '.join(choices)}"
        hint = suggestion(text, choices)
        if text.lower() == "none" and "zero" in choices:
            hint = "write init=zero for zeros, or leave init out"
        raise error("BadValue", message, value.place, hint)
    if type_ in (TEXT, PATH):
        return text
    if type_ == BOOLEAN:
        if text in BOOLEANS_TEXT:
            return BOOLEANS_TEXT[text]
        raise error(
            "BadBoolean", f"boolean expected for {where}, not {value.shown}", value.place, hint="write true or false"
        )
    if type_ == REAL and (number := parse_real(text)) is not None:
        return number
    if type_ == INTEGER and INTEGER_TEXT.fullmatch(text):
        return int(text)
    if isinstance(value, Reference) and not word.quoted and not text[:1].isdigit():
        raise _no_constant(value, where)
    if type_ == INTEGER:
        number = parse_real(text)
        hint = f"write {number:.0f}" if number is not None and abs(number) < 1e9 and number == int(number) else None
        raise error("BadInteger", f"whole number expected for {where}, not {value.shown}", value.place, hint)
    raise error("BadNumber", f"number expected for {where}, not {value.shown}", value.place)


def _no_constant(value: Reference, where: str) -> ConfigError:
    word, scope = value.word, value.scope
    later = scope.symbols.get(word.text.lower())
    if later is not None and isinstance(later.value, Constant):
        hint = f"it is defined later, at {later.name.place.short}; a constant must be defined before its use"
    else:
        constants = [s.name.text for s in scope.symbols.values() if isinstance(followed(s.value), Constant)]
        hint = suggestion(word.text, constants)
        outer = [s for s in scope.chain() if s is not scope and word.text.lower() in s.symbols]
        if outer and scope.owner is not None:
            hint = "a macro does not see the constants of the script; hand it over as an argument"
    message = f"scalar expected for {where}: '{word.text}' must be a number or a constant"
    return error("ConstantExpected", message, word.place, hint)


def parse_real(text: str) -> float | None:
    """Return a C floating literal, also with `#INF` after it; None if it is none."""
    if match := INFINITY.fullmatch(text):
        return float("nan") if match[2].lower() == "nan" else float(match[1] + "inf")
    match = REAL_TEXT.fullmatch(text)
    if match is None:
        return None
    if match[4]:
        return float(match[1] + "inf")
    try:
        return float.fromhex(match[1] + match[2]) if match[2] else float(match[1] + match[3])
    except (ValueError, OverflowError):
        return None
