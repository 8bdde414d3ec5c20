"""The lock beside a model: who holds it, stale ones, files of killed runs (R18 to R20)."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.systems.processes import start_of
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.trainers.checkpoints.checkpoint import remove_stale_partials
from cntkpy.trainers.checkpoints.lock import only_run_of

HOLD = """
import sys, time
from cntkpy.trainers.checkpoints.lock import only_run_of
with only_run_of(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def holding(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    return child


def test_the_second_run_is_told_who_holds_the_model(tmp_path: Path) -> None:
    path = tmp_path / "new" / "m"
    child = holding(path)
    try:
        with (
            pytest.raises(UserError, match=f"another run is training .*process {child.pid} on "),
            only_run_of(str(path)),
        ):
            pass
        with only_run_of(str(tmp_path / "new" / "other")):
            pass
    finally:
        child.kill()
        child.wait()
    assert (tmp_path / "new" / ".m.lock").exists()
    with only_run_of(str(path)):  # of a process that was killed
        assert json.loads((tmp_path / "new" / ".m.lock").read_text())["process"] == os.getpid()
    assert not list((tmp_path / "new").iterdir())


def test_a_lock_of_another_machine_that_nobody_holds_is_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".m.lock").write_text(json.dumps({"host": "elsewhere", "process": 7}))
    with only_run_of(str(tmp_path / "m")):
        pass
    assert "left behind by process 7 on elsewhere" in caplog.text


@pytest.mark.parametrize("running", [True, False])
def test_without_locks_of_the_system_what_the_file_says_decides(
    running: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cntkpy.cntk_config.base.systems.locks._module", lambda name: None)
    parent = os.getppid()
    started = start_of(parent) if running else "1"
    (tmp_path / ".m.lock").write_text(
        json.dumps({"host": platform.node(), "process": parent, "started": started, "since": "now"})
    )
    if running:
        with pytest.raises(UserError, match="another run is training"), only_run_of(str(tmp_path / "m")):
            pass
    else:
        with only_run_of(str(tmp_path / "m")):
            pass


@pytest.mark.parametrize("content", ["", "[]", "{", '{"process": "x"}'])
def test_a_lock_that_says_nothing_is_taken_over(content: str, tmp_path: Path) -> None:
    (tmp_path / ".m.lock").write_text(content)
    with only_run_of(str(tmp_path / "m")):
        assert json.loads((tmp_path / ".m.lock").read_text())["process"] == os.getpid()


@pytest.mark.skipif(os.name != "posix", reason="a file that is open cannot be renamed")
def test_temporary_files_of_killed_runs_go(tmp_path: Path) -> None:
    names = ["m", "m.0", "m.12.ckp", "m.1.partial", "m.ckp"]
    for name in names:
        with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / name):
            left = next(path for path in tmp_path.iterdir() if path.name.startswith("."))
            left.rename(tmp_path / f"keep-{left.name}")
            raise KeyboardInterrupt
    for path in tmp_path.iterdir():
        path.rename(tmp_path / path.name.removeprefix("keep-"))
    others = [".mm.abcdefgh.tmp", ".m.x.abcdefgh.tmp", "m.tmp", ".m.tmp"]
    for name in others:
        (tmp_path / name).touch()
    assert len(list(tmp_path.iterdir())) == len(names) + len(others)
    with only_run_of(str(tmp_path / "m")):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_a_folder_that_cannot_be_written_has_no_lock() -> None:
    with only_run_of("/proc/1/no/m"):
        assert not Path("/proc/1/no").exists()


def test_states_inside_other_epochs_go(tmp_path: Path) -> None:
    for name in ("m.0.partial", "m.1.partial", "m.12.partial", "mm.0.partial", "m.1"):
        (tmp_path / name).touch()
    remove_stale_partials(str(tmp_path / "m"), 1)
    assert {path.name for path in tmp_path.iterdir()} == {"m.1.partial", "mm.0.partial", "m.1"}
