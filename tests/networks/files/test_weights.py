"""Parameters as arrays for other programs, which compute the same with them."""

import importlib.util
from functools import partial

import numpy as np
import pytest

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.tensor_file import TensorFile
from cntkpy.networks.files.weights import weights, write_weights
from cntkpy.networks.onnx import ours

TEXT = """\
x = ImageInput(8, 6, 3, imageLayout=CHW, tag=feature)
K = Parameter(4, 27)
c = Convolution(K, x, 3, 3, 4, 1, 1, zeroPadding=true, imageLayout=CHW)
m = Parameter(1, 1, 4)
p = MaxPooling(RectifiedLinear(Plus(c, m)), 2, 2, 2, 2, imageLayout=CHW)
W = Parameter(5, 48)
b = Parameter(5)
z = Plus(Times(W, p), b, tag=output)
"""


@pytest.fixture(scope="module")
def network():
    found = parse_ndl(TEXT, precision="float", diagnostics=[]).validate()
    random = np.random.default_rng(5)
    for node in found.nodes.values():
        if node.is_parameter:
            node.value = random.normal(size=node.value.shape).astype(np.float32)
    return found


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(6).normal(size=(2, 3, 6, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def expected(network, data):
    return ours.values(network, ["z"], Batch({"x": data[None]}))["z"][0]


def test_axes(network):
    assert {name: array.shape for name, array in weights(network).items()} == {
        "K": (4, 3, 3, 3),
        "m": (4, 1, 1),
        "W": (4, 3, 4, 5),
        "b": (5,),
    }


def test_vectors_have_one_axis(tmp_path):
    """D25: SimpleNetworkBuilder and older scripts have biases as matrices of one column."""
    text = """\
x = Input(4, tag=feature)
m = Mean(x)
v = InvStdDev(x)
n = PerDimMeanVarNormalization(x, m, v)
W0 = Parameter(3, 4)
B0 = Parameter(3, 1)
d = Parameter(3, 1)
h = DiagTimes(d, Tanh(Plus(Times(W0, n), B0)))
s = Parameter(3, 1)
o = Parameter(3, 1)
r = Parameter(3, 1, needGradient=false)
q = Parameter(3, 1, needGradient=false)
b = BatchNormalization(h, s, o, r, q)
one = Parameter(1, 3)
column = Parameter(2, 1)
z = Times(column, Times(one, b), tag=output)
"""
    network = parse_ndl(text, precision="float", diagnostics=[]).validate()
    for name in ("m", "v"):
        network[name].value = np.ones((1, 4), np.float32)
    shapes = {name: array.shape for name, array in weights(network).items()}
    vectors = {name: shape for name, shape in shapes.items() if len(shape) == 1}
    assert vectors == {"m": (4,), "v": (4,), **dict.fromkeys(("B0", "d", "s", "o", "r", "q"), (3,))}
    assert {name: shape for name, shape in shapes.items() if len(shape) > 1} == {
        "W0": (4, 3),
        "one": (3, 1),
        "column": (1, 2),
    }
    write_weights(tmp_path / "w.safetensors", network)
    with TensorFile(tmp_path / "w.safetensors") as file:
        assert file.read("B0", np.dtype(np.float32), transposed=False).shape == (3,)


def test_both_formats_hold_the_same(network, tmp_path):
    assert write_weights(tmp_path / "w.npz", network) == write_weights(tmp_path / "w.safetensors", network) == 4
    with np.load(tmp_path / "w.npz") as archive, TensorFile(tmp_path / "w.safetensors") as file:
        assert set(archive) == set(file.entries)
        for name, array in weights(network).items():
            np.testing.assert_array_equal(archive[name], array)
            np.testing.assert_array_equal(file.read(name, np.dtype(np.float32), transposed=False), array)


def test_a_file_is_the_same_every_time(network, tmp_path):
    for name in ("a.npz", "b.npz"):
        write_weights(tmp_path / name, network)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy(network, data, expected):
    w = weights(network)
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))  # (N, C, H, W, 3, 3)
    h = np.maximum(np.einsum("nchwij,mcij->nmhw", windows, w["K"]) + w["m"], 0)
    h = h.reshape(2, 4, 3, 2, 4, 2).max(axis=(3, 5))
    np.testing.assert_allclose(h.reshape(2, -1) @ w["W"].reshape(-1, 5) + w["b"], expected, rtol=1e-4, atol=1e-4)


def test_jax(network, data, expected):
    import jax
    import jax.numpy as jnp

    w = weights(network)
    h = jax.lax.conv(data, w["K"], (1, 1), "SAME", precision="highest") + w["m"]
    h = jax.lax.reduce_window(jax.nn.relu(h), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    np.testing.assert_allclose(h.reshape(2, -1) @ w["W"].reshape(-1, 5) + w["b"], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorch(network, data, expected):
    import torch
    from torch import nn

    w = {name: torch.from_numpy(array) for name, array in weights(network).items()}
    flatten = partial(nn.Flatten, start_dim=1)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), flatten(), nn.Linear(48, 5))
    state = {"0.weight": w["K"], "0.bias": w["m"].flatten(), "4.weight": w["W"].reshape(-1, 5).T, "4.bias": w["b"]}
    model.load_state_dict(state)
    with torch.no_grad():
        found = model(torch.from_numpy(data)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
