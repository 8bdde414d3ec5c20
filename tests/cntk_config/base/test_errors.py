"""Every class of error and warning: a bad text, the place, and the message a user sees."""

import copy
import pickle

import pytest

from cntkpy.cntk_config import ConfigError, ConfigValue, load, nearest, parse, suggestion
from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.cntk_config.export import Export

LOADING = [
    ("a=1\rb=2\n", "MalformedLine", "1:4", "carriage return"),
    ("x=1\ninclude=$d$/b\n", "VariableInInclude", "2:9", "cannot contain variables"),
    ("include=\n", "MissingValue", "1:9", "name of the file"),
    ("include=none.cntk\n", "FileNotFound", "1:9", "cannot read 'none.cntk'"),
    ("b=1\na=[x=(1\n", "UnclosedBracket", "2:6", "this '(' is never closed"),
    ("a=[\n  b=f(1\n  c=2\n]\n", "UnclosedBracket", "2:6", "this '(' is never closed"),
    ("a=[\n  b=[ x=1\n]\nc=[ x=2 ]\n", "UnclosedBracket", "2:5", "this '[' is never closed"),
    ("a=[\n  b=[\n    c=[\n      x=1\n  ]\n]\n", "UnclosedBracket", "3:7", "this '[' is never closed"),
    ("a=[\n  b=(1:\n  2]\n", "UnclosedBracket", "2:5", "this '(' is never closed"),
    ("a=[x=(1]\n", "MismatchedBracket", "1:8", "']' cannot close the '(' opened at <text>:1:6"),
    ('a="p # q"\n', "UnclosedBracket", "1:3", "quote is never closed"),
    ('a="p\nb="q"\nc="r"\n', "UnclosedBracket", "1:3", "quote is never closed"),  # not at the last one of the file
    ('a=p"\nb="q"\nc="r"\n', "UnclosedBracket", "1:4", "quote is never closed"),
    ('a="p q"\nb=[\n  c="r\n  d=(1:2)\n]\ne=["s"]\n', "UnclosedBracket", "3:5", "quote is never closed"),
    ('a=[\nc="r\ninclude "s"\n]\ne="t"\n', "UnclosedBracket", "2:3", "quote is never closed"),
    ('a="several\nlines"\nb=[\n  c=1\n', "UnclosedBracket", "3:3", "'[' is never closed"),
    ('a="p # q"\nb="z"\n', "UnclosedBracket", "1:3", "quote is never closed"),
    ('a="p # q"\nb="r # s"\nc=1\n', "UnclosedBracket", "1:3", "quote is never closed"),
    ('x="y"\nc=[\n  a="p # q"\n]\nb=["z"]\n', "UnclosedBracket", "3:5", "quote is never closed"),
    ("a=1;b=\n", "MissingValue", "1:7", "the value of 'b' is missing"),
]
READING = [
    ("a=$nope$\n", "UnknownVariable", "1:3", "$nope$ is not defined"),
    ("a=$b$\nb=x$a$\n", "VariableCycle", "1:3", "$a$ -> $b$ -> $a$"),
    ("a=x$b$\nb=[\ny=1\n]\n", "MultilineVariable", "1:4", "several lines"),
    ("a=[b=" + "$c$" * 90_000 + "]\nc=" + "x" * 60_000, "ExpansionTooLarge", None, "grows beyond"),
    ("a=" + "[a=" * 200 + "]" * 200, "NestingTooDeep", "1:303", "deeper than 100"),
    ("a=[b=]", "MissingValue", "1:6", "the value of 'b' is missing"),
]
CONVERSIONS = [
    ("5.0", ConfigValue.as_int, "BadInteger", "'5.0' is not an integer", "write 5"),
    ("70000", ConfigValue.as_short, "IntegerRange", "out of range, -32768 to 32767", None),
    ('"1,5"', ConfigValue.as_double, "BadNumber", "'1,5' is not a number", "use a point"),
    ("yes", ConfigValue.as_bool, "BadBoolean", "'yes' is not a boolean", "write true or false"),
    ("(1:2)*", ConfigValue.as_array, "BadRepeat", "'(1:2)*': a list in brackets cannot be repeated", None),
    ("7*x", ConfigValue.as_array, "BadRepeat", "'x' is not a count", "write value*count"),
    ('""', lambda v: v.as_array().sizes()[0], "EmptyVector", "the list is empty", "at least one"),
]


