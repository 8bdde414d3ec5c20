"""`readerPreprocessing` of `action=export`: the model takes pictures as they are, and subtracts the mean picture."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import save_model
from cntkpy.readers.formats.image.storage import write_mean

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
cv2 = pytest.importorskip("cv2")

CONFIG = """\
command = out ; precision = double
out = [
    action = export ; modelPath = m.model ; outputFile = m.onnx ; readerPreprocessing = true
    double = true
    reader = [ %s ]
]
"""
WIDTH, HEIGHT = 4, 3
TRANSFORMS = "[type=Scale ; width=4 ; height=3 ; channels=3] : [type=Mean ; meanFile=mean.xml]"
DESERIALIZER = "deserializers = ([ type=ImageDeserializer ; file=p.map ; input = [ x = [ transforms = (%s) ] ] ])"
OLD = "readerType=ImageReader ; file=p.map ; x=[width=4;height=3;channels=3;meanFile=mean.xml;mbFormat=%s]"
IMAGE = "ImageInput(4, 3, 3, imageLayout=CHW)"

READERS = {
    "planes": (IMAGE, DESERIALIZER % (TRANSFORMS + " : [type=Transpose]"), (2, 0, 1)),
    "pixels": ("Input(36)", DESERIALIZER % TRANSFORMS, (0, 1, 2)),
    "old, planes": (IMAGE, OLD % "nchw", (2, 0, 1)),
    "old, pixels": ("Input(36)", OLD % "nhwc", (0, 1, 2)),
}


@pytest.fixture
def pictures(tmp_path: Path) -> np.ndarray:
    """Pictures in files, with a map and their mean."""
    found = np.random.default_rng(0).integers(0, 256, (3, HEIGHT, WIDTH, 3), np.uint8)
    for index, one in enumerate(found):
        cv2.imwrite(str(tmp_path / f"{index}.png"), one)
    (tmp_path / "p.map").write_text("".join(f"{index}.png\t{index % 2}\n" for index in range(len(found))))
    write_mean(str(tmp_path / "mean.xml"), found.mean(axis=0))
    return found


def made(folder: Path, reader: str, given: str = "") -> dict[str, str]:
    """Write a model; the configuration."""
    own, given_reader, _ = READERS[reader]
    text = f"x = {given or own}\nW = Parameter(2, {7 if given else 36})\nz = Times(W, x)\n"
    text += "FeatureNodes = (x)\nOutputNodes = (z)\n"
    network = parse_ndl(text, precision="double", diagnostics=[])
    save_model(folder / "m.model", network.validate())
    return {"m.cntk": CONFIG % given_reader}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.sampled
def test_the_model_takes_pixels(cntkpy, tmp_path: Path, pictures, reader) -> None:
    got = cntkpy("configFile=m.cntk", files=made(tmp_path, reader))
    assert got.code == 0, got.err
    assert "z: largest difference from onnxruntime" in got.err
    model = onnx.load(tmp_path / "m.onnx")
    assert model.graph.node[0].op_type == "Sub"
    (weights,) = (onnx.numpy_helper.to_array(one) for one in model.graph.initializer if one.name == "W")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (port,) = session.get_inputs()
    axes = READERS[reader][2]
    pixels = pictures.transpose(0, *(1 + axis for axis in axes)).astype(np.float64)
    (z,) = session.run(None, {"x": pixels.reshape(-1, *port.shape[1:])})
    less = (pixels - pictures.mean(axis=0).astype(np.float32).transpose(axes)).reshape(len(pixels), -1)
    np.testing.assert_allclose(z.reshape(-1, 2), less @ weights.reshape(-1, 2), rtol=1e-10)


@pytest.fixture
def refused(cntkpy, tmp_path: Path, pictures):
    """The message about a configuration in which something else stands, or about another input."""

    def run(old: str = "", new: str = "", given: str = "") -> str:
        text = made(tmp_path, "planes", given)["m.cntk"]
        assert old in text
        got = cntkpy("configFile=m.cntk", files={"m.cntk": text.replace(old, new)})
        assert got.code != 0
        return got.err

    return run


def test_a_reader_without_a_mean(refused) -> None:
    err = refused(" : [type=Mean ; meanFile=mean.xml]", "")
    assert "the reader subtracts no mean picture, and other transforms are not part of a model" in err


def test_no_reader(refused) -> None:
    err = refused("    reader = [", "    other = [")
    assert "there is no reader" in err


def test_a_transform_behind_the_mean(refused) -> None:
    err = refused(": [type=Transpose]", ": [type=Crop ; cropSize=2:2] : [type=Transpose]")
    assert "Crop of 'x' is behind Mean, so a model cannot subtract the mean picture" in err


def test_a_mean_of_another_size(refused, tmp_path: Path) -> None:
    write_mean(str(tmp_path / "mean.xml"), np.zeros((2, 2, 3)))
    err = refused("width=4", "width = 4")
    assert "the mean picture of mean.xml is 3 x 2 x 2, pictures of 'x' are 3 x 3 x 4, so nothing is subtracted" in err


def test_an_input_of_another_size(refused) -> None:
    err = refused(given="Input(7)")
    assert "a mean of the shape [3, 3, 4] cannot be subtracted from 'x', which is of the shape [7]" in err
