"""Rates and momentum given per minibatch where sequences are truncated, against NumPy programs of the rule.

With S parallel sequences in a minibatch of T steps, of which `minibatchSize` are nominal, the momentum of its update is
`mu ** (T S)` with `mu = momentumPerMB ** (1 / (minibatchSize S))`. Rates are converted once per epoch, with the S of
the last minibatch that was read before it; before the first there is one sequence.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.registry import create_reader
from cntkpy.trainers.fronts.config.epoch import up_to

CONFIG = """
modelPath = run/m
precision = double
traceLevel = 1
truncated = true
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(2)
        y = Input(1)
        W = Parameter(1, 2, init=fixedValue, value=0.25)
        z = Times(W, x)
        loss = SquareError(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (loss)
        OutputNodes = (z)
    ]
    SGD = [ truncated = true ; maxEpochs = 2 ; learningRatesPerMB = 0.3:0.2 ; SETTING ]
    reader = [ READER ]
]
"""
INPUT = "input=[x=[dim=2;format=dense];y=[dim=1;format=dense]]"
TEXT = f"file=train.ctf;randomize=false;truncated=true;truncationLength=3;{INPUT}"
COMPOSITE = (
    "randomize=false;truncated=true;truncationLength=3;"
    f"deserializers=([type=CNTKTextFormatDeserializer;module=CNTKTextFormatReader;file=train.ctf;{INPUT}])"
)


def files(lengths: list[int], reader: str, setting: str) -> dict[str, str]:
    random = np.random.default_rng(len(lengths))
    lines = []
    for key, length in enumerate(lengths):
        for a, b, c in random.normal(size=(length, 3)).round(2):
            lines.append(f"{key} |x {a} {b} |y {c}")
    config = CONFIG.replace("READER", reader).replace("SETTING", setting)
    return {"main.cntk": config, "train.ctf": "\n".join(lines) + "\n"}


def read(reader: str, size: int, epochs: int, folder: Path) -> list[list[Minibatch]]:
    source = create_reader(reader.replace("train.ctf", str(folder / "train.ctf")), "double")
    found = []
    for epoch in range(epochs):
        source.start_minibatch_loop(size, epoch)
        found.append(list(iter(source.get_minibatch, None)))
    return found


def single(value: float) -> float:
    return float(np.float32(value))


CASES = {
    "one slot": (TEXT, [6, 6, 6], 8, {1}, 1),
    "several slots": (TEXT, [4] * 7, 8, {1, 2}, 1),
    "the same number of slots": (TEXT, [4] * 6, 8, {2}, 2),
    "a number of slots that changes": (TEXT, [7, 2, 2, 2], 6, {1, 3}, 3),
    "pieces of sequences": (COMPOSITE, [7, 5, 4, 2, 6], 6, {2}, 2),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled
def test_momentum_per_minibatch_is_converted_at_every_update(case: str, cntkpy, tmp_path: Path) -> None:
    reader, lengths, size, slots, last = CASES[case]
    got = cntkpy("configFile=main.cntk", files=files(lengths, reader, f"minibatchSize={size};momentumPerMB=0.7:0.4"))
    assert got.code == 0, got.err
    weight, velocity, parallel = np.full((1, 2), 0.25), np.zeros((1, 2)), 1
    seen = set()
    for epoch, minibatches in enumerate(read(reader, size, 2, tmp_path)):
        per_mb = single((0.7, 0.4)[epoch])
        rate = single(single((0.3, 0.2)[epoch]) / (size * parallel))
        per_sample = per_mb ** (1 / (size * parallel))
        line = re.search(rf"Starting Epoch {epoch + 1}: .*", got.err)
        assert line and line[0] == (
            f"Starting Epoch {epoch + 1}: learning rate per sample = {rate:f}  effective momentum = {per_mb:f}  "
            f"momentum as time constant = {-1 / np.log(per_sample):.1f} samples"
        )
        for minibatch in minibatches:
            steps, parallel = minibatch.layout.T, minibatch.layout.S
            seen.add(parallel)
            x, y = (minibatch.streams[name].reshape(steps * parallel, -1).T for name in "xy")  # gaps are zeros
            gradient = 2 * (weight @ x - y) @ x.T
            momentum = (per_mb ** (1 / (size * parallel))) ** (steps * parallel)
            velocity = momentum * velocity + (1 - momentum) * rate * gradient
            weight = weight - velocity
    assert (seen, parallel) == (slots, last)
    np.testing.assert_allclose(load_file(tmp_path / "run/m")["W"], weight, rtol=1e-12)


def test_momentum_per_sample_is_not_converted(cntkpy, tmp_path: Path) -> None:
    reader, lengths, size = TEXT, [9, 2, 1, 1, 5], 12
    setting = f"minibatchSize={size};momentumAsTimeConstant=8;learningRatesPerMB=default;learningRatesPerSample=0.01"
    got = cntkpy("configFile=main.cntk", files=files(lengths, reader, setting))
    assert got.code == 0, got.err
    weight, velocity = np.full((1, 2), 0.25), np.zeros((1, 2))
    for minibatches in read(reader, size, 2, tmp_path):
        for minibatch in minibatches:
            columns = minibatch.layout.T * minibatch.layout.S
            x, y = (minibatch.streams[name].reshape(columns, -1).T for name in "xy")
            momentum = single(np.exp(-1 / 8)) ** columns
            gradient = 2 * (weight @ x - y) @ x.T
            velocity = momentum * velocity + (1 - momentum) * single(0.01) * gradient
            weight = weight - velocity
    np.testing.assert_allclose(load_file(tmp_path / "run/m")["W"], weight, rtol=1e-12)


MEANS = "x = Input(2)\n        m = Mean(x)\n        c = Minus(x, m)"


def test_a_resumed_run_converts_rates_with_the_same_number(cntkpy, tmp_path: Path) -> None:
    """The second epoch begins with two sequences; so does the first, because its data were read for a mean."""
    content = files([4] * 6, TEXT, "minibatchSize=8;momentumPerMB=0.5;keepCheckPointFiles=true")
    content["main.cntk"] = content["main.cntk"].replace("x = Input(2)", MEANS).replace("Times(W, x)", "Times(W, c)")
    whole = cntkpy("configFile=main.cntk", "modelPath=whole/m", files=content)
    rate = r"Starting Epoch \d: learning rate per sample = ([\d.]+) "
    assert re.findall(rate, whole.err) == [f"{0.3 / 16:f}", f"{0.2 / 16:f}"]
    assert cntkpy("configFile=main.cntk").code == 0
    for removed in (["m", "m.ckp"], ["m", "m.ckp", "m.1", "m.1.ckp"]):
        for name in removed:
            (tmp_path / "run" / name).unlink()
        rest = cntkpy("configFile=main.cntk")
        assert re.findall(rate, rest.err) == re.findall(rate, whole.err)[3 - len(removed) // 2 - 1 :]
        assert (tmp_path / "run/m").read_bytes() == (tmp_path / "whole/m").read_bytes()


def test_a_trial_reads_one_minibatch_more(tmp_path: Path) -> None:
    """CNTK sees that a trial has had its samples only after reading the next minibatch, whose sequences then count."""
    (tmp_path / "train.ctf").write_text(files([4] * 6, TEXT, "")["train.ctf"])
    data = iter(read(TEXT, 8, 1, tmp_path)[0])
    assert len(list(up_to(data, 7))) == 1
    assert len(list(data)) == 1
