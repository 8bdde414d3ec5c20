"""Any text gives a network or a located error; how a script is laid out does not matter."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl

PIECES = st.sampled_from(
    [
        *(
            "x",
            "y",
            "W",
            "M",
            "n",
            "Input",
            "Parameter",
            "Times",
            "Plus",
            "Sin",
            "RowStack",
            "PastValue",
            "FeatureNodes",
        ),
        *(
            "M(a) {",
            "M(a) = Sin(a)",
            "x = Input(3)",
            "y = M(x)",
            "n = 2",
            "OutputNodes = y",
            "tag=feature",
            "init=uniform",
        ),
        *(
            "=",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            ";",
            "\n",
            "\r",
            '"',
            "# c\n",
            " ",
            "1",
            "2.5",
            "3*4",
            "-1",
            "a.b",
            "$v$",
        ),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80), st.lists(PIECES, max_size=40).map("".join), st.lists(PIECES, max_size=40).map(" ".join)
)

SCRIPT = """
n = 3
Aff(v, o, i) { A = Parameter(o, i) t = Times(A, v) s = Sin(t) }
x = Input(n, tag=feature)
h = Aff(x, 2, n)
z = Plus(h, h.t)
p = PastValue(2, q)
q = Plus(z, p)
OutputNodes = (z : h)
EvalNodes = q
"""


@settings(max_examples=120)
@given(TEXTS)
def test_any_text_gives_a_network_or_a_located_error(text):
    try:
        parse_ndl(text, diagnostics=[]).validate()
    except UserError as error:
        assert error.span is not None
        assert error.diagnostic.render()


@settings(max_examples=40)
@given(st.data())
def test_any_damage_to_a_script_gives_a_network_or_a_located_error(data):
    text = SCRIPT
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + data.draw(st.one_of(PIECES, st.just(""))) + text[stop:]
    try:
        parse_ndl(text, diagnostics=[]).validate()
    except UserError as error:
        assert error.span is not None
        assert error.diagnostic.render()


def described(text: str) -> list[str]:
    network = parse_ndl(text, diagnostics=[])
    network.validate()
    nodes = [f"{n.name}={n.operation}({[i.name for i in n.connected]}){n.shape}" for n in network.nodes.values()]
    return [*nodes, str({group: [n.name for n in members] for group, members in network.groups.items()})]


@settings(max_examples=20)
@given(st.data())
def test_layout_and_case_do_not_matter(data):
    lines = [line for line in SCRIPT.split("\n") if line]
    separator = st.sampled_from(["\n", ";", ",", "\r\n", " # remark\n", "\n\n# remark\n", " ;\t, "])
    text = "".join(line + data.draw(separator) for line in lines)
    for character in "(){}:":
        blanks = data.draw(st.sampled_from(["", " ", "\t"]))
        text = text.replace(character, f"{blanks}{character}{blanks}")
    if data.draw(st.booleans()):
        text = text.replace("Input", "inputvalue").replace("Times(A, v)", "TIMES(a, V)").replace("h.t", "H.T")
    if data.draw(st.booleans()):
        text = "[\n" + text + "\n]"
    assert described(text) == described(SCRIPT)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.sampled_from(["Sin", "Plus", "Aff", "PastValue"]), st.integers(0, 30)), min_size=1, max_size=20
    )
)
def test_random_networks_are_built_as_written(calls):
    text = "Aff(v) { A = Parameter(2, 2) t = Times(A, v) }\nn0 = Input(2, tag=feature)\n"
    for index, (function, chosen) in enumerate(calls, 1):
        name = f"n{chosen % index}"
        text += {
            "Sin": f"n{index} = Sin({name})\n",
            "Plus": f"n{index} = Plus({name}, Negate({name}))\n",
            "Aff": f"n{index} = Aff({name})\n",
            "PastValue": f"n{index} = PastValue(2, {name})\n",
        }[function]
    network = parse_ndl(text)
    network.validate()
    extra = sum({"Plus": 1, "Aff": 1}.get(function, 0) for function, _ in calls)
    assert len(network.nodes) == 1 + len(calls) + extra
    assert all(node.shape is not None and node.shape[0] == 2 for node in network.nodes.values())


def test_the_front_end_needs_neither_jax_nor_numba():
    code = "import sys; from cntkpy.networks.builders.ndl.front_end import parse_ndl\n"
    code += "parse_ndl('x = Input(2, tag=feature) y = Sin(x)')\n"
    code += "sys.exit(bool({'jax', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
