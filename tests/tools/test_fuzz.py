"""The fuzzing harness itself, and every input that once failed."""

from __future__ import annotations

import faulthandler
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="the harness forks, and limits the memory of its processes")

from tools.fuzz import __main__ as harness
from tools.fuzz import worker
from tools.fuzz.mutate import TIMES, mutated
from tools.fuzz.targets import TARGETS, Target, find
from tools.fuzz.worker import cases, run_inputs, tried

KEPT = sorted((Path(__file__).parent / "fuzz").glob("*-*"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_an_input_that_once_failed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failure, _ = tried(find(path.name.rpartition("-")[0]), path.read_bytes())
    assert not failure, failure


@pytest.mark.parametrize("text", [True, False])
def test_mutations_are_a_function_of_the_seed(text: bool) -> None:
    target = Target("t", "f", list, (), text=text)
    made = cases([b"a = 1:2 # x\n", b"|x 0:1\n"], target, "s", 200)
    assert made == cases([b"a = 1:2 # x\n", b"|x 0:1\n"], target, "s", 200)
    assert len(set(made)) > 150


def test_an_empty_input_is_mutated_too() -> None:
    made = {mutated(b"", [b""], random.Random(number), text=True) for number in range(100)}
    assert len(made) > 10


def die() -> None:
    """As from a kernel that writes where it must not, but nothing of it in the log of the tests."""
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.filterwarnings("ignore:.*fork")  # JAX may be running here; a child neither uses it nor takes a lock of it
@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        (lambda: (2, "error: no"), ""),
        (lambda: (0, ""), ""),
        (lambda: (1, ""), "no message"),
        (lambda: (3, "odd"), "exit status 3"),
        (lambda: (1, "This is a defect of cntkpy, not of you"), "traceback"),
        (lambda: 1 // 0, "traceback"),
        (die, "the process died"),
        pytest.param(lambda: time.sleep(60), "more time than its size allows", marks=pytest.mark.thorough),
        (lambda: bytearray(3 << 30), "traceback"),
    ],
)
def test_what_counts_as_a_failure(behaviour, failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def run_words(words):
        seen.append(words)
        return behaviour() if Path("f").read_bytes() == b"bad" else (0, "")

    monkeypatch.setattr(worker, "run_words", run_words)
    monkeypatch.setattr(worker, "TIME", 1.0)
    monkeypatch.setattr(worker, "IDLE", 2)
    outcomes = list(run_inputs(Target("t", "f", lambda: [b""], (["x"],)), [b"good", b"bad", b"good"]))
    assert [one.data for one in outcomes] == [b"good", b"bad", b"good"]
    assert not outcomes[0].failure and not outcomes[2].failure
    assert failure in outcomes[1].failure
    assert bool(outcomes[1].failure) == bool(failure)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("always", [False, True])
def test_what_is_slow_once_may_have_waited_for_a_kernel(
    always: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow"

    def run_words(words):
        if Path("f").read_bytes() == b"bad" and (always or not slow.exists()):
            slow.touch()
            time.sleep(60)
        return 0, ""

    monkeypatch.setattr(worker, "run_words", run_words)
    monkeypatch.setattr(worker, "TIME", 0.2)
    monkeypatch.setattr(worker, "FIRST", 0.2)
    monkeypatch.setattr(worker, "IDLE", 2)
    monkeypatch.setattr(harness, "cases", lambda *given: [b"good", b"bad", b"good"])
    monkeypatch.setattr(harness, "_smaller", lambda target, data, signature: data)
    monkeypatch.setattr(harness, "KEPT", tmp_path / "kept")
    run = harness.Run(Target("t", "f", lambda: [b""], (["x"],)), None)
    run.batch("seed", 3, time.monotonic() + 60)
    assert (run.tried, run.failed) == (3, int(always))
    assert len(list((tmp_path / "kept").glob("*"))) == int(always)


A2 = re.compile(rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?")


def read_quadratic(file: str) -> None:
    """Read a number by the pattern of finding A2, in which two runs share the same digits."""
    A2.fullmatch(Path(file).read_bytes())


def read_linear(file: str) -> None:
    """The same with one run for the digits."""
    re.fullmatch(rb"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?", Path(file).read_bytes())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize(("read", "failure"), [(read_quadratic, "more time than its size allows"), (read_linear, "")])
def test_what_takes_quadratic_time_is_found(read, failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "TIME", 0.5)
    monkeypatch.setattr(worker, "TIME_PER_BYTE", 20e-6)
    target = Target("numbers", "f", lambda: [b"0"], (), call=read)
    long = [one for one in cases([b"0"], target, "seed", 200, long=True) if one.startswith(b"0" * TIMES + b"x")]
    assert long, "no mutation repeats the digit of the seed"
    outcomes = list(run_inputs(target, [b"0", long[0], b"0"]))
    assert [one.signature for one in outcomes] == ["read", failure or "read", "read"]


ONLY_REFUSED = ("check-data", "check-csv")
"""Targets whose seeds have something that is to be found."""


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_seed_is_read_to_its_end(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused at once hides everything after it from the mutations."""
    monkeypatch.chdir(tmp_path)
    seeds = target.seeds()
    kinds = [tried(target, seed) for seed in seeds]
    assert not any(failure for failure, _ in kinds)
    accepted = [kind for _, kind in kinds if kind == "read" or re.fullmatch(r"0[^|]*(?: \| 0[^|]*)*", kind)]
    assert accepted or target.name in ONLY_REFUSED, kinds


def test_every_target_has_a_name_of_its_own() -> None:
    assert len({target.name for target in TARGETS}) == len(TARGETS)
