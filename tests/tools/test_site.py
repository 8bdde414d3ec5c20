"""The pages as MkDocs makes them: what Markdown here and on a code host shows as code is code on the site, too."""

import functools
import html
import json
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = "```"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_wrong_anchor_ends_the_build(tmp_path: Path) -> None:
    """`--strict` does, with the settings of the site and the words of `.ci/run`; with `--quiet` it would not."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    validation = settings[settings.index("\nvalidation:") :]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# One\n[two](#two)\n")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\n{validation}")
    (words,) = re.findall(r"^ *\.venv/bin/mkdocs (build .*) --site-dir", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    command = [sys.executable, "-m", "mkdocs", *words.split(), "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "there is no such anchor" in done.stdout + done.stderr


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_pages_ask_no_other_host(site: Path) -> None:
    """Scripts, styles, fonts and pictures are of the site; so is `repo_url`, for which a script would ask GitHub."""
    loads = re.compile(
        r'<(?:script|img|iframe|link rel="(?:stylesheet|preconnect)")[^>]* (?:src|href)="?(https?://[^"> ]+)'
    )
    found = {address for path in site.rglob("*.html") for address in loads.findall(path.read_text(encoding="utf-8"))}
    assert found == set()
    assert 'data-md-component="source"' not in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_words_are_found(site: Path) -> None:
    """The index of the search has every page, and words of them."""
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    folders = {one["location"].partition("#")[0] for one in index}
    assert len(folders) == sum(1 for _ in (ROOT / "docs").rglob("*.md"))
    assert any(one["location"] == "training/#the-section-sgd" and "minibatchSize" in one["text"] for one in index)


SHOWN = ("", "tutorials/new/", "training/", "reference/readers/", "findings/", "brainscript/", "python-sequences/")
WIDTHS = (390, 1280)
MEASURE = """
window.onload = () => {
  document.body.dataset.said = JSON.stringify([...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, root = page.documentElement;
    const all = [...page.querySelectorAll("article img")];
    const pictures = all.filter((one) => getComputedStyle(one).display !== "none");
    const broken = pictures.filter((one) => !one.naturalWidth || one.getBoundingClientRect().width < 100);
    return [root.scrollWidth - root.clientWidth, pictures.length, broken.map((one) => one.src)];
  }));
};
"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", WIDTHS)
def test_in_chromium(site: Path, tmp_path: Path, width: int) -> None:
    """No page is wider than a phone or a desktop, and its pictures are there, one of each pair of light and dark."""
    frames = "".join(f'<iframe src="/{page}" style="width:{width}px;height:800px"></iframe>' for page in SHOWN)
    (site / "frames.html").write_text(f"<body>{frames}<script>{MEASURE}</script></body>", encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    address = f"http://127.0.0.1:{server.server_port}/frames.html"
    try:
        command = [str(CHROMIUM), *options, "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    finally:
        server.shutdown()
        server.server_close()
        (site / "frames.html").unlink()
    found = re.search(r'data-said="([^"]*)"', done.stdout)
    assert found is not None, done.stdout[-500:]
    said = dict(zip(SHOWN, json.loads(html.unescape(found[1])), strict=True))
    assert {page: beyond for page, (beyond, _, _) in said.items() if beyond > 0} == {}
    assert {page: broken for page, (_, _, broken) in said.items() if broken} == {}
    assert said[""][1] == said["brainscript/"][1] == 2
