"""Tags and arrays of NDL that name a group of nodes, or fail to."""

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import Diagnostic, nearest, suggestion
from cntkpy.networks.builders.ndl.groups import ARRAYS, GROUP_ARRAYS
from cntkpy.networks.builders.ndl.parse import Option, Word
from cntkpy.networks.builders.ndl.scope import Constant, Reference, Value
from cntkpy.networks.builders.ndl.text import error, warning
from cntkpy.networks.graph.network import GROUPS


def tagged_group(option: Option, value: Value) -> str:
    """Return the group that a tag names; "" for a tag without a group."""
    word = value.word if isinstance(value, Reference | Constant) else option.name
    tag = word.text.lower()
    group = "criterion" if tag == "criteria" else "evaluation" if tag.startswith("eval") else tag
    if group not in (*GROUPS, "multiseq"):
        hint = suggestion(word.text, GROUPS)
        raise error("BadTag", f"unknown tag '{word.text}'; the tags are {', '.join(GROUPS)}", word.place, hint)
    return group if group in GROUPS else ""


def array_without_effect(name: Word) -> list[Diagnostic]:
    """Return a warning of an array that names no group, because it is inside a macro or its name is misspelt."""
    if name.text.lower() in ARRAYS:
        message, hint = f"'{name.text}' has no effect inside a macro", "use the option tag= there"
    elif meant := nearest(name.text, GROUP_ARRAYS):
        message, hint = f"'{name.text}' is not the name of a group of nodes", f"did you mean '{meant}'?"
    else:
        return []
    return [warning("UnknownGroup", message, name.place, hint)]