@pytest.mark.parametrize(("text", "kind", "place", "message"), LOADING)
def test_errors_of_loading(text, kind, place, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert (caught.value.kind, str(caught.value.span)) == (kind, f"<text>:{place}")
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [('a="p # the rest\nq"\n', "p \nq\n"), ('a="p # the "rest"\nq"\n', "p \nq\n"), ('# "a\na="p\nq" # "r\n', "p\nq\n")],
)
def test_comments_in_a_text_of_several_lines(text: str, value: str) -> None:
    assert parse(text)("a") == value


@pytest.mark.parametrize(("text", "kind", "place", "message"), READING, ids=[row[1] for row in READING])
def test_errors_of_reading(text, kind, place, message):
    config = parse(text)
    with pytest.raises(ConfigError) as caught:
        Export(config).tree()
    assert caught.value.kind == kind
    assert place is None or str(caught.value.span) == f"<text>:{place}"
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "read", "kind", "message", "hint"), CONVERSIONS)
def test_errors_of_conversion_name_the_parameter_and_the_place(text, read, kind, message, hint):
    config = parse(f"s=[\n  a={text}\n]\n", "m.cntk")
    with pytest.raises(ConfigError) as caught:
        read(config.section("s").stored("a"))
    error = caught.value
    assert error.kind == kind
    assert str(error).startswith("m.cntk:s:a: ")
    assert message in str(error)
    assert error.span is not None
    assert error.span.line == 2
    assert hint is None or hint in (error.hint or "")


def test_missing_parameter_names_the_sets_searched():
    config = parse("s=[\n t=[x=1]\n]\nmodelPath=m", "m.cntk")
    with pytest.raises(ConfigError, match="modlPath is missing") as caught:
        config.section("s").section("t")("modlPath")
    assert caught.value.kind == "MissingParameter"
    assert caught.value.notes == ("searched in m.cntk:s:t, m.cntk:s, m.cntk",)
    assert caught.value.hint == "did you mean 'modelPath'?"
    assert str(caught.value.span) == "m.cntk:2:4"


@pytest.mark.parametrize(
    ("words", "kind", "place"),
    [
        (["configFile=none"], "FileNotFound", "<argument 1>:1:12"),
        (["a=1", "configFile=x+none"], "FileNotFound", "<argument 2>:1:14"),
        (["configFile=x", "configFile=x"], "DuplicateConfigFile", "<argument 2>:1:1"),
        (["currentDirectory=nodir"], "BadDirectory", "<argument 1>:1:18"),
        (["configFile=."], "FileNotFound", "<argument 1>:1:12"),
        (["a=\udcff"], "MalformedLine", "<argument 1>:1:3"),
        (["configFile=a\0b"], "FileNotFound", "<argument 1>:1:12"),
    ],
)
def test_errors_of_the_command_line(words, kind, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("")
    with pytest.raises(ConfigError) as caught:
        load(words)
    assert (caught.value.kind, str(caught.value.span)) == (kind, place)
    assert caught.value.diagnostic.render()


def test_bytes_that_are_not_utf8_are_located(tmp_path):
    path = tmp_path / "bad.cntk"
    path.write_bytes("a=1\né=".encode() + b"\xff\n")
    with pytest.raises(ConfigError, match="0xFF is not valid UTF-8") as caught:
        load([f"configFile={path}"])
    span = caught.value.span
    assert span is not None
    assert (span.line, span.column) == (2, 3)


@pytest.mark.parametrize(("coding", "place"), [("utf-16-le", (1, 2)), ("utf-16-be", (1, 1))])
def test_utf16_without_a_mark_is_no_text(coding, place, tmp_path):
    path = tmp_path / "bad.cntk"
    path.write_bytes("a=1\n".encode(coding))
    with pytest.raises(ConfigError, match="0x00 is not a text") as caught:
        load([f"configFile={path}"])
    span = caught.value.span
    assert span is not None
    assert (span.line, span.column, caught.value.diagnostic.hint) == (*place, "save the file as UTF-8")


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("=5\n", "EmptyName", "1:1"),
        ('""=5\n', "EmptyName", "1:1"),
        ("a=[x=1]]\n", "StrayBracket", "1:8"),
        ("a=[x=1]\na={y=2}\n", "SectionReplaced", "2:3"),
        ("a=[x=1] [y=2]\n", "NamelessGroup", "1:9"),
    ],
)
def test_warnings(text, kind, place):
    warnings = parse(text).warnings
    assert [(w.kind, w.severity) for w in warnings] == [(kind, "warning")]
    assert kind == "EmptyName" or str(warnings[0].span) == f"<text>:{place}"


