"""Searches before an epoch: the rates that are tried, how their lines begin, and what they are compared with."""

import logging
import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from cntkpy.trainers.fronts.search import RateSearch
from tests.trainers.parameters.test_sgd_parameters import files


def search(criterion: Callable[[float], float], fine: bool = False, **more) -> tuple[float, list[tuple[str, float]]]:
    """The rate found before the third epoch, and the trials: how their lines begin, and their rates."""
    trials: list[tuple[str, float]] = []

    def trial(rate: float, tag: str) -> float:
        trials.append((tag, rate))
        return criterion(rate)

    settings = {"minibatch_size": 19, "previous_rates": [], "previous": math.inf, "ratio": 0.3, "min_rate": 1e-9}
    return RateSearch(2, trial, fine=fine, **(settings | more)).run(), trials


def test_the_first_trial_is_the_base_and_the_constants_are_rounded_like_cntks() -> None:
    best, trials = search(lambda rate: 1.0 if rate < 0.02 else 2.0)
    start = float(np.float32(np.float32(0.125) / np.float32(0.618))) / math.sqrt(19)
    assert trials == [
        ("BaseAdaptiveLearnRateSearch", 0.0),
        *(("AdaptiveLearnRateSearch", pytest.approx(start * 0.618**k, rel=1e-15)) for k in (1, 2)),
    ]
    assert best == trials[-1][1]
    assert [f"{rate:.10g}" for _, rate in trials[1:2]] == ["0.0286769681"]
    assert f"{search(lambda rate: 1.0, previous_rates=[0.01, best, trials[1][1]])[0]:.10g}" == "0.04640286537"


def test_the_sides_of_the_fine_search_have_lines_of_their_own() -> None:
    """A parabola in the logarithm of the rate: both sides move towards its lowest point."""
    lowest = math.log(0.003)
    best, trials = search(lambda rate: (math.log(rate) - lowest) ** 2 if rate else 100.0, fine=True)
    tags = [tag.removesuffix("AdaptiveLearnRateSearch") for tag, _ in trials]
    assert tags[:3] == ["Base", "", "DetailBase"]
    assert set(tags[3:]) == {"DetailLeft", "DetailRight"}
    left, right = trials[2][1], trials[1][1]
    assert left == 0.01 / 19
    for tag, rate in trials[3:]:
        if tag.startswith("DetailLeft"):
            left /= 0.618
            assert rate == left
        else:
            right *= 0.618
            assert rate == right
    assert right <= 1.2 * left
    assert best in (left, right) and abs(math.log(best) - lowest) < 0.5


def test_a_search_compares_with_the_mean_of_the_last_whole_interval(cntkpy) -> None:
    """Intervals have two epochs, listed rates or not: epoch 4 is judged by the mean of 1 and 2, epochs 5 and 6 by that
    of 3 and 4, epoch 7 by that of 5 and 6."""
    adjust = "AutoAdjust=[autoAdjustLR=searchBeforeEpoch;learnRateAdjustInterval=2;numSamples4Search=16]"
    setting = f"maxEpochs=7;learningRatesPerSample=0.01*3;numMBsToShowResult=2;{adjust}"
    got = cntkpy("configFile=main.cntk", f"train=[SGD=[{setting}]]", "traceLevel=1", files=files())
    assert got.code == 0, got.err
    number = r"([-+.\de]+)"
    trained = [float(x) for x in re.findall(rf"^Finished Epoch.*\[Training\] loss2 = {number}", got.err, re.M)]
    base = [
        float(x)
        for x in re.findall(rf"^ Finished Mini-Epoch.* loss2 = {number} .*learningRatePerSample = 0;", got.err, re.M)
    ]
    bounds = [float(x) for x in re.findall(rf"SearchForBestLearnRate .*baseCriterion={number}", got.err)]
    assert len(trained) == 7 and len(base) == len(bounds) == 4
    for bound, epoch, value in zip(bounds, (4, 5, 6, 7), base, strict=True):
        whole = (epoch - 1) // 2 * 2  # epochs in whole intervals before this one
        mean = (trained[whole - 2] + trained[whole - 1]) / 2
        assert bound == pytest.approx(max(0.3 * mean + 0.7 * value, value), rel=1e-7)
    first, second = re.findall(r"^  (\w+): Epoch\[ 4 of 7\]", got.err, re.M)[:2]
    assert (first, second) == ("BaseAdaptiveLearnRateSearch", "AdaptiveLearnRateSearch")


