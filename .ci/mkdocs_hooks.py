"""Links from the documentation to files beside it (sample configurations, grammars) are plain text on the site."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]\n]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Keep the text of a link that leads out of `docs`."""
    folder = posixpath.dirname(page.file.src_uri)

    def text(link: re.Match[str]) -> str:
        leads_out = posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[1] if leads_out else link[0]

    return LINK.sub(text, markdown)
