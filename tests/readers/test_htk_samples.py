"""The sample configurations of speech: trained, tested and written; the errors fall."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from readers.htk.archive import read_features
from readers.htk.script import read_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


def errors(text: str) -> list[float]:
    return [float(v) for v in re.findall(r"^Finished Epoch.*EvalClassificationError = ([\d.]+)", text, re.MULTILINE)]


def test_windows(cntkpy, sample: Path):
    pytest.importorskip("jax")
    got = cntkpy("configFile=sample_configs/speech.cntk", cwd=sample)
    found = errors(got.err)
    assert got.code == 0 and len(found) == 5 and found[-1] < 0.1 < found[0]
    tested = re.search(r"Final Results.*EvalClassificationError = ([\d.]+)", got.err)
    assert tested is not None and float(tested[1]) < 0.2
    script = read_script([str(sample / "sample_configs/data/speech_test.scp")])
    for u, n in enumerate((script.last - script.first + 1).tolist()):
        values = read_features(str(sample / f"sample_configs/output/speech/test/u{u:02d}.like"))
        assert values.shape == (n, 9) and np.isfinite(values).all()


def test_lstm(cntkpy, sample: Path):
    pytest.importorskip("jax")
    got = cntkpy("configFile=sample_configs/speech_lstm.cntk", cwd=sample)
    found = errors(got.err)
    assert got.code == 0 and len(found) == 5 and found[-1] < found[0] < 1
    assert list((sample / "sample_configs/output").glob("speech_lstm.*"))
