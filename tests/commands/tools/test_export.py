"""`cntkpy export`: what it prints and writes, and its errors."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import save_model
from cntkpy.networks.onnx import check

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


def test_a_model_is_not_written_over_itself(cntkpy, model, tmp_path):
    (tmp_path / "m.npz").write_bytes((tmp_path / model).read_bytes())
    got = cntkpy("export", "m.npz", "m.npz")
    assert (got.code, "m.npz would be written over itself" in got.err) == (2, True)
    assert (tmp_path / "m.npz").read_bytes() == (tmp_path / model).read_bytes()


def test_an_unknown_format(cntkpy, model):
    got = cntkpy("export", model, "m.pt")
    assert got.code == 2
    assert "the format of 'm.pt' is not known" in got.err
    assert "its name ends in one of .onnx, .npz, .safetensors" in got.err


def test_other_values_of_onnxruntime_are_an_error(cntkpy, model, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ABSOLUTE", -1.0)
    got = cntkpy("export", model, "m.onnx")
    assert got.code == 1
    assert re.search(r"the values of onnxruntime differ, those of 'z' by \S+; m.onnx is not written", got.err)
    assert not (tmp_path / "m.onnx").exists()


def test_without_jax_a_model_is_written_unchecked(cntkpy, model, monkeypatch):
    monkeypatch.setattr(
        "cntkpy.networks.onnx.package.importlib.util.find_spec", lambda name: None if name == "jax" else name
    )
    got = cntkpy("export", model, "m.onnx")
    assert (got.code, got.out) == (0, "m.onnx: opset 17, 2 operators, inputs x [batch x 3]\n")
    monkeypatch.setitem(sys.modules, "jax", None)
    got = cntkpy("export", model, "m.onnx", "--check")
    assert got.code != 0
    assert "computing values of a network needs JAX" in got.err
    assert how_to_install("train") in got.err


def test_without_the_package(cntkpy, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    got = cntkpy("export", model, "m.onnx")
    assert got.code != 0
    assert "an ONNX model needs onnx, which is not installed" in got.err
    assert how_to_install("onnx") in got.err


MEAN = """\
<?xml version="1.0"?>
<opencv_storage>
<Channel>2</Channel>
<Row>2</Row>
<Col>3</Col>
<MeanImg type_id="opencv-matrix">
  <rows>1</rows>
  <cols>12</cols>
  <dt>f</dt>
  <data>0. 1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 11.</data></MeanImg>
</opencv_storage>
"""


@pytest.mark.parametrize("layout, order", [("CHW", (2, 0, 1)), ("HWC", (0, 1, 2))])
def test_a_mean_picture_is_subtracted_first(cntkpy, tmp_path, layout, order):
    text = f"x = ImageInput(3, 2, 2, imageLayout={layout}, tag=feature)\nz = Scale(Constant(2), x, tag=output)\n"
    save_model(tmp_path / "m.model", parse_ndl(text, precision="float", diagnostics=[]).validate())
    got = cntkpy("export", "m.model", "m.onnx", "--mean", "x=mean.xml", files={"mean.xml": MEAN})
    assert got.code == 0, got
    picture = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    data = (picture + 5).transpose(order)[None]
    (z,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": data})
    np.testing.assert_array_equal(z, np.full_like(data, 10))


@pytest.mark.parametrize(
    "mean, message",
    [
        ("x", "'x' is no mean"),
        ("x=mean.xml", "the mean picture mean.xml is 3 x 2 x 2, and 'x' is no image of that size"),
        ("x=absent.xml", "absent.xml"),
    ],
)
def test_a_mean_that_does_not_fit(cntkpy, model, mean, message):
    got = cntkpy("export", model, "m.onnx", "--mean", mean, files={"mean.xml": MEAN})
    assert got.code == 1 and message in got.err
