"""The reference pages are current. `python -m commands.tools.reference_pages docs/reference` writes them again."""

from pathlib import Path

from commands.catalogue.topics import topics
from commands.tools.reference_pages import pages

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "reference"


def test_the_reference_is_current() -> None:
    made = pages()
    assert {path.name for path in FOLDER.glob("*.md")} == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name} is old"


def test_every_section_and_parameter_is_explained() -> None:
    for topic in topics():
        assert topic.meaning, topic
        for one in topic.declared.parameters():
            assert one.help, (topic.name, one.name)
