"""The generated pages are those of the program. `python -m tools.docs` writes them again."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cntkpy.cntk_config.declare import BOOLEAN, SIZE, TEXT, Declared, Parameter, choice
from cntkpy.commands.catalogue.topics import topics
from cntkpy.networks import nodes
from tools.docs import drawings, functions, messages, orders, reference, tables
from tools.docs.bars import LEFT, RIGHT, WIDTH, bars, table
from tools.docs.pages import old

ROOT = Path(__file__).resolve().parents[2]


class Example(Declared):
    """An example."""

    flag = Parameter("flag", BOOLEAN, default="false", help="A flag.")
    words = Parameter("words", choice("a", "b"), default=None, aliases=("word",), help="One | other.")
    count = Parameter("count", SIZE, help="Needed.")
    empty = Parameter("empty", TEXT, default="", help="Nothing.")


def test_a_table() -> None:
    assert tables.markdown_table(Example).split("\n")[2:] == [
        "| `count` | size | **required** | Needed. |",
        "| `flag` | boolean | `false` | A flag. |",
        "| `words`, `word` | a \\| b |  | One \\| other. |",
        "| `empty` | text |  | Nothing. |",
    ]


def test_the_reference_is_current() -> None:
    made = reference.pages()
    assert {path.name for path in (ROOT / "docs/reference").glob("*.md")} == set(made)
    assert old(ROOT, {f"docs/reference/{name}": text for name, text in made.items()}) == []


def test_the_page_of_functions_is_current() -> None:
    assert old(ROOT, {"docs/functions.md": functions.page()}) == []


@pytest.mark.parametrize(
    "page", [p.name for p in sorted((ROOT / "docs").glob("*.md")) if "<!-- parameters:" in p.read_text()]
)
def test_tables_are_current(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert tables.with_tables(text) == text
    changed = re.sub(r"^\| `(?:maxEpochs|outputFile|dim|file|wordClass|window)`.*\n", "", text, flags=re.MULTILINE)
    assert changed != text, "an example of a row that is missing"
    assert tables.with_tables(changed) == text


def test_every_section_and_parameter_is_explained() -> None:
    for topic in topics():
        assert topic.meaning, topic
        for one in topic.declared.parameters():
            assert one.help, (topic.name, one.name)


def test_every_function_and_option_is_explained() -> None:
    text = functions.page()
    for kind in nodes.kinds():
        if kind.unsupported:
            assert f"`{kind.name}`" in text
            continue
        assert f"\n### {kind.name}\n" in text and kind.meaning
        assert kind.shape is None or kind.shape.__doc__
        for option in kind.options:
            assert option.meaning, (kind.name, option.name)


def test_outputs_of_messages_are_written() -> None:
    page = '## One\n```ini title="a.cntk"\nx = [\n```\n```console\n$ cntkpy check a.cntk\n?\n```\n'
    made = messages.with_outputs(page)
    assert "a.cntk:1:5: error: " in made and "[exit status 2]\n```\n" in made
    assert messages.with_outputs(made) == made


def test_the_command_names_what_is_old() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--check" in done.stdout


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((\S+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in folder.glob("2*.md"))


def test_pictures_without_a_training_are_current() -> None:
    made = drawings.untrained()
    assert len(made) == 10
    assert old(ROOT, {f"{drawings.FOLDER}/{name}": text for name, text in made.items()}) == []


@pytest.mark.thorough
def test_pictures_of_runs_are_current() -> None:
    """The network to the last character; of curves, whose numbers end in other digits elsewhere, the words."""
    for name, text in drawings.trained().items():
        kept = (ROOT / drawings.FOLDER / name).read_text(encoding="utf-8")
        words = re.compile(r">([^<>]+)</text>")
        assert words.findall(text) == words.findall(kept), name
        assert not name.startswith("network") or text == kept, name


def test_every_picture_is_shown() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert [path.name for path in (ROOT / drawings.FOLDER).iterdir() if path.name not in shown] == []
    for theme, other in (("light", "dark"), ("dark", "light")):
        alone = [name for name in re.findall(rf"([\w-]+)-{theme}\.svg", shown) if f"{name}-{other}.svg" not in shown]
        assert alone == []


def test_bars() -> None:
    rows = "| what | a | b | a |\n|---|---:|---:|---|\n| x, 1 | 2 | 1 | 5 |\n| y |  | 4 | 6 |\n"
    page = f"# A\n\n## One\nText.\n\n{rows}\nEnd\n"
    assert table(page, "One") == [{"what": "x, 1", "a": "2", "b": "1"}, {"what": "y", "a": "", "b": "4"}]
    drawn = bars(["a", "b"], [("x & y", [2.0, 0.5])], "seconds")
    assert "x &amp; y" in drawn and "2.00" in drawn
    widths = [float(one) for one in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert widths[0] == 4 * widths[1] == WIDTH - LEFT - RIGHT


def test_orders() -> None:
    """All of them have every sequence once; a window keeps more of the file's order than none."""
    plain, near, anywhere = (orders.order(settings) for settings in orders.KINDS.values())
    assert plain == sorted(near) == sorted(anywhere) == list(range(orders.SEQUENCES))
    jumps = [sum(abs(a - b) for a, b in itertools.pairwise(one)) for one in (plain, near, anywhere)]
    assert jumps[0] < jumps[1] < 0.8 * jumps[2]
