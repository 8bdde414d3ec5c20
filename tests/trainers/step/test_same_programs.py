"""The programs given to the compiler are the same in every process, so that the cache of compiled programs hits."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

LOWER = """
import json, sys
from pathlib import Path
from cntkpy.commands.cli import main
from cntkpy.trainers.step.step import CompiledStep

class Done(BaseException):
    pass

begin, texts = CompiledStep.begin, {}

def lowering(self, *rest):
    begin(self, *rest)
    class Lowering:
        program = self._program
        def find(self, *arguments):
            pass
        def __call__(self, *arguments):
            texts[configuration] = self.program.lower(*arguments).as_text()
            raise Done
    self._program = Lowering()

CompiledStep.begin = lowering
for configuration in sys.argv[2:]:
    try:
        main(["configFile=" + configuration, "makeMode=false"])
    except (Done, SystemExit):
        pass
Path(sys.argv[1]).write_text(json.dumps(texts))
"""

COUNT = """
import json, os, sys
from collections import Counter
from pathlib import Path
from cntkpy.commands.cli import main
import jax

counts = Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event.rpartition("/")[2]]))
found = {}
for name, *words in json.loads(sys.argv[2]):
    counts.clear()
    assert main(["makeMode=false", *words]) == 0, name
    kept = sorted(path.name for path in Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).glob("programs/*"))
    found[name] = [counts["cache_misses"], kept]
Path(sys.argv[1]).write_text(json.dumps(found))
"""

LSTM = """
command = train
train = [
    action = train ; modelPath = lstm.model ; deviceId = cpu
    NDLNetworkBuilder = [ run = net ]
    net = [
        Gate(x, h, ind, hid) {
            Wx = Parameter(hid, ind)
            Wh = Parameter(hid, hid)
            b = Parameter(hid, 1, init=fixedValue, value=0)
            z = Plus(Plus(Times(Wx, x), Times(Wh, h)), b)
        }
        words = SparseInput(6, tag=feature)
        tags = Input(3, tag=label)
        e = Times(Parameter(4, 6), words)
        hp = PastValue(5, h, timeStep=1)
        cp = PastValue(5, c, timeStep=1)
        i = Sigmoid(Gate(e, hp, 4, 5))
        f = Sigmoid(Gate(e, hp, 4, 5))
        o = Sigmoid(Gate(e, hp, 4, 5))
        c = Plus(ElementTimes(i, Tanh(Gate(e, hp, 4, 5))), ElementTimes(f, cp))
        h = ElementTimes(o, Tanh(c))
        z = Times(Parameter(3, 5), h)
        ce = CrossEntropyWithSoftmax(tags, z, tag=criterion)
    ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 4 ; learningRatesPerSample = 0.1 ; momentumPerMB = 0 ]
    reader = [
        readerType = CNTKTextFormatReader ; file = words.ctf ; randomize = none
        input = [ words = [ dim = 6 ; format = sparse ] ; tags = [ dim = 3 ; format = dense ] ]
    ]
]
"""
WORDS = "".join(
    f"{n // 8} |words {n % 6}:1 |tags {' '.join(str(int(n % 3 == k)) for k in range(3))}\n" for n in range(24)
)


def process(script: str, folder: Path, hash_seed: int, *words: str, **environment: str) -> subprocess.Popen[str]:
    """A process with this seed of hashes; see `result`."""
    more = {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    with (folder / f"log.{hash_seed}").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", script, f"{folder}/result.{hash_seed}", *words],
            cwd=folder,
            env=os.environ | more | environment,
            stdout=log,
            stderr=log,
            text=True,
        )


def result(folder: Path, hash_seed: int, running: subprocess.Popen[str]) -> Any:
    """What the process wrote."""
    try:
        code = running.wait(280)
    finally:
        running.kill()
    assert code == 0, (folder / f"log.{hash_seed}").read_text()[-3000:]
    return json.loads((folder / f"result.{hash_seed}").read_text())


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "one"
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


SAMPLES = ("batch_normalization", "images", "language_model", "slot_tagging")
"""Of each kind of program one: running statistics, convolutions, classes of words, recurrence over whole sequences."""
TRUNCATED = ["configFile=sample_configs/speech_lstm.cntk", "command=train", "train=[SGD=[maxEpochs=1]]"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with a small LSTM of macros on sparse words."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "lstm.cntk").write_text(LSTM)
    (folder / "words.ctf").write_text(WORDS)
    return folder


def check_lowered(folder: Path, other: Path, names: list[str]) -> None:
    """Two processes with other hashes, in other folders, lower the same programs."""
    shutil.copytree(folder, other)
    both = [(folder, 1), (other, 2)]
    running = [process(LOWER, folder, seed, *names) for folder, seed in both]
    first, second = (result(*one, process) for one, process in zip(both, running, strict=True))
    assert sorted(first) == names
    assert [name for name, text in first.items() if text != second[name]] == []


def check_cached(folder: Path, words: list[str]) -> None:
    """A second process takes every program from the cache, and adds none."""
    cache = str(folder / "cache")
    lines = json.dumps([["run", *words]])
    (_, kept), (misses, still) = (
        result(folder, seed, process(COUNT, folder, seed, lines, JAX_COMPILATION_CACHE_DIR=cache))["run"]
        for seed in (1, 2)
    )
    assert kept
    assert misses == 0
    assert still == kept  # none was compiled under another name


@pytest.mark.thorough
def test_lowered_programs_do_not_depend_on_hashes(small: Path, tmp_path: Path) -> None:
    check_lowered(small, tmp_path / "other", ["lstm.cntk"])


@pytest.mark.thorough
def test_lowered_programs_of_samples_do_not_depend_on_hashes(samples: Path, tmp_path: Path) -> None:
    check_lowered(samples, tmp_path / "other", [f"sample_configs/{name}.cntk" for name in SAMPLES])


@pytest.mark.thorough
def test_every_program_of_a_second_run_comes_from_the_cache(small: Path) -> None:
    check_cached(small, ["configFile=lstm.cntk"])


@pytest.mark.thorough
def test_every_program_of_a_truncated_run_comes_from_the_cache(samples: Path) -> None:
    check_cached(samples, TRUNCATED)
