"""Kill one of three workers, again and again, and see that nothing is lost.

    python tests/tools/kill_workers.py FOLDER [--kills 10] [--seed 1] [--method DataParallelSGD ...] [--mpiexec WORDS]

Every round starts a training of three workers and sends SIGKILL to one of them at random: while they start, inside an
epoch, or as soon as a file is being written. All processes must end, and every file must be whole. The training resumes
with the same or another number of workers, and its result is compared with that of an undisturbed run. The exit status
is 1 if anything was wrong. A round takes about a minute on two cores; the same seed gives the same rounds.
"""

import argparse
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from cntkpy.networks.files.model_file import load_model
from cntkpy.trainers.checkpoints.checkpoint import INSIDE, Checkpoint
from cntkpy.trainers.parallel.launchers import LAUNCHERS

WORKERS, EPOCHS = 3, 5

LIMIT = 120.0
"""Seconds within which all processes have to end."""

CONFIG = """\
command = train
precision = double
deviceId = cpu
method = DataParallelSGD
momentum = 0.9
train = [ action = train ; modelPath = $RunDir$/m
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(3)
        y = Input(2)
        W = Parameter(4, 3)
        V = Parameter(2, 4)
        a = Times(W, x)
        h = Tanh(a)
        z = Times(V, h)
        ce = CrossEntropyWithSoftmax(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (ce)
        OutputNodes = (z)
    ]
    SGD = [ maxEpochs = 5 ; epochSize = 3000 ; minibatchSize = 24 ; checkpointEveryMinutes = 0.02
        learningRatesPerMB = 0.3 ; momentumPerMB = $momentum$
        ParallelTrain = [ parallelizationMethod = $method$
            ModelAveragingSGD = [ blockSize = 400 ] ; BlockMomentumSGD = [ blockSize = 400 ] ] ]
    reader = [ file = data.ctf ; randomize = true ; chunkSizeInBytes = 900
        input = [ x = [ dim = 3 ; format = dense ] ; y = [ dim = 2 ; format = dense ] ] ]
]
"""


def prepare(folder: Path) -> None:
    """Write configuration and data."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.cntk").write_text(CONFIG)
    numbers = np.random.default_rng(3)
    with (folder / "data.ctf").open("w") as file:
        for number in range(600):
            x = numbers.normal(size=3)
            label = int(x.sum() + 0.3 * numbers.normal() > 0)
            file.write(f"{number} |x {' '.join(f'{v:.3f}' for v in x)} |y {1 - label} {label}\n")


class Run:
    """A training, started. Its files are in a folder of its own, what it prints in `console` there."""

    def __init__(self, folder: Path, name: str, method: str, workers: int, mpiexec: list[str]):
        self.path, self.log, self.console = folder / name, folder / name / "log", folder / name / "console"
        command = [sys.executable, "-m", "cntkpy"]
        if workers > 1:
            command = [*mpiexec, "-n", str(workers), *command] if mpiexec else [*command, "run", f"--workers={workers}"]
        command += ["configFile=main.cntk", f"RunDir={name}", f"stderr={name}/log", f"method={method}"]
        if method == "ModelAveragingSGD":
            command += ["momentum=0"]  # a checkpoint has that of worker 0 alone
        self.path.mkdir(exist_ok=True)
        with self.console.open("a") as console:
            self.process = subprocess.Popen(command, cwd=folder, stdout=console, stderr=console)

    def workers(self) -> dict[int, int]:
        """Process numbers by rank, of those that have started."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                variables = dict(v.split("=", 1) for v in (folder / "environ").read_text().split("\0") if "=" in v)
                words = (folder / "cmdline").read_text().split("\0")
                here = (folder / "cwd").readlink() == self.path.parent
            except (OSError, UnicodeError):  # ended meanwhile, or not ours
                continue
            rank = next(filter(None, (variables.get(names[0]) for names in LAUNCHERS.values())), None)
            if rank is not None and here and "cntkpy" in words and f"RunDir={self.path.name}" in words:
                found[int(rank)] = int(folder.name)
        return found

    def results(self) -> dict[int, str]:
        """The line of every epoch in the log, times left out."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        found = ((re.search(r"Finished Epoch\[ *(\d+) of", line), line.rpartition("epochTime")[0]) for line in lines)
        return {int(match[1]): line for match, line in found if match}

    def wait_for(self, when: str, chance: random.Random) -> None:
        """Wait for a moment at random, or for the end."""
        epochs = chance.randrange(1, EPOCHS - 1)
        while self.process.poll() is None:
            if when == "starting" and len(self.workers()) == WORKERS:
                return time.sleep(chance.uniform(0, 10))
            if when != "starting" and len(self.results()) >= epochs:
                if when == "training":
                    return time.sleep(chance.uniform(0, 1))
                while self.process.poll() is None and not list(self.path.glob(".*.tmp")):
                    pass
                return None
            time.sleep(0.02)
        return None

    def wait(self, seconds: float) -> int | None:
        """The exit status; `None` if it had to be killed after that time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None


