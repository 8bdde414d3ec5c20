"""The tables of pages are those of the declarations. `python tests/readers/test_docs.py` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cntk_config.declare import Declared
from commands.actions.create_label_map import CreateLabelMapParameters
from readers.formats.binary.reader import BinaryReaderParameters
from readers.formats.language import parameters as language
from readers.formats.text.options import StreamParameters, TextReaderParameters
from readers.formats.uci.options import FeatureParameters, LabelParameters, UCIReaderParameters
from readers.pipeline.composite import CompositeParameters
from readers.writers.binary import BinaryWriterParameters

DOCS = Path(__file__).parents[2] / "docs"
PAGES: dict[str, tuple[type[Declared], ...]] = {
    "readers.md": (TextReaderParameters, StreamParameters, CompositeParameters),
    "uci.md": (
        UCIReaderParameters,
        FeatureParameters,
        LabelParameters,
        CreateLabelMapParameters,
        BinaryReaderParameters,
        BinaryWriterParameters,
    ),
    "language-readers.md": (
        language.SequenceReaderParameters,
        language.SequenceFeatureParameters,
        language.SequenceLabelParameters,
        language.LUSequenceReaderParameters,
        language.LULabelParameters,
        language.SequenceOutputParameters,
    ),
}


def table(section: type[Declared]) -> str:
    """The parameters of a section as a table in Markdown."""
    lines = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for p in section.parameters():
        default = "required" if p.required else "" if p.default is None else p.default
        kind = p.type.name.replace("|", "\\|")
        lines.append(f"| `{p.name}` | {kind} | {default} | {p.help} |")
    return "\n".join(lines)


def with_tables(text: str, page: str) -> str:
    """The text of a page with all tables as the declarations are."""
    sections = {section.__name__: section for section in PAGES[page]}
    return re.sub(
        r"<!-- table (\w+) -->\n.*?<!-- end -->",
        lambda found: f"<!-- table {found[1]} -->\n{table(sections[found[1]])}\n<!-- end -->",
        text,
        flags=re.DOTALL,
    )


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_the_page(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert with_tables(text, page) == text
    assert set(re.findall(r"<!-- table (\w+)", text)) == {section.__name__ for section in PAGES[page]}


if __name__ == "__main__":
    for name in PAGES:
        path = DOCS / name
        path.write_text(with_tables(path.read_text(encoding="utf-8"), name), encoding="utf-8")
