"""Schedules of rates, momenta and constants against numbers computed here; what of them a resumed run knows."""

import logging
import math
import re
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.networks.graph.network import Network
from cntkpy.trainers.checkpoints.checkpoint import superseded
from cntkpy.trainers.fronts.search import adapt_size, search_samples
from cntkpy.trainers.parameters.sgd import IgnoredParameters, SGDParameters
from cntkpy.trainers.rules.rules import regularisation
from cntkpy.trainers.schedules.checks import check_parameters
from cntkpy.trainers.schedules.rate_control import Options
from cntkpy.trainers.schedules.schedules import Schedules
from tests.trainers.parameters.test_sgd_parameters import CV, files


def sgd(text: str) -> SGDParameters:
    return SGDParameters(parse(f"modelPath=m;maxEpochs=9;{text}"))


def test_rates_per_minibatch_become_rates_per_sample_in_single_precision() -> None:
    schedules = Schedules(sgd("learningRatesPerMB=0.1*2:0.05;minibatchSize=1024:256"))
    expected = [np.float32(0.1) / np.float32(1024), *(np.float32(r) / np.float32(256) for r in (0.1, 0.05, 0.05))]
    assert [schedules.rate_per_sample(epoch) for epoch in range(4)] == [float(rate) for rate in expected]
    assert f"{schedules.rate_per_sample(0):.8g}" == "9.7656251e-05"
    assert schedules.listed_rates == 3
    assert schedules.listed_ratio(2) == pytest.approx(2.0, rel=1e-6)  # 0.05 / 256 and 0.1 / 1024


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("momentumPerMB=0.9:0.5", [0.9 ** (1 / 40), 0.5 ** (1 / 10)]),
        ("", [0.9 ** (1 / 40), 0.9 ** (1 / 10)]),
        ("momentumPerSample=0.99:0.98", [0.99, 0.98]),
        ("momentumAsTimeConstant=150:0", [math.exp(-1 / 150), 0.0]),
    ],
)
def test_all_forms_of_momentum(setting: str, expected: list[float]) -> None:
    schedules = Schedules(sgd(f"learningRatesPerSample=0.1;minibatchSize=40:10;{setting}"))
    assert [schedules.momentum_per_sample(epoch) for epoch in (0, 1)] == pytest.approx(expected, rel=1e-7)


def test_under_truncation_a_minibatch_has_its_size_in_every_parallel_sequence() -> None:
    p = sgd("truncated=true;minibatchSize=10:20:1;learningRatesPerMB=0.6;momentumPerMB=0.5")
    schedules = Schedules(p)
    samples = [(2, 20), (3, 60), (3, 1)]  # of size 1, every minibatch counts as one sample
    for epoch, (parallel, n) in enumerate(samples):
        assert schedules.rate_per_sample(epoch, parallel) == pytest.approx(0.6 / n, rel=1e-6)
        assert schedules.momentum_per_sample(epoch, parallel) == pytest.approx(0.5 ** (1 / n), rel=1e-6)
    assert schedules.effective_momentum(0, 15, 2) == pytest.approx(0.5**1.5)  # 15 steps where 10 are listed
    assert [schedules.momentum_of_updates(epoch)[1] for epoch in range(3)] == [True, True, False]
    with pytest.raises(ConfigError, match="number of parallel sequences varies"):
        schedules.rate_per_sample(0, 0)
    per_sample = sgd("truncated=true;minibatchSize=10;learningRatesPerSample=0.6;momentumAsTimeConstant=5")
    assert Schedules(per_sample).rate_per_sample(0, 0) == pytest.approx(0.6)
    assert Schedules(per_sample).momentum_of_updates(0) == (pytest.approx(math.exp(-1 / 5)), False)


def test_a_changed_constant_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    from cntkpy.trainers.rules.rules import log_changes, network_settings

    p = sgd("dropoutRate=0:0.5*2;batchNormalizationTimeConstant=0:5000:0;batchNormalizationBlendTimeConstant=1#INF")
    caplog.set_level(logging.INFO, "cntkpy")
    for epoch, before in ((0, None), (1, 0), (1, 1), (2, 1)):  # the second epoch is trained twice
        log_changes(p, epoch, before)
    assert caplog.messages == [
        "Setting batch normalization blend time constant to inf.",
        "Setting dropout rate to 0.5.",
        "Setting batch normalization time constant to 5000.",
        "Setting batch normalization time constant to 0.",
    ]
    found = [network_settings(p, epoch) for epoch in range(3)]
    assert [tuple(one) for one in found] == [(None, None, math.inf), (0.5, 5000, math.inf), (0.5, 0, math.inf)]


