"""The networks of all sample configurations, and models of CNTK, as ONNX, and back."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import UserError, load
from cntkpy.commands.described_network import commands_with_networks, describe_network
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import check
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.files import as_bytes, write
from cntkpy.networks.onnx.model import to_model
from cntkpy.networks.onnx.reading.load import load_onnx

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[3]
OLD_MODELS = sorted((ROOT / "tools/fuzz/seeds").glob("legacy.v*.dnn"))
SAMPLES = sorted((ROOT / "sample_configs").glob("*.cntk"))
NOT_READ = {"spelling.cntk"}
"""Attention is exported as operators that mix steps; such a model is not read."""

SLOW = {"spelling.cntk"}
"""Its loop with attention takes long to compile."""

WITHOUT = {"word_classes.cntk"}
"""Configurations without a network."""

OUTPUTS = {"spelling.cntk": ("z",)}
"""What is exported where the configuration names no output."""


def networks_of(path):
    root = load([f"configFile={path}"])
    for command in commands_with_networks(root):
        try:
            yield command, describe_network(root, command).network
        except UserError as problem:
            if "there is no model" not in str(problem):
                raise  # else the network begins with a model that another command trains


def filled(network):
    """The network with values everywhere: start values, and statistics that nothing has computed."""
    random = np.random.default_rng(1)
    network.values = True
    network.validate()
    for node in network.nodes.values():
        if node.kind.precompute:
            node.value = 0.5 + random.random(tuple(reversed(node.shape))).astype(network.dtype)
            node.computed = True
        if node.kind.running:  # with variances of 0 the values of many layers are not finite
            variance = node.input(4)
            variance.value = 0.5 + random.random(np.shape(variance.value)).astype(network.dtype)
    return network


@pytest.fixture
def in_the_folder_above(monkeypatch):
    monkeypatch.chdir(ROOT)


def marked(path):
    return pytest.param(path, id=path.stem, marks=[pytest.mark.thorough] * (path.name in SLOW))


@pytest.mark.parametrize("path", [marked(path) for path in SAMPLES])
@pytest.mark.sampled
def test_values(path, in_the_folder_above, tmp_path):
    found = list(networks_of(path))
    assert found or path.name in WITHOUT
    for command, network in found:
        exported = export(filled(network), ours.constants, Settings(OUTPUTS.get(path.name, ())), command)
        model = to_model(exported, "0", {})
        differences = check(exported, as_bytes(model))
        assert all(one.allowed and np.isfinite(one.largest) for one in differences), (command, differences)
        if path.name not in NOT_READ:
            write(tmp_path / "m.onnx", model)
            again = load_onnx(tmp_path / "m.onnx")
            assert {node.name for node in again.groups["output"]} == {node.name for node in exported.outputs}


@pytest.mark.parametrize("path", [*OLD_MODELS, ROOT / "tools/fuzz/seeds/legacy.later.dnn"], ids=lambda path: path.stem)
@pytest.mark.sampled
def test_models_of_cntk(path):
    """Files in the formats of versions 1 to 30, and in the later format."""
    exported = export(load_model(path), ours.constants, Settings())
    assert all(one.allowed for one in check(exported, as_bytes(to_model(exported, "0", {}))))
