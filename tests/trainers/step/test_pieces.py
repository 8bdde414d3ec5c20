"""Minibatches in pieces give the same numbers, dense, sparse and with sequences of different lengths."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

CONFIG = """\
command = train
precision = double
modelPath = run/m
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(2)
        s = SparseInput(6)
        y = Input(3)
        E = Parameter(4, 6)
        R = Parameter(4, 4)
        W = Parameter(4, 2)
        V = Parameter(3, 4)
        es = Times(E, s)
        wx = Times(W, x)
        past = PastValue(4, h, timeStep=1)
        rh = Times(R, past)
        a = Plus(es, wx)
        b = Plus(a, rh)
        h = Tanh(b)
        z = Times(V, h)
        ce = CrossEntropyWithSoftmax(y, z)
        err = ClassificationError(y, z)
        FeatureNodes = (x, s)
        LabelNodes = (y)
        CriterionNodes = (ce)
        EvalNodes = (err)
        OutputNodes = (z)
    ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 100 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0.9 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf ; input = [ x = [ dim = 2 ; format = dense ]
        s = [ dim = 6 ; format = sparse ] ; y = [ dim = 3 ; format = dense ] ] ]
]
"""


def data() -> str:
    random = np.random.default_rng(5)
    lines = []
    for key in range(12):
        for _ in range(random.choice([2, 5])):
            x, word, label = random.normal(size=2), random.integers(6), random.integers(3)
            one_hot = " ".join(str(int(k == label)) for k in range(3))
            lines.append(f"{key} |x {x[0]:.3f} {x[1]:.3f} |s {word}:1 |y {one_hot}")
    return "\n".join(lines) + "\n"


@pytest.mark.thorough
def test_the_numbers_stay_the_same(cntkpy, tmp_path: Path) -> None:
    whole = cntkpy("configFile=main.cntk", "modelPath=whole/m", files={"main.cntk": CONFIG, "train.ctf": data()})
    assert whole.code == 0, whole.err
    expected = load_file(tmp_path / "whole/m")
    for setting in ("numSubminibatches=3", "numSubminibatches=100", "maxSamplesInRAM=5"):
        pieces = cntkpy("configFile=main.cntk", f"train=[SGD=[{setting}]]", f"modelPath={setting}/m")
        assert pieces.code == 0, pieces.err
        ours = load_file(tmp_path / setting / "m")
        assert ours.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(ours[name], value, rtol=1e-10, atol=1e-13, err_msg=f"{name} with {setting}")


def test_truncated_sequences_go_on_in_their_slots() -> None:
    """Five slots in two pieces: the activations of every slot are carried to the next minibatch."""
    from cntkpy.networks.arrays.lazy import jax
    from cntkpy.networks.builders.ndl.front_end import parse_ndl
    from cntkpy.networks.compile.evaluate import Batch, Settings, compile_gradient, network_parameters, network_state
    from cntkpy.trainers.step.pieces import in_pieces

    script = CONFIG[CONFIG.index("        x = Input(2)") : CONFIG.index("    ]\n    SGD")].replace(
        "SparseInput", "Input"
    )
    network = parse_ndl(script, precision="double")
    gradient = compile_gradient(network.validate(), "ce")
    random, steps = np.random.default_rng(1), np.arange(6)[:, None]
    lengths = np.array([6, 5, 6, 2, 6])
    mask = steps < lengths
    start, end = np.where(mask, steps, -1), np.where(mask, lengths - 1 - steps, -1)
    data = {"x": 2, "s": 6, "y": 3}
    inputs = {name: random.random((6, 5, size)) * mask[..., None] for name, size in data.items()}
    found = []
    for function in (jax.jit(gradient), jax.jit(in_pieces(gradient, 2, {}))):
        state, results = network_state(network, truncated_slots=5), []
        for part in (slice(0, 3), slice(3, 6)):
            cells = [array[part].astype(np.int32) for array in (start, end)]
            batch = Batch({name: array[part] for name, array in inputs.items()}, mask[part], *cells)
            *result, state = function(network_parameters(network), state, batch, jax.random.key(0), Settings())
            results.append(result)
        found.append(jax.tree.leaves((results, state)))
    for whole, pieces in zip(*found, strict=True):
        np.testing.assert_allclose(pieces, whole, rtol=1e-10, atol=1e-13)
