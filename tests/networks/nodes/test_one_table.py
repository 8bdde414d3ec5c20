"""One declaration of a kind of node suffices: NDL, BrainScript, model files, ONNX and source derive from its folder."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
import numpy as np
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.elementwise import kinds as elementwise
from cntkpy.networks.nodes.declare import REAL, NodeKind, Option, inputs

def forward(call, x):
    return call.options["factor"] * x**3

def exported(use):
    x = use.names[0]
    return use.emit.op("Mul", use.emit.real(use.options["factor"]), use.emit.op("Mul", x, use.emit.op("Mul", x, x)))

elementwise.KINDS.append(NodeKind(
    "ScaledCube", (inputs("x"),), "The cube.", "factor x^3", rules.same, forward,
    options=(Option("factor", REAL, 1.0, "a factor"),), onnx=exported,
))

from pathlib import Path
from cntkpy.networks import nodes
from tools.grammar_tables import index_text  # what `python -m tools.grammar_tables` writes

nodes.INDEX = Path(sys.argv[1] + ".json")
nodes.INDEX.write_text(index_text())
nodes._index.cache_clear()

from cntkpy.networks.nodes.elementwise import source_writing

source_writing.SPELLINGS["cube"] = ("{0.atom}.pow(3)", "jnp.power({0}, 3)")
source_writing.RULES["ScaledCube"] = lambda use: use.value(
    f"{use.options['factor']} * {use.say('cube', use.values[0])}", use.values[0].dims, level=2
)

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.builders.brainscript.graph import graph_of
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.program import evaluate_network, evaluator_with, parse_network
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.onnx.check import run as run_onnx
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.model import to_model
from cntkpy.networks.onnx import ours
from cntkpy.networks.source.check import check
from cntkpy.networks.source.export import Settings as Asked, export as write_source
from tests.networks.conftest import run

def from_brainscript():
    made = "new ComputationNode [ operation = 'ScaledCube' ; inputs = x ; factor = 2 ; tag = '' ]"
    text = "{ x = Input {2} ; z = " + made + " }"
    evaluator = evaluator_with(SeedCounter())
    names = {"deviceId": -1.0, "traceLevel": 0.0, "precision": "float"}
    made = evaluate_network(parse_network(text_of_string(text, "test.bs")), evaluator, names)
    return graph_of(made, evaluator, "float").network

x = np.asarray([[[1, -2], [3, 0.5]]], np.float32)
for network in (parse_ndl("x = Input(2, tag=feature)\\nz = ScaledCube(x, factor=2)"), from_brainscript()):
    valid = network.validate()
    save_model(sys.argv[1], valid)
    for stored in (network, load_model(sys.argv[1])):
        np.testing.assert_array_equal(run(stored, ["z"], Batch({"x": x}))["z"], 2 * x**3)
    result = export(network, ours.constants, Settings(("z",)))
    onnx = to_model(result, "0", {}).SerializeToString()
    np.testing.assert_array_equal(run_onnx(onnx, {"x": x[0]})["z"], 2 * x[0]**3)
    source = write_source(network, ours.constants, Asked(("z",), framework="jax"))
    assert all(item.allowed for item in check(source)), source.text
    assert "z = 2.0 * x.pow(3)" in write_source(network, ours.constants, Asked(("z",))).text
"""


def test_one_declaration_suffices(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
