"""The programming interface: parameters, values, arrays, per-epoch values, layers, origins."""

import math

import pytest

from cntkpy.cntk_config import (
    ConfigArray,
    ConfigError,
    ConfigParameters,
    ConfigValue,
    PerEpoch,
    load,
    parse,
    read_text_file,
)
from cntkpy.cntk_config.export import Export


def test_parameters_are_called_with_a_name_and_perhaps_a_default():
    config = parse('maxEpochs=5\nname="a b"\nrate=0.5\nflag\n')
    assert int(config("maxepochs")) == 5
    assert config("name") == "a b"
    assert float(config("rate")) == 0.5
    assert config("flag").as_bool() is True
    assert config("traceLevel", 3) == 3
    assert config("maxEpochs", 3) == 5
    assert config("rate", 0.1) == 0.5
    assert config("flag", False) is True
    assert config("missing", "text") == "text"
    assert config("missing", None) is None
    assert isinstance(config("missing", "text"), ConfigValue)
    with pytest.raises(ConfigError, match="maxEpoch is missing") as caught:
        config("maxEpoch")
    assert caught.value.hint == "did you mean 'maxEpochs'?"


def test_sections_search_the_sets_around_them():
    config = parse("k=1\nreader=[f=1]\ntrain=[k=2;SGD=[n=1]]\n")
    train = config.section("train")
    assert train.section("reader")("k") == "2"
    assert config.section("reader")("k") == "1"
    sgd = train.section("SGD")
    assert sgd.path == "<text>:train:SGD"
    assert sgd.parent is train
    assert sgd.exists("reader")
    assert not sgd.exists_current("reader")
    assert sgd.find("nothing") is None
    assert sgd.own("k") is None
    assert sgd.match("K", "2")
    assert sgd.names() == ["n"]
    assert "n" in sgd
    assert len(sgd) == 1
    assert config.section("other", "[a=1]")("a") == "1"


def test_insert_takes_a_pair_or_text():
    config = ConfigParameters()
    config.insert("a", 1)
    config.insert("flag", True)
    config.insert("s=[x=1]; t=2")
    config.insert("s", "[y=2]")
    config.insert("q", '"x;y"')
    assert Export(config).tree() == {"a": "1", "flag": "true", "s": {"x": "1", "y": "2"}, "t": "2", "q": "x;y"}
    config.insert("a=$t$")
    assert config("a") == "2"
    config.insert("t", "7")
    assert config("a") == "7"


def test_load_config_file_adds_to_a_set_and_to_an_array(tmp_path):
    (tmp_path / "more.cntk").write_text("s=[y=2] # more\ninclude=" + str(tmp_path / "b.cntk") + "\n")
    (tmp_path / "b.cntk").write_text("b=1\n")
    config = parse("s=[x=1]")
    config.load_config_file(tmp_path / "more.cntk")
    assert Export(config).tree() == {"s": {"x": "1", "y": "2"}, "b": "1"}
    (tmp_path / "list.txt").write_text("one\n# nothing\ntwo*2\n\nthree\n")
    array = ConfigArray("zero")
    array.load_config_file(tmp_path / "list.txt")
    assert list(array) == ["zero", "one", "two", "two", "three"]
    with pytest.raises(ConfigError, match="cannot read") as caught:
        config.load_config_file(tmp_path / "none.cntk")
    assert caught.value.kind == "FileNotFound"


def test_arrays_are_sequences_of_values():
    config = parse('a=(1:2*2:"x:y")\nr=0.1*3:0.2\n')
    array = config.array("a")
    assert array == ["1", "2", "2", "x:y"]
    assert array[-1] == "x:y"
    assert array[1:3] == ["2", "2"]
    assert int(array[0]) == 1
    assert array[0].span is not None
    assert str(array[0].span) == "<text>:1:4"
    with pytest.raises(IndexError):
        array[4]
    rates = config.array("r").doubles()
    assert isinstance(rates, PerEpoch)
    assert len(rates) == 4
    assert rates[3] == rates[99] == 0.2
    assert list(rates) == [0.1, 0.1, 0.1, 0.2]
    assert config.array("none", "") == []
    with pytest.raises(ConfigError, match="empty") as caught:
        config.array("none", "").sizes()[0]
    assert caught.value.kind == "EmptyVector"


def test_array_of_sets_has_no_parent_but_a_single_set_works_too():
    config = parse("k=1\nd=([x=1]:{x=2})\none={\n x=1\n y=2\n}\n")
    sets = config.sections("d")
    assert [one("x") for one in sets] == ["1", "2"]
    assert sets[0].parent is None
    assert not sets[0].exists("k")
    assert [one("y") for one in config.sections("one")] == ["2"]


def test_conversions_of_plain_values():
    assert ConfigValue("0x1p3").as_double() == 8
    assert ConfigValue("-1#INF").as_double() == -math.inf
    assert ConfigValue("1e300").as_float() == math.inf
    assert math.isnan(ConfigValue("nan(1)").as_double())
    assert ConfigValue("-1").as_size() == 2**64 - 1
    assert ConfigValue("0.1").as_float() == pytest.approx(0.1, abs=1e-8)
    assert ConfigValue("0.1").as_float() != 0.1
    assert ConfigValue(" 7 ").as_short() == 7
    with pytest.raises(ConfigError) as caught:
        ConfigValue("1" * 5000).as_int64()
    assert caught.value.kind == "IntegerRange"


