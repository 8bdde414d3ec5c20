"""`cntkpy export`: what it prints and writes, and its errors."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from networks.builders.ndl.front_end import parse_ndl
from networks.files.model_file import save_model
from networks.onnx import check

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TEXT = """\
x = Input(3, tag=feature)
y = Input(2, tag=label)
W = Parameter(2, 3)
b = Parameter(2)
z = Plus(Times(W, x), b, tag=output)
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    save_model(tmp_path / "m.model", parse_ndl(TEXT, precision="float", diagnostics=[]).validate())
    return "m.model"


def test_an_onnx_model(cntkpy, model, tmp_path):
    got = cntkpy("export", model, "m.onnx", "--softmax", "z", "--output", "z")
    assert got.code == 0, got
    first, second, third = got.out.splitlines()
    assert first.startswith("z: largest difference ")
    assert second.startswith("z.softmax: largest difference ")
    assert third == "m.onnx: opset 17, 3 operators, inputs x [batch x 3]"
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    z, softmax = session.run(None, {"x": np.ones((1, 3), np.float32)})
    np.testing.assert_allclose(softmax, np.exp(z) / np.exp(z).sum(), rtol=1e-5)


def test_unchecked(cntkpy, model):
    assert cntkpy("export", model, "m.onnx", "--no-check").out.splitlines() == [
        "m.onnx: opset 17, 2 operators, inputs x [batch x 3]"
    ]


@pytest.mark.parametrize("name", ["w.npz", "w.safetensors"])
def test_parameters(cntkpy, model, tmp_path, name):
    assert cntkpy("export", model, name).out.splitlines() == [f"{name}: 2 arrays"]
    assert (tmp_path / name).exists()


def test_an_unknown_format(cntkpy, model):
    got = cntkpy("export", model, "m.pt")
    assert got.code == 1
    assert "the format of 'm.pt' is not known" in got.err
    assert "its name ends in one of .onnx, .npz, .safetensors" in got.err


def test_other_values_of_onnxruntime_are_an_error(cntkpy, model, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ABSOLUTE", -1.0)
    got = cntkpy("export", model, "m.onnx")
    assert got.code == 1
    assert re.search(r"the values of onnxruntime differ, those of 'z' by \S+; m.onnx is not written", got.err)
    assert not (tmp_path / "m.onnx").exists()


def test_without_jax_a_model_is_written_unchecked(cntkpy, model, monkeypatch):
    monkeypatch.setattr("networks.onnx.package.importlib.util.find_spec", lambda name: None if name == "jax" else name)
    got = cntkpy("export", model, "m.onnx")
    assert (got.code, got.out) == (0, "m.onnx: opset 17, 2 operators, inputs x [batch x 3]\n")
    monkeypatch.setitem(sys.modules, "jax", None)
    got = cntkpy("export", model, "m.onnx", "--check")
    assert got.code != 0
    assert "computing values of a network needs JAX" in got.err
    assert "add the extra train: " in got.err


def test_without_the_package(cntkpy, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    got = cntkpy("export", model, "m.onnx")
    assert got.code != 0
    assert "ONNX models need the package onnx" in got.err
    assert "add the extra onnx: " in got.err
