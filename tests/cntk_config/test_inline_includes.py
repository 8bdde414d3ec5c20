"""Includes inside a line (A3)."""

from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError, parse


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("over.txt").write_text("maxEpochs=7\nrate=0.1:0.2\n")
    Path("more.txt").write_text("q=2\n")


@pytest.mark.parametrize(
    "text",
    [
        "a=[q=1;include=over.txt]",
        "a=[include=over.txt]",
        "a=[include=over.txt;q=1]",
        'a=[q=1 ; Include = "over.txt" ; r=2] # ; include=none.txt',
        "a=[q=1,include=over.txt+more.txt]",
        "a=[q=1;include=over.txt\n]",
    ],
)
def test_it_is_read_in_its_place(text: str) -> None:
    section = parse(text).section("a")
    assert int(section("maxEpochs")) == 7
    assert section("rate") == "0.1:0.2"


def test_what_comes_later_is_stronger() -> None:
    assert int(parse("a=[q=1;include=more.txt]").section("a")("q")) == 2
    assert int(parse("a=[include=more.txt;q=1]").section("a")("q")) == 1


def test_a_quoted_text_is_no_include() -> None:
    assert parse('a="x;include=over.txt"')("a") == "x;include=over.txt"


def test_a_missing_file_is_located() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("a=[q=1;include=none.txt]", "main.cntk")
    assert str(caught.value.span) == "main.cntk:1:16"


def test_a_set_can_be_repeated() -> None:
    """`{|[x=1]*3}` of the manual (D2)."""
    assert [int(one("x")) for one in parse("a={|[x=1]*3}").sections("a")] == [1, 1, 1]
