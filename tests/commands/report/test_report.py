"""`cntkpy report`: what is in the page, that nothing of a run becomes markup, that it needs no network, its size.

Chromium looks at it too, where it is installed.
"""

import base64
import hashlib
import json
import math
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from cntkpy.commands.report.markup import Markup, tag, text
from cntkpy.commands.report.page import page, title_of_page
from cntkpy.commands.report.png import data_url
from cntkpy.commands.runs.events import run_of
from cntkpy.commands.runs.record import Run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

MARK = "document.documentElement.setAttribute('pwned','1')"
HOSTILE = f'"><img src=x onerror="{MARK}"></script><script>{MARK}</script><svg/onload="{MARK}">\u202e&amp;\x1b[2J'


def events(rate: float, name: str = "ce", epochs: int = 5, note: str = "plain") -> list[dict]:
    """The events of a training and of a test."""
    settings = [
        {"name": "command", "value": "train:test", "origins": [{"kind": "set", "at": "m.cntk:1:2"}]},
        {
            "name": "train:rate",
            "value": f"{rate} {note}",
            "origins": [
                {"kind": "set", "at": note},
                {"kind": "overridden", "text": note, "at": note},
                {"kind": "variable", "name": note, "at": note},
            ],
        },
    ]
    nodes = [
        {"name": "x", "operation": "InputValue", "inputs": [], "shape": [2], "minibatch": True},
        {"name": "W", "operation": "LearnableParameter", "inputs": [], "shape": [3, 2], "parameters": 6},
        {"name": note, "operation": note, "inputs": ["W", "x"], "shape": [3], "minibatch": True},
        {"name": "past", "operation": "PastValue", "inputs": [note], "shape": [3], "minibatch": True, "delay": True},
        {"name": name, "operation": "Sum", "inputs": [note, "past"], "shape": [1]},
    ]
    network = {"nodes": nodes, "groups": {"criterion": [name], "feature": ["x"]}, "parameters": 6, "trainable": 6}
    found = [
        {
            "event": "run started",
            "time": "2026-01-01T00:00:00+00:00",
            "words": [note],
            "versions": {"cntkpy": "1", note: note},
            "place": {"host": note},
            "settings": settings,
        },
        {"event": "action", "command": "train", "action": "train"},
        {"event": "network", "device": note, "precision": note, **network},
        {"event": "warning", "text": note},
        {"event": "warning", "text": note},
    ]
    for epoch in range(1, epochs + 1):
        value = rate / epoch
        common = {"epoch": epoch, "epochs": epochs, "command": "train"}
        found += [
            {"event": "progress", **common, "nodes": {name: value * 1.1}, "minibatches": [k - 9, k]}
            for k in range(10, 101, 10)
        ]
        found.append({"event": "epoch finished", **common, "nodes": {name: value}, "samples": 100, "seconds": 0.5})
        found.append({"event": "validation", **common, "nodes": {name: value * 1.2}})
    picture = {"width": 2, "height": 1, "channels": 3, "pixels": base64.b64encode(b"abcdef").decode()}
    worst = [{"sequence": 4, "step": 0, "loss": 2.5, "label": 0, "takenFor": 1, "picture": picture}]
    return [
        *found,
        {"event": "action", "command": "test", "action": "test"},
        {"event": "final results", "nodes": {name: 0.125}, "samples": 9, "command": "test"},
        {"event": "confusion", "output": note, "counts": [[5, 2], [0, 3]], "worst": worst, "command": note},
        {"event": "run finished", "status": 1, "error": note},
    ]


def run_named(name: str, *args, **kwargs) -> Run:
    run = run_of(Path(name), events(*args, **kwargs))
    run.name = name
    return run


