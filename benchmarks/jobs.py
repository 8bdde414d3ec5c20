"""Two whole jobs, from the command to a test error: `cntkpy` with a configuration, PyTorch with a program by hand.

    BENCHMARK_SITE=... python benchmarks/jobs.py [--minutes 5] [--rounds 1] [--data DIR] [--jobs digits slots]

`digits`: a convolutional network in NDL on pictures of 28 x 28, SGD with momentum. `slots`: an LSTM in BrainScript that
tags the words of questions, FSAdaGrad. Each program is a process of its own, in turns, on all cores: it starts, reads
its data, trains, computes the error on the test data after every epoch, and saves its state. The clock stops when
it prints an error of at most the goal. `cntkpy` reads text and compiles with an empty cache; PyTorch reads arrays that
were made before, which is faster. Errors per epoch of each run go to stderr.

`--minutes` is about how long a program runs. Up to 1 it sets the amount of data, up to 4 the widths of the networks;
above, rates are lower, and the goal takes more epochs. The table says what was trained.
`--data` is a folder with the files of CNTK's samples (`Train-28x28_cntk_text.txt`, `Test-28x28_cntk_text.txt`,
`atis.train.ctf`, `atis.test.ctf`); what it lacks is generated. PyTorch is left out where it is not installed, see
peers.py.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jobs_data
import numpy as np
import peers

HERE = Path(__file__).resolve().parent
OURS, PEER = "cntkpy", "PyTorch"
ERROR = {
    OURS: re.compile(r"^Finished Epoch\[ *\d+ of \d+\]: \[Validate\] .*errs = ([0-9.]+)% "),
    PEER: re.compile(r"^epoch \d+ error ([0-9.e-]+)$"),
}


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        title: what the table calls it.
        goals: the test errors to reach, fractions: with generated data, with those of CNTK's samples.
        epochs: the most that are trained.
        rates: learning rates and for how many epochs each holds; the last one holds on.
        counts: samples of the training and of the test data, sequences where they are such.
        widths: of the network up to 1 minute, with the names that the configuration has for them.
        settings: the other values that the configuration needs, from these and the seed.
        load, write: where the data come from, and how they are written (see jobs_data.py).
    """

    title: str
    goals: tuple[float, float]
    epochs: int
    rates: tuple[tuple[float, int], ...]
    counts: dict[str, int]
    widths: dict[str, int]
    settings: Callable[[dict[str, int], int], dict[str, int]]
    load: Callable[[Path | None, str, int], Any]
    write: Callable[[Any, np.ndarray, Path], None]


JOBS = {
    "digits": Job(
        "digits, {Maps} and {Maps2} maps, {Hidden} hidden",
        (0.04, 0.01),
        20,
        ((0.1, 1),),
        {"train": 60000, "test": 10000},
        {"Maps": 16, "Hidden": 128},
        lambda w, seed: {"Maps2": 2 * w["Maps"], "Fan2": 25 * w["Maps"], "Width": 32 * w["Maps"], "Seed": 100 * seed},
        jobs_data.digits,
        lambda data, order, place: jobs_data.write_digits(data[0][order], data[1][order], place),
    ),
    "slots": Job(
        "slots, vectors of {Vector}, {Cells} cells",
        (0.04, 0.034),
        20,
        ((0.003, 2), (0.0015, 1)),
        {"train": 4978, "test": 893},
        {"Vector": 150, "Cells": 300},
        lambda w, seed: {},
        jobs_data.sentences,
        lambda data, order, place: jobs_data.write_sentences([data[k] for k in order], place),
    ),
}


@dataclass(frozen=True)
class Run:
    """What a process used until it reached the goal, or until its last epoch."""

    seconds: float
    processor: float
    memory: float
    errors: tuple[float, ...]


@dataclass(frozen=True)
class Size:
    """How large the job is, from the minutes that a program shall run."""

    minutes: float

    @property
    def data(self) -> float:
        """Fraction of the data."""
        return min(1.0, self.minutes)

    @property
    def slower(self) -> float:
        """By what rates are divided, and how many times as many epochs a rate holds."""
        return max(1.0, self.minutes / 4)

    def widths(self, job: Job) -> dict[str, int]:
        """The widths of the network: products of matrices grow with their square."""
        return {name: max(4, round(width * min(4.0, self.minutes) ** 0.5)) for name, width in job.widths.items()}

    def rates(self, job: Job) -> str:
        """The learning rates, as CNTK writes values per epoch."""
        return ":".join(f"{rate / self.slower:.6g}*{round(epochs * self.slower)}" for rate, epochs in job.rates)


def write_data(job: Job, name: str, folder: Path | None, place: Path, size: Size, seed: int) -> None:
    """The data of both programs; the seed decides on the order of the training data in the file."""
    for part, count in job.counts.items():
        data = job.load(folder, part, max(20, round(count * size.data)))
        total = len(data[1]) if isinstance(data, tuple) else len(data)
        order = np.random.default_rng(seed).permutation(total) if part == "train" else np.arange(total)
        job.write(data, order, place / f"{name}.{part}")


