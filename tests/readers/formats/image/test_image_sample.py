"""The image sample: trained through Crop, Scale, Mean and Transpose, tested, its answers written; mean and preview."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from cntkpy.cntk_config.parameters import parse
from cntkpy.readers.formats.image.storage import read_mean, write_mean

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


@pytest.mark.thorough
def test_trained_tested_and_written(cntkpy, sample):
    got = cntkpy("configFile=sample_configs/images.cntk", cwd=sample)
    assert got.code == 0, got.err
    errors = [float(v) for v in re.findall(r"^Finished Epoch.* err = ([\d.]+)", got.err, re.MULTILINE)]
    assert len(errors) == 30 and errors[0] > 0.5 and errors[-1] < 0.1
    tested = re.search(r"Final Results.* err = ([\d.]+)", got.err)
    assert tested is not None and float(tested[1]) < 0.15
    answers = (sample / "sample_configs/output/shapes.z").read_text().split()
    names = (sample / "sample_configs/data/shapes.names").read_text().split()
    right = [names[i % 4] for i in range(80)]
    assert sum(a != b for a, b in zip(answers, right, strict=True)) / 80 == pytest.approx(float(tested[1]), abs=1e-6)


def test_the_mean_picture_is_that_of_the_data(cntkpy, sample):
    got = cntkpy("convert", "--mean", "configFile=sample_configs/images.cntk", "train", "m.xml", cwd=sample)
    assert got.code == 0 and "m.xml: the mean of 320 pictures of 16 x 16 x 3" in got.out
    kept = read_mean(str(sample / "sample_configs/data/shapes_mean.xml"))
    np.testing.assert_allclose(read_mean(str(sample / "m.xml")), kept, atol=1e-4)


def test_preview_draws_a_contact_sheet(cntkpy, sample):
    got = cntkpy(
        "preview",
        "sample_configs/images.cntk",
        "test",
        "--size",
        "10",
        "--picture",
        "s.png",
        "--format",
        "json",
        cwd=sample,
    )
    found = json.loads(got.out)
    assert found["picture"] == "s.png" and found["samples"] == 80
    assert found["bytes"] == (sample / "sample_configs/data/shapes.zip").stat().st_size
    sheet = cv2.imread(str(sample / "s.png"))
    assert sheet.shape == (3 * (64 + 8 + 18), 4 * (64 + 8), 3)  # ten pictures of 16 x 16, four times enlarged
    tile = sheet[4:68, 4:68]
    assert (tile.reshape(16, 4, 16, 4, 3) == tile.reshape(16, 4, 16, 4, 3)[:, :1, :, :1]).all()
    assert sheet[72:90, 0:72].min() < 100 and (sheet[180:, 144:] == 255).all()  # a label; no eleventh picture


def test_check_knows_the_sample(cntkpy, sample):
    assert "no problems" in cntkpy("check", "sample_configs/images.cntk", cwd=sample).out
    broken = (sample / "sample_configs/images.cntk").read_text()
    for old, new in (
        ("sideRatio=0.8:1", "sideRatios=0.8:1"),
        ("type=Transpose", "type=Transposed"),
        ("kind  = [ labelDim = 4 ]", "kind = [ labelDim = 0 ]"),
        ("width=16", "widht=16"),
        ("randomize  = none", "randomise = none"),
    ):
        broken = broken.replace(old, new, 1)
    (sample / "sample_configs/broken.cntk").write_text(broken)
    shown = cntkpy("check", "sample_configs/broken.cntk", cwd=sample).out
    for text in (
        "'sideRatios' is not a known parameter - did you mean 'sideRatio'",
        "'Transposed' is not one of",
        "did you mean 'Transpose'",
        "did you mean 'width'",
        "did you mean 'randomize'",
    ):
        assert text in shown, shown


def test_check_compares_pictures_with_the_network(cntkpy, sample):
    text = (sample / "sample_configs/images.cntk").read_text()
    text = text.replace("ImageInput(16, 16, 3", "ImageInput(16, 8, 3").replace("Input(4)", "Input(5)")
    text = text.replace("Parameter(4, 256", "Parameter(5, 128").replace("Parameter(4, 1,", "Parameter(5, 1,")
    (sample / "sample_configs/other.cntk").write_text(text)
    shown = cntkpy("check", "sample_configs/other.cntk", cwd=sample).out
    assert "the input 'shape' has 384 elements, but the stream has 768 - the dimension is given at sample_c" in shown
    assert "the input 'kind' has 5 elements, but the stream has 4" in shown


def test_mean_pictures(tmp_path):
    from cntkpy.cntk_config.base.diagnostics import UserError
    from cntkpy.readers.formats.image.mean_picture import mean_picture, pictures_before_mean

    from .pictures import Album

    album = Album(tmp_path)
    album.write("a.png", [[(1, 2, 3), (5, 5, 5)]])
    album.write("b.png", [[(2, 4, 6), (6, 6, 6)]])
    album.write("c.png", b"none")
    section = album.section(album.map("a.png", "b.png"), "Mean meanFile=not_there_yet.xml, Transpose")
    pictures, most = pictures_before_mean(parse(f"deserializers=({section})"))
    mean = mean_picture(pictures, max_errors=most)
    assert mean.tolist() == [[[4.5, 3.0, 1.5], [5.5, 5.5, 5.5]]]
    write_mean(str(tmp_path / "m.xml"), mean)
    assert read_mean(str(tmp_path / "m.xml")).tolist() == mean.tolist()
    old = f'readerType=ImageReader; maxErrors=1; file="{album.map("a.png", "c.png", "b.png")}"; x=[width=2; height=1; '
    pictures, most = pictures_before_mean(parse(old + "channels=3; meanFile=not_there_yet.xml]; y=[labelDim=3]"))
    np.testing.assert_array_equal(mean_picture(pictures, max_errors=most), mean)
    with pytest.raises(UserError, match=r"c\.png"):
        mean_picture(pictures)
    with pytest.raises(UserError, match="no pictures are read here"):
        pictures_before_mean(parse("file=a.ctf; input=[x=[dim=1;format=dense]]"))


def test_the_examples_of_the_page(tmp_path, monkeypatch):
    from cntkpy.readers import create_reader

    from .pictures import GREYS, Album

    monkeypatch.chdir(tmp_path)
    album = Album(tmp_path)
    album.write("a.png", GREYS)
    album.map("a.png", "a.png", file="train.map")
    write_mean("mean.xml", np.full((224, 224, 3), 9, np.float32))
    text = (ROOT / "docs/images.md").read_text(encoding="utf-8")
    sections = re.findall(r"```\n(reader = \[.*?\n\])\n```", text, re.DOTALL)
    assert len(sections) == 2
    for section in sections:
        made = create_reader(parse(section).section("reader"))
        made.start_minibatch_loop(2, 0)
        assert made.get_minibatch().streams["features"].shape == (1, 2, 3 * 224 * 224)
        made.close()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    found = names["source"].next_minibatch(2)
    assert found[names["source"].streams.features].shape == (2, 1, 3, 224, 224)
    names["source"].close()
