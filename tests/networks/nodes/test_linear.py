"""Products and distances, where XLA has to be watched."""

import os
import random
import subprocess
import sys

import pytest

PAIRS = """command = pairs
modelPath = pairs.dnn
pairs = [
    action = train
    BrainScriptNetworkBuilder = {
        steps = DynamicAxis ()
        ask = Input {1} ; answer = Input {6, dynamicAxis=steps}
        a = Tanh (ParameterTensor {(4:1)} * ask + ParameterTensor {4})
        E = ParameterTensor {(4:6)}
        b = ReconcileDynamicAxis (Tanh (BS.Sequences.Last (E * answer) + ParameterTensor {4}), ask)
        near = CosDistanceWithNegativeSamples (a, b, Constant (1), Constant (1))
        loss = SquareError (near, Times (Splice (Constant (1) : Constant (0)), ask), tag='criterion')
    }
    SGD = [ maxEpochs = 1 ; minibatchSize = 16 ; learningRatesPerSample = 0.1 ; epochSize = 0 ]
    reader = [ readerType = CNTKTextFormatReader ; file = pairs.ctf ; randomize = false
        input = [ ask = [ dim = 1 ; format = dense ] ; answer = [ dim = 6 ; format = sparse ] ] ]
]
"""


@pytest.mark.thorough
def test_negative_samples_of_the_last_steps_of_sequences(tmp_path):
    """XLA's program crashed: a network of pairs of texts, in a process of its own and compiled as for users."""
    draw = random.Random(2)
    lines = [
        f"{s}{' |ask 1' if t == 0 else ''} |answer {draw.randrange(6)}:1\n"
        for s in range(14)
        for t in range(draw.randrange(1, 6))
    ]
    (tmp_path / "pairs.ctf").write_text("".join(lines))
    (tmp_path / "pairs.cntk").write_text(PAIRS)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "cntkpy", "configFile=pairs.cntk"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "Finished Epoch[ 1 of 1]" in ran.stderr + ran.stdout