def command(program: str, name: str, data: Path, place: Path, epochs: int, size: Size, seed: int) -> list[str]:
    """What is run."""
    job = JOBS[name]
    wide, rates = size.widths(job), size.rates(job)
    if program == PEER:
        words = [name, data, place, epochs, seed, rates, *wide.values()]
        return [sys.executable, str(HERE / "jobs_by_hand.py"), *map(str, words)]
    settings = {"DataDir": data, "RunDir": place, "Epochs": epochs, "Rates": rates, **wide, **job.settings(wide, seed)}
    words = [f"{key}={value}" for key, value in settings.items()]
    return [sys.executable, "-m", "cntkpy", f"configFile={HERE}/configs/{name}.cntk", *words]


def run(program: str, words: list[str], environment: dict[str, str], goal: float) -> Run:
    """Run a program until it prints an error of at most the goal, or ends.

    Raises:
        RuntimeError: it fails, or prints no error; with what it printed.
    """
    errors: list[float] = []
    said: list[str] = []
    scale = 0.01 if program == OURS else 1.0
    began = last = time.perf_counter()
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, env=environment, **streams) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if found := ERROR[program].match(line):
                last = time.perf_counter()
                errors.append(scale * float(found[1]))
                if errors[-1] <= goal:
                    process.kill()  # the clock stops here
                    break
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not errors or (errors[-1] > goal and process.returncode):
        raise RuntimeError(f"{' '.join(words)} failed with {process.returncode}:\n{''.join(said[-20:])}")
    return Run(last - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, tuple(errors))


def goal_of(name: str, given: argparse.Namespace) -> float:
    """The test error to reach."""
    there = given.data is not None and (given.data / jobs_data.FILES[name]["train"]).is_file()
    return JOBS[name].goals[there] if given.goal is None else given.goal


def rounds(name: str, given: argparse.Namespace, programs: list[str]) -> dict[str, list[Run]]:
    """The runs of every program, in turns; every round has a seed of its own."""
    job, size = JOBS[name], Size(given.minutes)
    epochs = given.epochs or round(job.epochs * size.slower)
    found: dict[str, list[Run]] = {program: [] for program in programs}
    for seed in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "data")
            data.mkdir()
            write_data(job, name, given.data, data, size, seed)
            for program in programs:
                place = Path(folder, program)
                place.mkdir()
                cache = {"XDG_CACHE_HOME": str(place / "cache")}
                words = command(program, name, data, place, epochs, size, seed)
                one = run(program, words, {"OMP_WAIT_POLICY": "passive"} | os.environ | cache, goal_of(name, given))
                found[program].append(one)
                shown = " ".join(f"{100 * error:.2f}" for error in one.errors)
                sys.stderr.write(f"{name} {program} seed {seed}: {one.seconds:.1f} s, {one.processor:.1f} s, {shown}\n")
    return found


def table(title: str, found: dict[str, list[Run]]) -> list[str]:
    """The lines of one job."""
    lines: list[str] = []
    for program, runs in found.items():
        cells = [
            f"{statistics.median(one.seconds for one in runs):.1f}",
            f"{statistics.median(one.processor for one in runs):.1f}",
            f"{statistics.median(len(one.errors) for one in runs):.0f}",
            f"{100 * statistics.median(one.errors[-1] for one in runs):.2f} %",
            f"{statistics.median(one.memory for one in runs):.0f}",
        ]
        pairs = list(zip(runs, found.get(PEER, []), strict=False)) if program != PEER else []
        cells.append(f"{statistics.median(a.seconds / b.seconds for a, b in pairs):.2f}" if pairs else "")
        cells.append(f"{statistics.median(a.processor / b.processor for a, b in pairs):.2f}" if pairs else "")
        cells.append(f"{statistics.median(a.memory / b.memory for a, b in pairs):.2f}" if pairs else "")
        lines.append(f"| {title} | {program} | {' | '.join(cells)} |")
    return lines


def title_of(name: str, size: Size) -> str:
    """What the table calls a job."""
    job = JOBS[name]
    wide = size.widths(job)
    return job.title.format(**wide, **job.settings(wide, 0))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=5.0, help="about how long each program runs")
    options.add_argument("--rounds", type=int, default=1, help="runs of each program, each with a seed of its own")
    options.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    options.add_argument("--data", type=Path, help="folder with the data of CNTK's samples")
    options.add_argument("--epochs", type=int, help="the most epochs (default: the job's)")
    options.add_argument("--goal", type=float, help="test error to reach, a fraction (default: the job's)")
    given = options.parse_args()
    programs = [OURS, PEER] if peers.available("torch") else [OURS]
    size = Size(given.minutes)
    lines = [line for name in given.jobs for line in table(title_of(name, size), rounds(name, given, programs))]
    print("## Whole jobs")
    goals = " and ".join(f"{100 * goal_of(name, given):g} %" for name in given.jobs)
    data = "with the data of CNTK's samples where they are there" if given.data else "on generated data"
    print(
        f"One process each, from its start to a test error of {goals}, or to its last epoch, {data}; the "
        f"error is computed, and files are written, after every epoch. {OURS} reads text and compiles with "
        f"an empty cache, {PEER} reads arrays made before. `--minutes {given.minutes:g}`, medians of {given.rounds}.\n"
    )
    ratios = "| / PyTorch | / PyTorch, processor | / PyTorch, peak |"
    print(f"| job | program | seconds | processor seconds | epochs | error | peak MB {ratios}")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
