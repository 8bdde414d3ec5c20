"""The words of a sweep: which are choices, and of what; the table of docs/sweeps.md."""

from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError, load
from cntkpy.commands.sweeps.choices import Choice, Interval, read_words
from cntkpy.commands.sweeps.points import Draws, Grid
from cntkpy.commands.sweeps.rewrites import split

OTHER = "other=1,2"


def axis(text: str, name: str = "a/b"):
    found = [one for one in read_words([f"{name}={text}", OTHER]).axes if name in one.paths]
    return found[0] if found else None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.01, 0.03,0.1", ["0.01", "0.03", "0.1"]),
        ("choice(0.01, 0.03)", ["0.01", "0.03"]),
        ("choice ( x )", ["x"]),
        ("0,0.9", ["0", "0.9"]),
        ("0.9:0.5*3, 0.9", ["0.9:0.5*3", "0.9"]),
        ('choice((1, 2), "a,b")', ["(1, 2)", '"a,b"']),
        ("(1,2),(3,4)", ["(1,2)", "(3,4)"]),
        ("choice(a),choice(b)", ["choice(a)", "choice(b)"]),
        ("[type=x,dim=3], [type=y]", ["[type=x,dim=3]", "[type=y]"]),
        ('"", x', ['""', "x"]),
        ("range(16, 64, step=16)", ["16", "32", "48", "64"]),
        ("range(0, 1, step=0.1)", ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]),
        ("range(0.001, 0.1, log, count=3)", ["0.001", "0.01", "0.1"]),
        ("range(1, 2, count=3)", ["1", "2"]),
        ("range(1.0, 2, count=3)", ["1", "1.5", "2"]),
        ("range(16,256,log,count=5)", ["16", "32", "64", "128", "256"]),
    ],
)
def test_choices(text: str, values: list[str]) -> None:
    found = axis(text)
    assert isinstance(found, Choice)
    assert [row[0] for row in found.rows] == values


@pytest.mark.parametrize(
    "text",
    [
        "0.1", "0.9:0.5*3", "(0.1, 0.2)", "{a, b}", "[type=x, dim=3]", '"a,b.ctf"', '"choice(a)"', "f(x, y)",
        r"C:\data\x.ctf", "scp:feats.scp", "1,b=2", "1;b=2,3", "", "Choice(a, b)", "choice(a) + choice(b)", "a) , (b",
        "choice(a", "range",
    ],
)  # fmt: skip
def test_one_value(text: str) -> None:
    if text in ("a) , (b",):
        assert axis(text) is not None  # the brackets are wrong, which the check says
        return
    assert axis(text) is None
    assert f"a/b={text}" in read_words([f"a/b={text}", OTHER]).words_for({"other": "1"})


@pytest.mark.parametrize(
    "word", ["configFile=a.cntk,b.cntk", "currentDirectory=a,b", "CONFIGFILE=a,b", "a,b", "verbose"]
)
def test_words_that_are_no_parameters(word: str) -> None:
    assert read_words([word, OTHER]).words_for({"other": "2"}) == [word, "other=2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("range(0.001, 0.1)", Interval("a/b", 0.001, 0.1, False, False)),
        ("range(1e-3, 1e-1, log)", Interval("a/b", 1e-3, 1e-1, True, False)),
        ("range(16, 256)", Interval("a/b", 16, 256, False, True)),
        ("range(-1.5, 2)", Interval("a/b", -1.5, 2, False, False)),
    ],
)
def test_intervals(text: str, expected: Interval) -> None:
    assert axis(text) == expected


@pytest.mark.parametrize(
    ("words", "kind", "part"),
    [
        (["a=1,"], "MissingValue", "empty choice"),
        (["a=choice()"], "MissingValue", "empty choice"),
        (["a=1,2,1"], "Conflict", "the choice 1 twice"),
        (["a/b=1,2", "A.B=3,4"], "Conflict", "chosen twice"),
        (["a=range(1)"], "BadNumber", "two numbers"),
        (["a=range(x, 2)"], "BadNumber", "two numbers"),
        (["a=range(2, 1)"], "BadOrder", "2 is not below 1"),
        (["a=range(0, 1, log)"], "BadValue", "no logarithm"),
        (["a=range(0, 1, 5)"], "BadValue", "no option of a range"),
        (["a=range(0, 1, count=1)"], "BadValue", "no option of a range"),
        (["a=range(0, 1, step=0)"], "BadValue", "no option of a range"),
        (["a=range(1, 9, step=2, log)"], "Conflict", "do not go together"),
        (["a=range(0, 1e9, step=1e-9)"], "BadValue", "values"),
        (["a=zip(1, 2)"], "Conflict", "only a has zip"),
        (["a=zip(1, 2)", "b=zip(1, 2, 3)"], "Conflict", "a has 2 values in zip(...), b has 3"),
        (["a=zip(1, 1)", "b=zip(2, 2)"], "Conflict", "twice"),
        (["a=1"], "MissingParameter", "no word of this sweep has a choice"),
        (["a=1,2", "train=[SGD=[x=1,2]]"], "BadChoice", "a choice stands in a word of its own"),
    ],
)
def test_mistakes(words: list[str], kind: str, part: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_words(words)
    assert error.value.kind == kind and part in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("element", "found"),
    [
        ("0.9:0.5*3", ["0.9", "0.5", "0.5", "0.5"]),
        ("(1, 2)", ["1", "2"]),
        ("{a, b}", ["a", "b"]),
        ('"a,b.ctf"', "a,b.ctf"),
        ('"choice(a)"', "choice(a)"),
        ("scp:feats.scp", ["scp", "feats.scp"]),
    ],
)
def test_an_element_is_what_the_language_takes_it_for(element: str, found: list[str] | str, tmp_path: Path) -> None:
    """As the only value of a word and as one of several, an element reads as it does on every command line."""
    (tmp_path / "c.cntk").write_text("s = [ x = 1 ]\n")
    file = f"configFile={tmp_path / 'c.cntk'}"
    for text, values in ((element, {"o": "1"}), (f"{element}, 7", {"o": "1", "s/x": element})):
        space = read_words([file, f"s/x={text}", "o=1,2"])
        root = load(space.words_for(values))
        section = root.section("s")
        assert (str(section("x")) if isinstance(found, str) else [str(one) for one in section.array("x")]) == found
        assert root.section("s").names() == ["x"]


