"""Tables of parameters for the documentation, made from the declarations.

A page says where a table belongs: `<!-- parameters: module:Class -->` ... `<!-- end -->`.
"""

import re
from typing import Any

from cntkpy.cntk_config.base.objects import load_object
from cntkpy.cntk_config.declare import Declared, Parameter

MARKED = re.compile(r"(<!-- parameters: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def ordered(declared: type[Declared]) -> list[Parameter[Any]]:
    """The parameters of a section: required ones first, those that change nothing last."""
    return sorted(declared.parameters(), key=lambda one: (not one.required, bool(one.ignored)))


def markdown_table(declared: type[Declared]) -> str:
    """The parameters of a section as a table."""
    lines = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for one in ordered(declared):
        default = "**required**" if one.required else f"`{one.default}`" if one.default else ""
        names = ", ".join(f"`{name}`" for name in (one.name, *one.aliases))
        cells = (names, one.type.name.replace("|", "\\|"), default.replace("|", "\\|"), one.help.replace("|", "\\|"))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_tables(page: str) -> str:
    """A page with its tables as the declarations are now."""
    return MARKED.sub(lambda found: f"{found[1]}{markdown_table(load_object(found[2]))}\n{found[3]}", page)