def test_the_first_trial_of_a_minibatch_size_is_the_base(caplog: pytest.LogCaptureFixture) -> None:
    from cntkpy.trainers.fronts.search import SizeSearch

    tags = []

    def trial(size: int, tag: str) -> float:
        tags.append((size, tag))
        return 1.0

    caplog.set_level(logging.INFO, "cntkpy")
    assert SizeSearch(2, trial, 64, 192, 1.0).run() == 192
    assert tags[0] == (64, "BaseAdaptiveMinibatchSearch")
    assert {tag for _, tag in tags[1:]} == {"AdaptiveMinibatchSearch"}


ADAPT = "minibatchSize=4:8;AutoAdjust=[autoAdjustMinibatch=true;numSamples4Search=16;minibatchSizeTuningFrequency=2"
SKIPPED = r"^ AdaptiveMinibatchSearch: (Search for a better minibatchSize in epoch \d skipped, .*)$"
FOUND = r"Epoch\[(\d)\]: Evaluating minibatchSizes (\S+)$"


def test_adaptive_sizing_remembers_the_first_listed_size(cntkpy) -> None:
    """The size of epoch 2 is listed: it is used there, and forgotten."""
    got = cntkpy("configFile=main.cntk", f"train=[SGD=[maxEpochs=5;{ADAPT}]]]", files=files())
    assert got.code == 0, got.err
    keeping = "Search for a better minibatchSize in epoch {} skipped, keeping minibatchSize of {}"
    assert re.findall(SKIPPED, got.err, re.M) == [keeping.format(3, 4), keeping.format(5, 64)]
    assert re.findall(FOUND, got.err, re.M) == [("4", "8..8")]  # up to twice what was kept; rounded to 64


def test_a_resumed_run_remembers_the_same_size(cntkpy, tmp_path) -> None:
    words = ("configFile=main.cntk", f"train=[SGD=[maxEpochs=4;keepCheckPointFiles=true;{ADAPT}]]]")
    assert cntkpy(*words, "modelPath=whole/m", files=files()).code == 0
    assert cntkpy(*words).code == 0
    for name in ("m.3", "m.3.ckp", "m", "m.ckp"):
        (tmp_path / "run" / name).unlink()
    rest = cntkpy(*words)
    assert "in epoch 3 skipped, keeping minibatchSize of 4" in rest.err
    assert (tmp_path / "run/m").read_bytes() == (tmp_path / "whole/m").read_bytes()


def test_a_roll_back_remembers_the_size_of_its_epoch(cntkpy) -> None:
    """Epoch 3 diverges, with the size of epoch 1 kept; after the roll-back to epoch 2 its size is."""
    adapt = f"{ADAPT};autoAdjustLR=adjustAfterEpoch;learnRateDecreaseFactor=0.01]"
    setting = f"maxEpochs=3;learningRatesPerSample=0.01:0.2;{adapt}"
    got = cntkpy("configFile=main.cntk", f"train=[SGD=[{setting}]]", files=files())
    assert got.code == 0, got.err
    assert "Loading (rolling back to) previous model with best training-criterion value: run/m.2." in got.err
    kept = [line.rsplit(" ", 1)[1] for line in re.findall(SKIPPED, got.err, re.M)]
    assert kept[0] == "4" and set(kept[1:]) == {"8"}


@pytest.mark.parametrize(
    ("smallest", "largest", "tried"),
    [(64, 90, [64]), (100, 128, [128]), (64, 128, [64, 64, 128]), (256, 710, [256, 384, 512]), (96, 384, None)],
)
def test_sizes_are_bounded_before_they_are_rounded(smallest: int, largest: int, tried: list[int] | None) -> None:
    """96, 135.8, 192, 271.5, 384 (which a rounding error does not leave out)."""
    from cntkpy.trainers.fronts.search import SizeSearch

    sizes: list[int] = []

    def trial(size: int, tag: str) -> float:
        sizes.append(size)
        return 1.0

    SizeSearch(1, trial, smallest, largest, 1.0).run()
    assert sizes == (tried or [128, 128, 192, 256, 384])
