"""The written modules compute what the networks compute, and have their gradients. They need PyTorch."""

import pytest

from cntkpy.networks import nodes

from .networks import GAPS, RECURRENT, SAMPLES, networks_of, of_example, of_ndl, resnet, source_of

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

WITHOUT = {"word_classes.cntk"}
"""Configurations without a network."""

REFUSED = {
    *("SampleNumber", "UnpackBatch", "ToBatch", "LabelsToGraph", "ForwardBackward", "EditDistanceError"),
    "EpochAccumulator",
}
"""Operations that are not written."""


def assert_equal(source):
    from cntkpy.networks.source.check import check

    found = check(source)
    assert found
    assert all(one.allowed for one in found), found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples(path, monkeypatch):
    monkeypatch.chdir(path.parents[1])
    found = [one for one in networks_of(path) if one[0] != "cifar"]
    assert found or path.name in WITHOUT
    for command, network in found:
        assert_equal(source_of(network, title=command))


KINDS = [kind for kind in nodes.kinds() if not kind.unsupported and kind.name not in REFUSED]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_operations(kind):
    network, name = of_example(kind)
    assert_equal(source_of(network, name))


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrences(name):
    assert_equal(source_of(of_ndl(RECURRENT[name])))


def test_a_residual_network(tmp_path):
    source = source_of(resnet(tmp_path), title="ResNet20")
    assert_equal(source)


def test_windows_with_gaps():
    assert_equal(source_of(of_ndl(GAPS)))


def test_a_network_of_double_precision():
    assert_equal(source_of(of_ndl(RECURRENT["lstm with peepholes"], precision="double")))
