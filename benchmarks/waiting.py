"""How long a run takes to begin and to end: the first time, with no caches at all, and again; and its peak memory.

Four configurations that CNTK has run too (tests/goldens/runs). A run begins with its first minibatch: with the first
line of the log that has the criterion of minibatches, which is written after the first stack of them. It ends with
its process, after all epochs and the other actions: testing, writing. The processor time until then, of all threads,
is divided by that of a process which imports JAX and adds two numbers, measured beside each run: seconds depend on the
machine and on what else it does. Bytecode of Python is there in all runs, as after an installation.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RUNS = Path(__file__).resolve().parent.parent / "tests/goldens/runs"
JAX = [sys.executable, "-c", "import jax, jax.numpy as n; n.zeros(1)+1"]
CONFIGS = ("digits_uci", "simple2d_simple", "digits_conv", "atis_lstm")
MINIBATCH = b"]-Minibatch["
"""In the first line of the log about minibatches of a training."""

REPEAT = 3
DIM, HIDDEN, CLASSES, SAMPLES = 1_000_000, 128, 10, 5120

SPARSE = f"""\
command = train
precision = float
deviceId = -1
modelPath = "$RunDir$/models/sparse.dnn"
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = SparseInput({DIM})
        y = Input({CLASSES})
        W = Parameter({HIDDEN}, {DIM})
        h = Sigmoid(Times(W, x))
        V = Parameter({CLASSES}, {HIDDEN})
        z = Times(V, h)
        ce = CrossEntropyWithSoftmax(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (ce)
        OutputNodes = (z)
    ]
    SGD = [ epochSize = 0 ; minibatchSize = 256 ; learningRatesPerMB = 0.1 ; maxEpochs = 1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = "$DataDir$/sparse.ctf" ; randomize = none
        input = [ x = [ dim = {DIM} ; format = sparse ] ; y = [ dim = {CLASSES} ; format = dense ] ] ]
]
"""


class Waited(NamedTuple):
    """Processor seconds of a process until its first minibatch (0: it has none) and until its end; its peak memory."""

    first: float
    whole: float
    megabytes: float


def measured(command: list[str], environment: dict[str, str]) -> Waited:
    """Run a process that ends well."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    clock, first, said = ~process.pid << 3 | 2, 0.0, b""  # the clock of another process, see clock_getcpuclockid(3)
    while part := os.read(process.stdout.fileno(), 1 << 16):
        said += part
        if not first and MINIBATCH in said:
            first = time.clock_gettime(clock)
    _, status, used = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(said.decode())
    return Waited(first, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def with_bytecode(place: Path) -> dict[str, str]:
    """An environment for `measured`, and bytecode of Python in a folder of `place`, which it names."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(place / "bytecode")
    environment["XDG_CACHE_HOME"] = str(place / "to have bytecode")
    for config in ("digits_uci", "simple2d_simple"):
        ratio(RUNS / f"{config}.cntk", environment)
    return environment


def cntkpy(config: Path, data: Path) -> tuple[list[str], tempfile.TemporaryDirectory[str]]:
    """The command of a run, and the folder of what it writes."""
    folder = tempfile.TemporaryDirectory()
    words = [f"configFile={config}", "precision=float", f"RunDir={folder.name}", f"DataDir={data}"]
    return [sys.executable, "-m", "cntkpy", *words], folder


def ratio(config: Path, environment: dict[str, str]) -> Waited:
    """The processor times of a run by that of importing JAX, measured next to it; its peak memory."""
    alone = measured(JAX, environment).whole
    command, folder = cntkpy(config, RUNS / "data")
    with folder:
        run = measured(command, environment)
    return Waited(run.first / alone, run.whole / alone, run.megabytes)


def waits(config: Path, place: Path, environment: dict[str, str], repeat: int) -> tuple[Waited, Waited]:
    """The medians of `ratio`, without caches and with those of the run before.

    Args:
        config: what is run.
        place: a folder for the caches.
        environment: of the processes.
        repeat: how many runs of each kind.
    """
    runs: tuple[list[Waited], list[Waited]] = ([], [])
    for attempt in range(repeat):
        caches = environment | {"XDG_CACHE_HOME": str(place / f"{config.stem} {attempt}")}
        for found in runs:
            found.append(ratio(config, caches))
    new, again = (Waited(*map(statistics.median, zip(*found, strict=True))) for found in runs)
    return new, again


def sparse_memory(place: Path, environment: dict[str, str]) -> float:
    """Peak memory of training 1,000,000 x 128 weights of sparse data, in sizes of its parameters."""
    data = place / "data"
    data.mkdir()
    with (data / "sparse.ctf").open("w") as file:
        for i in range(SAMPLES):
            entries = " ".join(f"{(i * 7919 + k * 104729) % DIM}:1" for k in range(100))
            file.write(f"|x {entries} |y {' '.join(str(int(k == i % CLASSES)) for k in range(CLASSES))}\n")
    config = place / "sparse.cntk"
    config.write_text(SPARSE)
    command, folder = cntkpy(config, data)
    with folder:
        memory = measured(command, environment).megabytes
    return memory * 2**20 / (4 * (DIM * HIDDEN + HIDDEN * CLASSES))


def main(repeat: int) -> str:
    """The tables as Markdown."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        environment = with_bytecode(place)
        for config in CONFIGS:
            path = RUNS / f"{config}.cntk"
            new, again = waits(path, place, environment, repeat)
            lines.append(
                f"| `{config}` | {new.first:.2f} | {again.first:.2f} | {new.whole:.2f} | {again.whole:.2f} "
                f"| {new.megabytes:.0f} | {again.megabytes:.0f} |"
            )
        alone = statistics.median(measured(JAX, environment).megabytes for _ in range(3))
        sparse = sparse_memory(place, environment)
    return "\n".join(
        [
            "## Waiting",
            'Processor time as a multiple of `python -c "import jax, jax.numpy as n; n.zeros(1)+1"`'
            f" (which has {alone:.0f} MB), measured in turns, medians of {repeat}. New: with empty caches. To the first"
            " minibatch: to the first line of the log about minibatches, which follows the first stack of up to 64. "
            "Whole: all epochs, and the actions after the training.",
            "",
            "| run | to the first minibatch, new | first, again | whole, new | whole, again | peak MB, new | again |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *lines,
            "",
            "| training on sparse data | peak memory / parameters |",
            "|---|---:|",
            f"| {DIM:,} x {HIDDEN} weights | {sparse:.2f} |",
        ]
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=REPEAT, help="runs of each kind")
    print(main(options.parse_args().repeat))
