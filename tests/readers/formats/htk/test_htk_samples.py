"""The sample configurations of speech: trained, tested and written; the errors fall."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers.formats.htk.archive import read_features
from cntkpy.readers.formats.htk.script import read_script

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


def errors(text: str, stage: str = "Training") -> list[float]:
    line = rf"^Finished Epoch.*\[{stage}\].*EvalClassificationError = ([\d.]+)"
    return [float(v) for v in re.findall(line, text, re.MULTILINE)]


def check_written(sample: Path, folder: str) -> None:
    """The likelihoods of every frame of the utterances that are not trained on."""
    script = read_script([str(sample / "sample_configs/data/speech_test.scp")])
    for u, n in enumerate((script.last - script.first + 1).tolist()):
        values = read_features(str(sample / f"sample_configs/output/{folder}/test/u{u:02d}.like"))
        assert values.shape == (n, 9) and np.isfinite(values).all()


@pytest.mark.thorough
def test_windows(cntkpy, sample: Path):
    got = cntkpy("configFile=sample_configs/speech.cntk", "makeMode=false", cwd=sample)
    found = errors(got.err)
    assert got.code == 0 and len(found) == 5 and found[-1] < 0.1 < found[0]
    validated = errors(got.err, "Validate")
    assert len(validated) == 5 and validated[-1] < 0.2
    tested = re.search(r"Final Results: Minibatch\[1-3\].*?EvalClassificationError = ([\d.]+)", got.err)
    assert tested is not None and float(tested[1]) == pytest.approx(validated[-1], abs=1e-6)
    check_written(sample, "speech")


@pytest.mark.thorough
def test_lstm(cntkpy, sample: Path):
    got = cntkpy("configFile=sample_configs/speech_lstm.cntk", cwd=sample)
    found = errors(got.err)
    assert got.code == 0 and len(found) == 5 and found[-1] < found[0] < 1
    check_written(sample, "speech_lstm")