def test_checkpoints_that_are_not_needed_any_more() -> None:
    assert [superseded(epoch, None) for epoch in (0, 1, 5)] == [{0}, {1}, {5}]
    kept = set(range(1, 10))
    for epoch in range(9):  # decisions after 3, 6 and 9 epochs may go back 3 epochs
        kept -= superseded(epoch, 3)
    assert kept == {9}
    kept = set(range(1, 9))
    for epoch in range(8):
        kept -= superseded(epoch, 3)
    assert kept == {6, 8}


def test_the_section_of_the_control_of_rates() -> None:
    given = "reduceLearnRateIfImproveLessThan=0.1;learnRateDecreaseFactor=0.5;increaseLearnRateIfImproveMoreThan=0.3"
    more = "learnRateIncreaseFactor=1.5;continueReduce=true;loadBestModel=false;learnRateAdjustInterval=0"
    p = sgd(f"AutoAdjust=[{given};{more}]")
    assert Options.read(p.auto_adjust, 2) == Options(2, 1, 0.1, 0.5, 0.3, 1.5, True, False)
    assert Options.read(sgd("").auto_adjust, 1) == Options(1, 1, 0.0, 0.618, math.inf, 1.382, False, True)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("", [5000, 10000, 10000]),  # 500 minibatches
        ("AutoAdjust=[numSamples4Search=70:80]", [70, 80, 80]),
        ("AutoAdjust=[numMiniBatch4LRSearch=3:4;numSamples4Search=70]", [30, 80, 80]),
        ("epochSize=60;AutoAdjust=[numMiniBatch4LRSearch=3:4]", [30, 60, 60]),
        ("AutoAdjust=[numMiniBatch4LRSearch=3]", [30, 30, 30]),  # the product repeats, not each of its factors
        ("AutoAdjust=[numMiniBatch4LRSearch=3:4:5]", [30, 80, 100]),
    ],
)
def test_samples_of_a_trial(setting: str, expected: list[int]) -> None:
    p = sgd(f"minibatchSize=10:20;{setting}")
    assert [search_samples(p, epoch) for epoch in range(3)] == expected


def sizes(setting: str, criteria: dict[int, float], before: int, rates: str = "1", ratio: float = 1.0):
    """The size that is chosen before the fourth epoch, and the sizes that were tried."""
    p = sgd(f"minibatchSize=64;learningRatesPerSample={rates};AutoAdjust=[autoAdjustMinibatch=true;{setting}]")
    tried: list[int] = []

    def trial(rate: float, size: int, samples: int, tag: str) -> float:
        tried.append(size)
        return criteria[size]

    return adapt_size(p, 3, 0.1, before, Schedules(p).listed_ratio(3) * ratio, trial), tried


@pytest.mark.parametrize(
    ("setting", "before", "rates", "ratio", "expected"),
    [
        ("minibatchSizeTuningMax=256", 0, "1", 1.0, (128, [64, 64, 128, 192])),  # 91 is rounded to 64, 181 to 192
        (
            "minibatchSizeTuningMax=256;minibatchSearchCriterionErrorMargin=30",
            0,
            "1",
            1.0,
            (192, [64, 64, 128, 192, 256]),
        ),
        ("", 256, "1", 1.0, (128, [128, 192])),  # half to double the size before
        ("minibatchSizeTuningFrequency=3", 256, "1", 1.0, (256, [])),  # 4 is not a multiple of 3
        ("minibatchSizeTuningFrequency=4", 256, "1", 1.0, (128, [128, 192])),
        ("minibatchSizeTuningMax=256", 0, "1:1:1:0.25", 1.0, (128, [128, 192])),  # root of the rates' ratio: 1 / 2
        ("minibatchSizeTuningMax=256", 0, "1", 0.25, (128, [128, 192])),  # the last search made it smaller
    ],
)
def test_the_choice_of_a_minibatch_size(setting: str, before: int, rates: str, ratio: float, expected) -> None:
    criteria = {64: 1.0, 128: 1.005, 192: 1.2, 256: 1.4, 320: 2.0, 384: 2.0, 512: 2.0}
    assert sizes(setting, criteria, before, rates, ratio) == expected


