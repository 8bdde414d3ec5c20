"""`saveBestModelPerCriterion`: the best model by each criterion on the validation data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import small_classification as actions
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from cntkpy.trainers.fronts.config.best import BestModels
from cntkpy.trainers.log.text import Total

INPUT = "input=[x=[dim=2;format=dense];y=[dim=3;format=dense]]"
WORDS = (
    "configFile=m.cntk",
    "command=train",
    "train=[saveBestModelPerCriterion=true;SGD=[maxEpochs=4;learningRatesPerSample=0.05*2:5]]",
    f"train=[cvReader=[file=data.ctf;{INPUT}]]",
)
CRITERIA = ("ce", "err")


@pytest.fixture
def trained(cntkpy, tmp_path: Path):
    """Trains with a rate that is far too large from the third epoch on; the parameters in files of a run."""

    def trained(*words: str) -> dict[str, dict[str, np.ndarray]]:
        got = cntkpy(*WORDS, *words, files=actions.files(""))
        assert got.code == 0, got.err
        return {one.name: load_file(one) for one in (tmp_path / "run").iterdir() if one.suffix not in (".ckp", ".lock")}

    return trained


def test_files(trained) -> None:
    models = trained()
    best = [name for name in models if name.startswith("m_")]
    assert len(best) == 2
    for name in best:
        equal = [
            epoch
            for epoch in ("m.1", "m.2", "m.3", "m")
            if all(np.array_equal(models[name][key], models[epoch][key]) for key in models["m"])
        ]
        assert len(equal) == 1
    trained("modelPath=run/n", "train/SGD/maxEpochs=1")
    again = trained("modelPath=run/n")
    for name in best:
        there = again["n" + name[1:]]
        assert all(np.array_equal(models[name][key], there[key]) for key in models["m"])
    without = trained("train/saveBestModelPerCriterion=false", "modelPath=run/k")
    assert "k.2" in without and not any(name.startswith("k_") for name in without)


def test_without_validation_data(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "train/saveBestModelPerCriterion=true", files=actions.files(""))
    told = "warning: m.cntk:train:SGD:saveBestModelPerCriterion: has no effect: there is no cvReader - add a cvReader"
    assert got.err.count(told) == 1
    assert told in cntkpy("check", "m.cntk", "train/saveBestModelPerCriterion=true").out


@given(st.lists(st.lists(st.floats(allow_nan=True), min_size=2, max_size=2), min_size=1, max_size=8), st.integers(0, 7))
def test_the_smallest_value_of_each_criterion_counts(values: list[list[float]], stop: int) -> None:
    best = BestModels("m")
    written: dict[str, int] = {}
    for done, row in enumerate(values, 1):
        if done == stop:
            best, before = BestModels("m"), best
            best.restore(before.state())
        totals = [Total(name, value, 1) for name, value in zip(CRITERIA, row, strict=True)]
        written |= dict.fromkeys(best.observe(done, totals), done)
    for place, name in enumerate(CRITERIA):
        column = [row[place] if row[place] == row[place] else np.inf for row in values]
        smallest = min(column)
        expected = None if smallest == np.inf else column.index(smallest) + 1
        assert written.get(f"m_{name}") == expected
