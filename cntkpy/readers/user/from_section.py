"""Objects of users' classes, made from a configuration section."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.readers.common.user_code import place_of

CONVERSIONS: dict[str, Callable[[ConfigValue], Any]] = {
    "int": ConfigValue.as_int,
    "float": ConfigValue.as_double,
    "bool": ConfigValue.as_bool,
    "str": str,
}


def construct(component: Any, section: ConfigParameters) -> Any:
    """Return an object of a class whose constructor takes its arguments from a section.

    An argument called `section` is the section itself; others are taken from it by name, and converted as their
    annotation (or else their default) says: int, float, bool or str; list and dict. Without either, an array is a list,
    a section a dictionary, and what looks like a number a number.
    """
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(component).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name == "section":
            arguments[name] = section
            continue
        value = section.own(name) if section.exists_current(name) else None
        if value is not None:
            arguments[name] = _convert(value, parameter)
        elif parameter.default is parameter.empty:
            message, hint = f"is missing; {component.__name__}({name}=...) needs it", f"write {name}=... in the section"
            raise section.error(name, message, hint, "MissingParameter")
    try:
        return component(**arguments)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            "UserCode",
            f"{component.__name__} cannot be made: {type(error).__name__}: {error}",
            span=section.span,
            notes=place_of(error),
        ) from error


def _convert(value: ConfigValue, parameter: inspect.Parameter) -> Any:
    wanted = parameter.annotation
    name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", "")
    if wanted is parameter.empty and parameter.default is not parameter.empty and parameter.default is not None:
        name = type(parameter.default).__name__
    if name in CONVERSIONS:
        return CONVERSIONS[name](value)
    base = name.partition("[")[0].lower()
    if base in STRUCTURES or (wanted is parameter.empty and value.lstrip()[:1] in ("(", "[", "{")):
        return structured(value, as_list=base in ("list", "tuple", "sequence"))
    if wanted is parameter.empty:
        return _plain(value)
    return str(value)


STRUCTURES = ("list", "tuple", "dict", "sequence", "mapping", "any")
"""Annotations of arguments that are lists and dictionaries."""


def structured(value: ConfigValue, as_list: bool = False) -> Any:
    """Return a value as Python has it: an array as a list, a section as a dictionary, a number as a number, else a
    text.

    Args:
        value: the value.
        as_list: a single value is a list of one.
    """
    text = value.strip()
    if text[:1] == "(":
        return [structured(element) for element in value.as_array()]
    if text[:1] in ("[", "{"):
        section = value.as_section()
        values: dict[str, Any] = {}
        for name in section.names():
            local = section.own(name)
            values[name] = None if local is None else structured(local)
        return [values] if as_list else values
    return [_plain(element) for element in value.as_array()] if as_list else _plain(value)


def _plain(value: ConfigValue) -> Any:
    """Return a number if it looks like one, else a text."""
    for number in (int, float):
        try:
            return number(str(value))
        except ValueError:
            continue
    return str(value)