def test_a_comma_outside_of_brackets_is_never_part_of_a_value() -> None:
    """Why such a list is free to be a choice: the language takes what follows for another name."""
    root = load(["x=0.1,0.2"])
    assert root("x") == "0.1" and root.exists_current("0.2")


def test_zip_is_one_axis() -> None:
    space = read_words(["x=zip(1, 2)", "y=a,b", "z=zip(0.5, (7,8))"])
    assert space.axes == (Choice(("x", "z"), (("1", "0.5"), ("2", "(7,8)"))), Choice(("y",), (("a",), ("b",))))
    grid = Grid(space)
    assert [grid.values(number) for number in range(grid.size)] == [
        {"x": "1", "z": "0.5", "y": "a"},
        {"x": "1", "z": "0.5", "y": "b"},
        {"x": "2", "z": "(7,8)", "y": "a"},
        {"x": "2", "z": "(7,8)", "y": "b"},
    ]
    assert space.words_for(grid.values(3)) == ["x=2", "y=b", "z=(7,8)"]


def test_the_order_of_words_stays() -> None:
    space = read_words(["a=1,2", "configFile=x.cntk", "b=[c=3]"])
    assert space.words_for({"a": "2"}) == ["a=2", "configFile=x.cntk", "b=[c=3]"]


def test_a_grid_counts_whole_numbers_and_refuses_intervals() -> None:
    grid = Grid(read_words(["n=range(3, 5)", "m=x,y"]))
    assert grid.size == 6
    assert [grid.values(number)["n"] for number in range(6)] == ["3", "3", "4", "4", "5", "5"]
    for text in ("range(3.0, 5)", "range(3, 5, log)"):
        with pytest.raises(ConfigError, match="a grid needs single values") as error:
            Grid(read_words([f"n={text}"]))
        assert "count=5" in (error.value.hint or "")
    with pytest.raises(ConfigError, match="more than"):
        Grid(read_words(["n=range(1, 2000)", "m=range(1, 2000)"]))


def test_random_draws_are_the_same_for_the_same_number_and_seed() -> None:
    space = read_words(["n=range(3.0, 5)", "k=range(2, 64, log)", "m=x,y"])
    draws, more = Draws(space, 5, 1), Draws(space, 50, 1)
    assert [draws.values(n) for n in range(5)] == [more.values(n) for n in range(5)]
    values = [more.values(n) for n in range(50)]
    assert all(3 <= float(one["n"]) <= 5 and 2 <= int(one["k"]) <= 64 for one in values)
    assert len({one["n"] for one in values}) == 50 and {one["m"] for one in values} == {"x", "y"}
    assert Draws(space, 5, 2).values(0) != draws.values(0)


def test_random_draws_of_a_finite_space_are_distinct() -> None:
    space = read_words(["n=range(1, 4)", "m=x,y"])
    draws = Draws(space, 8, 0)
    assert len({tuple(draws.values(n).items()) for n in range(8)}) == 8
    assert [Draws(space, 3, 0).values(n) for n in range(3)] == [draws.values(n) for n in range(3)]
    with pytest.raises(ConfigError, match="8 combinations, fewer than 9"):
        Draws(space, 9, 0)


def test_an_interval_of_whole_numbers_reaches_its_bounds() -> None:
    one = Interval("n", 1, 3, False, True)
    assert [one.at(part) for part in (0, 0.34, 0.67, 0.999999)] == ["1", "2", "3", "3"]
    assert Interval("n", 1, 100, True, False).at(0.5) == "10"


def test_split_looks_at_brackets_and_quotes() -> None:
    assert split('a,(b,c),"d,(",e', ",") == ["a", "(b,c)", '"d,("', "e"]


