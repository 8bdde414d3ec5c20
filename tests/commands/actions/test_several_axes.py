"""Several time axes in all that a run does: devices, resuming, joined readers, user sources, tracing, previews."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cntkpy.networks.files.model_file import load_model

CONFIG = """\
command = train:test
precision = double
traceLevel = 1
modelPath = $RunDir$/m
train = {
    action = train
    BrainScriptNetworkBuilder = {
        t = DynamicAxis () ; x = Input {2, dynamicAxis=t} ; l = Input {2}
        h = Trace (RecurrentLSTMLayer {4} (x), say='steps', logFirst=1)
        last = Trace (BS.Sequences.Last (h), say='last', logFirst=1)
        z = ReconcileDynamicAxis (DenseLayer {2} (last), l)
        ce = CrossEntropyWithSoftmax (l, z, tag='criterion')
        sum = ReduceSum (h, tag='evaluation')
        keep = BS.Boolean.Or (BS.Loop.IsFirst (x), Greater (Slice (0, 1, x), 0.3))
        kept = ReduceSum (BS.Sequences.Gather (keep, h), tag='evaluation')
        outputNodes = (z)
    }
    SGD = { epochSize = 0 ; minibatchSize = 12 ; learningRatesPerSample = 0.3 ; maxEpochs = 3
        numMBsToShowResult = 1 ; ParallelTrain = { parallelizationMethod = DataParallelSGD } }
}
test = { action = test ; minibatchSize = 12 }
reader = { readerType = CNTKTextFormatReader ; file = data.ctf
    input = { x = { dim = 2 ; format = dense } ; l = { dim = 2 ; format = dense } } }
"""

JOINED = """\
reader = { readerType = composite ; deserializers = (
    { type = "CNTKTextFormatDeserializer" ; module = "CNTKTextFormatReader" ; file = x.ctf
      input = { x = { dim = 2 ; format = dense } } } :
    { type = "CNTKTextFormatDeserializer" ; module = "CNTKTextFormatReader" ; file = l.ctf
      input = { l = { dim = 2 ; format = dense } } }) }
"""

CHUNKS = """\
import numpy as np
from cntkpy.readers import ChunksReader, StreamInformation


class Chunks(ChunksReader):
    def stream_infos(self):
        return [StreamInformation(name, k, "dense", np.float32, (2,)) for k, name in enumerate("xl")]

    def num_chunks(self):
        return 2

    def get_chunk(self, chunk):
        data = {"x": {}, "l": {}}
        for name, found in data.items():
            for line in open(name + ".ctf"):
                key, _, *values = line.split()
                found.setdefault(int(key), []).append([float(value) for value in values])
        return {name: [np.array(found[key], np.float32) for key in range(8 * chunk, 8 * chunk + 8)]
                for name, found in data.items()}
"""

LENGTHS = [1, 4, 2, 5, 3, 6, 2, 7, 3, 1, 5, 2, 9, 4, 3, 8]

MANY = """
import json, sys
from cntkpy.commands.runner.run import run
json.dump([run(words) for words in json.load(sys.stdin)], sys.stdout)
"""


def first_value(key: int, step: int) -> float:
    """Of the samples of `x`; exact in single precision, which sources of the user have."""
    return (key * 7 + step * 3) % 11 / 16


KEPT = sum(step == 0 or first_value(key, step) > 0.3 for key, length in enumerate(LENGTHS) for step in range(length))
"""The steps that the network's condition keeps."""


def write(folder: Path) -> None:
    (folder / "a.cntk").write_text(CONFIG)
    (folder / "joined.cntk").write_text(JOINED)
    (folder / "chunks.py").write_text(CHUNKS)
    (folder / "chunks.cntk").write_text('reader = { readerType = "Chunks" ; module = "chunks" ; randomize = false }')
    streams: dict[str, list[str]] = {"x": [], "l": []}
    for key, length in enumerate(LENGTHS):
        streams["x"] += [f"{key} |x {first_value(key, t):.4f} {(key + t) % 5 / 8:.3f}\n" for t in range(length)]
        streams["l"].append(f"{key} |l {'1 0' if key % 3 else '0 1'}\n")
    for name, lines in streams.items():
        (folder / f"{name}.ctf").write_text("".join(lines))
    first = {line.split()[0]: line.split(" ", 1)[1] for line in streams["l"]}
    rows = [line[:-1] + " " + first.pop(line.split()[0], "\n") for line in streams["x"]]
    (folder / "data.ctf").write_text("".join(rows))


def finished(folder: Path, run: str) -> list[str]:
    lines = (folder / run / "log").read_text().splitlines()
    return [line.split("[Training] ")[1].split("; totalSamples")[0] for line in lines if "Finished Epoch" in line]


def results(folder: Path, run: str) -> list[str]:
    """What `action=test` found."""
    lines = (folder / run / "log").read_text().splitlines()
    return [line.split("Final Results: ")[1] for line in lines if "Final Results" in line]


