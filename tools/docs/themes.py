"""Pictures in the colours of light and of dark pages, those of `cntkpy report`."""

from __future__ import annotations

from cntkpy.commands.report.drawing import THEMES, standalone

LARGER = """\
svg.curves text { font-size: 16px; font-family: system-ui, sans-serif; }
svg.curves .line text { fill: currentColor; font-weight: 600; }
svg.bars text { font: 14px system-ui, sans-serif; fill: var(--text); }
svg.bars .name { font-weight: 600; }
"""
"""Charts are small on pages, and have no font of a page."""


def both(name: str, svg: str) -> dict[str, str]:
    """A picture for light and for dark pages, each a file of its own."""
    return {f"{name}-{theme}.svg": standalone(svg, theme, LARGER) for theme in THEMES}
