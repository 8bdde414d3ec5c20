"""Samples per second of data-parallel training by 1 and 2 processes: a DNN 363-512x3-132, minibatches of 1024, float.

    python benchmarks/parallel.py [--processes 1 2] [--samples 16384] [--epochs 4] [--rounds 3]

Every process has an equal share of the cores; the first line is one process with one of them. Whole runs, reading
included, take turns. A number is that of the fastest epoch of all rounds but the first of each, which compiles. The
last lines are the limits of the machine: two runs of one thread, side by side, that have nothing to do with each other,
and the same with minibatches of 512, which is what each of two workers computes; of each the middle one of its epochs
but the first and the last, where the other may not be training.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CONFIG = """\
command = train
modelPath = run/m
deviceId = cpu
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 363:512:512:512:132 ; layerTypes = Sigmoid
        trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction ]
    SGD = [ maxEpochs = EPOCHS ; minibatchSize = 1024 ; learningRatesPerMB = 0.1
        ParallelTrain = [ parallelizationMethod = DataParallelSGD ] ]
    reader = [ file = data.ctf ; randomize = true ; chunkSizeInBytes = 1000000
        input = [ features = [ dim = 363 ; format = dense ] ; labels = [ dim = 132 ; format = sparse ] ] ]
]
"""


def write_data(path: Path, samples: int) -> None:
    """Random features and labels as text."""
    numbers = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(samples):
            x = " ".join(f"{v:.2f}" for v in numbers.normal(size=363))
            file.write(f"|features {x} |labels {numbers.integers(132)}:1\n")


def command(processes: int, threads: int, *more: str) -> list[str]:
    """A run with this many processes, each of this many threads."""
    words = ["run", "--workers", str(processes), "configFile=c.cntk", "makeMode=false", f"numCPUThreads={threads}"]
    return [sys.executable, "-m", "cntkpy", *words, *more]


def speeds_of_epochs(log: str) -> list[float]:
    """Samples per second of every epoch but the first."""
    epochs = re.findall(r"Finished Epoch.* \* (\d+); totalSamplesSeen.*epochTime=([\d.e-]+)s", log)
    return [int(samples) / float(seconds) for samples, seconds in epochs[1:]]


def measure(folder: Path, processes: int, threads: int) -> float:
    """Samples per second of a run with this many processes, each of this many threads."""
    done = subprocess.run(command(processes, threads), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return max(speeds_of_epochs(done.stderr))


def side_by_side(folder: Path, size: int) -> float:
    """Samples per second of two independent runs of one thread with minibatches of some size, together."""
    more = ("train/SGD/maxEpochs=8", f"train/SGD/minibatchSize={size}")
    runs = [command(1, 1, f"modelPath=run/{k}", *more) for k in range(2)]
    started = [
        subprocess.Popen(run, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for run in runs
    ]
    logs = [process.communicate()[1] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit("\n".join(logs))
    return sum(statistics.median(speeds_of_epochs(log)[:-1]) for log in logs)


def main() -> None:
    """Write data, measure in turns, print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    options.add_argument("--samples", type=int, default=16384)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    cores = len(os.sched_getaffinity(0))
    runs = [(1, 1), *((processes, max(1, cores // processes)) for processes in given.processes)]
    found: dict[tuple[int, int], list[float]] = {run: [] for run in runs}
    apart: dict[int, list[float]] = {1024: [], 512: []}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder / "data.ctf", given.samples)
        (folder / "c.cntk").write_text(CONFIG.replace("EPOCHS", str(given.epochs)))
        for _ in range(given.rounds):
            for run, speeds in found.items():
                speeds.append(measure(folder, *run))
            for size, speeds in apart.items():
                speeds.append(side_by_side(folder, size))
    print("## Parallel training")
    print(
        f"DNN 363-512x3-132, minibatches of 1024, {time.strftime('%Y-%m-%d')}, {cores} cores, load {load:.1f} before\n"
    )
    print("| processes | threads of each | samples/s | / one process of one thread | / 2 independent runs |")
    print("|---:|---:|---:|---:|---:|")
    one, two = max(found[1, 1]), max(apart[512])
    for (processes, threads), speeds in found.items():
        shown = f"{max(speeds) / two:.2f}" if processes == 2 else ""
        print(f"| {processes} | {threads} | {max(speeds):,.0f} | {max(speeds) / one:.2f} | {shown} |")
    for size, speeds in apart.items():
        print(f"| 2 independent runs, minibatches of {size} | 1 | {max(speeds):,.0f} | {max(speeds) / one:.2f} | |")


if __name__ == "__main__":
    main()