def broken_files(path: Path) -> list[str]:
    """What is wrong with models and checkpoints."""
    found = []
    for file in sorted(path.glob("m*")):
        try:
            if file.suffix == ".ckp":
                Checkpoint.load(str(file))
            elif file.suffix == ".partial":
                Checkpoint.load(str(file), INSIDE)
            else:
                load_model(str(file), "double")
        except Exception as error:
            found.append(f"{file.name}: {error}")
    return found


def difference(one: Path, other: Path) -> float:
    """The largest difference of two models, relative to the largest element of each parameter."""
    first, second = (load_model(str(path / "m"), "double") for path in (one, other))
    pairs = [(node.value, second.nodes[name].value) for name, node in first.nodes.items() if node.value is not None]
    return max(float(np.abs(b - a).max() / np.abs(a).max()) for a, b in pairs if b is not None)


def undisturbed(folder: Path, method: str) -> Run:
    """A run to compare with."""
    run = Run(folder, f"whole_{method}", method, WORKERS, [])
    if run.wait(900) != 0:
        sys.exit(run.console.read_text())
    return run


def one_round(folder: Path, number: int, whole: Run, method: str, chance: random.Random, mpiexec: list[str]) -> bool:
    """One kill; prints a line, and returns whether all was well."""
    when = chance.choice(["starting", "training", "training", "writing", "writing"])
    rank, after = chance.randrange(WORKERS), chance.choice([3, 3, 1, 2, 4])
    run = Run(folder, f"kill{number}", method, WORKERS, mpiexec)
    run.wait_for(when, chance)
    workers = run.workers()
    if rank not in workers:
        print(f"{number:3} it has ended before it could be killed", flush=True)
        return False

    os.kill(workers[rank], signal.SIGKILL)
    killed, wrong = time.monotonic(), []
    status = run.wait(LIMIT)
    seconds = time.monotonic() - killed
    while (left := [pid for pid in workers.values() if Path(f"/proc/{pid}").exists()]) and mpiexec:
        if time.monotonic() > killed + LIMIT:  # mpiexec itself ends a little earlier than its processes
            break
        time.sleep(0.1)
    if left:
        wrong.append(f"left running: {left}")
    if status is None or status == 0 or (status != 1 and not mpiexec):
        wrong.append(f"exit status {status}")
    if not mpiexec and f"worker {rank} of 3 (process {workers[rank]}) was killed" not in run.console.read_text():
        wrong.append("the console does not name it")
    wrong += broken_files(run.path)
    done = run.results()

    again = Run(folder, run.path.name, method, after, mpiexec)
    ended, far = again.wait(900), float("nan")
    if ended == 0:
        far = difference(whole.path, again.path)
        equal = far <= 1e-9 and whole.results() == done | again.results()
        if (method == "DataParallelSGD" or after == WORKERS) and not equal:
            wrong.append("another result")
    else:
        wrong.append(f"the resumed run ended with {ended}")
    print(
        f"{number:3} {method:17} {when:8} worker {rank} in epoch {len(done) + 1}: "
        f"ended in {seconds:4.1f} s with {status}; resumed by {after}, difference {far:.1e}",
        *wrong,
        sep="  !! ",
        flush=True,
    )
    return not wrong


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs keep their files; they should not be there yet")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", nargs="+", default=["DataParallelSGD"])
    parser.add_argument("--mpiexec", type=shlex.split, default=[], help="for instance 'mpiexec --oversubscribe'")
    given = parser.parse_args()
    folder = given.folder.resolve()
    prepare(folder)
    whole = {method: undisturbed(folder, method) for method in given.method}
    good = []
    for number in range(given.kills):
        chance, method = random.Random(f"{given.seed}/{number}"), given.method[number % len(given.method)]
        good.append(one_round(folder, number, whole[method], method, chance, given.mpiexec))
    print(f"{sum(good)} of {len(good)} rounds were as they should be")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
