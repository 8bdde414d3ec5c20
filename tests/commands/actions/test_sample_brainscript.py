"""Samples in BrainScript, and the same networks in NDL: the same start values, the same numbers."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EPOCH = re.compile(r"ce = ([\d.]+) \* (\d+); errs = ([\d.]+)% \* (\d+)")


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "most"), [("digits", 25.0), ("slots", 5.0)])
def test_brainscript_and_ndl_train_the_same(name: str, most: float, cntkpy, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    logs = []
    for command in ("train:test", "ndl"):
        got = cntkpy(f"configFile=sample_configs/brainscript_{name}.cntk", f"command={command}")
        assert got.code == 0, got.err
        epochs = [line for line in got.err.splitlines() if line.startswith("Finished Epoch")]
        logs.append([[float(number) for number in EPOCH.findall(line)[0]] for line in epochs])
        if command == "train:test":
            assert float(re.findall(r"^Final Results: .*errs = ([\d.]+)%?", got.err, re.MULTILINE)[0]) < most
    assert len(logs[0]) == 3
    # The operations are added up in another order, which shows in the last of the printed digits.
    for ours, twin in zip(*logs, strict=True):
        assert ours == pytest.approx(twin, rel=1e-6, abs=1e-7)
