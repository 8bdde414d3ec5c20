"""How long a run takes to begin and to end: the first time, with no caches at all, and again; and its peak memory.

Four configurations that CNTK has run too (tests/goldens/runs), whole processes. Their processor time, of all threads,
is divided by that of a process which imports JAX and adds two numbers, measured beside each run: seconds depend on the
machine and on what else it does. Bytecode of Python is there in all runs, as after an installation.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = Path(__file__).resolve().parent.parent / "tests/goldens/runs"
JAX = [sys.executable, "-c", "import jax, jax.numpy as n; n.zeros(1)+1"]
CONFIGS = ("digits_uci", "simple2d_simple", "digits_conv", "atis_lstm")
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


def measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Processor seconds of a process that ends well, and the most memory that it had, in MB."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(said.read().decode())
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def cntkpy(config: Path, data: Path) -> tuple[list[str], tempfile.TemporaryDirectory[str]]:
    """The command of a run, and the folder of what it writes."""
    folder = tempfile.TemporaryDirectory()
    words = [f"configFile={config}", "precision=float", f"RunDir={folder.name}", f"DataDir={data}"]
    return [sys.executable, "-m", "cntkpy", *words], folder


def ratio(config: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Processor time of a run by that of importing JAX, measured next to it; its peak memory."""
    alone, _ = measured(JAX, environment)
    command, folder = cntkpy(config, RUNS / "data")
    with folder:
        time, memory = measured(command, environment)
    return time / alone, memory


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
        _, memory = measured(command, environment)
    return memory * 2**20 / (4 * (DIM * HIDDEN + HIDDEN * CLASSES))


def main() -> str:
    """The table as Markdown."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(place / "bytecode")
        environment["XDG_CACHE_HOME"] = str(place / "to have bytecode")
        for config in ("digits_uci", "simple2d_simple"):
            ratio(RUNS / f"{config}.cntk", environment)
        for config in CONFIGS:
            path = RUNS / f"{config}.cntk"
            environment["XDG_CACHE_HOME"] = str(place / config)
            first, first_memory = ratio(path, environment)
            again = [ratio(path, environment) for _ in range(REPEAT)]
            second, memory = (statistics.median(column) for column in zip(*again, strict=True))
            lines.append(f"| `{config}` | {first:.1f} | {second:.2f} | {first_memory:.0f} | {memory:.0f} |")
        alone = statistics.median(measured(JAX, environment)[1] for _ in range(3))
        sparse = sparse_memory(place, environment)
    return "\n".join(
        [
            "## Waiting",
            'Whole processes; processor time as a multiple of `python -c "import jax, jax.numpy as n; n.zeros(1)+1"`'
            f" (which has {alone:.0f} MB), measured in turns. First: with empty caches. "
            f"Training {DIM:,} x {HIDDEN} weights on sparse data peaks at {sparse:.2f} times the parameters.",
            "",
            "| run | first | again | first, peak MB | again, peak MB |",
            "|---|---:|---:|---:|---:|",
            *lines,
        ]
    )


if __name__ == "__main__":
    print(main())
