"""docs/actions.md and docs/training.md: every action with its table, every parameter explained."""

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.catalogue.dispatch import ACTIONS

ROOT = Path(__file__).parents[3]
PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("actions.md", "training.md"))


@pytest.mark.parametrize("action", [one for one in ACTIONS if not one.unsupported], ids=lambda one: one.name)
def test_every_action_has_its_table(action: Entry) -> None:
    assert f"<!-- parameters: {action.parameters} -->" in PAGE
    assert all(f"`{name}`" in PAGE for name in action.names)


def test_every_parameter_says_what_it_means() -> None:
    for path in re.findall(r"<!-- parameters: (\S+) -->", PAGE):
        table = PAGE.split(f"<!-- parameters: {path} -->")[1].split("<!-- end -->")[0]
        assert "|  |\n" not in table, path


def test_what_is_not_supported_is_named() -> None:
    assert all(f"`{action.name}`" in PAGE for action in ACTIONS if action.unsupported)


def test_links() -> None:
    for target in re.findall(r"\]\(([^)#]+\.(?:md|cntk))", PAGE):
        assert (ROOT / "docs" / target).exists(), target
