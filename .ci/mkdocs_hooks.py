"""Differences of the site from GitHub: links to files outside of docs, a first page without menus, options whole."""

import posixpath
import re
from typing import Any

CODE = re.compile(r"(?<!</span>)<code>([^<]*)</code>")
OPTION = re.compile(r"(?<![\w-])--?\w[\w-]*")
LINK = re.compile(r"\[([^\]\n]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Links out of `docs` (sample configurations, grammars) lead to the repository; settings of single pages."""
    folder = posixpath.dirname(page.file.src_uri)
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    if folder in ("specification", "decisions"):
        page.meta["search"] = {"boost": 0.2}  # below the pages for users

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, found[2]))
        outside = not target.startswith("docs/")
        return f"[{found[1]}]({config['extra']['repository']}/blob/main/{target})" if outside else found[0]

    return LINK.sub(link, markdown)


def on_page_content(content: str, page: Any, config: Any, **_: Any) -> str:
    """Options in code within a line, such as --workers, do not break behind their hyphens."""

    def code(found: re.Match[str]) -> str:
        return f"<code>{OPTION.sub(lambda option: f'<span class=option>{option[0]}</span>', found[1])}</code>"

    return CODE.sub(code, content)
