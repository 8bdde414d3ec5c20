"""Samples per second of data-parallel training by 1 and 2 processes: a DNN 363-512x3-132, minibatches of 1024, float.

    python benchmarks/parallel.py [--workers 1 2] [--samples 16384] [--epochs 4]

Every process has an equal share of the cores. The number is that of the fastest epoch but the first, which compiles.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
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


def measure(folder: Path, workers: int) -> float:
    """Samples per second of a run with so many processes."""
    command = [sys.executable, "-m", "cntkpy", "run", "--workers", str(workers), "configFile=c.cntk", "makeMode=false"]
    share = str(max(1, (os.cpu_count() or 1) // workers))
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"NPROC": share}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    epochs = re.findall(r"Finished Epoch.* \* (\d+); totalSamplesSeen.*epochTime=([\d.e-]+)s", done.stderr)
    return max(int(samples) / float(seconds) for samples, seconds in epochs[1:])


def main() -> None:
    """Write data, measure in turns, print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options.add_argument("--samples", type=int, default=16384)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    numbers = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "data.ctf").open("w") as file:
            for _ in range(given.samples):
                x = " ".join(f"{v:.2f}" for v in numbers.normal(size=363))
                file.write(f"|features {x} |labels {numbers.integers(132)}:1\n")
        (folder / "c.cntk").write_text(CONFIG.replace("EPOCHS", str(given.epochs)))
        found = {workers: [measure(folder, workers) for _ in range(given.rounds)] for workers in given.workers}
    print("| processes | samples per second | of one |\n|---:|---:|---:|")
    one = max(found[given.workers[0]])
    for workers, speeds in found.items():
        print(f"| {workers} | {max(speeds):.0f} | {max(speeds) / one:.2f} |")


if __name__ == "__main__":
    main()
