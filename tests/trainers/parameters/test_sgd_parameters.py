"""Single parameters of SGD against numbers computed here: one small network, every step by hand in NumPy."""

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from cntkpy.trainers.fronts.search import SizeSearch
from cntkpy.trainers.schedules.rate_control import Options, RateControl

SAMPLES, SIZE = 24, 8

# z = W x + b, square error: the gradient is 2 (z - y) x', summed over the minibatch
CONFIG = """\
command = train
precision = double
modelPath = run/m
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(3)
        y = Input(2)
        W = Parameter(2, 3, init=fixedValue, value=0.25)
        b = Parameter(2, 1, init=fixedValue, value=0)
        t = Times(W, x)
        z = Plus(t, b)
        loss2 = SquareError(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (loss2)
        OutputNodes = (z)
    ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 8 ; learningRatesPerSample = 0.0078125 ; momentumPerMB = 0 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf ; randomize = false
        input = [ x = [ dim = 3 ; format = dense ] ; y = [ dim = 2 ; format = dense ] ] ]
]
"""
RATE = 0.0078125  # a power of two, so that single precision does not round it


def numbers() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.normal(size=(SAMPLES, 3)).round(3), random.normal(size=(SAMPLES, 2)).round(3)


def files() -> dict[str, str]:
    x, y = numbers()
    lines = (
        f"|x {' '.join(map(str, a))} |y {' '.join(map(str, b))}" for a, b in zip(x.tolist(), y.tolist(), strict=True)
    )
    return {"main.cntk": CONFIG, "train.ctf": "\n".join(lines) + "\n"}


def train(cntkpy, tmp_path: Path, *settings: str) -> dict[str, np.ndarray]:
    got = cntkpy("configFile=main.cntk", *(f"train=[SGD=[{setting}]]" for setting in settings), files=files())
    assert got.code == 0, got.err
    return load_file(tmp_path / "run/m")