class Seen(HTMLParser):
    """The elements and attributes of a page; what is between the tags of an element."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "img", "wbr"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.texts.append(data)


def test_what_is_in_it() -> None:
    seen = Seen(page([run_named("first", 0.5), run_named("second", 0.25)]))
    text = " ".join(" ".join(seen.texts).split())
    for part in ("Summary", "Curves", "Epochs", "Confusion", "Network", "Configuration", "Where it ran"):
        assert part in text
    assert "first, epoch 2: 0.25 rate=0.5 plain" in text  # the titles of dots
    assert "second, validation, epoch 1: 0.3 rate=0.25 plain" in text
    assert "W [3 x 2]: 6" in text  # a parameter in the box of the node that takes it
    assert "8 of 10 samples right (80.00%)" in text and "0 for 1 (2)" in text
    assert "( 2 times)" in text or "(2 times)" in text
    curves = [attributes for tag, attributes in seen.tags if tag == "svg" and "curves" in (attributes["class"] or "")]
    assert {attributes["class"] for attributes in curves} == {"curves scale-linear", "curves scale-log"}
    lines = [
        attributes["class"] for tag, attributes in seen.tags if tag == "g" and "line" in (attributes["class"] or "")
    ]
    assert "line validation color1 shape0 run1" in lines and "line progress color0 shape0 run0" in lines


@pytest.mark.parametrize("name", ["ce", f"{HOSTILE}ce"])
def test_nothing_of_a_run_becomes_markup(name: str) -> None:
    calm = Seen(page([run_named("a", 0.5), run_named("b", 0.25)]))
    seen = Seen(page([run_named(HOSTILE, 0.5, name, note=HOSTILE), run_named("b", 0.25, name, note=HOSTILE)]))
    assert [tag for tag, _ in seen.tags if tag != "wbr"] == [tag for tag, _ in calm.tags if tag != "wbr"]
    assert seen.scripts == calm.scripts
    assert not [key for _, attributes in seen.tags for key in attributes if key.startswith("on") or key == "style"]
    assert not any("\x1b" in one or "\u202e" in one for one in seen.texts)
    assert any("<script>" in one for one in seen.texts)  # shown as it is


def test_it_needs_no_network_and_only_its_own_script_runs() -> None:
    html = page([run_named("a", 0.5)])
    seen = Seen(html)
    for tag_, attributes in seen.tags:
        source = attributes.pop("src", None)
        assert source is None or (tag_ == "img" and source.startswith("data:image/png;base64,"))
        assert not {"srcset", "action", "xlink:href"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#"), tag_
    assert "url(" not in re.sub(r"url\(#\w+\)", "", html) and "@import" not in html
    policy = next(a["content"] for _, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    for one in seen.scripts:
        assert base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() in policy


def test_size() -> None:
    """Three trainings of 1000 epochs."""
    runs = [run_named(f"run{number}", 0.5 * number, epochs=1000) for number in (1, 2, 3)]
    assert len(page(runs).encode()) < 2_000_000


def test_runs_that_say_little() -> None:
    """A log without epochs, values that are not finite or not positive: there is a page."""
    assert "Summary" in page([run_of(Path("x"), [])])
    bad = [
        {"event": "epoch finished", "epoch": e, "nodes": {"ce": v}} for e, v in ((1, -1.0), (2, math.inf), (3, -2.0))
    ]
    html = page([run_of(Path("x"), bad)])
    assert "there is no logarithmic axis" in html
    only = [{"event": "epoch finished", "epoch": 1, "nodes": {"ce": math.nan}}]
    assert "<figure" not in page([run_of(Path("x"), only)])


def test_the_command(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events(0.5)))
    got = cntkpy("report", "a.jsonl", "-o", "deep/r.html")
    assert (got.code, got.out) == (0, "deep/r.html\n")
    assert (tmp_path / "deep/r.html").read_text().startswith("<!DOCTYPE html>\n<html")
    assert "cannot read none" in cntkpy("report", "none").err
    assert "cannot be written" in cntkpy("report", "a.jsonl", "-o", "a.jsonl/r.html").err
    assert "a.jsonl would be written over itself" in cntkpy("report", "a.jsonl", "-o", "./a.jsonl").err


def test_markup() -> None:
    assert tag("td", '<&"', Markup("<b>"), None, [1, 2.5], class_='a"b', data_x="<", hidden=True, open=False) == (
        '<td class="a&quot;b" data-x="&lt;" hidden>&lt;&amp;&quot;<b>12.5</td>'
    )
    assert text("a\u200bb\ud800") == "a\ufffdb\ufffd"


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_of_samples(channels: int) -> None:
    """What the PNG says is what OpenCV reads of it."""
    cv2 = pytest.importorskip("cv2")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    content = base64.b64decode(data_url(7, 5, channels, pixels.tobytes()).partition(",")[2])
    read = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(read[..., ::-1] if channels == 3 else read[..., None], pixels)


@pytest.mark.parametrize(
    "wrong",
    [{"width": 3}, {"channels": 2}, {"pixels": "?"}, {"height": 0}, {"width": -2}, {"pixels": 7}, {"width": 2e9}],
)
def test_pictures_that_do_not_fit_are_left_out(wrong: dict) -> None:
    found = events(0.5)
    found[-2]["worst"][0]["picture"] |= wrong
    (example,) = run_of(Path("x"), found).confusions[0].worst
    assert example.picture is None and example.loss == 2.5


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("note", ["plain", HOSTILE])
def test_in_chromium(tmp_path: Path, note: str) -> None:
    """The script runs, nothing of the run does, and the console stays empty."""
    path = tmp_path / "r.html"
    path.write_text(page([run_named(note, 0.5, note=note), run_named("b", 0.25)]), encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [str(CHROMIUM), *options, "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert re.search(r'<html lang="en" class="scripted">', done.stdout)
    assert done.stdout.count('class="zoom"') == 2  # the charts of the criterion and of the throughput
    assert ":CONSOLE" not in done.stderr, done.stderr


ACTS = """
const figure = document.querySelector("figure.chart"), svg = figure.querySelector("svg.scale-linear");
const box = () => svg.querySelector(".plot").getAttribute("viewBox").split(" ").map(Number);
const labels = () => [...svg.querySelectorAll(".grid text")].map((one) => one.textContent);
const said = [["start", box(), labels()]];
const press = (text) => [...figure.querySelectorAll("button")].find((one) => one.textContent === text).click();
press("+"); said.push(["in", box(), labels()]);
press("Reset"); said.push(["reset", box(), labels()]);
const frame = svg.getBoundingClientRect(), scale = frame.width / 640;
const send = (type, x, y, target) => target.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0,
  clientX: frame.left + x * scale, clientY: frame.top + y * scale }));
