"""The tables of docs/readers.md are those of the declarations. `python tests/readers/test_docs.py` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from cntk_config.declare import Declared
from readers.composite import CompositeParameters
from readers.text_format.options import StreamParameters, TextReaderParameters

PAGE = Path(__file__).parents[2] / "docs" / "readers.md"
SECTIONS: dict[str, type[Declared]] = {
    c.__name__: c for c in (TextReaderParameters, StreamParameters, CompositeParameters)
}


def table(section: type[Declared]) -> str:
    """The parameters of a section as a table in Markdown."""
    lines = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for p in section.parameters():
        default = "required" if p.required else "" if p.default is None else p.default
        kind = p.type.name.replace("|", "\\|")
        lines.append(f"| `{p.name}` | {kind} | {default} | {p.help} |")
    return "\n".join(lines)


def with_tables(text: str) -> str:
    """The page with all tables as the declarations are."""
    return re.sub(
        r"<!-- table (\w+) -->\n.*?<!-- end -->",
        lambda found: f"<!-- table {found[1]} -->\n{table(SECTIONS[found[1]])}\n<!-- end -->",
        text,
        flags=re.DOTALL,
    )


def test_tables_of_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