def gradients():
    """Start weights, and per minibatch a function of the weights that gives their gradients."""
    x, y = numbers()
    weights = {"W": np.full((2, 3), 0.25), "b": np.zeros((2, 1))}

    def at(begin: int):
        a, target = x[begin : begin + SIZE].T, y[begin : begin + SIZE].T

        def gradient(w: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            error = 2 * (w["W"] @ a + w["b"] - target)
            return {"W": error @ a.T, "b": error.sum(axis=1, keepdims=True)}

        return gradient

    return weights, [at(begin) for begin in range(0, SAMPLES, SIZE)]


def assert_weights(got: dict[str, np.ndarray], expected: dict[str, np.ndarray], rtol: float = 1e-12) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize("normalise", [True, False])
def test_rmsprop_constants(normalise: bool, cntkpy, tmp_path: Path) -> None:
    got = train(
        cntkpy,
        tmp_path,
        f"gradUpdateType=rmsProp;normWithAveMultiplier={str(normalise).lower()}",
        "rms_gamma=0.8;rms_wgt_inc=1.5;rms_wgt_dec=0.6;rms_wgt_max=2;rms_wgt_min=0.3",
    )
    w, batches = gradients()
    mean = dict.fromkeys(w)
    sign = {name: np.zeros_like(value) for name, value in w.items()}
    step = {name: np.full_like(value, 0.02) for name, value in w.items()}
    for batch in batches:
        for name, g in batch(w).items():
            old = g * g if mean[name] is None else mean[name]
            mean[name] = 0.8 * old + 0.2 * g * g
            same = sign[name] * np.sign(g) > 0
            step[name] = np.where(same, np.minimum(step[name] * 1.5, 2), np.maximum(step[name] * 0.6, 0.3))
            sign[name] = np.sign(g)
            scale = step[name] / np.sqrt(mean[name] + 1e-6)
            w[name] = w[name] - RATE / (scale.mean() if normalise else 1) * g * scale
    assert_weights(got, w)


@pytest.mark.parametrize("setting", ["useAdagrad=true", "gradUpdateType=ADAGRAD"])
@pytest.mark.parametrize("normalise", [True, False])
def test_adagrad_and_its_normalisation(setting: str, normalise: bool, cntkpy, tmp_path: Path) -> None:
    got = train(cntkpy, tmp_path, f"{setting};normWithAveMultiplier={str(normalise).lower()}")
    w, batches = gradients()
    total = {name: np.zeros_like(value) for name, value in w.items()}
    for batch in batches:
        for name, g in batch(w).items():
            total[name] += g * g
            scale = 1 / np.sqrt(total[name] + 1e-16)
            w[name] = w[name] - RATE / (scale.mean() if normalise else 1) * g * scale
    assert_weights(got, w)


def test_fsadagrad_constants(cntkpy, tmp_path: Path) -> None:
    got = train(cntkpy, tmp_path, "gradUpdateType=fsAdagrad;varianceTimeConstant=50;fsAdagradTargetAvDenom=0.5")
    w, batches = gradients()
    keep, count = np.exp(-SIZE / 50), 0.0
    mean = {name: np.zeros_like(value) for name, value in w.items()}
    for batch in batches:
        count = keep * count + (1 - keep) * SIZE
        for name, g in batch(w).items():
            mean[name] = keep * mean[name] + (1 - keep) * g * g
            w[name] = w[name] - RATE * np.minimum(10, 0.5 * np.sqrt(count / mean[name])) * g
    assert_weights(got, w)


def test_l1_and_l2(cntkpy, tmp_path: Path) -> None:
    got = train(cntkpy, tmp_path, "L1RegWeight=0.01;L2RegWeight=0.05")
    w, batches = gradients()
    for batch in batches:
        for name, g in batch(w).items():
            stepped = w[name] - RATE * (g + 0.05 * SIZE * w[name])
            w[name] = np.sign(stepped) * np.maximum(np.abs(stepped) - RATE * 0.01 * SIZE, 0)
    assert_weights(got, w)


@pytest.mark.thorough
def test_noise_has_the_given_deviation_and_no_rate(cntkpy, tmp_path: Path) -> None:
    got = cntkpy(
        "configFile=main.cntk",
        "train=[SGD=[gaussianNoiseInjectStd=0.5;learningRatesPerSample=0;minLearningRatePerSample=-1;maxEpochs=4]]",
        files=files(),
    )
    assert got.code == 0, got.err
    weights = [load_file(tmp_path / f"run/m{epoch}")["W"] for epoch in (".0", ".1", ".2", ".3", "")]
    moved = np.diff(weights, axis=0).ravel() / np.sqrt(SAMPLES // SIZE)
    deviation = np.std(moved)
    assert 0.3 < deviation < 0.75  # 24 draws of deviation 0.5


def test_the_smallest_rate_ends_training(cntkpy, tmp_path: Path) -> None:
    content = files()
    got = cntkpy(
        "configFile=main.cntk",
        "train=[SGD=[maxEpochs=3;learningRatesPerSample=0.01:0.002;minLearningRatePerSample=0.005]]",
        files=content,
    )
    assert "is less than minLearningRatePerSample 0.005. Training complete." in got.err
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["m.0", "m.1", "m.1.ckp"]


def test_first_minibatches_get_their_own_lines(cntkpy) -> None:
    got = cntkpy(
        "configFile=main.cntk",
        "traceLevel=1",
        "train=[SGD=[minibatchSize=4;firstMBsToShowResult=2;numMBsToShowResult=3]]",
        files=files(),
    )
    shown = re.findall(r"Minibatch\[ *(\d+)- *(\d+)", got.err)
    assert shown == [("1", "1"), ("2", "2"), ("3", "3"), ("4", "6")]


@pytest.mark.parametrize(("all_data", "samples"), [("true", SAMPLES), ("false", 16)])
def test_statistics_over_all_data_or_one_epoch(all_data: str, samples: int, cntkpy, tmp_path: Path) -> None:
    content = files()
    content["main.cntk"] = CONFIG.replace(
        "        t = Times(W, x)", "        m = Mean(x)\n        t = Times(W, xn)"
    ).replace("        z = Plus(t, b)", "        xn = Minus(x, m)\n        z = Plus(t, b)")
    got = cntkpy(
        "configFile=main.cntk", f"train=[SGD=[epochSize=16;UseAllDataForPreComputedNode={all_data}]]", files=content
    )
    assert got.code == 0, got.err
    np.testing.assert_allclose(
        load_file(tmp_path / "run/m")["m"].ravel(), numbers()[0][:samples].mean(axis=0), atol=1e-6
    )


BATCH_NORMALISATION = CONFIG.replace(
    "        z = Plus(t, b)\n",
    """        sc = Parameter(2, 1, init=fixedValue, value=1)
        rm = Parameter(2, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        rv = Parameter(2, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        z = BatchNormalization(t, sc, b, rm, rv, normalizationTimeConstant=1000)
""",
)


def running_mean(cntkpy, tmp_path: Path, name: str, *settings: str) -> np.ndarray:
    content = files() | {"main.cntk": BATCH_NORMALISATION.replace("run/m", f"{name}/m")}
    rate = "train=[SGD=[learningRatesPerSample=0;minLearningRatePerSample=-1]]"
    got = cntkpy("configFile=main.cntk", rate, *settings, files=content)
    assert got.code == 0, got.err
    return load_file(tmp_path / f"{name}/m")["rm"].ravel()


@pytest.mark.thorough
def test_the_schedule_of_batch_normalisation_overrides_the_node(cntkpy, tmp_path: Path) -> None:
    x, _ = numbers()
    means = [0.25 * x[begin : begin + SIZE].sum(axis=1).mean() for begin in range(0, SAMPLES, SIZE)]

    def expected(constant: float) -> float:
        value = means[0]
        for mean in means[1:]:
            mix = 1 - np.exp(-SIZE / constant)
            value = mix * mean + (1 - mix) * value
        return value

    own = running_mean(cntkpy, tmp_path, "own")
    np.testing.assert_allclose(own, expected(1000), rtol=1e-9)
    set_by_sgd = running_mean(cntkpy, tmp_path, "set", "train=[SGD=[batchNormalizationTimeConstant=10]]")
    np.testing.assert_allclose(set_by_sgd, expected(10), rtol=1e-9)


@pytest.mark.thorough
def test_blending_uses_the_running_statistics(cntkpy) -> None:
    def criterion(*settings: str) -> float:
        got = cntkpy(
            "configFile=main.cntk",
            "train=[SGD=[learningRatesPerSample=0;minLearningRatePerSample=-1]]",
            *settings,
            files=files() | {"main.cntk": BATCH_NORMALISATION},
        )
        assert got.code == 0, got.err
        return float(re.findall(r"\[Training\] loss2 = ([\d.]+)", got.err)[0])

    own = criterion("makeMode=false")
    blended = criterion("makeMode=false", "train=[SGD=[batchNormalizationBlendTimeConstant=1#INF]]")
    assert blended != pytest.approx(own, rel=1e-3)


@pytest.mark.thorough
def test_batch_normalisation_may_be_left_out_of_regularisation(cntkpy, tmp_path: Path) -> None:
    results = {}
    for off in ("false", "true"):
        content = files() | {"main.cntk": BATCH_NORMALISATION.replace("run/m", f"{off}/m")}
        setting = f"train=[SGD=[L2RegWeight=0.5;disableRegInBatchNormalization={off}]]"
        assert cntkpy("configFile=main.cntk", setting, files=content).code == 0
        results[off] = load_file(tmp_path / f"{off}/m")
    assert not np.allclose(results["false"]["sc"], results["true"]["sc"])


# ---- the control of rates: pure decisions


def decisions(values: list[float], rate: float = 1.0, **options) -> list[float]:
    control = RateControl(Options(listed=1, load_best=False, **options))
    rates = [rate]
    for epoch, value in enumerate(values):
        control.observe(epoch, value)
        if control.due(epoch):
            rate, ends = control.decide(rate)
            if ends:
                break
        control.accept(epoch)
        rates.append(rate)
    return rates


def test_rates_grow_on_large_improvements_and_shrink_on_small_ones() -> None:
    rates = decisions([1.0, 0.5, 0.49, 0.4], increase_if_more=0.3, increase=1.5, reduce_if_less=0.1, decrease=0.5)
    assert rates == [1.0, 1.0, 1.5, 0.75, 0.75]


def test_continued_reduction_ends_at_the_second_miss() -> None:
    assert decisions([1.0, 0.99, 0.5, 0.499], continue_reduce=True, reduce_if_less=0.05, decrease=0.5) == [
        1.0,
        1.0,
        0.5,
        0.25,
    ]


def test_decisions_once_in_an_interval_on_its_mean() -> None:
    rates = decisions([1.0, 3.0, 1.9, 2.2, 1.0, 1.0], interval=2, reduce_if_less=0.0, decrease=0.5)
    assert rates == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5]  # means 2, 2.05, 1


def test_a_worse_value_is_a_degradation() -> None:
    control = RateControl(Options(listed=1))
    control.observe(0, 1.0)
    control.accept(0)
    control.observe(1, 1.1)
    assert control.degraded and control.due(1)


@pytest.mark.parametrize(("margin", "chosen"), [(1.0, 64), (5.0, 128), (100.0, 256)])
def test_the_margin_of_the_minibatch_search(margin: float, chosen: int) -> None:
    criteria = {64: 1.0, 128: 1.03, 192: 1.2, 256: 1.4}
    assert SizeSearch(1, lambda size, *_: criteria[size], 64, 256, margin).run() == chosen


CV = CONFIG.replace("        CriterionNodes", "        EvalNodes = (ab)\n        CriterionNodes").replace(
    "        loss2 = SquareError(y, z)",
    "        loss2 = SquareError(y, z)\n        d = Minus(y, z)\n        ab = MatrixL1Reg(d)",
)


@pytest.mark.parametrize("use", ["UseCVSetControlLRIfCVExists=false", "UseEvalCriterionControlLR=true"])
def test_what_controls_the_rate(use: str, cntkpy, tmp_path: Path) -> None:
    """The rate falls by the demanded improvement of 99 %; which value decides shows in the checkpoint."""
    from cntkpy.trainers.checkpoints.checkpoint import Checkpoint

    content = files() | {"main.cntk": CV, "cv.ctf": "|x 1 2 3 |y 1 1\n" * 4}
    adjust = f"autoAdjustLR=adjustAfterEpoch;loadBestModel=false;reduceLearnRateIfImproveLessThan=0.99;{use}"
    reader = "train=[cvReader=[readerType=CNTKTextFormatReader;file=cv.ctf;randomize=false"
    got = cntkpy(
        "configFile=main.cntk",
        f"train=[SGD=[maxEpochs=2;AutoAdjust=[{adjust}]]]",
        f"{reader};input=[x=[dim=3;format=dense];y=[dim=2;format=dense]]]]",
        files=content,
    )
    assert got.code == 0, got.err
    shown = re.findall(r"\[(\w+)\] loss2 = ([\d.]+) \* \d+; ab = ([\d.]+)", got.err)[-2:]
    by_name = {kind: (float(se), float(ab)) for kind, se, ab in shown}
    wanted = by_name["Training"][0] if "CV" in use else by_name["Validate"][1]
    assert Checkpoint.load(str(tmp_path / "run/m.ckp")).values["reference"] == pytest.approx(wanted, rel=1e-6)