send("pointerdown", 346, 158, svg); send("pointermove", 626, 306, svg); send("pointerup", 626, 306, window);
said.push(["drag", box(), labels()]);
svg.dispatchEvent(new MouseEvent("dblclick", { bubbles: true })); said.push(["double", box(), labels()]);
const shown = () => getComputedStyle(figure.querySelector("svg.scale-log")).display;
said.push(["log before", shown()]); document.getElementById("log").click(); said.push(["log after", shown()]);
said.push(["beyond", document.documentElement.scrollWidth - document.documentElement.clientWidth]);
const first = () => getComputedStyle(figure.querySelector("svg.scale-log .run0")).display;
said.push(["run before", first()]); document.getElementById("run0").click(); said.push(["run after", first()]);
"""


def in_chromium(folder: Path, html: str, acts: str, size: str) -> dict[str, list]:
    """Do something with a page, and return what `said` has: lists that begin with a name.

    The page's policy allows no second script, so it is taken out here.
    """
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    path = folder / "r.html"
    keep = "document.documentElement.dataset.said = JSON.stringify(said);"
    path.write_text(html.replace("</body>", f"<script>{acts}\n{keep}</script></body>"), encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [str(CHROMIUM), *options, f"--window-size={size}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'data-said="([^"]*)"', done.stdout)
    assert found is not None, done.stderr
    return {name: rest for name, *rest in json.loads(unescape(found[1]))}


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_zoom_in_chromium(tmp_path: Path) -> None:
    """On a narrow screen: buttons, a rectangle, a double click, the logarithmic axis, a run left out."""
    said = in_chromium(tmp_path, page([run_named("a", 0.5)]), ACTS, "500,800")
    whole, ticks = said["start"]
    assert whole == [0, 0, 10000, 10000] and ticks[-2:] == ["5", "epoch"] and "0.1" in ticks
    zoomed, fewer = said["in"]
    assert zoomed[2:] == pytest.approx([6666.67, 6666.67], rel=1e-4) and zoomed[0] > 0
    assert fewer != ticks
    assert said["reset"] == said["double"] == [whole, ticks]
    dragged, labels = said["drag"]  # the lower right quarter: the second half of the epochs
    assert dragged == pytest.approx([5000, 5000, 5000, 5000], rel=1e-3)
    assert labels[-2:] == ["5", "epoch"] and "1" not in labels
    assert (said["log before"], said["log after"]) == (["none"], ["block"])
    assert said["beyond"] == [0]  # a narrow screen need not be scrolled sideways
    assert (said["run before"], said["run after"]) == (["inline"], ["none"])


def many(count: int = 24) -> list[Run]:
    """Runs of one configuration that differ in two values; the last but one is the best that is sound."""
    runs = []
    for number in range(count):
        name = f"20261128-1000{number:02d}-digits"
        records = events(1 + (count - number) / 10)
        records[0]["words"] = ["configFile=configs/digits.cntk", f"hidden={number}"]
        records[0]["settings"] += [{"name": "hidden", "value": str(number)}]
        records[-1]["status"] = 1 if number == count - 1 else 0
        run = run_of(Path(f"runs/{name}/log.jsonl"), records)
        run.name = name
        runs.append(run)
    return runs


def test_titles() -> None:
    runs = many()
    assert title_of_page(runs[:1]) == "20261128-100000-digits"
    assert title_of_page(runs[:2]) == "digits: 20261128-100000-digits, 20261128-100001-digits"
    assert title_of_page(runs) == "24 runs of digits"
    seen = Seen(page(runs))
    assert seen.texts.count("24 runs of digits") == 1  # the heading
    assert "24 runs of digits - cntkpy" in seen.texts


def test_the_best_run_is_marked_and_labels_have_the_values_that_differ() -> None:
    html = page(many())
    rows = re.findall(r"<tr>(.*?)</tr>", html.partition('class="summary')[2].partition("</table>")[0])
    marked = [row for row in rows if "\u2605" in row]
    assert len(rows) == 25
    assert len(marked) == 1
    assert "20261128-100022-digits" in marked[0]  # the last run has failed
    assert "the best run: the least ce" in html
    labels = re.findall(r'<label for="run\d+">(.*?)</label>', html)
    assert len(labels) == 24
    assert [number for number, label in enumerate(labels) if "\u2605 best" in label] == [22]
    assert all(f"hidden={number}" in label for number, label in enumerate(labels))
    assert "\u2605" not in page(many(1))


def test_each_of_24_runs_has_its_colour_and_shape() -> None:
    html = page(many())
    swatches = re.findall(r'<label for="run\d+"><input[^>]*><span class="(swatch [^"]*)">', html)
    assert len(set(swatches)) == 24
    for number, swatch in enumerate(swatches):
        assert f"line training {swatch.removeprefix('swatch ')} run{number}" in html


def test_values_that_differ_are_listed_once_with_their_runs() -> None:
    html = page(many(3))
    (row,) = [row for row in re.findall(r"<tr class=\"other.*?</tr>", html) if "<code>hidden</code>" in row]
    assert re.findall(r"<code>(\d)</code>", row) == ["0", "1", "2"]
    versions = html.partition("Versions and machines")[2]
    assert versions.count("<td>plain</td>") == 2  # what all have in common stands there once


LOOKS = """
const table = document.querySelector("table.summary"), box = table.parentElement, said = [];
const rows = () => [...table.tBodies[0].rows];
const head = (name) => [...table.tHead.rows[0].cells].find((cell) => cell.textContent === name);
const visible = (part) => getComputedStyle(part).display !== "none";
said.push(["beyond", document.documentElement.scrollWidth - document.documentElement.clientWidth]);
const heights = rows().map((row) => row.getBoundingClientRect().height);
said.push(["cut", box.scrollWidth - box.clientWidth, Math.max(...heights)]);
const network = document.querySelector("svg.network").parentElement;
const hints = [box, network].map((part) => visible(part.previousElementSibling));
said.push(["hints", ...hints, network.scrollWidth > network.clientWidth]);
said.push(["hint", network.previousElementSibling.textContent]);
head("hidden").querySelector("button").click();
said.push(["up", rows().map((row) => row.cells[4].textContent), head("hidden").getAttribute("aria-sort")]);
head("hidden").querySelector("button").click();
said.push(["down", rows().map((row) => row.cells[4].textContent), head("hidden").getAttribute("aria-sort")]);
head("run").querySelector("button").click();
said.push(["names", rows().map((row) => row.cells[0].textContent.replace("\u2605", "").trim())]);
const count = () => [...document.querySelectorAll("svg.scale-linear .line.training")].filter(visible).length;
said.push(["shown", count()]);
[...document.querySelectorAll(".curves-part button")].find((button) => button.textContent === "None").click();
said.push(["none", count()]);
"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_24_runs_in_chromium(tmp_path: Path) -> None:
    """On a desktop nothing is cut, rows have one line, and columns are sorted."""
    said = in_chromium(tmp_path, page(many()), LOOKS, "1280,800")
    cut, height = said["cut"]
    assert said["beyond"] == [0]
    assert cut <= 0
    assert height < 32
    assert said["hints"][0] is False
    numbers = [str(number) for number in range(24)]
    assert said["up"] == [numbers, "ascending"]
    assert said["down"] == [numbers[::-1], "descending"]
    assert said["names"] == [[run.name for run in many()]]
    assert said["shown"][0] >= 24
    assert said["none"] == [0]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_24_runs_on_a_phone(tmp_path: Path) -> None:
    """Tables and networks that are wider than the screen say that they can be scrolled."""
    runs = many()
    for number in range(6):
        node = {"name": f"wide{number}", "operation": "Sum" * 8, "inputs": ["x"], "shape": [1]}
        runs[0].curves[0].network["nodes"].append(node)  # pyright: ignore[reportOptionalSubscript]
    said = in_chromium(tmp_path, page(runs), LOOKS, "500,844")  # windows of Chromium are not narrower
    assert said["beyond"] == [0]
    assert said["cut"][0] > 0
    assert said["hints"] == [True, True, True]
    assert "Scroll sideways" in said["hint"][0]
