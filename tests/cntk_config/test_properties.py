"""Any text gives a tree or a located error; what is written reads the same; nothing hangs.

`tools.fuzz --target config` tries more texts than these.
"""

import contextlib
import cProfile
import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import ConfigArray, ConfigError, ConfigValue, load, parse
from cntkpy.cntk_config.export import Export

WORDS = ["\r", "\r\n", "\0", "\ufeff", "é", "𝄞", "$a$", "include", "default"]
ALPHABET = [*"ab1=;:,*[](){}\"'#$ \t\n_-.|~\\/", *WORDS]
texts = st.lists(st.sampled_from(ALPHABET), max_size=60).map("".join)
balanced = st.recursive(
    st.sampled_from(["1", "a", "$a$", "$b$", "0.1*3:2", '"x ; y"', "x:y", "(1:2)", "a#b", "default", '""', "C:\\d"]),
    lambda inner: st.lists(st.tuples(st.sampled_from("abcde"), inner), max_size=4).map(
        lambda pairs: "[" + ";".join(f"{name}={value}" for name, value in pairs) + "]"
    ),
    max_leaves=12,
)

files = st.lists(st.tuples(st.sampled_from("abcd"), balanced)).map(lambda pairs: "\n".join(map("=".join, pairs)))


def read_everything(text: str) -> None:
    """Read every value of a text in every way."""
    config = parse(text)
    for form in (Export.flat, Export.json, Export.yaml, Export.cntk):
        form(Export(config, on_error=lambda error: error.kind, origins=True))
        form(Export(config, on_error=lambda error: error.kind, unresolved=True))
    for name in config.names():
        for read in (
            lambda n=name: list(config.array(n)[:50]),
            lambda n=name: config.sections(n) if len(config.array(n)) < 50 else None,
            lambda n=name: config(n).locate(3),
            lambda n=name: config.opaque(n),
            lambda n=name: config(n, 0.5),
            lambda n=name: config(n, 1),
            lambda n=name: config(n, False),
            lambda n=name: Export(config, n).tree() if "/" not in n and ":" not in n and n else None,
        ):
            with contextlib.suppress(ConfigError):
                read()


def check_never_crashes(text: str) -> None:
    try:
        read_everything(text)
    except ConfigError as error:
        assert error.span is not None
        assert error.diagnostic.render()
        assert error.span.line >= 1
        assert error.span.column >= 1


@settings(max_examples=70)
@given(texts)
@example('a="[x=1"\n')
@example("a=[$k$=3]\nk=x")
@example("a=$b$\nb=[x=1\n")
@example("a=(1:2)*\n")
@example("=\n")
@example('"a"=\n')
@example('=""')
@example("a=[\n\n#x\n]")
def test_any_text_gives_a_tree_or_a_located_error(text):
    check_never_crashes(text)


@settings(max_examples=80)
@given(st.text(max_size=80))
def test_any_unicode(text):
    check_never_crashes(text.encode("utf-8", "replace").decode())


