"""Pictures of reports as files of their own, in the colours of light or of dark pages."""

from __future__ import annotations

import re
from pathlib import Path

from cntkpy.cntk_config.base.files import read_input

THEMES = ("light", "dark")
_STYLE = Path(__file__).parent / "report.css"
_PALETTE = re.compile(r":root \{\n([^}]*)\}")
_RULE = re.compile(
    r"^(?:svg\.curves text|\.(?:grid|line|color\d|validation|progress|box|edge|head)\b).*$", re.MULTILINE
)


def standalone(svg: str, theme: str = "light", rules: str = "") -> str:
    """Return a picture with the rules of the report's page that it needs.

    Args:
        svg: the element, as a page has it.
        theme: one of `THEMES`.
        rules: more rules of CSS, which may use the variables of the page.
    """
    css = read_input(_STYLE).decode()
    light, dark = _PALETTE.findall(css.replace("\n  :root", "\n:root").replace("\n  }", "\n}"))
    palette = light if theme == "light" else light + dark
    values = dict(re.findall(r"(?<![\w-])(--[\w-]+): ([^;]+);", palette))
    every = "\n".join(_RULE.findall(css))
    style = re.sub(r"var\((--[\w-]+)\)", lambda match: values[match[1]], f"{every}\n{rules}")
    head, _, content = svg.partition(">")
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{head}>\n<style>\n{style}</style>\n{content}\n"
