"""The sample of tar shards: its archives hold the pictures of the image sample; checked, previewed, trained, tested."""

import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
DATA = ROOT / "sample_configs/data"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


def test_the_archives_have_the_pictures_of_the_image_sample():
    kinds = [int(line.split("\t")[1]) for line in (DATA / "shapes_train.map").read_text(encoding="utf-8").splitlines()]
    with zipfile.ZipFile(DATA / "shapes.zip") as pictures:
        for name, first in (("shards_0", 0), ("shards_1", 96)):
            with tarfile.open(DATA / f"{name}.tar") as shard:
                names = shard.getnames()
                assert names == [f"{i:06d}.{end}" for i in range(first, first + 96) for end in ("png", "cls")]
                for i in range(first, first + 96):
                    picture, kind = shard.extractfile(f"{i:06d}.png"), shard.extractfile(f"{i:06d}.cls")
                    assert picture is not None and kind is not None
                    assert picture.read() == pictures.read(f"train/{i:03d}.png")
                    assert int(kind.read()) == kinds[i]


def test_checked_and_previewed(cntkpy, sample):
    got = cntkpy("check", "--data", "sample_configs/shards.cntk", cwd=sample)
    assert got.code == 0 and "no problems" in got.out
    got = cntkpy("preview", "sample_configs/shards.cntk", "train", "--format", "json", cwd=sample)
    assert json.loads(got.out)["samples"] == 192


@pytest.mark.thorough
def test_trained_tested_and_written(cntkpy, sample):
    got = cntkpy("configFile=sample_configs/shards.cntk", cwd=sample)
    assert got.code == 0, got.err
    tested = re.search(r"Final Results.* errs = ([\d.]+)%", got.err)
    assert tested is not None and float(tested[1]) < 15
    answers = (sample / "sample_configs/output/shards.z").read_text().split()
    names = (sample / "sample_configs/data/shapes.names").read_text().split()
    wrong = sum(answer != names[i % 4] for i, answer in enumerate(answers))
    assert len(answers) == 64 and wrong / 64 * 100 == pytest.approx(float(tested[1]), abs=1e-3)
