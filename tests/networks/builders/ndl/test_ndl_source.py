"""Where the text of a network comes from (docs/specification/networks.md A.1, A.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.networks.builders.ndl.front_end import build_ndl
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network

AFFINE = "Aff(v, o, i) {\n A = Parameter(o, i)\n t = Times(A, v)\n}\n"


def build(config: str, command: str = "train", **options) -> Network:
    root = parse(config, "main.cntk")
    section = root.section(command) if command else root
    return build_ndl(section.section("NDLNetworkBuilder"), "double", **options)


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


# -- sections of the configuration


@pytest.mark.parametrize(
    "config",
    [
        "train = [ NDLNetworkBuilder = [ run = net ]\n net = [\n x = Input(3, tag=feature)\n ] ]",
        "net = [\n x = Input(3, tag=feature)\n ]\n train = [ NDLNetworkBuilder = [ run = net ] ]",
        "train = [ NDLNetworkBuilder = [ run = net\n net = [\n x = Input(3, tag=feature)\n ] ] ]",
        "run = net\nnet = [ x = Input(3, tag=feature) ]\ntrain = [ NDLNetworkBuilder = [ load = m ]\n m = [ y = 3 ] ]",
        "train = [ run = NDLNetworkBuilder\n NDLNetworkBuilder = [\n x = Input(3, tag=feature)\n ] ]",
        "run = NDLNetworkBuilder\ntrain = [ NDLNetworkBuilder = [\n x = Input(3, tag=feature)\n ] ]",
        "run = NDLNetworkBuilder\nNDLNetworkBuilder = [\n x = Input(3, tag=feature)\n ]\ntrain = [ action = train ]",
        "train = [ NDLNetworkBuilder = { run = net }\n net = {\n x = Input(3, tag=feature)\n } ]",
    ],
)
def test_the_section_named_by_run(config):
    assert list(build(config).nodes) == ["x"]


SECTIONS = f"mac = [\n{AFFINE}]\nnet = [\n x = Input(3, tag=feature)\n z = Aff(x, 2, 3)\n]\n"


def test_macros_may_stand_in_load_and_in_run(tmp_path):
    """C5: one section read twice is not defined twice."""
    path = write(tmp_path, "net.ndl", SECTIONS)
    network = build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ; load = mac ; run = mac:net ] ]')
    assert list(network.nodes) == ["x", "z.A", "z.t"]


def test_a_section_has_to_be_chosen(tmp_path):
    """C5: CNTK takes the sections for statements."""
    path = write(tmp_path, "net.ndl", SECTIONS)
    with pytest.raises(ConfigError, match=r"consists of sections, and none of them is chosen: mac, net") as caught:
        build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    assert "write run = net" in str(caught.value.diagnostic.hint)


def test_arrays_of_nodes_in_square_brackets_are_no_sections(tmp_path):
    text = "x = Input(3)\nz = Sin(x)\nFeatureNodes = [x]\nOutputNodes = [\n  x : z\n]\n"
    path = write(tmp_path, "net.ndl", text)
    network = build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    assert [node.name for node in network.groups["output"]] == ["x", "z"]


def test_the_builder_section_may_be_the_script_itself():
    network = build(
        "run = NDLNetworkBuilder\ntrain = [ NDLNetworkBuilder = [\n"
        + AFFINE
        + "n = 2; x = Input(3)\nz = Aff(x, n, 3)\nFeatureNodes = (x) ] ]"
    )
    assert list(network.nodes) == ["x", "z.A", "z.t"]


def test_a_script_is_not_judged_as_a_configuration():
    root = parse(
        "run = NDLNetworkBuilder\ntrain = [ NDLNetworkBuilder = [\n" + AFFINE + "x = Input(3, tag=feature) ] ]\n=5"
    )
    build_ndl(root.section("train").section("NDLNetworkBuilder"))
    assert [str(warning.span) for warning in root.warnings] == ["<text>:8:1"]


def test_lists_of_sections_share_one_scope_loaded_ones_first():
    network = build(
        f"""
        lib = [ {AFFINE} n = 2 ]
        more = [ x = Input(3, tag=feature) ]
        main = [ z = Aff(x, n, 3) ]
        last = [ y = Sin(z) ]
        unused = [ ??? ]
        train = [ NDLNetworkBuilder = [ load = lib:more ; run = (main, last) ] ]
        """
    )
    assert list(network.nodes) == ["x", "z.A", "z.t", "y"]


def test_merged_sections_are_one_script():
    assert list(
        build("net=[ x=Input(3, tag=feature) ]\nnet=[ y=Sin(x) ]\ntrain=[NDLNetworkBuilder=[run=net]]").nodes
    ) == ["x", "y"]


@pytest.mark.parametrize(
    ("config", "kind", "words"),
    [
        (
            "train = [ NDLNetworkBuilder = [ load = lib ]\n lib = [ x = Input(3) ] ]",
            "MissingParameter",
            ["networkDescription"],
        ),
        (
            "train = [ NDLNetworkBuilder = [ run = ntet ]\n net = [ x = Input(3) ] ]",
            "UnknownSection",
            ["'ntet'", "'net'"],
        ),
        ("train = [ NDLNetworkBuilder = [ run = net:two ]\n net = [ x = Input(3) ] ]", "UnknownSection", ["'two'"]),
        (
            "train = [ NDLNetworkBuilder = [ run = [\n x = Input(3)\n ] ] ]",
            "UnknownSection",
            ["'x = Input(3)'", "write run = net, and net = [ ... ]"],
        ),
        ("train = [ NDLNetworkBuilder = [ networkDescription = none.ndl ] ]", "FileNotFound", ["none.ndl"]),
        (
            "train = [ NDLNetworkBuilder = [ networkDescription = a.ndl+b.ndl ] ]",
            "OneNetworkFile",
            ["one file", "ndlMacros"],
        ),
        (
            "train = [ NDLNetworkBuilder = [ run = net; ndlMacros = m.ndl ]\n net = [ x = Input(3) ] ]",
            "FileNotFound",
            ["m.ndl"],
        ),
        (
            "train = [ NDLNetworkBuilder = [ run = net; randomSeedOffset = x ]\n net = [ x = Input(3) ] ]",
            "BadInteger",
            ["'x'"],
        ),
        ("train = [ NDLNetworkBuilder = [ run = net ]\n net = [ x = Input($n$) ] ]", "UnknownVariable", ["$n$"]),
    ],
)
def test_what_cannot_be_found(config, kind, words):
    with pytest.raises(ConfigError) as caught:
        build(config)
    rendered = caught.value.diagnostic.render()
    assert caught.value.kind == kind, rendered
    assert caught.value.span is not None
    for word in words:
        assert word in rendered


def test_errors_point_into_the_configuration():
    with pytest.raises(ConfigError) as caught:
        build(
            "train = [\n # one\n NDLNetworkBuilder = [ run = n ]\n n = [\n\n  x = Input(3) # two\n  y = Sni(x)\n ]\n]"
        )
    assert str(caught.value.span) == "main.cntk:7:7"


# -- variables


def test_variables_in_a_section():
    network = build(
        """
        dim = 3 ; fn = Tanh ; k = 1
        train = [
            NDLNetworkBuilder = [ run = net ; out = 2 ]
            net = [ x = Input($dim$, tag=feature) W$k$ = Parameter($out$, $dim$) z = Times(W1, x) y = $fn$(z) ]
        ]
        """
    )
    assert list(network.nodes) == ["x", "W1", "z", "y"]
    assert network["W1"].shape == (2, 3)
    assert network["y"].operation == "Tanh"


# -- files


def test_a_plain_file(tmp_path):
    path = write(
        tmp_path, "n.ndl", "# remark\r\n" + AFFINE + "x = Input(3, tag=feature) # data\r\nz = Aff(x, 2, 3)\r\n"
    )
    network = build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    assert list(network.nodes) == ["x", "z.A", "z.t"]
    assert str(network["z.t"].span) == f"{path}:4:6"


FILE = "load = lib:more\nrun = main\n" + (
    f"lib = [\n{AFFINE}]\nmore = [\nn = 2\n]\nunused = [\n!!! ??\n]\n"
    "main = [\nx = Input($dim$, tag=feature)\nz = Aff(x, n, $dim$)\n]\nother = [\ny = Input(n, tag=feature)\n]\n"
)


def test_a_file_of_sections_with_variables_of_the_builder(tmp_path):
    path = write(tmp_path, "n.ndl", FILE)
    network = build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}"; dim = 3 ] ]')
    assert list(network.nodes) == ["x", "z.A", "z.t"]
    assert network["z.A"].shape == (2, 3)


@pytest.mark.parametrize(
    "where", ["NDLNetworkBuilder = [ run = other; FILE ]", "run = other; NDLNetworkBuilder = [ FILE ]"]
)
def test_the_configuration_chooses_the_section_of_a_file(tmp_path, where):
    path = write(tmp_path, "n.ndl", FILE)
    config = "dim = 3\ntrain = [ {} ]".format(where.replace("FILE", f'networkDescription = "{path}"'))
    assert list(build(config).nodes) == ["y"]


def test_errors_point_into_the_file(tmp_path):
    path = write(tmp_path, "n.ndl", FILE.replace("Aff(x, n, $dim$)", "Aff(x, $dim$, m, 4)"))
    with pytest.raises(ConfigError) as caught:
        build(f'dim = 3\ntrain = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    line = next(i for i, text in enumerate(FILE.split("\n"), 1) if text.startswith("z ="))
    assert str(caught.value.span) == f"{path}:{line}:5"
    with pytest.raises(ConfigError) as caught:
        build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    assert (caught.value.kind, str(caught.value.span)) == ("UnknownVariable", f"{path}:{line - 1}:11")


def test_an_empty_file_is_named_where_it_is_asked_for(tmp_path):
    path = write(tmp_path, "n.ndl", "# nothing yet\n")
    with pytest.raises(ConfigError, match="holds no network") as caught:
        build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    assert caught.value.kind == "NoFeatureNode" and "n.ndl" not in str(caught.value.span)


def test_a_section_that_a_file_lacks(tmp_path):
    path = write(tmp_path, "n.ndl", "run = mian\nmain = [ x = Input(3) ]")
    with pytest.raises(ConfigError, match="'mian'") as caught:
        build(f'train = [ NDLNetworkBuilder = [ networkDescription = "{path}" ] ]')
    assert str(caught.value.span) == f"{path}:1:7"
    assert "'main'" in str(caught.value.diagnostic.hint)


# -- macro files


def test_macro_files_are_read_in_order_and_only_their_macros_count(tmp_path):
    one = write(tmp_path, "one.ndl", AFFINE + "n = 7\nx = Input(9, tag=feature)\n")
    two = write(
        tmp_path,
        "two.ndl",
        "load = lib\nlib = [\nTwo(v) { q = Aff(v, $out$, 3) r = Sin(q) }\n]\nrest = [ Aff(a) { b = Sin(a) } ]\n",
    )
    config = f"""
        out = 2
        ndlMacros = "{one}+{two}"
        net = [ n = 3; x = Input(n, tag=feature) z = Two(x) ]
        train = [ NDLNetworkBuilder = [ run = net ] ]
    """
    for _ in range(2):  # nothing is kept from one network to the next
        assert list(build(config).nodes) == ["x", "z.q.A", "z.q.t", "z.r"]


def test_a_macro_of_a_file_cannot_be_defined_again(tmp_path):
    path = write(tmp_path, "m.ndl", AFFINE)
    with pytest.raises(ConfigError, match="already defined") as caught:
        build(f'net = [ {AFFINE} x = Input(3) ]\ntrain = [ NDLNetworkBuilder = [ run = net; ndlMacros = "{path}" ] ]')
    assert caught.value.diagnostic.notes == (f"defined before at {path}:1:1",)


def test_constants_of_a_macro_file_do_not_count(tmp_path):
    path = write(tmp_path, "m.ndl", "n = 3\n")
    with pytest.raises(ConfigError, match="'n'"):
        build(f'net = [ x = Input(n) ]\ntrain = [ NDLNetworkBuilder = [ run = net; ndlMacros = "{path}" ] ]')


# -- seeds


def test_the_offset_of_seeds_counts_for_one_network():
    seeds = SeedCounter()
    config = "net = [ x = Input(2, tag=feature) P = Parameter(2, 2) Q = Parameter(2, 2, randomSeed=4) ]\n"
    first = build(config + "train = [ NDLNetworkBuilder = [ run = net; randomSeedOffset = 100 ] ]", seeds=seeds)
    second = build(config + "train = [ NDLNetworkBuilder = [ run = net ] ]", seeds=seeds)
    found = [node.init.seed for network in (first, second) for name in "PQ" if (node := network[name]).init]
    assert found == [101, 104, 2, 4]


# -- documentation


def test_the_example_of_the_page_works():
    page = (Path(__file__).parents[4] / "docs" / "ndl.md").read_text(encoding="utf-8")
    network = build(page.split("```")[1].replace("...", ""))
    network.validate()
    assert [node.name for node in network.groups["output"]] == ["ol.z"]
    assert network["l1.W"].shape == (200, 784)


def test_the_nodes_of_a_new_network_go_into_a_file(tmp_path):
    target = tmp_path / "new" / "nodes.txt"
    script = "x = Input(3, tag=feature)\n W = Parameter(0, 0)\n z = Times(Parameter(2, 3), x)\n t = Plus(W, z)"
    build(f'train = [ NDLNetworkBuilder = [ run = net ; dumpFileName = "{target}" ]\n net = [\n{script}\n ] ]')
    text = target.read_text()
    assert "z=Times ( unnamed1 , x )" in text and "W=LearnableParameter [2,1]" in text and "x=InputValue [ 3 ]" in text