@pytest.mark.parametrize("value", [0.269388301928541, 1.0, 1e-05, 123456789012.5, 0.1])
def test_numbers_of_a_sampler_keep_all_digits(value: float) -> None:
    text = Interval("n", 0, 1e12, False, False).exact(value)
    assert float(text) == value and not text.endswith(".0")


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("rate=loguniform(1e-4, 0.1)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=log-uniform(1e-4, 0.1)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=LogUniform(1e-4,0.1)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=uniform(0, 1)", "write 'rate=range(0, 1)'"),
        ("size=randint(1, 9)", "write 'size=range(1, 9)'"),
        ("kind=categorical(a, b)", "write 'kind=choice(a, b)'"),
        ("rate=log_uniform(1e-4, 0.1)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=uniform(1e-4, 0.1, log=true)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=uniform(1e-4, 0.1, log=false)", "write 'rate=range(1e-4, 0.1)'"),
        ("rate=tune.loguniform(1e-4, 0.1)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=loguniform(low=1e-4, high=0.1)", "write 'rate=range(1e-4, 0.1, log)'"),
        ("rate=log-uniform(max=0.1, min=1e-4)", "write 'rate=range(1e-4, 0.1, log)'"),
        ('rate=trial.suggest_float("rate", 1e-4, 0.1, log=True)', "write 'rate=range(1e-4, 0.1, log)'"),
        ("size=quniform(16, 64, 16)", "write 'size=range(16, 64, step=16)'"),
        ("size=suggest_int(16, 64, step=16)", "write 'size=range(16, 64, step=16)'"),
        ("rate=linspace(0, 1, 5)", "write 'rate=range(0, 1, count=5)'"),
        ("rate=geomspace(1e-4, 0.1, num=4)", "write 'rate=range(1e-4, 0.1, log, count=4)'"),
        ("rate=np.logspace(-4, -1, 4)", "write 'rate=range(1e-4, 1e-1, log, count=4)'"),
        ("kind=categorical([a, b])", "write 'kind=choice(a, b)'"),
    ],
)
def test_forms_of_other_programs_are_rewritten_in_the_message(word: str, written: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_words(["configFile=a.cntk", word])
    assert error.value.hint == written
    rewritten = written.partition("'")[2].rstrip("'")
    assert len(read_words(["configFile=a.cntk", rewritten]).axes) == 1


@pytest.mark.parametrize(
    ("word", "choices"),
    [
        ("train=[SGD=[maxEpochs=1,2]]", ["train/SGD/maxEpochs=1,2"]),
        ("train=[SGD=[a=3;maxEpochs=1,2]]", ["train/SGD/maxEpochs=1,2"]),
        ("train=[SGD=[maxEpochs=1,2;b=3];reader=[x=a]]", ["train/SGD/maxEpochs=1,2"]),
        ("train=[reader=[x=a];SGD=[b=3,4;c=range(1, 2)]]", ["train/SGD/b=3,4", "train/SGD/c=range(1, 2)"]),
        ("train = [ SGD = [ rate = log_uniform(1e-4, 0.1) ] ]", ["train/SGD/rate=range(1e-4, 0.1, log)"]),
        ("train=[a=choice(1, 2)]", ["train/a=choice(1, 2)"]),
    ],
)
@pytest.mark.parametrize("second", [[], ["rate=0.1,0.2"]])
def test_a_choice_inside_a_section_is_refused(word: str, choices: list[str], second: list[str]) -> None:
    """In the language, `maxEpochs=1,2` sets maxEpochs to 1 and a parameter `2` to true."""
    with pytest.raises(ConfigError) as error:
        read_words(["configFile=a.cntk", *second, word])
    assert error.value.kind == "BadChoice"
    listed = " ".join(f"'{choice}'" for choice in choices)
    assert error.value.hint == f"write {listed}"
    assert len(read_words(["configFile=a.cntk", *choices]).axes) == len(choices)


@pytest.mark.parametrize(
    "word", ["a=[b=1,c=2]", "a=[b=(1,2);c={3,4}]", 'a=[b="1,2"]', "a=[b=f(x, y);c=1:2*3]", "a=[]", "a=[b=[c=1;d=2]]"]
)
def test_sections_without_choices_are_values(word: str) -> None:
    assert len(read_words(["configFile=a.cntk", "rate=1,2", word]).axes) == 1


def test_options_of_ranges_as_other_programs_write_them() -> None:
    for option, hint in (("log=true", "write log"), ("log=false", "leave it out: a range is linear")):
        with pytest.raises(ConfigError) as error:
            read_words([f"a=range(1, 2, {option})"])
        assert error.value.hint == hint


@pytest.mark.parametrize("brackets", ["[]", "()", "{}"])
def test_a_list_in_brackets_is_one_value_and_the_message_has_the_choice(brackets: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_words(["configFile=a.cntk", f"train/SGD/rate={brackets[0]}0.1, 0.2{brackets[1]}"])
    assert error.value.hint == "commas in brackets are one value; write train/SGD/rate=0.1,0.2"
    with pytest.raises(ConfigError) as error:
        read_words(["configFile=a.cntk", "train=[SGD=[x=1]]", "a=(1)", "b=[]", "c="])
    assert "give a word several values" in str(error.value.hint)
