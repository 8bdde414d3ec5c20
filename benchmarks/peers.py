"""What benchmarks share that compare with a peer: where its package is, and how times of rounds become a ratio."""

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

SITE = "BENCHMARK_SITE"
"""Variable of the environment with folders of packages: `pip install --target FOLDER torch grain pysimdjson`."""


class Seconds(NamedTuple):
    """By the clock, and of the processor by all threads of this process and by processes that it waited for."""

    clock: float
    processor: float


def available(package: str) -> bool:
    """Whether a package can be imported, from now on also out of the folders of `SITE`, which are looked at last."""
    sys.path += [folder for folder in os.environ.get(SITE, "").split(os.pathsep) if folder and folder not in sys.path]
    return importlib.util.find_spec(package) is not None


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def timed(call: Callable[[], object]) -> Seconds:
    """Seconds of a call."""
    began, worked = time.perf_counter(), time.process_time() + of_children()
    call()
    return Seconds(time.perf_counter() - began, time.process_time() + of_children() - worked)


def sweep(reader: Any, size: int = 256) -> None:
    """Read one sweep in minibatches, and close the reader."""
    reader.start_minibatch_loop(size, 0)
    while reader.get_minibatch() is not None:
        pass
    reader.close()


def in_turns(calls: dict[str, Callable[[], object]], repeat: int) -> dict[str, list[Seconds]]:
    """Seconds of each call, the calls taking turns; the first round, which compiles, is not counted."""
    found: dict[str, list[Seconds]] = {name: [] for name in calls}
    for _ in range(repeat + 1):
        for name, call in calls.items():
            found[name].append(timed(call))
    return {name: seconds[1:] for name, seconds in found.items()}


def median(seconds: Sequence[Seconds]) -> float:
    """Of the seconds by the clock."""
    return statistics.median(one.clock for one in seconds)


def of_children() -> float:
    """Seconds of processor time of the processes that were started and have ended."""
    import resource  # not on Windows

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ratio(ours: Sequence[Seconds], theirs: Sequence[Seconds]) -> str:
    """A cell: the medians of the ratios of each round, by the clock and, in brackets, of the processor.

    It is empty if the peer has no times.
    """
    pairs = list(zip(ours, theirs, strict=False))
    if not pairs:
        return ""
    clock, processor = (statistics.median(a[k] / b[k] for a, b in pairs) for k in range(2))
    return f"{clock:.2f} ({processor:.2f})"


def options(about: str | None, cases: list[str], rounds: int, seconds: float) -> argparse.ArgumentParser:
    """The options of a benchmark that trains networks in rounds."""
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("cases", nargs="*", default=cases, metavar="CASE", help=f"of {', '.join(cases)} (default: all)")
    found.add_argument("--rounds", type=int, default=rounds, help="measurements, of which the median is taken")
    found.add_argument("--seconds", type=float, default=seconds, help="about how long one takes")
    return found
