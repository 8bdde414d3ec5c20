"""Contracts of values: bounds of numbers and lists of words that a project demands, checked after layering."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, suggestion
from cntkpy.commands.projects.schema import is_contract
from cntkpy.commands.projects.toml_text import Path_, TomlText


class Contract(NamedTuple):
    """Demand of a project on one value.

    Attributes:
        path: The sections and the name of the value.
        span: The place of the contract.
        name_span: The place of its name.
        low: Least number; None without a bound.
        high: Greatest number.
        choices: Allowed words; empty: any.
        required: True if the value must be given.
    """

    path: tuple[str, ...]
    span: Span
    name_span: Span
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    required: bool = False

    def is_met(self, root: ConfigParameters) -> bool:
        """Return True if a configuration has the value, or cannot be read that far.

        Args:
            root: The configuration, after layering.
        """
        try:
            return self._value(root) is not None
        except ConfigError:
            return True

    def problems(self, root: ConfigParameters) -> Iterator[Diagnostic]:
        """Yield the values of a configuration that break the contract.

        Args:
            root: The configuration, after layering.
        """
        try:
            value = self._value(root)
        except ConfigError:
            return  # found where values are looked at
        name = "/".join(self.path)
        if value is None:
            if self.required:
                message = f"{name} is missing; the project requires it ({self.span})"
                yield Diagnostic("BrokenContract", message, root.span, f"add {name}")
            return
        note = f"the contract stands at {self.span}"
        if self.choices and str(value).lower() not in (word.lower() for word in self.choices):
            hint = suggestion(str(value), self.choices) or f"write one of {', '.join(self.choices)}"
            message = f"{name} is '{value}'; the project allows {', '.join(self.choices)} ({self.span})"
            yield Diagnostic("BrokenContract", message, value.span, hint, (note,))
        if self.low is not None or self.high is not None:
            yield from self._bound_problems(name, value, note)

    def _bound_problems(self, name: str, value: ConfigValue, note: str) -> Iterator[Diagnostic]:
        try:
            numbers = value.as_array().doubles().distinct()
        except ConfigError as error:
            message = f"{name} is '{value}'; the project demands numbers ({self.span})"
            yield Diagnostic("BrokenContract", message, error.span or value.span, error.hint, (note,))
            return
        for number in numbers:
            if self.low is not None and not number >= self.low:
                bound = f"at least {self.low:g}"
            elif self.high is not None and not number <= self.high:
                bound = f"at most {self.high:g}"
            else:
                continue
            message = f"{name} is {number:g}; the project demands {bound} ({self.span})"
            yield Diagnostic("BrokenContract", message, value.span, f"write {bound}, or change the contract", (note,))
            return

    def _value(self, root: ConfigParameters) -> ConfigValue | None:
        section = root
        *sections, name = self.path
        for step in sections:
            if not section.exists_current(step):
                return None
            section = section.section(step)
        return section.find(name)


def contracts_of(text: TomlText, table: Mapping[str, Any], prefix: Path_) -> tuple[Contract, ...]:
    """Return the contracts of the table `[types]`.

    Args:
        text: The file.
        table: The table; what is wrong in it is left out.
        prefix: Its path.
    """
    return tuple(_contracts(text, table, prefix, ()))


def _contracts(text: TomlText, table: Mapping[str, Any], prefix: Path_, steps: tuple[str, ...]) -> Iterator[Contract]:
    for name, value in table.items():
        path = (*prefix, name)
        inside = (*steps, *re.split("[./:]", name))
        if isinstance(value, str):
            yield Contract(inside, text.value(*path), text.key(*path), choices=_words(value))
        elif isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            if is_contract(inner):
                yield Contract(
                    inside,
                    text.value(*path),
                    text.key(*path),
                    _number(inner.get("min")),
                    _number(inner.get("max")),
                    _words(inner.get("choices", "")),
                    inner.get("required") is True,
                )
            else:
                yield from _contracts(text, inner, path, inside)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _words(text: Any) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|") if word.strip()) if isinstance(text, str) else ()
