"""Try mutated inputs on everything that reads files.

    python -m tools.fuzz --seconds 120                    all targets in turn, with a fresh seed
    python -m tools.fuzz --target ndl --cases 10000       one of them
    python -m tools.fuzz --long --seconds 600             inputs with one piece repeated 50,000 times only
    python -m tools.fuzz --target ndl --repeat FILE       one input again

A failure is made smaller, and kept as tests/tools/fuzz/TARGET-HASH: `pytest tests/tools` runs it from then on.
Exit status 1 where anything failed.
"""

from __future__ import annotations

import hashlib
import os
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click

from tools.fuzz.targets import ROOT, TARGETS, Target, find
from tools.fuzz.worker import Outcome, cases, run_inputs, tried

KEPT = ROOT / "tests" / "tools" / "fuzz"
BATCH, LONG_BATCH = 20, 10  # few, so that a minute reaches every target
SMALLER_SECONDS = 30.0
"""Seconds in which a failing input is made smaller: where each try is slow, all of them would take an hour."""


@click.command(help=__doc__)
@click.option("--target", "names", multiple=True, type=click.Choice([one.name for one in TARGETS]), help="Only these.")
@click.option("--seconds", type=float, help="Stop after this time.")
@click.option("--cases", "count", type=int, default=0, help="Stop after so many cases of every target.")
@click.option("--seed", default="", help="Of the random numbers; told at the start. Default: a fresh one.")
@click.option("--long", is_flag=True, help="Only inputs with one piece repeated 50,000 times.")
@click.option("--repeat", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Run this input only.")
@click.option(
    "--corpus", type=click.Path(file_okay=False, path_type=Path), help="A folder that keeps inputs with new outcomes."
)
def main(
    names: tuple[str, ...],
    seconds: float | None,
    count: int,
    seed: str,
    long: bool,
    repeat: Path | None,
    corpus: Path | None,
) -> None:
    """Run the targets."""
    import cntkpy.commands.cli  # noqa: F401  imported before the processes are forked

    chosen = [find(name) for name in names] or list(TARGETS)
    if repeat is not None:
        failures = [one for one in run_inputs(chosen[0], [repeat.read_bytes()]) if one.failure]
        click.echo(failures[0].failure if failures else "no failure")
        sys.exit(bool(failures))
    seed = seed or secrets.token_hex(4)
    click.echo(f"seed {seed}")
    random.Random(seed).shuffle(chosen)  # where the time does not suffice for all, it is others in each run
    runs = [Run(target, corpus, long) for target in chosen]
    end = time.monotonic() + (seconds if seconds is not None else 1e9 if count else 60.0)
    number = 0
    while time.monotonic() < end and any(not count or run.tried < count for run in runs):
        for run in runs:
            if time.monotonic() >= end or (count and run.tried >= count):
                continue
            most = LONG_BATCH if long else BATCH
            run.batch(f"{seed}/{run.target.name}/{number}", min(most, count - run.tried) if count else most, end)
        number += 1
    for run in runs:
        click.echo(f"{run.target.name}: {run.tried} cases, {len(run.seen)} kinds of outcomes, {run.failed} failures")
    sys.exit(any(run.failed for run in runs))


class Run:
    """A target with its corpus, which grows by every input whose outcome is of a new kind."""

    def __init__(self, target: Target, corpus: Path | None, long: bool = False) -> None:
        self.long = long
        self.target, self.folder = target, None if corpus is None else corpus / target.name
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                self.corpus = list(target.seeds())
                tried(target, self.corpus[0])  # what it imports and compiles, the forked processes have
            finally:
                os.chdir(here)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.corpus += [path.read_bytes() for path in sorted(self.folder.iterdir())]
        self.seen: Counter[str] = Counter()
        self.tried = self.failed = 0

    def batch(self, seed: str, count: int, end: float) -> None:
        """Try so many cases."""
        for outcome in run_inputs(self.target, cases(self.corpus, self.target, seed, count, self.long)):
            self.tried += 1
            self.seen[outcome.signature] += 1
            if self.seen[outcome.signature] > 1:
                if time.monotonic() > end:
                    return
                continue
            if outcome.failure and self._fails_again(outcome):
                self.failed += 1
                self._keep(outcome.data, outcome.signature)
            elif outcome.failure:
                del self.seen[outcome.signature]
            elif len(outcome.data) < 100_000:
                self.corpus.append(outcome.data)
                if self.folder is not None:
                    (self.folder / _hash(outcome.data)).write_bytes(outcome.data)

    def _fails_again(self, outcome: Outcome) -> bool:
        """False where an input took too long once: it may have waited for a kernel to be compiled."""
        return not outcome.signature.startswith("more time") or bool(
            next(iter(run_inputs(self.target, [outcome.data]))).failure
        )

    def _keep(self, data: bytes, signature: str) -> None:
        small = _smaller(self.target, data, signature)
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"{self.target.name}-{_hash(small)}"
        path.write_bytes(small)
        outcome = next(iter(run_inputs(self.target, [small])))
        click.echo(f"\n{self.target.name}: {path}\n{outcome.failure}\n")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _smaller(target: Target, data: bytes, signature: str, most: int = 400) -> bytes:
    """Leave out pieces, large ones first, as long as the same failure comes."""
    size, tries = max(1, len(data) // 2), 0
    end = time.monotonic() + SMALLER_SECONDS
    while size and tries < most and time.monotonic() < end:
        at = 0
        while at < len(data) and tries < most and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            tries += 1
            outcome = next(iter(run_inputs(target, [shorter])))
            if outcome.failure and outcome.signature == signature:
                data = shorter
            else:
                at += size
        size //= 2
    return data


if __name__ == "__main__":
    main()
