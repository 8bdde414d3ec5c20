"""Cases of one target, run in a forked process with limits on time and memory.

The parent imports cntkpy once and forks; a child runs many cases and reports each. A child that dies, or that takes
longer than allowed, costs only the case it was at.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import re
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.fuzz.console import run_words
from tools.fuzz.mutate import lengthened, mutated
from tools.fuzz.targets import Target

TIME, TIME_PER_BYTE = 2.0, 60e-6
"""Seconds of work that one case may take, and for each byte of its input: everything takes linear time."""
FIRST = 8.0
"""Seconds more for the first case of a process, which loads kernels and libraries."""
IDLE = 6
"""How many times as long it may sleep; the time in which other programs have the processors does not count."""
MEMORY = 1 << 30
"""Bytes that a case may ask for beyond what the process holds."""
DEFECT = "This is a defect of cntkpy"


@dataclass(frozen=True)
class Outcome:
    """What became of a case: `failure` says what is wrong, or is empty; `signature` tells kinds of outcomes apart."""

    data: bytes
    failure: str
    signature: str


def tried(target: Target, data: bytes) -> tuple[str, str]:
    """Run one case in the current folder; return its failure (or nothing) and its signature."""
    for name, content in target.files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path(target.file).write_bytes(data)
    seen = []
    if target.call is not None:
        from cntkpy.cntk_config.base.diagnostics import UserError

        try:
            target.call(target.file)
            seen.append("read")
        except (UserError, FileNotFoundError) as error:
            seen.append(_signature(f"{type(error).__name__} {error}"))
        except BaseException:
            text = traceback.format_exc()
            return f"{target.name}: traceback\n{text}", _signature(text)
    for words in target.words:
        for name in ("out.npz", "o.ctf"):
            Path(name).unlink(missing_ok=True)
        try:
            status, printed = run_words(words)
        except BaseException:
            text = traceback.format_exc()
            return f"{words[0]}: traceback\n{text}", _signature(text)
        if DEFECT in printed or "Traceback (most recent call last)" in printed:
            return f"{words[0]}: traceback\n{printed}", _signature(printed)
        if status not in (0, 1, 2):
            return f"{words[0]}: exit status {status}\n{printed}", f"status {status}"
        if status and not printed.strip():
            return f"{words[0]}: exit status {status} and no message", "silent"
        seen.append(f"{status} {_signature(printed)}")
    return "", " | ".join(seen)


def _signature(text: str) -> str:
    """The last lines of a message without its numbers, names and places."""
    lines = [line for line in text.strip().splitlines() if line.strip()][-3:]
    return re.sub(r"[0-9]+|'[^']*'|\"[^\"]*\"|`[^`]*`|\S*/\S*", "_", " ".join(lines))[:300]


def _child(target: Target, inputs: Sequence[tuple[int, bytes]], link: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        limited = False
        for number, data in inputs:
            link.send(("begin", number))
            failure, signature = tried(target, data)
            link.send(("end", number, failure, signature))
            if not limited:  # what the first case loads (kernels, libraries) is not counted
                held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
                limited = True
    link.send(("done",))


def run_inputs(target: Target, inputs: Sequence[bytes]) -> Iterator[Outcome]:
    """Run inputs in forked processes, and give their outcomes as they come.

    Args:
        target: what reads them.
        inputs: the contents of the mutated file.
    """
    fork = multiprocessing.get_context("fork")
    rest = list(enumerate(inputs))
    while rest:
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_child, args=(target, rest, there), daemon=True)
        child.start()
        there.close()
        current: int | None = None
        begun = time.monotonic()
        try:
            while True:
                at = rest[0][0] if current is None else current
                limit = TIME + TIME_PER_BYTE * len(inputs[at])
                _wait(here, child.pid or 0, limit + FIRST if at == rest[0][0] else limit)
                message = here.recv()
                if message[0] == "done":
                    rest = []
                    break
                current = int(message[1])
                if message[0] == "end":
                    yield Outcome(inputs[current], message[2], message[3])
        except (EOFError, TimeoutError) as error:
            child.kill()
            child.join(5)
            if current is None:
                raise RuntimeError(f"{target.name}: the process ended before its first case") from error
            late = isinstance(error, TimeoutError)
            what = "more time than its size allows" if late else f"the process died ({child.exitcode})"
            yield Outcome(inputs[current], f"{what} (after {time.monotonic() - begun:.0f} s)", what)
            rest = [one for one in rest if one[0] > current]
        finally:
            child.join(5)
            here.close()


def _wait(link: Any, process: int, limit: float) -> None:
    """Wait for a message; TimeoutError if the process has worked, or slept, too long for it."""
    begun, slept = _work(process)[0], 0.0
    while not link.poll(limit / 10):
        worked, is_asleep = _work(process)
        slept += limit / 10 * is_asleep
        if worked - begun > limit or slept > IDLE * limit:
            raise TimeoutError


def _work(process: int) -> tuple[float, bool]:
    """Return the seconds that a process has worked, and whether it now waits for something else than a processor."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, True
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] != "R"


def cases(seeds: Sequence[bytes], target: Target, seed: str, count: int, long: bool = False) -> list[bytes]:
    """Mutated inputs: a function of the seeds and of the text `seed`; with `long`, one long repetition in each."""
    draw = random.Random(hashlib.sha256(seed.encode()).digest())
    if long:
        return [lengthened(draw.choice(seeds), draw) for _ in range(count)]
    return [mutated(draw.choice(seeds), seeds, draw, target.text) for _ in range(count)]
