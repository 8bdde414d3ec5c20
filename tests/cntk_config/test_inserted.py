"""Values of Python in a configuration, and sections as values."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import ConfigError, parse


def test_a_dictionary_is_a_section_and_a_list_an_array() -> None:
    config = parse("y=[a=1]")
    config.insert("y", {"b": 2.5, "c": ["x y", 3], "d": {"e": True}})
    assert config.section("y")("a", 0) == 1
    assert config.section("y")("b", 0.0) == 2.5
    assert [str(one) for one in config.section("y").array("c")] == ["x y", "3"]
    assert config.section("y").section("d")("e", False) is True
    config.insert("p", Path("a/b"))
    config.insert("n", np.float32(0.5))
    assert (config("p"), config("n", 0.0)) == ("a/b", 0.5)


def test_other_values_are_refused() -> None:
    with pytest.raises(ConfigError, match="a set cannot be a value of a configuration"):
        parse("").insert("y", {1, 2})


def test_the_value_of_a_section_is_asked_like_the_section() -> None:
    sgd = parse("rate=0.1 ; SGD=[maxEpochs=3 ; inner=[x=1]]")("SGD")
    assert sgd("maxEpochs", 0) == 3
    assert sgd("rate", 0.0) == 0.1
    assert sgd("inner")("x") == "1"
    assert sgd("nothing", 7) == 7
    with pytest.raises(ConfigError, match="nothing"):
        sgd("nothing")