IGNORED = [p.name for p in IgnoredParameters.parameters()]


@pytest.mark.parametrize("level", [0, 1])
def test_what_changes_nothing_is_mentioned_once(level: int, cntkpy) -> None:
    given = ";".join(f"{name}=1" for name in IGNORED)
    got = cntkpy("configFile=main.cntk", f"traceLevel={level}", f"train=[SGD=[{given}]]", files=files())
    assert got.code == 0, got.err
    for name in IGNORED:
        assert len(re.findall(f"^SGD: {name} has no effect. Ignored: ", got.err, re.M)) == level
        assert f"`{name}`" in (Path(__file__).parents[3] / "docs/training.md").read_text()


ADJUST = "learningRatesPerSample=0.01;AutoAdjust=[autoAdjustLR=adjustAfterEpoch;learnRateAdjustInterval=3;{}]".format(
    "reduceLearnRateIfImproveLessThan=0.15;learnRateDecreaseFactor=0.5;loadBestModel=false"
)
CONTINUE = ADJUST.replace("Interval=3", "Interval=1").replace("loadBest", "continueReduce=true;loadBest")
SEARCH = "AutoAdjust=[autoAdjustLR=searchBeforeEpoch;numSamples4Search=16;numPrevLearnRates=4;numBestSearchEpoch=2]"


@pytest.mark.parametrize(("setting", "done"), [(ADJUST, 2), (CONTINUE, 3), (SEARCH, 5)])
@pytest.mark.sampled
def test_the_control_of_rates_goes_on_where_it_was(setting: str, done: int, cntkpy, tmp_path: Path) -> None:
    words = ("configFile=main.cntk", f"train=[SGD=[maxEpochs=8;keepCheckPointFiles=true;{setting}]]")
    content = files() | {"main.cntk": CV}
    whole = cntkpy(*words, "modelPath=whole/m", files=content)
    assert whole.code == 0, whole.err
    assert cntkpy(*words).code == 0
    last = len(re.findall(r"Finished Epoch", whole.err))
    assert last == 8 or "Finished training and saved final model" in whole.err
    for later in range(done + 1, 9):
        for name in (f"m.{later}", f"m.{later}.ckp", "m", "m.ckp"):
            (tmp_path / "run" / name).unlink(missing_ok=True)
    rest = cntkpy(*words)
    assert f"Loading network from 'run/m.{done}'" in rest.err
    assert (tmp_path / "run/m").read_bytes() == (tmp_path / "whole/m").read_bytes()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("maxSamplesInRAM=0", "maxSamplesInRAM must be at least 1"),
        ("AutoAdjust=[minibatchSizeTuningFrequency=0]", "minibatchSizeTuningFrequency must be at least 1"),
        ("AutoAdjust=[minibatchSizeTuningMax=0]", "minibatchSizeTuningMax must be at least 1"),
        ("AutoAdjust=[numPrevLearnRates=0]", "numPrevLearnRates must be at least 1"),
        ("clippingThresholdPerSample=-1", "clippingThresholdPerSample must be above 0"),
        ("clippingThresholdPerSample=0", "clippingThresholdPerSample must be above 0"),
        ("fsAdagradTargetAvDenom=-1", "fsAdagradTargetAvDenom must be above 0"),
        ("AutoAdjust=[learnRateDecreaseFactor=-1]", "learnRateDecreaseFactor lies between 0 and 1"),
        ("rms_gamma=1.5", "rms_gamma lies between 0 and 1"),
    ],
)
def test_numbers_that_would_divide_by_zero_never_end_or_undo_the_training(setting: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_parameters(sgd(f"learningRatesPerMB=1;{setting}"), "float")


def test_negative_weights_change_nothing_and_are_told() -> None:
    p = sgd("learningRatesPerMB=1;L1RegWeight=-1;L2RegWeight=0.5;gaussianNoiseInjectStd=-2")
    weights = regularisation(p, Network())
    assert (weights.l1, weights.l2, weights.noise) == (0, 0.5, 0)
    assert [(name, message) for name, message, _ in p.idle()] == [
        ("L1RegWeight", "-1 has no effect: it is negative"),
        ("gaussianNoiseInjectStd", "-2 has no effect: it is negative"),
    ]
