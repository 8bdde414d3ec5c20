"""The tables of the page are those of the declarations. Run as a program, this file writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from cntk_config.declare import Declared
from readers.language import parameters

PAGE = Path(__file__).parents[2] / "docs" / "language-readers.md"
SECTIONS: dict[str, type[Declared]] = {
    c.__name__: c
    for c in (
        parameters.SequenceReaderParameters,
        parameters.SequenceFeatureParameters,
        parameters.SequenceLabelParameters,
        parameters.LUSequenceReaderParameters,
        parameters.LULabelParameters,
        parameters.SequenceOutputParameters,
    )
}


def table(section: type[Declared]) -> str:
    lines = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for p in section.parameters():
        default = "required" if p.required else "" if p.default is None else p.default
        kind = p.type.name.replace("|", "\\|")
        lines.append(f"| `{p.name}` | {kind} | {default} | {p.help} |")
    return "\n".join(lines)


def with_tables(text: str) -> str:
    def made(found: re.Match[str]) -> str:
        return f"<!-- table {found[1]} -->\n{table(SECTIONS[found[1]])}\n<!-- end -->"

    return re.sub(r"<!-- table (\w+) -->\n.*?<!-- end -->", made, text, flags=re.DOTALL)


def test_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text
    assert set(re.findall(r"<!-- table (\w+)", text)) == set(SECTIONS)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