def test_a_value_maps_every_character_to_its_place():
    config = parse("v=abc\nndl=[\n  x = f(1)  # comment\n  y = g($v$, 2)\n]\n", "net.cntk")
    text = config("ndl")
    assert str(text) == "[\n  x = f(1)\n  y = g(abc, 2)\n]\n".replace("  x", "x", 1).replace("f(1)", "f(1)  ", 1)
    assert str(text.locate(text.index("y ="))) == "net.cntk:4:3"
    assert str(text.locate(text.index("abc"))) == "net.cntk:4:9"
    assert str(text.locate(text.index(", 2"))) == "net.cntk:4:12"
    assert str(text.locate(text.index("f(1)"))) == "net.cntk:3:7"


def test_text_in_another_language_sees_the_variables_of_its_asker():
    config = parse("ndl=[\n x=f($n$)\n]\nb=[n=3;run=ndl]\n")
    assert "f(3)" in config.section("b").opaque("ndl")
    with pytest.raises(ConfigError) as caught:
        config.opaque("ndl")
    assert caught.value.kind == "UnknownVariable"
    assert str(caught.value.span) == "<text>:2:6"


def test_read_text_file(tmp_path):
    path = tmp_path / "net.ndl"
    path.write_bytes(b"\xef\xbb\xbf# top\r\nx = f($n$) # c\r\n\r\ny=2\r\n")
    text = read_text_file(path, parse("n=5"))
    assert text == "x = f(5) \ny=2\n"
    place = text.locate(text.index("y"))
    assert place is not None
    assert (place.line, place.column) == (4, 1)
    assert "$n$" in read_text_file(path)