@settings(max_examples=30)
@given(data=st.binary(max_size=80))
def test_any_bytes_in_a_file(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.cntk"
    path.write_bytes(data)
    try:
        Export(load([f"configFile={path}"]), on_error=str).json()
    except ConfigError as error:
        assert error.diagnostic.render()
        assert error.span is not None


@settings(max_examples=70)
@given(st.lists(texts.filter(lambda t: not t.lower().startswith("currentdirectory")), max_size=4))
def test_any_words(words):
    with contextlib.suppress(ConfigError):
        Export(load(words), on_error=str).json()


@settings(max_examples=20)
@given(st.one_of(texts, files))
@example('a="x;y"\nb=[c="";d=1:2]\n')
@example('"include"=3')
@example("a={x=1}\na=[y=2]\n")
@example('a=10:"t":1.25\n"#n"=x')
def test_what_is_written_reads_the_same(text):
    try:
        config = parse(text)
        tree = Export(config).tree()
        written = Export(config).cntk()
    except ConfigError:
        return
    if "cannot be written" not in written:
        assert Export(parse(written)).tree() == tree
    assert json.loads(Export(config).json()) == tree
    assert yaml.safe_load(Export(config).yaml()) == tree


@settings(max_examples=50)
@given(texts)
def test_a_value_knows_the_place_of_every_character(text):
    try:
        config = parse(text)
        for name in config.names():
            value = config.stored(name, raw=True)
            for offset, char in enumerate(value.rstrip("\n")):
                span = value.locate(offset)
                assert span is not None
                line = span.source.line(span.line)
                assert line is not None
                if len(value.fragments) == 1 and char != "\n" and value != "true":
                    assert line[span.column - 1] == char
    except ConfigError:
        pass


DEEP = 100_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "[" * DEEP,
        "a=" + "[" * DEEP,
        "a=" + "[" * DEEP + "]" * DEEP,
        "a=" + "[a=" * DEEP + "1" + "]" * DEEP,
        "a=" + "{a=" * DEEP + "1" + "}" * DEEP,
        "a=" + "(" * DEEP + "1:2" + ")" * DEEP,
        "a=[" + "(" * DEEP + "]" + ")" * DEEP,
        "]" * DEEP,
        "a=" + "]" * DEEP,
        '"' * DEEP,
        "a=" + "$x$" * DEEP,
        "a=" + "[x=$y$]:" * (DEEP // 20),
        "a=[b=1]\n" * (DEEP // 20),
        "a=1\n" * (DEEP // 10),
        "=" * DEEP,
        "a=" + "*" * DEEP,
        "a=" + "1:" * (DEEP // 4),
        "a=1*999999999",
        "[" * 500_000 + "]" * 500_000,
        "include=" + "x+" * 10,
        "\n" * DEEP + "\0" * 10,
        "#" * DEEP,
        "a=" + " #" * DEEP,
    ],
    ids=range(23),
)
def test_large_and_deep_texts_neither_hang_nor_overflow(text):
    check_never_crashes(text)


def test_nested_a_hundred_thousand_deep_is_a_located_error_when_read():
    config = parse("a=" + "[a=" * DEEP + "1" + "]" * DEEP)
    with pytest.raises(ConfigError) as caught:
        Export(config).json()
    assert caught.value.kind == "NestingTooDeep"


def test_a_long_cycle_and_a_long_chain_end_with_an_error():
    chain = "\n".join(f"v{i}=$v{i + 1}$" for i in range(250))
    config = parse(chain + "\nv250=x\n")
    kinds = set(Export(config, on_error=lambda e: e.kind).tree().values())
    assert kinds == {"x", "ExpansionTooLarge"}
    config = parse(chain + "\nv250=$v0$\n")
    with pytest.raises(ConfigError):
        config("v0")


def test_variables_cannot_blow_up_a_text():
    laughs = "v0=" + "ha" * 50 + "\n" + "".join(f"v{i}=" + f"$v{i - 1}$" * 10 + "\n" for i in range(1, 30))
    config = parse(laughs)
    assert len(config("v2")) == 10_000
    with pytest.raises(ConfigError) as caught:
        config("v29")
    assert caught.value.kind == "ExpansionTooLarge"
    assert len(caught.value.notes) <= 8
    with pytest.raises(ConfigError, match="grows beyond"):
        parse(laughs + "s=[" + "x=$v2$;" * 1000 + "]").section("s")


def test_repeats_cost_nothing():
    array = ConfigArray(ConfigValue("1*2000000000:2"))
    assert len(array) == 2_000_000_001
    assert array[-1] == "2"
    assert array.integers()[1_999_999_999] == 1


def test_reading_takes_linear_time():
    """Counted in calls of functions, built-in ones included; benchmarks/config.py measures seconds."""
    from benchmarks.config import generate

    small, large = generate(200), generate(2_000)

    def calls(text: str) -> int:
        profile = cProfile.Profile()
        profile.runcall(lambda: Export(parse(text)).json())
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(large) <= 11 * calls(small)
