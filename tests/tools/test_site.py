"""The pages as MkDocs makes them: what Markdown here and on a code host shows as code is code on the site, too."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = "```"


class Page(HTMLParser):
    """Counts the blocks of code of a page, and collects the back-quotes that stand where they should not."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.blocks, self.files, self.stray = 0, 0, list[str]()
        self._inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.blocks += tag == "pre"
        self.files += tag == "span" and ("class", "filename") in attrs
        if tag in ("pre", "code", "script"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("pre", "code", "script"):
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if "script" not in self._inside and (FENCE in data or (not self._inside and "`" in data)):
            self.stray.append(data.strip())


def test_stray_marks_are_found() -> None:
    page = Page("<p>a ` b</p><pre><code>`x`\n```\n</code></pre><p>`</p><pre><code>`</code></pre>")
    assert page.stray == ["a ` b", "`x`\n```", "`"]
    assert page.blocks == 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_code_is_code(site: Path) -> None:
    """No page has a back-quote outside of code, and each pair of fences of a page makes a block of code."""
    wrong: list[str] = []
    for source in sorted((ROOT / "docs").rglob("*.md")):
        name = source.relative_to(ROOT / "docs").with_suffix("")
        made = site / (name.parent if name.name == "README" else name) / "index.html"
        page = Page(made.read_text(encoding="utf-8"))
        fences = [line for line in source.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith(FENCE)]
        if page.stray:
            wrong.append(f"{name}: {len(page.stray)} stray back-quotes, the first in {page.stray[0][:100]!r}")
        if 2 * page.blocks < len(fences):  # a page may have indented code, too
            wrong.append(f"{name}: {len(fences)} lines of fences, {page.blocks} blocks of code")
        if page.files != (titles := sum("title=" in fence for fence in fences)):
            wrong.append(f"{name}: {titles} fences have a title, {page.files} blocks of code")
    assert not wrong, "\n".join(wrong)