def test_values_know_what_they_overrode(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.cntk").write_text("x=1\nd=/data\ns=[p=$d$/f]\ninclude=b.cntk\n")
    (tmp_path / "b.cntk").write_text("x=2\n")
    config = load(["configFile=a.cntk", "x=3", "s=[q=1]"])
    steps = [(origin.kind, origin.text, str(origin.span)) for origin in config("x").origins]
    assert steps == [
        ("set", "3", "<argument 2>:1:3"),
        ("overridden", "2", "b.cntk:1:3"),
        ("overridden", "1", "a.cntk:1:3"),
    ]
    assert "overrides '2' at b.cntk:1:3, included at a.cntk:4:9" in Export(config, origins=True).flat()
    p = config.section("s")("p")
    assert [(o.kind, o.name, str(o.span)) for o in p.origins] == [
        ("set", "p", "a.cntk:3:6"),
        ("variable", "d", "a.cntk:2:3"),
    ]
    span = config("x").origins[1].span
    assert span is not None
    assert str(span.source.included_at) == "a.cntk:4:9"  # type: ignore[attr-defined]


def test_forms_of_output():
    config = parse('a=1\ns=[b="x;y";t=[]]\nm={\n x=$a$\n}\n')
    assert Export(config).flat() == 'a=1\ns:b=x;y\ns:t=[]\nm="{\\n x=1\\n}\\n"\n'
    assert Export(config, "s").tree() == {"b": "x;y", "t": {}}
    assert Export(config, "m/x").tree() == Export(config, "s:a").tree() == "1"
    assert Export(config, "m").tree() == {"x": "1"}
    assert Export(config, "s").yaml() == 'b: "x;y"\nt: {}\n'
    assert Export(config, "s").cntk() == 'b = "x;y"\nt = [\n]\n'
    assert Export(config, unresolved=True).tree()["m"] == "{\n x=$a$\n}\n"
    assert "<text>:1:3" in Export(config, origins=True).flat()
    assert '"at": "<text>:1:3"' in Export(config, origins=True).json()
    with pytest.raises(ConfigError, match="nothing is missing"):
        Export(config, "s/nothing").tree()
    broken = parse("a=$no$\nb=1")
    with pytest.raises(ConfigError):
        Export(broken).json()
    assert Export(broken, on_error=lambda error: f"<{error.kind}>").tree() == {"a": "<UnknownVariable>", "b": "1"}


def test_current_directory_and_include_fall_back_to_the_including_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/m.cntk").write_text("include=b.cntk\n")
    (tmp_path / "sub/b.cntk").write_text("x=1\n")
    assert load(["configFile=sub/m.cntk"])("x") == "1"
    assert load(["currentDirectory=sub", "configFile=m.cntk"]).path == "b.cntk"


def test_include_cycles_and_long_chains_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i in range(300):
        (tmp_path / f"{i}.cntk").write_text(f"include=./{i + 1}.cntk\nx{i}=1\n")
    (tmp_path / "300.cntk").write_text("x=1\n")
    assert len(load(["configFile=0.cntk"])) == 301
    (tmp_path / "300.cntk").write_text("include=0.cntk\nx=1\n")
    config = load(["configFile=0.cntk"])
    assert len(config) == 301
    (warning,) = config.warnings
    assert warning.kind == "RepeatedInclude"
    assert "'0.cntk' includes itself: 0.cntk includes ./1.cntk includes ... includes ./300.cntk" in warning.message


def test_a_list_with_a_huge_count_is_refused_where_it_would_be_gone_through() -> None:
    value = parse("a = 2:40*1000000000:2")("a").as_array().sizes()
    assert (len(value), value[5], value[-1], value.distinct()) == (1_000_000_002, 40, 2, [2, 40, 2])
    assert value.starts() == [0, 1, 1_000_000_001]
    with pytest.raises(ConfigError, match="has 1,000,000,002 elements, more than 1,000,000") as caught:
        list(value)
    assert caught.value.span is not None and caught.value.span.column == 5


def test_square_brackets_add_to_a_section_of_any_bracket():
    for old in ("(x=1;y=2)", "( x=1\ny=2)", "(|x=1|y=2)", "{x=1;y=2}"):
        section = parse(f"a={old}\na=[y=3]").section("a")
        assert (section("x"), section("y")) == ("1", "3"), old
    for old in ("(1:2)", "([x=1]:[x=2])", "(new C { x=1 })", "5"):
        assert parse(f"a={old}\na=[y=3]").section("a").names() == ["y"], old
    (warning,) = parse("a=(x=1)\na=(y=3)").warnings
    assert warning.kind == "SectionReplaced"


def test_a_hash_right_behind_a_quotation_mark_is_data():
    config = parse('a="#x y" ; b=("#x":"y") ; c="$a$ z"')
    assert (config("a"), config("c"), list(config.array("b"))) == ("#x y", "#x y z", ["#x", "y"])
    assert [load([f"a={word}"])("a", "") for word in ('"#z"', "#z", '"p # q"')] == ["#z", "", "p"]


def test_the_standard_input_is_a_file():
    with pytest.raises(ConfigError) as caught:
        load(["configFile=-"])
    assert caught.value.hint == "the standard input is called /dev/stdin"


def test_a_path_with_the_word_default_removes_the_value(tmp_path, monkeypatch):
    """D15: the value further out is found again; `default` in a file hides it, as in CNTK."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.cntk").write_text("x=out\ns=[x=1;y=2;t=[x=3]]\n")
    removed = load(["configFile=a.cntk", "s/x=default"]).section("s")
    assert (removed("x"), removed.exists("x"), removed.exists_current("x")) == ("out", True, False)
    assert [one.name for one in removed.removals()] == ["x"]
    assert removed.section("t")("x") == "3"
    nested = load(["configFile=a.cntk", "s.t.x=default"]).section("s").section("t")
    assert nested("x") == "1"
    again = load(["configFile=a.cntk", "s/x=default", "s/x=5"]).section("s")
    assert (again("x"), again.removals()) == ("5", [])
    hidden = load(["configFile=a.cntk", "s=[x=default]"]).section("s")
    assert (hidden.find("x"), hidden.exists_current("x"), hidden.is_removed("x")) == (None, True, True)


def test_the_word_default_is_written_as_it_is(tmp_path, monkeypatch):
    """D15: an empty text would be a value."""
    monkeypatch.chdir(tmp_path)
    config = parse("x=5\ns=[x=default;y=2]\n")
    assert Export(config).flat() == "x=5\ns:x=default\ns:y=2\n"
    assert Export(config).tree() == {"x": "5", "s": {"x": "default", "y": "2"}}
    assert 'x: "default"' in Export(config).yaml()
    (tmp_path / "b.cntk").write_text(Export(config, origins=True).cntk())
    again = load(["configFile=b.cntk"]).section("s")
    assert (again.find("x"), again.is_removed("x"), again("y")) == (None, True, "2")


def test_a_value_that_is_inserted_keeps_its_place():
    """S13: an error in it was at `<insert>:1:1`."""
    config = parse('v=$w$\nw=abc\nl=[x=1]:[x=2]\nq="a;b"\ns=[x=1]\n')
    other = ConfigParameters()
    for name in ("v", "l", "q", "s"):
        other.insert(name, config(name))
    with pytest.raises(ConfigError) as caught:
        int(other("v"))
    assert str(caught.value.span) == "<text>:1:3"
    assert [str(one("x")) for one in other.sections("l")] == ["1", "2"]
    assert (other("q"), other.section("s")("x")) == ("a;b", "1")
    other.insert("s=[y=2]")
    assert other.section("s").names() == ["x", "y"]


def test_a_section_of_a_variable_of_several_lines_is_an_error():
    """S13: it was an empty section."""
    config = parse("b=[\nx=1\n]\na=$b$\nc=$d$\ne=[y=$d$]\n")
    with pytest.raises(ConfigError, match=r"the variable \$b\$ has several lines"):
        config.section("a")
    with pytest.raises(ConfigError, match=r"the variable \$d\$ is not defined"):
        config.section("c")
    assert config.section("e").names() == ["y"]
