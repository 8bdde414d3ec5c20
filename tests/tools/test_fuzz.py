"""The fuzzing harness itself, and every input that once failed."""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tools.fuzz import __main__ as harness
from tools.fuzz import worker
from tools.fuzz.mutate import mutated
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
    for number in range(100):
        mutated(b"", [b""], random.Random(number), text=True)


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
        (lambda: time.sleep(60), "more time than its size allows"),
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
    monkeypatch.setattr(worker, "IDLE", 2)
    monkeypatch.setattr(harness, "cases", lambda *given: [b"good", b"bad", b"good"])
    monkeypatch.setattr(harness, "_smaller", lambda target, data, signature: data)
    monkeypatch.setattr(harness, "KEPT", tmp_path / "kept")
    run = harness.Run(Target("t", "f", lambda: [b""], (["x"],)), None)
    run.batch("seed", 3, time.monotonic() + 60)
    assert (run.tried, run.failed) == (3, int(always))
    assert len(list((tmp_path / "kept").glob("*"))) == int(always)


def test_every_target_has_a_name_of_its_own() -> None:
    assert len({target.name for target in TARGETS}) == len(TARGETS)
