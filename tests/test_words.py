"""Words and forms that the whole repository shares: CNTK's name, docstrings in Google style, pages that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("cntkpy", "tools", "benchmarks", "tests")
TEXTS = (".py", ".lark", ".bs", ".md", ".cntk", ".ndl", ".mel")

OURS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"] + [
    path
    for folder in (*CODE, "docs", "sample_configs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in TEXTS and path != Path(__file__).resolve()
]
FORMER = re.compile(r"\bthe\s+(?:# )?original\b(?! (?:model|ids|name|exception)\b)", re.IGNORECASE)
"""CNTK as it was once called; a model before it is adapted is an original, too."""
BOLD = re.compile(r"\*\*(?:Arguments|Args|Attributes|Returns|Raises|Yields):?\*\*")
PAGE = re.compile(r"\bdocs/[\w/.-]+?\.md\b")


def found(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Each place of a pattern, as file, line and text."""
    places = []
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in pattern.finditer(text):
            places.append(f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}")
    return places


def test_the_program_that_we_follow_is_called_cntk() -> None:
    assert FORMER.search("as the original does") and not FORMER.search("a copy of the original model")
    assert not (places := found(FORMER, OURS)), "\n".join(places)


def test_docstrings_are_in_google_style() -> None:
    assert BOLD.search("**Arguments:**")
    assert not (places := found(BOLD, [path for path in OURS if path.suffix == ".py"])), "\n".join(places)


def test_pages_that_the_code_cites_exist() -> None:
    cited = found(PAGE, [path for path in OURS if path.suffix != ".md"])
    assert len(cited) > 50
    wrong = [place for place in cited if not (ROOT / place.rpartition(" ")[2]).is_file()]
    assert not wrong, "\n".join(wrong)
