"""The written modules compute what the networks compute, and have their gradients. They need PyTorch."""

import numpy as np
import pytest

from cntkpy.networks import nodes

from .networks import GAPS, RECURRENT, SAMPLES, SUMS, networks_of, of_example, of_ndl, resnet, source_of, window_network

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


def test_the_last_steps_side_by_side():
    assert_equal(source_of(window_network()))


@pytest.mark.parametrize("numbers", [(0, 1), (0.1, 2)])
def test_running_sums_and_softplus(numbers):
    assert_equal(source_of(of_ndl(SUMS.format(*numbers))))


def test_word_classes():
    """Random labels are words of their classes, so that the loss is a number."""
    network = of_ndl(
        "x = Input(3, tag=feature)\nlabels = Input(4, tag=label)\nW = Parameter(3, 10)\nC = Parameter(2, 3)\n"
        "s = Times(C, x)\nce = ClassBasedCrossEntropyWithSoftmax(labels, x, W, s, tag=criterion)\n"
    )
    source = source_of(network, "ce")
    assert_equal(source)
    from cntkpy.networks.source.check import expected
    from cntkpy.networks.source.check_data import random_data

    for data in random_data(source):
        assert np.isfinite(expected(source, data)[0].values["ce"]).all()


def test_lengths_that_have_to_be_equal():
    """Labels with one step for each sequence, in a network with a time axis of their own."""
    path = next(path for path in SAMPLES if path.stem == "sequence_classifier")
    assert_equal(source_of(dict(networks_of(path))["train"], "answer"))


def test_gradients_of_joined_parameters_are_compared():
    from cntkpy.networks.source.check import check

    source = source_of(of_ndl(RECURRENT["both directions"]))
    names = {item.name for item in check(source)}
    assert {f"gradient by lstm.weight_hh_l0{way}" for way in ("", "_reverse")} <= names
    assert "gradient by lstm.bias_hh_l0" not in names
    joined = source.tensors["lstm.weight_ih_l0"].joined
    joined.index[[0, 1]] = joined.index[[1, 0]]
    wrong = {item.name for item in check(source) if not item.allowed}
    assert wrong == {"gradient by lstm.weight_ih_l0"}
