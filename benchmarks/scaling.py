"""How many workers a network can keep busy: computed from its size, the time of a step and the links.

    python benchmarks/scaling.py

The model: each of K workers computes a minibatch of its own and waits until the sums are there. A ring all-reduce sends
2 (K - 1) messages of bytes / K one after the other (R. Thakur, R. Rabenseifner, W. Gropp, 2005), which takes
2 (K - 1) (latency + bytes / (K bandwidth)) seconds. `tests/commands/runner/test_machines.py` measures that a step sends
1.003 of these bytes. Model averaging and block momentum send the same bytes once in a block of samples.
"""

from typing import NamedTuple

WORKERS = (8, 64, 1024)
BLOCKS = {"DataParallelSGD": None, "ModelAveragingSGD": 40_000, "BlockMomentumSGD": 120_000}
"""Samples of a worker between two exchanges, the defaults; None: it exchanges in each step."""


class Link(NamedTuple):
    """A link: bits per second in each direction, and seconds until a message arrives."""

    name: str
    bandwidth: float
    latency: float


class Job(NamedTuple):
    """A training: its parameters, the bytes of each, the samples of a worker's minibatch, seconds of computing it."""

    name: str
    parameters: int
    minibatch: int
    seconds: float
    width: int = 4


LINKS = (
    Link("1 Gbit/s, 50 us", 1e9, 50e-6),
    Link("10 Gbit/s, 20 us", 1e10, 20e-6),
    Link("100 Gbit/s, 5 us", 1e11, 5e-6),
)
JOBS = (
    Job("DNN 363-512x3-132 on one core: 0.8 million parameters, 1,024 samples in 32 ms", 779_396, 1024, 0.032),
    Job("ResNet-50 on a GPU: 25.6 million parameters, 64 samples in 200 ms", 25_600_000, 64, 0.2),
)


def all_reduce_seconds(workers: int, size: int, link: Link) -> float:
    """Seconds of a ring all-reduce of `size` bytes over a link."""
    return 2 * (workers - 1) * (link.latency + 8 * size / (workers * link.bandwidth))


def efficiency(job: Job, workers: int, link: Link, block: int | None) -> float:
    """The part of the time in which a worker computes.

    Args:
        job: what is trained.
        workers: how many; each has a minibatch of its own.
        link: what connects a worker with the next one.
        block: samples of a worker between two exchanges; None for an exchange in each step.
    """
    steps = 1.0 if block is None else max(1.0, block / job.minibatch)
    computing = steps * job.seconds
    return computing / (computing + all_reduce_seconds(workers, job.width * job.parameters, link))


def table(job: Job) -> str:
    """The efficiency for each link, method and number of workers, in percent, as a table of Markdown."""
    heads = " | ".join(f"{workers:,} workers" for workers in WORKERS)
    lines = [f"| {job.name} | | {heads} |", "|---|---|" + "---:|" * len(WORKERS)]
    for link in LINKS:
        for method, block in BLOCKS.items():
            cells = " | ".join(f"{100 * efficiency(job, workers, link, block):.0f} %" for workers in WORKERS)
            lines.append(f"| {link.name} | `{method}` | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print("\n\n".join(table(job) for job in JOBS))
