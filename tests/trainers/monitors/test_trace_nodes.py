"""Nodes that look at the run, in training: Trace writes values into the log, EpochAccumulator reports its last one."""

import re

import numpy as np
import pytest
import small_classification as actions

NETWORK = """
    BrainScriptNetworkBuilder = {
        x = Input {2} ; y = Input {3, tag='label'}
        b = ParameterTensor {3, initValue=0}
        h = Trace (Parameter {3, 2, initValue=0.5} * x + b, say='hidden', FORMAT)
        ce = CrossEntropyWithSoftmax (y, h, tag='criterion')
        seen = new ComputationNode [ operation = 'EpochAccumulator' ; inputs = ReduceSum (x) ; tag = 'evaluation' ]
        trains = new ComputationNode [ operation = 'EnvironmentInput' ; propertyName = 'isTraining' ; tag = 'output' ]
    }
"""


def config(form):
    before, rest = actions.CONFIG.split("    NDLNetworkBuilder", 1)
    after = rest[rest.index("    SGD =") :]
    return before + NETWORK.replace("FORMAT", form) + after


def train(cntkpy, form):
    files = actions.files("") | {"m.cntk": config(form)}
    got = cntkpy("configFile=m.cntk", "train=[SGD=[maxEpochs=1;minibatchSize=5;epochSize=20]]", files=files)
    assert got.code == 0, got.err
    return got.err


DATA = np.array(
    [[float(word) for word in line.split("|")[1].split()[1:]] for line in actions.files("")["data.ctf"].splitlines()]
)


def test_values_and_gradients_in_the_log(cntkpy):
    text = train(cntkpy, "logFirst=1, logFrequency=2, logGradientToo=true, onlyUpToRow=1")
    heads = re.findall(r"^------- Trace\[[^]]*\] hidden( \(gradient\))? --> (.*)$", text, re.MULTILINE)
    assert len(heads) == 4  # minibatches 1 and 3
    assert heads[0] == ("", "h._ = Plus (h._.PlusArgs[0], b) : [3 x *], [3] -> [3 x *]") or heads[0][1].startswith("h")
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "------- Trace" in line)
    assert lines[at + 1] == f"{0.5 * DATA[0].sum():f} ...+2"
    assert lines[at + 5] == f"{0.5 * DATA[4].sum():f} ...+2"
    slopes = next(i for i, line in enumerate(lines) if "(gradient)" in line)
    first = float(lines[slopes + 1].split()[0])
    assert first == pytest.approx(1 / 3, abs=1e-6) or first == pytest.approx(-2 / 3, abs=1e-6)


def test_the_mean_of_the_epoch_counts_once(cntkpy):
    text = train(cntkpy, "logFirst=0, logFrequency=0")
    assert "------- Trace" not in text
    found = re.search(r"Finished Epoch\[ *1 of 1\]: \[Training\].* seen = (\S+) \* 1;", text)
    assert float(found[1]) == pytest.approx(DATA[:20].sum(axis=1).mean(), abs=1e-6)


def test_a_format_and_a_wrong_one(cntkpy):
    text = train(cntkpy, "logFirst=1, logFrequency=2, format=[ type='category' ]")
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "------- Trace" in line)
    assert all(line in "012" for line in lines[at + 1 : at + 6])
    got = cntkpy("check", "m.cntk", files={"m.cntk": config("format=3")})
    assert "'format' must be a record, not the number 3" in got.out
