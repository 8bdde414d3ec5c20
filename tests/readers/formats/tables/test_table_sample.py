"""The sample of tables: checked; trained and tested on the rows that its filter leaves."""

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return tmp_path


def test_the_days_that_the_filter_takes_are_those_of_the_file():
    days = pq.read_table(ROOT / "sample_configs/data/fruit.parquet").column("harvested").to_pylist()
    assert days == sorted(days)
    assert sum(day.isoformat() <= "2026-08-29" for day in days) == 450


@pytest.mark.thorough
def test_trained_and_tested(cntkpy, sample):
    got = cntkpy("configFile=sample_configs/table.cntk", cwd=sample)
    assert got.code == 0, got.err
    assert "The filter leaves 450 of 600 rows" in got.err and "The filter leaves 150 of 600 rows" in got.err
    tested = re.search(r"Final Results.* EvalClassificationError = ([\d.]+) \* 150", got.err)
    assert tested is not None and float(tested[1]) < 0.05


def test_checked(cntkpy, sample):
    got = cntkpy("check", "--data", "sample_configs/table.cntk", cwd=sample)
    assert got.code == 0 and "no problems" in got.out
