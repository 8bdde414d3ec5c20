"""Declared parameters: conversion, defaults, errors, checks."""

from dataclasses import replace

import pytest

from cntkpy.cntk_config import ConfigError, PerEpoch, parse
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    FLOAT32,
    INTEGER,
    PATH,
    REAL,
    SAMPLES,
    SECTION,
    SECTIONS,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    array,
    choice,
    per_epoch,
    section_of,
)


class Reader(Declared):
    """Where the data come from."""

    file = Parameter("file", PATH, help="The data file.")
    randomize = Parameter("randomize", BOOLEAN, default="true")


class Base(Declared):
    """What every command has."""

    trace_level = Parameter("traceLevel", INTEGER, default="0")


class Training(Base):
    """How the network is trained."""

    max_epochs = Parameter("maxEpochs", INTEGER, help="Number of epochs.")
    minibatch_size = Parameter("minibatchSize", per_epoch(SIZE), default="256")
    rate = Parameter("learningRate", FLOAT32, default="0.1", aliases=("rate",))
    decay = Parameter("decay", REAL, default=None)
    kind = Parameter("kind", choice("none", "adaGrad", ignore_case=True), default="none", own=True)
    nodes = Parameter("nodes", array(TEXT), default="")
    reader = Parameter("reader", section_of(f"{__name__}:Reader"), default=None)
    extra = Parameter("extra", SECTION, default="[]")
    parts = Parameter("parts", SECTIONS, default="")


Training.reader.type = type(Training.reader.type)(
    "section", lambda value: Reader(value.as_section()), is_section=True, declared=lambda: Reader
)


def test_values_are_converted_when_read():
    p = Training(parse("maxEpochs=3\nminibatchSize=1:2*2\nkind=ADAGRAD\nnodes=(a,b)\nrate=0.5\nreader=[file=x]\n"))
    assert p.max_epochs == 3
    assert isinstance(p.minibatch_size, PerEpoch)
    assert p.minibatch_size[9] == 2
    assert p.rate == 0.5
    assert p.decay is None
    assert p.kind == "adaGrad"
    assert p.nodes == ["a", "b"]
    assert p.reader.file == "x"
    assert p.reader.randomize is True
    assert p.extra.names() == []
    assert p.parts == []
    assert p.trace_level == 0


def test_names_are_inherited_unless_own():
    section = parse("kind=adaGrad\nmaxEpochs=7\ns=[x=1]").section("s")
    assert Training(section).max_epochs == 7
    assert Training(section).kind == "none"


def test_default_as_a_value_means_the_default():
    assert Training(parse("maxEpochs=1;learningRate=default")).rate == pytest.approx(0.1)
    with pytest.raises(ConfigError, match="maxEpochs has no value of its own"):
        _ = Training(parse("maxEpochs=default")).max_epochs


def test_missing_and_wrong_values_are_located():
    p = Training(parse("s=[kind=adagrat]\n", "m.cntk").section("s"))
    with pytest.raises(ConfigError, match="s:maxEpochs is missing") as caught:
        _ = p.max_epochs
    assert "maxEpochs: Number of epochs." in caught.value.notes
    with pytest.raises(ConfigError, match="'adagrat' is not one of") as caught:
        _ = p.kind
    assert caught.value.hint == "did you mean 'adaGrad'?"
    assert str(caught.value.span) == "m.cntk:1:9"


def test_given_and_error():
    p = Training(parse("maxEpochs=3\nrate=1\n"))
    assert p.given("maxEpochs") == "3"
    assert p.given("learningRate") == "1"
    assert p.given("decay") is None
    assert str(p.error("maxEpochs", "too few", "use more").span) == "<text>:1:11"
    assert p.error("decay", "needed").span is None


def test_problems_and_unknown_names():
    p = Training(parse("maxEpoch=3\nminibatchSize=1:x\nreader=[randomize=7]\n"))
    assert [(d.kind, str(d.span)) for d in p.problems()] == [
        ("MissingParameter", "None"),
        ("BadInteger", "<text>:2:17"),
        ("MissingParameter", "<text>:3:8"),
        ("BadBoolean", "<text>:3:19"),
    ]
    (unknown,) = p.unknown()
    assert (unknown.hint, unknown.severity) == ("did you mean 'maxEpochs'?", "warning")


def test_declarations_can_be_listed():
    names = [one.name for one in Training.parameters()]
    assert names[:3] == ["traceLevel", "maxEpochs", "minibatchSize"]
    assert Training.parameter("RATE") is Training.rate
    assert Training.max_epochs.required
    assert not Training.rate.required
    assert Training.minibatch_size.type.name == "size per epoch"
    assert Training.kind.type.choices == ("none", "adaGrad")


def test_section_of_imports_on_use():
    declared = section_of("cntkpy.cntk_config.declare:Declared")
    assert declared.declared is not None
    assert declared.declared() is Declared


class Bounded(Declared):
    rank = Parameter("rank", INTEGER, default="8", minimum=1, help="A rank.")
    rates = Parameter("rates", replace(per_epoch(REAL), maximum=1), default="1", minimum=0, help="Rates.")
    old = Parameter("old", TEXT, default="", ignored="nothing needs it")


def test_numbers_outside_a_declared_range_are_located_errors() -> None:
    assert Bounded(parse("rank = 1")).rank == 1
    with pytest.raises(ConfigError, match="rank is at least 1") as error:
        _ = Bounded(parse("rank = 0")).rank
    assert error.value.kind == "BadValue"
    assert error.value.span is not None
    with pytest.raises(ConfigError, match="rates is at most 1"):
        _ = Bounded(parse("rates = 0.5:2")).rates
    assert list(Bounded(parse("rates = 0.5:1")).rates) == [0.5, 1.0]


def test_an_ignored_parameter_says_why() -> None:
    assert Bounded.old.ignored == "nothing needs it"
    assert Bounded.old.help == "Ignored: nothing needs it"
    assert Bounded.rates.type.per_epoch


class Numbers(Declared):
    """Numbers of every type."""

    count = Parameter("count", COUNT, default="1")
    samples = Parameter("samples", SAMPLES, default="0")
    rates = Parameter("rates", per_epoch(REAL), default="1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count=-1", "count is at most 2147483647"),
        ("count=9223372036854775808", "count is at most 2147483647"),
        ("samples=9223372036854775808", "samples is at most 4611686018427387904"),
        ("rates=0.1:nan", "rates is a number, not nan"),
    ],
)
def test_numbers_have_ranges(text: str, message: str) -> None:
    """R9: what would loop forever, or overflow, or compare with nothing."""
    (problem,) = Numbers(parse(text)).problems()
    assert message in problem.message


def test_the_greatest_size_means_all_samples() -> None:
    assert Numbers(parse("samples=-1")).samples == 0
