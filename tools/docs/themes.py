"""Pictures in the colours of light and of dark pages, those of `cntkpy report`."""

from __future__ import annotations

import re
from pathlib import Path

THEMES = ("light", "dark")
STYLE = Path(__file__).resolve().parents[2] / "cntkpy/commands/report/report.css"
LARGER = """\
svg.curves text { font-size: 16px; font-family: system-ui, sans-serif; }
svg.curves .line text { fill: currentColor; font-weight: 600; }
svg.bars text { font: 14px system-ui, sans-serif; fill: var(--text); }
svg.bars .name { font-weight: 600; }
"""
"""Charts are small on pages, and have no font of a page."""

_PALETTE = re.compile(r":root \{\n([^}]*)\}")
_RULE = re.compile(
    r"^(?:svg\.curves text|\.(?:grid|line|color\d|validation|progress|box|edge|head)\b).*$", re.MULTILINE
)


def both(name: str, svg: str) -> dict[str, str]:
    """A picture for light and for dark pages, each a file of its own."""
    css = STYLE.read_text(encoding="utf-8")
    light, dark = _PALETTE.findall(css.replace("\n  :root", "\n:root").replace("\n  }", "\n}"))
    rules = "\n".join(_RULE.findall(css))
    made: dict[str, str] = {}
    for theme, palette in zip(THEMES, (light, light + dark), strict=True):
        values = dict(re.findall(r"(--[\w-]+): ([^;]+);", palette))
        style = re.sub(r"var\((--[\w-]+)\)", lambda found, values=values: values[found[1]], f"{rules}\n{LARGER}")
        head, _, rest = svg.partition(">")
        head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        made[f"{name}-{theme}.svg"] = f"{head}>\n<style>\n{style}</style>\n{rest}\n"
    return made
