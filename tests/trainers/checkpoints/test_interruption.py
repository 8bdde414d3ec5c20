"""A run that is stopped or killed anywhere, and started again, ends with the same bytes as an undisturbed one."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

CONFIG = """\
command = train
precision = float
modelPath = run/m
traceLevel = 1
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        features = Input(4)
        labels = Input(3)
        W0 = Parameter(64, 4)
        B0 = Parameter(64, 1, init=fixedValue, value=0)
        t0 = Times(W0, features)
        z0 = Plus(t0, B0)
        h = Sigmoid(z0)
        d = Dropout(h)
        W1 = Parameter(3, 64)
        z = Times(W1, d)
        ce = CrossEntropyWithSoftmax(labels, z)
        err = ClassificationError(labels, z)
        FeatureNodes = (features)
        LabelNodes = (labels)
        CriterionNodes = (ce)
        EvalNodes = (err)
        OutputNodes = (z)
    ]
    SGD = [ maxEpochs = 40 ; minibatchSize = 7 ; learningRatesPerMB = 0.1 ; momentumPerMB = 0.9 ; dropoutRate = 0.3
        numMBsToShowResult = 50 ; gaussianNoiseInjectStd = 0.001 ; checkpointEveryMinutes = 0.0005 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf ; chunkSizeInBytes = 4000
        input = [ features = [ dim = 4 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration, data, and the result of an undisturbed run in `whole`."""
    path = tmp_path_factory.mktemp("interruption")
    random_numbers = np.random.default_rng(3)
    lines = []
    for _ in range(4000):
        label = random_numbers.integers(3)
        x = " ".join(f"{v:.3f}" for v in random_numbers.normal(size=4) + label)
        lines.append(f"|features {x} |labels " + " ".join(str(int(k == label)) for k in range(3)))
    (path / "train.ctf").write_text("\n".join(lines) + "\n")
    (path / "main.cntk").write_text(CONFIG)
    process = start(path, "modelPath=whole/m", "train=[SGD=[checkpointEveryMinutes=0]]")
    log = process.communicate(timeout=300)[1]
    assert process.returncode == 0, log
    (path / "whole.log").write_text(log)
    return path


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cntkpy", "configFile=main.cntk", *words]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def finished(log: str) -> list[str]:
    return [line.split("; epochTime")[0] for line in log.splitlines() if line.startswith("Finished Epoch")]


def assert_same_end(folder: Path, name: str, log: str) -> None:
    assert (folder / name / "m").read_bytes() == (folder / "whole/m").read_bytes()
    assert not list((folder / name).glob("*.partial"))
    assert finished(log)[-1] == finished((folder / "whole.log").read_text())[-1]


def wait_for(process: subprocess.Popen[str], seen) -> None:
    deadline = time.monotonic() + 120
    while not seen() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


@pytest.fixture
def finish(folder: Path, cntkpy) -> Callable[..., str]:
    """Starts the run again, in this process, and gives its log."""

    def run(*words: str) -> str:
        got = cntkpy("configFile=main.cntk", *words, cwd=folder)
        assert got.code == 0, got.err
        return got.err

    return run


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_the_state_and_ends(folder: Path, finish, number: signal.Signals, code: int) -> None:
    name = f"stopped{code}"
    words = (f"modelPath={name}/m", "train=[SGD=[checkpointEveryMinutes=0]]")
    process = start(folder, *words)
    wait_for(process, lambda: (folder / name / "m.1").exists())
    process.send_signal(number)
    log = process.communicate(timeout=120)[1]
    assert process.returncode == code, log
    assert f"is saved in {name}/m." in log and ".partial; start the same command again" in log
    assert "Traceback" not in log
    rest = finish(*words)
    assert "Resuming after minibatch " in rest
    assert_same_end(folder, name, rest)


@pytest.mark.thorough
def test_killed_at_random_moments(folder: Path, finish) -> None:
    """The state is saved every few milliseconds, so kills hit between and inside writes."""

    def files() -> dict[str, int]:
        found = {}
        for path in (folder / "killed").glob("m*"):
            with contextlib.suppress(OSError):  # removed in the meantime
                found[path.name] = path.stat().st_mtime_ns
        return found

    moments, kills = Random(11), 0
    for _ in range(4):
        before = files()
        process = start(folder, "modelPath=killed/m")
        wait_for(process, lambda before=before: files() != before)
        time.sleep(moments.uniform(0, 0.06))
        process.kill()
        process.communicate(timeout=60)
        if process.returncode == 0:  # it has come to its end before
            break
        kills += 1
    assert kills  # how many depends on the speed of the machine
    finish("modelPath=killed/m")
    assert (folder / "killed/m").read_bytes() == (folder / "whole/m").read_bytes()
    assert not list((folder / "killed").glob("*.partial"))


@pytest.mark.thorough
@pytest.mark.parametrize("setting", ["minibatchSize=9", "gradUpdateType=adagrad"])
def test_a_state_of_other_settings_is_not_used(setting: str, folder: Path, finish) -> None:
    name = setting.partition("=")[0]
    words = (f"modelPath={name}/m", "train=[SGD=[checkpointEveryMinutes=0]]")
    process = start(folder, *words)
    wait_for(process, lambda: (folder / name / "m.1").exists())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    log = finish(*words, f"train=[SGD=[{setting}]]")
    assert "Resuming after minibatch" not in log
    assert "Finished Epoch[40 of 40]" in log


@pytest.mark.thorough
def test_a_state_of_another_network_is_not_used(folder: Path, finish) -> None:
    words = ("modelPath=edited/m", "train=[SGD=[checkpointEveryMinutes=0]]")
    process = start(folder, *words)
    wait_for(process, lambda: (folder / "edited/m.1").exists())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    (partial,) = (folder / "edited").glob("*.partial")
    model = partial.with_suffix("")
    script = ("m = LoadModel(X)", "W2 = Parameter(64, 64)", "h2 = Sigmoid(Times(W2, h))", "SetInput(d, 0, h2)")
    (folder / "layer.mel").write_text("\n".join((*script, "SaveModel(m, X)\n")).replace("X", f'"{model}"'))
    finish("command=more", "more=[action=edit;editPath=layer.mel]")
    log = finish(*words)
    assert "is not used: it was begun with another network." in log
    assert "Resuming after minibatch" not in log
    assert "Finished Epoch[40 of 40]" in log
