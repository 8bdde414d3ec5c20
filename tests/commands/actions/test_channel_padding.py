"""`Convolve` with zeroPadding: a network has the channel padding of the device that it is built for (B2)."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cntkpy.commands.actions.networks_and_readers import pad_channels
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import load_model, save_model

NET = """x = ImageInput(3, 3, 3, imageLayout=CHW, tag=feature)
W = Parameter(2, 27)
z = Convolve(W, x, 3, 3, 2, 1, 1, zeroPadding=true, imageLayout=CHW, tag=output)
"""
CONFIG = """command = make:out
deviceId = cpu
make = [ action = edit ; outputModelPath = m ; NDLNetworkBuilder = [ networkDescription = net.ndl ] ]
out = [ action = write ; modelPath = m ; outputPath = o
    reader = [ readerType = CNTKTextFormatReader ; file = d.ctf ; randomize = false
        input = [ x = [ dim = 27 ; format = dense ] ] ] ]
"""
X = np.random.default_rng(3).normal(size=(2, 27)).round(2)
FILES = {"m.cntk": CONFIG, "net.ndl": NET, "d.ctf": "".join(f"|x {' '.join(map(str, row))}\n" for row in X)}
WARNING = "WARNING: zeroPadding of 'z' pads the channels, too, as in CNTK on a CPU: the last 1 of its 3 input channels"


def test_on_a_cpu(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", files=FILES)
    assert got.code == 0, got.err
    assert got.err.count(WARNING) == 1
    network = load_model(str(tmp_path / "m"), "float")
    assert network["z"].options["channelPadding"]
    kernel = np.asarray(network["W"].value).reshape(-1).reshape((3, 3, 3, 2), order="F")
    images = X.reshape(2, 3, 3, 3).transpose(0, 3, 2, 1)  # width, height, channel
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1), (1, 0)))[..., :3]
    expected = np.zeros((2, 2, 3, 3))  # image, map, height, width
    for n, m, q, p in np.ndindex(expected.shape):
        expected[n, m, q, p] = np.sum(wide[n, p : p + 3, q : q + 3] * kernel[..., m])
    np.testing.assert_allclose(np.loadtxt(tmp_path / "o.z"), expected.reshape(2, -1), atol=2e-5)


def test_what_a_script_adds(cntkpy, tmp_path: Path) -> None:
    """A convolution of in-line NDL is a new one; what the script loads or copies is as it was."""
    script = """m = LoadModel(gpu, format=cntk)
W2 = Parameter(2, 27)
v = Convolve(W2, x, 3, 3, 2, 1, 1, zeroPadding=true, imageLayout=CHW, tag=output)
Copy(z, copied)
SetInput(copied, 0, W)
SetInput(copied, 1, x)
SaveModel(m, new)
SaveModel(m, again)
"""
    save_model(str(tmp_path / "gpu"), parse_ndl(NET).validate())
    config = "command = change\ndeviceId = cpu\nchange = [ action = edit ; editPath = change.mel ]\n"
    got = cntkpy("configFile=m.cntk", files={"m.cntk": config, "change.mel": script})
    assert got.code == 0, got.err
    assert got.err.count("pads the channels, too") == 1
    assert "zeroPadding of 'v'" in got.err
    for name in ("new", "again"):
        network = load_model(str(tmp_path / name), "float")
        assert [network[key].options["channelPadding"] for key in ("z", "copied", "v")] == [False, False, True]


@pytest.mark.parametrize(
    ("platform", "change"),
    [
        ("gpu", ("", "")),
        ("cpu", ("imageLayout=CHW", "imageLayout=HWC")),
        ("cpu", ("zeroPadding=true", "zeroPadding=false")),
        ("cpu", ("3, 3, 3, imageLayout", "3, 4, 2, imageLayout")),
    ],
)
def test_where_only_width_and_height_are_padded(platform: str, change: tuple[str, str]) -> None:
    text = NET.replace("(2, 27)", "(2, 0)")
    network = parse_ndl(text.replace(*change), precision="double").validate()
    device = SimpleNamespace(here=lambda: [SimpleNamespace(platform=platform)])
    context: Any = SimpleNamespace(device=device)
    pad_channels(network, context)
    assert not network["z"].options["channelPadding"]
