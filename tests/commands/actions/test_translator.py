"""The sample of a translator with attention: trained, decoded greedily and with a beam."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def distance(one: list[str], other: list[str]) -> int:
    """Symbols to insert, remove or replace."""
    row = list(range(len(other) + 1))
    for i, symbol in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, wanted in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (symbol != wanted))
    return row[-1]


@pytest.mark.thorough
def test_the_sample(cntkpy, tmp_path: Path) -> None:
    """At most one of 100 sounds of unseen words is wrong."""
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    got = cntkpy("configFile=sample_configs/spelling.cntk")
    assert got.code == 0, got.err
    for decoder in ("greedy", "beam"):
        found, wanted = (
            [line.split() for line in path.read_text().splitlines()]
            for path in (
                tmp_path / f"sample_configs/output/spelling.{decoder}.network.{node}"
                for node in ("decodeOut", "labelsOut")
            )
        )
        assert len(found) == len(wanted) == 300
        assert sum(map(distance, found, wanted)) <= 0.01 * sum(map(len, wanted))