def weights(folder: Path, run: str) -> dict[str, bytes]:
    """What a run has learned."""
    nodes = load_model(str(folder / run / "m"), "double").nodes
    return {name: node.value.tobytes() for name, node in nodes.items() if node.value is not None}


RUNS = {
    "one": ["deviceId=-1"],
    "two": ["deviceId=*2"],
    "joined": ["deviceId=-1", "configFile=joined.cntk"],
    "in order": ["deviceId=-1", "reader=[randomize=false]"],
    "chunks": ["deviceId=-1", "configFile=chunks.cntk"],
    "first": ["deviceId=-1", "RunDir=continued", "train=[SGD=[maxEpochs=1]]"],
    "continued": ["deviceId=-1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and the results of all runs: one process, of whose CPU XLA makes two devices."""
    path = tmp_path_factory.mktemp("axes")
    write(path)
    words = [["configFile=a.cntk", f"RunDir={name}", f"stderr={name}/log", *more] for name, more in RUNS.items()]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", MANY],
        input=json.dumps(words),
        cwd=path,
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert json.loads(done.stdout) == [0] * len(RUNS), done.stderr
    return path


@pytest.mark.thorough
def test_devices_give_the_numbers_of_one(folder: Path) -> None:
    assert len(finished(folder, "one")) == 3
    assert finished(folder, "two") == finished(folder, "one")


@pytest.mark.thorough
def test_two_processes_give_the_numbers_of_one(folder: Path) -> None:
    """Each sees half of the sequences of every minibatch; lengths, labels and kept steps stay together."""
    words = ["run", "--workers", "2", "configFile=a.cntk", "RunDir=workers", "stderr=workers/log", "deviceId=-1"]
    done = subprocess.run(
        [sys.executable, "-m", "cntkpy", *words], cwd=folder, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    assert finished(folder, "workers") == finished(folder, "one")
    assert results(folder, "workers") == results(folder, "one")


@pytest.mark.thorough
def test_joined_readers_give_the_same(folder: Path) -> None:
    assert [line.count("*") for line in finished(folder, "joined")] == [3, 3, 3]
    assert all(f"* {len(LENGTHS)};" in line for line in finished(folder, "joined"))


@pytest.mark.thorough
def test_a_source_of_the_user_gives_the_same(folder: Path) -> None:
    assert finished(folder, "chunks") == finished(folder, "in order") != finished(folder, "one")


@pytest.mark.thorough
def test_each_node_counts_the_samples_of_its_axis(folder: Path) -> None:
    for line in finished(folder, "one"):
        assert re.search(rf"^ce = \S+ \* {len(LENGTHS)}; kept = \S+ \* {KEPT}; sum = \S+ \* {sum(LENGTHS)}$", line), (
            line
        )
    (final,) = results(folder, "one")
    counts = [f"kept = \\S+ \\* {KEPT}", f"sum = \\S+ \\* {sum(LENGTHS)}", f"ce = \\S+ \\* {len(LENGTHS)}"]
    assert all(re.search(one, final) for one in counts), final


@pytest.mark.thorough
def test_traces_show_the_samples_of_their_axis(folder: Path) -> None:
    log = (folder / "one/log").read_text()
    blocks = re.findall(r"^------- (Trace\[.*?)(?=^-------|^\S+ *Epoch|^ Epoch)", log, re.MULTILINE | re.DOTALL)
    shown = {("last" if "] last" in block else "steps"): len(block.strip().splitlines()) - 1 for block in blocks}
    assert shown["last"] < shown["steps"], blocks


@pytest.mark.thorough
def test_a_run_that_goes_on_ends_the_same(folder: Path) -> None:
    """Between epochs; minibatches are padded to the shapes that were planned before."""
    assert finished(folder, "continued")[-2:] == finished(folder, "one")[-2:]
    assert weights(folder, "continued") == weights(folder, "one")


@pytest.mark.thorough
def test_a_killed_run_ends_the_same(folder: Path) -> None:
    """Inside an epoch."""
    words = ["configFile=a.cntk", "RunDir=killed", "deviceId=-1", "train=[SGD=[checkpointEveryMinutes=0.00001]]"]
    command = [sys.executable, "-m", "cntkpy", *words]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while process.poll() is None and time.monotonic() < deadline and not list((folder / "killed").glob("*.partial")):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list((folder / "killed").glob("*.partial"))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert weights(folder, "killed") == weights(folder, "one")


def test_a_preview_tells_the_lengths_of_each_stream(cntkpy, tmp_path: Path) -> None:
    write(tmp_path)
    got = cntkpy("preview", "a.cntk", "reader")
    assert got.code == 0, got.err
    assert re.search(r"1 \.\. 9|1 to 9|1-9", got.out), got.out
