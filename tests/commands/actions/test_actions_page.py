"""docs/actions.md: its tables are those of the declarations (written by `python -m commands.tools.reference`)."""

import re
from pathlib import Path

import pytest

from cntk_config.declare import BOOLEAN, SIZE, TEXT, Declared, Parameter, choice
from commands.runner.dispatch import ACTIONS, NOT_SUPPORTED
from commands.tools.reference import main, markdown_table, with_tables

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/actions.md").read_text(encoding="utf-8")


class Example(Declared):
    """An example."""

    flag = Parameter("flag", BOOLEAN, default="false", help="A flag.")
    words = Parameter("words", choice("a", "b"), default=None, aliases=("word",), help="One | other.")
    count = Parameter("count", SIZE, help="Needed.")
    empty = Parameter("empty", TEXT, default="", help="Nothing.")


def test_a_table() -> None:
    assert markdown_table(Example).split("\n")[2:] == [
        "| `count` | size | **required** | Needed. |",
        "| `flag` | boolean | `false` | A flag. |",
        "| `words`, `word` | a \\| b |  | One \\| other. |",
        "| `empty` | text |  | Nothing. |",
    ]


def test_the_tables_are_up_to_date(tmp_path: Path) -> None:
    assert with_tables(PAGE) == PAGE
    copy = tmp_path / "page.md"
    copy.write_text(re.sub(r"\| `maxEpochs`.*\n", "", PAGE))
    main([str(copy)])
    assert copy.read_text() == PAGE


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_its_table(action: str) -> None:
    declared = ACTIONS[action].declared
    assert f"<!-- parameters: {declared} -->" in PAGE
    assert f"`{action}`" in PAGE


def test_every_parameter_says_what_it_means() -> None:
    for path in re.findall(r"<!-- parameters: (\S+) -->", PAGE):
        table = PAGE.split(f"<!-- parameters: {path} -->")[1].split("<!-- end -->")[0]
        assert "|  |\n" not in table, path


def test_what_is_not_supported_is_named() -> None:
    assert all(f"`{action}`" in PAGE for action in NOT_SUPPORTED)


def test_links() -> None:
    for target in re.findall(r"\]\(([^)#]+\.(?:md|cntk))", PAGE):
        assert (ROOT / "docs" / target).exists(), target
