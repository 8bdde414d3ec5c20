"""R13: chains and circles of variables are walked once, not once for each of their members."""

import pytest

from cntkpy.cntk_config import ConfigError, parameters, parse
from cntkpy.cntk_config.variables import MAX_DEPTH

COUNT = 2000


def chain(count: int, end: str) -> str:
    return "".join(f"v{i}=$v{i + 1}$\n" for i in range(count)) + f"v{count}={end}\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (chain(COUNT, "1"), "ExpansionTooLarge"),
        (chain(COUNT, "$v0$"), "ExpansionTooLarge"),
        (chain(COUNT, "$nothing$"), "UnknownVariable"),
        (chain(90, "$v0$"), "VariableCycle"),
        ("s=[\n" + chain(COUNT, "1") + "]\n", "ExpansionTooLarge"),
    ],
    ids=["long", "circle", "undefined", "short circle", "section"],
)
def test_a_chain_is_walked_once(text: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expand, calls = parameters.expand, 0

    def counted(*arguments, **options):
        nonlocal calls
        calls += 1
        return expand(*arguments, **options)

    monkeypatch.setattr(parameters, "expand", counted)
    config = parse(text)
    config = config.section("s") if config.exists_current("s") else config
    kinds = set[str]()
    for name in config.names():
        try:
            config(name)
        except ConfigError as error:
            kinds.add(str(error.kind))
    assert kinds == {kind}
    assert calls < 3 * len(config.names()) + 4 * MAX_DEPTH


def test_a_long_chain_that_is_short_enough() -> None:
    assert parse(chain(MAX_DEPTH, "7"))("v0") == "7"
    with pytest.raises(ConfigError, match=r"the variable \$v1\$ needs a chain of more than 100 other variables"):
        parse(chain(MAX_DEPTH + 1, "7"))("v0")


@pytest.mark.parametrize(("name", "shown"), [("a", "$a$ -> $b$ -> $c$ -> $a$"), ("b", "$b$ -> $c$ -> $a$ -> $b$")])
def test_the_error_of_a_short_circle_begins_with_the_name_that_is_read(name: str, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse("a=$b$\nb=$c$\nc=$a$\nd=$a$\n")(name)
    assert caught.value.message.endswith(shown)
    assert caught.value.span is not None and caught.value.span.line == "abc".index(name) + 1