def test_an_error_is_shown_with_its_line_and_a_caret():
    with pytest.raises(ConfigError) as caught:
        parse("\tminibatchSize=abc # x", "m.cntk").array("minibatchSize").integers()
    assert caught.value.diagnostic.render() == (
        "error: m.cntk:minibatchSize[0]: 'abc' is not an integer\n"
        "  --> m.cntk:1:16\n"
        "   |\n"
        " 1 | \tminibatchSize=abc # x\n"
        "   | \t              ^^^\n"
        "  help: write a whole number with digits only"
    )
    assert caught.value.diagnostic.one_line().startswith("m.cntk:1:16: error: m.cntk:minibatchSize[0]: 'abc'")


def test_a_no_break_space_is_the_same_in_the_message_and_in_the_line():
    with pytest.raises(ConfigError) as caught:
        parse("\u00a0a=1 ; n=1\u00a0x # y", "m.cntk")("n").as_int()
    assert caught.value.diagnostic.render() == (
        "error: m.cntk:n: '1\\xa0x' is not an integer\n"
        "  --> m.cntk:1:10\n"
        "   |\n"
        " 1 | \\xa0a=1 ; n=1\\xa0x # y\n"
        "   |             ^^^^^^\n"
        "  help: write a whole number with digits only"
    )


def test_a_value_that_came_out_of_a_variable_says_so():
    with pytest.raises(ConfigError) as caught:
        parse("n=abc\nm=$n$\n")("m").as_int()
    assert str(caught.value.span) == "<text>:2:3"
    assert caught.value.notes == ("$n$ is 'abc', defined at <text>:1:3",)


def test_errors_can_be_copied_and_sent_to_another_process():
    with pytest.raises(ConfigError) as caught:
        parse("ab=1")("abc")
    for error in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert error.diagnostic.render() == caught.value.diagnostic.render()


def test_control_characters_are_shown_harmless():
    with pytest.raises(ConfigError) as caught:
        parse("a=\x1b[2J\x1b]x\x07").array("b\x1b")
    assert "\x1b" not in caught.value.diagnostic.render()


def test_similar_names():
    assert nearest("maxepoch", ["maxEpochs", "other"]) == "maxEpochs"
    assert suggestion("xyz", ["maxEpochs"]) is None
    assert shorten("x" * 100, 10) == "xxxxxxx..."


@pytest.mark.parametrize(("written", "told"), [("'dense'", True), ("dens", False), ("'dens", False), ("'", None)])
def test_who_writes_single_quotes_is_told_what_they_are(written: str, told: bool | None):
    """In BrainScript they quote, in the configuration around it they do not."""
    hint = suggestion(written, ["dense", "sparse"])
    assert (hint and "single quotes are part of it" in hint) == told
    assert hint is None or hint.startswith("did you mean 'dense'?")


def test_a_message_that_quotes_a_whole_file_is_cut_in_the_middle() -> None:
    error = UserError("BadFile", "x" * 10**6 + " is not a name")
    assert len(str(error)) < 2100
    assert str(error).endswith("x is not a name")
    assert error.diagnostic.message == str(error) == error.message
