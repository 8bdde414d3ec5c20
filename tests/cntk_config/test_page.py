"""The page docs/config-language.md says what is true."""

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError, load, parse

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "config-language.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def test_the_first_example_and_its_error():
    text, error = blocks("")
    assert parse(text).section("train").section("reader")("file") == "/data/speech/train.ctf"
    broken = parse(text.replace("maxEpochs = 10", "maxEpochs = abc"), "m.cntk")
    with pytest.raises(ConfigError) as caught:
        broken.section("train").section("SGD")("maxEpochs").as_int()
    assert caught.value.diagnostic.render() == error.rstrip()


def test_the_python_example_gives_what_its_comments_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.cntk").write_text("train=[SGD=[maxEpochs=9]]\n")
    (tmp_path / "more.cntk").write_text("more=1\n")
    (tmp_path / "words.txt").write_text("a\nb\n")
    (code,) = blocks("python")
    names: dict = {}
    exec(code, names)
    config = names["config"]
    assert (
        load(["configFile=train.cntk", "train=[SGD=[maxEpochs=3]]"]).section("train").section("SGD")("maxEpochs") == "3"
    )
    assert (int(config("maxEpochs")), config("traceLevel", 0), config("more")) == (5, 0, "1")
    assert names["reader"]("maxEpochs") == "5"
    assert names["rates"].doubles()[100] == 0.2
    assert names["words"] == ["a", "b"]
