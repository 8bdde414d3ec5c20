"""The lists of the page about ONNX, from the tables of rules: what is exported, what is not and why, what is read.

The page says where they belong: `<!-- onnx: exported -->`, `refused` or `read` ... `<!-- end -->`.
"""

import re

from cntkpy.networks import nodes
from cntkpy.networks.onnx.reading import constants, load
from cntkpy.networks.onnx.table import REFUSED, RULES

MARKED = re.compile(r"(<!-- onnx: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def exported() -> str:
    """The operations with a rule, by family."""
    families: dict[str, list[str]] = {}
    for kind in nodes.kinds():
        if kind.name in RULES:
            families.setdefault(nodes.heading(kind), []).append(f"`{kind.name}`")
    lines = ["| family | operations |", "|---|---|"]
    return "\n".join([*lines, *(f"| {family} | {', '.join(names)} |" for family, names in families.items())])


def refused() -> str:
    """The operations without one, with the reason."""
    lines = ["| operation | why it cannot be exported |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {why} |" for name, why in REFUSED.items())])


def read() -> str:
    """The ONNX operators that are read."""
    return ", ".join(f"`{name}`" for name in sorted({*constants.RULES, *load.RULES}))


MAKERS = {"exported": exported, "refused": refused, "read": read}


def with_lists(page: str) -> str:
    """A page with its lists as the rules are now."""
    return MARKED.sub(lambda found: f"{found[1]}{MAKERS[found[2]]()}\n{found[3]}", page)
