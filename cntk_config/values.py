"""A value: the text of an entry, which becomes a number, a list or a section when somebody asks for it."""

from __future__ import annotations

import math
import re
from array import array
from typing import TYPE_CHECKING

from cntk_config.base import grammars
from cntk_config.base.diagnostics import ConfigError, Span, shorten
from cntk_config.base.source import Fragment
from cntk_config.entries import Entry, Origin

if TYPE_CHECKING:
    from cntk_config.arrays import ConfigArray
    from cntk_config.parameters import ConfigParameters

INTEGER = grammars.terminal("config", "INTEGER")
REAL = grammars.terminal("config", "REAL")
INFINITE = grammars.terminal("config", "INFINITE")
TRUE = grammars.terminal("config", "TRUE")
FALSE = grammars.terminal("config", "FALSE")
WHITE = " \t\n\r\f\v"
SIZE_MAXIMUM = 2**64 - 1


class ConfigValue(str):
    """The text of a value, after substitution, which knows its place and converts itself.

    It is a `str` and works as one. `int(v)`, `float(v)` and the `as_...` methods convert the whole text, or raise a
    `ConfigError` that names the parameter and its place in the user's file.
    """

    __slots__ = ("entry", "fragments", "path", "scope")

    path: str
    """The full name, for instance `main.cntk:train:SGD:maxEpochs`."""
    fragments: tuple[Fragment, ...]
    scope: ConfigParameters | None
    """The set that becomes the parent when the value is read as a section."""
    entry: Entry | None

    def __new__(
        cls,
        text: str = "",
        *,
        path: str = "",
        fragments: tuple[Fragment, ...] = (),
        scope: ConfigParameters | None = None,
        entry: Entry | None = None,
    ) -> ConfigValue:
        """A value; a program needs only `ConfigValue("text")`, the rest is filled in by the parser."""
        value = super().__new__(cls, text)
        value.path, value.fragments, value.scope = path, fragments, scope
        value.entry = entry
        return value

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    # ------------------------------------------------------------------------------------------------- places

    @property
    def span(self) -> Span | None:
        """Where the value is in the user's text; None for a default of the program."""
        return self.fragments[0].span if self.fragments else None

    def locate(self, offset: int, length: int = 1) -> Span | None:
        """Where the character at `offset` of this text is in the user's file.

        For a character that came out of a variable, that is the place of `$name$`.
        """
        for fragment in self.fragments:
            size = fragment.end - fragment.start
            if offset <= size:
                return fragment.text.span(fragment.start + max(0, offset), length)
            offset -= size + 1
        return self.fragments[-1].text.span(self.fragments[-1].end, length) if self.fragments else None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where the value comes from: the last definition first, what it overrode, the variables put in."""
        history = self.entry.history if self.entry else ()
        variables: dict[str, Origin] = {}
        pending = [use for fragment in self.fragments for use in fragment.uses][::-1]
        while pending:
            use = pending.pop()
            if use.name.lower() not in variables:
                variables[use.name.lower()] = Origin("variable", use.name, use.text, use.span)
                pending.extend(reversed(use.inner))
        return (*history, *variables.values())

    def error(self, kind: str, message: str, hint: str | None = None) -> ConfigError:
        """A `ConfigError` at this value; the message gets the full name in front."""
        uses = [use for fragment in self.fragments for use in fragment.uses]
        notes = [f"${use.name}$ is '{shorten(use.text)}', defined at {use.span}" for use in uses[:3]]
        return ConfigError(kind, f"{self.path}: {message}" if self.path else message, self.span, hint, notes)

    # ------------------------------------------------------------------------------------------------ numbers

    def __int__(self) -> int:
        return self.as_int64()

    def __float__(self) -> float:
        return self.as_double()

    def as_int(self) -> int:
        """A 32-bit integer."""
        return self._integer(-(2**31), 2**31 - 1)

    def as_uint(self) -> int:
        """An unsigned 32-bit integer."""
        return self._integer(0, 2**32 - 1)

    def as_short(self) -> int:
        """A 16-bit integer."""
        return self._integer(-(2**15), 2**15 - 1)

    def as_int64(self) -> int:
        """A 64-bit integer."""
        return self._integer(-(2**63), 2**63 - 1)

    def as_size(self) -> int:
        """An unsigned 64-bit integer; -1 means the greatest one."""
        return self._integer(0, SIZE_MAXIMUM, minus_one=True)

    def as_double(self) -> float:
        """A number as C's strtod reads it, including hexadecimal, `inf`, `nan` and `1#INF`."""
        text = self.strip(WHITE)
        if not REAL.fullmatch(text):
            found = INFINITE.fullmatch(text)
            if not found:
                raise self.error("BadNumber", f"'{shorten(self)}' is not a number", self._number_hint(text))
            return -math.inf if found["sign"] == "-" else math.inf
        try:
            return float.fromhex(text) if "x" in text.lower() else float(re.sub(r"(?i)(nan)\(.*", r"\1", text))
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf

    def as_float(self) -> float:
        """A number rounded to 32 bits."""
        value = self.as_double()
        return array("f", [value])[0] if math.isfinite(value) else value

    def as_bool(self) -> bool:
        """A truth value: 1 t T true True TRUE, or 0 f F false False FALSE and the empty text."""
        text = self.strip(WHITE)
        if TRUE.fullmatch(text):
            return True
        if FALSE.fullmatch(text) or not text:
            return False
        raise self.error("BadBoolean", f"'{shorten(self)}' is not a boolean", "write true or false")

    def _integer(self, low: int, high: int, minus_one: bool = False) -> int:
        text = self.strip(WHITE)
        if not INTEGER.fullmatch(text):
            hint = "write a whole number with digits only"
            if REAL.fullmatch(text) and math.isfinite(value := self.as_double()) and value == int(value):
                hint = f"write {int(value)}" if abs(value) < 1e18 else hint
            raise self.error("BadInteger", f"'{shorten(self)}' is not an integer", hint)
        sign, digits = text[0] == "-", text.lstrip("+-").lstrip("0") or "0"
        value = int(digits) if len(digits) <= 20 else 10**20
        value = -value if sign else value
        if value == -1 and minus_one:
            return high
        if not low <= value <= high:
            raise self.error("IntegerRange", f"{shorten(text)} is out of range, {low} to {high}")
        return value

    def _number_hint(self, text: str) -> str:
        if "," in text and REAL.fullmatch(text.replace(",", ".")):
            return "use a point, not a comma, for fractions"
        return "write a number such as 3, 0.5 or 1e-4"

    # ------------------------------------------------------------------------------------- compound values

    def as_text(self) -> str:
        """The plain `str`."""
        return str.__str__(self)

    def as_array(self) -> ConfigArray:
        """The elements, for instance of `1:2*3`, `(a, b)` or `([x=1]:[x=2])`."""
        from cntk_config.arrays import ConfigArray

        return ConfigArray(self)

    def as_section(self) -> ConfigParameters:
        """The value as a set of parameters."""
        from cntk_config.parameters import ConfigParameters

        return ConfigParameters.from_value(self)

    def as_sections(self) -> list[ConfigParameters]:
        """An array of sets, for instance `([x=1]:[x=2])`. They have no parent: names are not searched outside."""
        return self.as_array().sections()
