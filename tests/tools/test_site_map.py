"""Readers find every page of docs in two clicks, pages are short, links lead somewhere. Nothing asks the network."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mkdocs.config import load_config

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
OTHERS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "sample_configs/README.md")
HOME = "README.md"
CLICKS = 2
LINES = 300
REFERENCE = {
    "brainscript-functions.md",
    "differences.md",
    "errors.md",
    "findings/networks.md",
    "findings/writing.md",
    "functions.md",
    "reference/actions.md",
    "reference/functions.md",
    "reference/python.md",
    "reference/readers.md",
    "specification/actions-and-training.md",
    "specification/brainscript-language.md",
    "specification/brainscript-library.md",
    "specification/config-language.md",
    "specification/networks.md",
    "specification/readers-composable.md",
    "specification/readers-kaldi.md",
    "specification/readers-legacy.md",
}
"""Pages in which one looks something up; they may be longer."""

FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
BARE = re.compile(r"<(https?://[^>\s]*)>")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", text)


def links(path: Path) -> Iterator[str]:
    """The targets of the links of a page."""
    text = CODE.sub("`x`", prose(path.read_text(encoding="utf-8")))
    yield from LINK.findall(text)
    yield from BARE.findall(text)


def anchors(path: Path) -> set[str]:
    """The anchors of a page, as a code host and MkDocs make them of headings."""
    text = prose(path.read_text(encoding="utf-8"))
    names = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text)]
    slugs = [re.sub(r"[^\w\- ]", "", name.lower().strip()).replace(" ", "-") for name in names]
    return {*slugs, *ANCHOR.findall(text)}


def sections(nav: list) -> Iterator[list[str]]:
    """The pages of each tab."""
    for entry in nav:
        yield list(pages_of(entry))


def pages_of(entry: str | dict | list) -> Iterator[str]:
    """The pages of a part of the navigation, those of groups within it too."""
    if isinstance(entry, str):
        yield entry
        return
    for inner in entry.values() if isinstance(entry, dict) else entry:
        yield from pages_of(inner)


def clicks(tabs: list[list[str]], targets: dict[str, list[str]]) -> dict[str, int]:
    """How many clicks each page is from the first one: links, the first page of each tab, the pages of the own tab."""
    found, waiting = {HOME: 0}, deque([HOME])
    while waiting:
        page = waiting.popleft()
        beside = [one for tab in tabs if page in tab for one in tab]
        for target in (*targets.get(page, ()), *(tab[0] for tab in tabs), *beside):
            if target not in found:
                found[target] = found[page] + 1
                waiting.append(target)
    return found


def test_clicks_are_counted() -> None:
    tabs = [["README.md"], ["a.md", "b.md"], ["c.md", "d.md"]]
    assert clicks(tabs, {"b.md": ["e.md"], "README.md": ["d.md"]}) == {
        "README.md": 0,
        "d.md": 1,
        "a.md": 1,
        "c.md": 1,
        "b.md": 2,
        "e.md": 3,
    }


def test_every_page_is_two_clicks_away() -> None:
    tabs = list(sections(load_config(str(ROOT / "mkdocs.yml"))["nav"]))
    targets: dict[str, list[str]] = {}
    for page in PAGES:
        inside = [
            link.partition("#")[0] for link in links(DOCS / page) if not link.startswith(("https:", "http:", "#"))
        ]
        paths = [(DOCS / page).parent.joinpath(link).resolve() for link in inside]
        targets[page] = [path.relative_to(DOCS).as_posix() for path in paths if path.is_relative_to(DOCS)]
    found = clicks(tabs, targets)
    far = {page: found.get(page, "nowhere") for page in PAGES if found.get(page, CLICKS + 1) > CLICKS}
    assert not far, f"link these from the first page, or give them a place in the nav of mkdocs.yml: {far}"


def test_pages_are_short() -> None:
    lengths = {page: (DOCS / page).read_text(encoding="utf-8").count("\n") for page in PAGES}
    long = {page for page, lines in lengths.items() if lines > LINES}
    assert long - REFERENCE == set(), "split these pages"
    assert REFERENCE - long == set(), f"these are no longer over {LINES} lines"


@pytest.mark.parametrize("name", [*OTHERS, *(f"docs/{page}" for page in PAGES)])
def test_links(name: str) -> None:
    """Files and headings that links name are there; addresses of other hosts are written as such."""
    path = ROOT / name
    wrong = [
        link for link in links(path) if not (is_address(link) if re.match(r"[a-z]+:", link) else leads(path, link))
    ]
    assert not wrong


def leads(path: Path, link: str) -> bool:
    """Whether a link of a page leads to a file of the repository, and to a heading of it."""
    file, _, heading = link.partition("#")
    target = (path.parent / file).resolve() if file else path
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not heading or target.suffix != ".md" or heading in anchors(target)


def test_links_that_lead_nowhere_are_found() -> None:
    page = ROOT / "docs/brainscript.md"
    assert leads(page, "differences.md#brainscript") and leads(page, "../README.md") and leads(page, "#the-library")
    assert not any(leads(page, link) for link in ("differences.md#brainscrip", "READMEE.md", "../../x.md", "#library"))


def is_address(link: str) -> bool:
    """Whether a link to another host has the form of one."""
    parts = urlsplit(link)
    host = re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", parts.netloc)
    return parts.scheme == "https" and host is not None and link.rstrip(".,;:") == link and "//" not in parts.path


def test_addresses() -> None:
    assert is_address("https://doi.org/10.24432/C50P49") and is_address("https://github.com/a/b#c")
    wrong = (
        "http://a.org/",
        "https://a",
        "https://a.org.",
        "https:/a.org/b",
        "https://a.org//b",
        "https://a b.org",
        "file:x",
    )
    assert not any(is_address(link) for link in wrong)
