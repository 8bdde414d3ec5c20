"""The tables of findings on docs/findings.md: each code with its title and severity, by groups."""

import re

from cntkpy.cntk_config.base.kinds import PAGES, RULES

MARKED = re.compile(r"(<!-- findings -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """The page with its tables as they should be now."""
    tables = "\n".join(_table(name, title) for name, title in dict.fromkeys(PAGES.values()))
    return MARKED.sub(lambda match: f"{match[1]}{tables}\n{match[2]}", text)


def _table(page: str, title: str) -> str:
    rows: list[str] = []
    for rule in RULES:
        if rule.page == page:
            anchor = rule.code.lower()
            link = f"[{rule.code}](findings/{page}.md#{anchor})"
            rows.append(f'| <a id="{anchor}"></a>{link} | {rule.title} | {rule.severity} |')
    return "\n".join([f"## [{title}](findings/{page}.md)", "| code | finding | severity |", "|---|---|---|", *rows, ""])
