"""Samples in BrainScript beside their twins in NDL: equal start values; with `-m thorough` equal logs."""

import re
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import load
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.graph.initialize import SeedCounter

ROOT = Path(__file__).resolve().parents[4]
SAMPLES = ("brainscript_digits", "brainscript_slots", "brainscript_resnet")


@pytest.fixture
def twins(monkeypatch):
    monkeypatch.chdir(ROOT)

    def build(name):
        root = load([f"configFile=sample_configs/{name}.cntk"])
        return [build_network(root.section(command), "double", SeedCounter()) for command in ("train", "ndl")]

    return build


@pytest.mark.parametrize("name", SAMPLES)
def test_start_values_are_equal(twins, name):
    by_seed = []
    for network in twins(name):
        random = {node.init.seed: node for node in network.nodes.values() if node.init and node.init.random}
        by_seed.append({seed: node.value.reshape(-1) for seed, node in random.items()})
    brain_script, ndl = by_seed
    assert brain_script.keys() == ndl.keys()
    assert all(np.array_equal(brain_script[seed], ndl[seed]) for seed in ndl)


def test_a_residual_network_of_110_layers(monkeypatch):
    """One convolution, 54 blocks of two, and two of the blocks halve the picture beside them, too."""
    monkeypatch.chdir(ROOT)
    root = load(["configFile=sample_configs/brainscript_resnet.cntk"])
    from cntkpy.networks.builders.brainscript.build import outline_brainscript

    built = outline_brainscript(root.section("cifar").opaque("BrainScriptNetworkBuilder"), "float")
    operations = [node.operation for node in built.network.nodes.values()]
    assert operations.count("Convolution") == 1 + 2 * 54 + 2
    assert operations.count("BatchNormalization") == operations.count("Convolution")
    assert built.network.find("z").shape == (10,)
    assert built.network.find("z.x").shape == (1, 1, 64)
    weights = built.network.find("model.arrayOfFunctions[0].arrayOfFunctions[0].W")
    assert weights.shape == (3, 3, 3, 16)
    assert sum(np.prod(node.shape) for node in built.network.parameters()) == 1_730_714


@pytest.mark.thorough
@pytest.mark.parametrize("name", SAMPLES)
def test_logs_are_equal(cntkpy, name, tmp_path):
    """To a unit of the last digit that is printed: NDL rounds the state before a sequence to single precision."""
    (tmp_path / "sample_configs").symlink_to(ROOT / "sample_configs")
    epochs = ["SGD/maxEpochs=1"] if name == "brainscript_resnet" else []
    found = []
    for command in ("train", "ndl"):
        words = (f"configFile=sample_configs/{name}.cntk", f"command={command}", "RunDir=out", "precision=double")
        got = cntkpy(*words, *epochs)
        assert got.code == 0, got.err
        lines = re.findall(r"Finished Epoch.*?\[Training\] (.*?); totalSamplesSeen", got.err)
        found.append(
            [[float(number) for number in re.findall(r"[\d.]+", re.sub(r"[A-Za-z]\w*", "", line))] for line in lines]
        )
    assert found[0]
    np.testing.assert_allclose(found[0], found[1], rtol=3e-7)
