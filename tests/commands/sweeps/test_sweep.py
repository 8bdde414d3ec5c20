"""`cntkpy sweep`: trials in folders of their own, resumed after a kill, each written down once."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import small_classification as small
from sweep_processes import STARTED, rows, until

from cntkpy.commands.sweeps.rows import Row, Rows
from cntkpy.commands.sweeps.running import describe, shown_values

WORDS = ("m.cntk", "train/SGD/learningRatesPerSample=0.01,0.05")


def epochs(folder: Path, number: int) -> list[int]:
    """The epochs that a trial has finished, in the order of its event log."""
    path = folder / str(number) / "log.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [event["epoch"] for event in events if event["event"] == "epoch finished"]


TEST = "test = [ action = test ; minibatchSize = 7 ]\n"


def test_a_grid(cntkpy, tmp_path: Path) -> None:
    words = (*WORDS, "train/SGD/minibatchSize=zip(10, 20)", "train/SGD/momentumPerMB=zip(0, 0.5:0.9)")
    got = cntkpy("sweep", *words, "command=train:test", "--criterion", "test:err", files=small.files(TEST))
    assert got.code == 0, got.err
    folder = tmp_path / "sweeps" / "m"
    found = rows(folder)
    values = [tuple(row["values"].values()) for row in found]
    assert values == [("0.01", "10", "0"), ("0.01", "20", "0.5:0.9"), ("0.05", "10", "0"), ("0.05", "20", "0.5:0.9")]
    for number, row in enumerate(found):
        trial = folder / str(number)
        assert (row["number"], row["state"], row["epochs"], row["error"]) == (number, "finished", 3, "")
        assert row["criterion"] == pytest.approx(small.errors(small.model(trial / "m")), abs=1e-9)
        assert {"config.resolved.cntk", "log", "log.jsonl", "m", "m.0"} <= {path.name for path in trial.iterdir()}
        assert not (trial / "output").exists()
        again = cntkpy("show", str(trial / "config.resolved.cntk"), "train/SGD/learningRatesPerSample")
        assert again.out.strip().endswith(row["values"]["train/SGD/learningRatesPerSample"])
    assert not (tmp_path / "run").exists()  # where the configuration would have written its model
    best = min(found, key=lambda row: row["criterion"])
    assert f"best: trial {best['number']}, {best['criterion']:.6g} (err of test)" in got.out
    again = cntkpy("sweep", *words, "command=train:test", "--criterion", "test:err")
    assert again.code == 0 and "4 trials in sweeps/m, 4 have ended before" in again.out
    assert rows(folder) == found


@pytest.mark.thorough
def test_killed_twice_each_trial_is_run_once(tmp_path: Path, cntkpy_process) -> None:
    """First only the sweep is killed, and its trial notices; then both are, in the middle of an epoch perhaps."""
    for name, text in small.files("").items():
        (tmp_path / name).write_text(text)
    words = ["sweep", "m.cntk", "train/SGD/maxEpochs=40", "train/SGD/learningRatesPerSample=0.01,0.02,0.03", "-o", "s"]
    folder = tmp_path / "s"

    def start() -> subprocess.Popen:
        command = [sys.executable, "-m", "cntkpy", *words]
        STARTED.append(subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stdout=subprocess.DEVNULL))
        return STARTED[-1]

    def wait(number: int) -> None:
        until(lambda: len(rows(folder)) >= number and len(epochs(folder, number)) > 3)

    process = start()
    wait(0)
    process.kill()
    process.wait()
    process = start()
    wait(1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    first = (folder / "0" / "log").stat().st_mtime_ns
    got = cntkpy_process(*words)
    assert got.code == 0, got.err
    assert [row["number"] for row in rows(folder)] == [0, 1, 2]
    assert {row["state"] for row in rows(folder)} == {"finished"}
    assert (folder / "0" / "log").stat().st_mtime_ns == first
    for number in range(3):
        found = epochs(folder, number)
        assert sorted(set(found)) == list(range(1, 41)) and len(found) <= 41  # an epoch whose model was not saved
        assert rows(folder)[number]["epochs"] == 40
        assert not list((folder / str(number)).glob("*.before"))


@pytest.mark.thorough
def test_a_trial_that_fails_is_a_row(cntkpy, tmp_path: Path) -> None:
    """The second rate makes the criterion infinite; the sweep goes on."""
    got = cntkpy("sweep", "m.cntk", "train/SGD/learningRatesPerSample=1e308,0.05", files=small.files(""))
    assert got.code == 0, got.err
    failed, finished = rows(tmp_path / "sweeps" / "m")
    assert failed["state"] == "failed" and failed["criterion"] is None and finished["state"] == "finished"
    assert "not a number" in failed["error"] or "infinite" in failed["error"]
    assert "trial 0 of 2: failed" in got.out and "1 finished, 1 failed" in got.out


@pytest.mark.thorough
def test_no_trial_finishes(cntkpy, tmp_path: Path) -> None:
    """The network has the node, but the training does not report it."""
    got = cntkpy("sweep", *WORDS, "--criterion", "z", files=small.files(""))
    assert got.code == 1
    assert {row["error"] for row in rows(tmp_path / "sweeps" / "m")} == {
        "train reports no node 'z'; it reports ce, err"
    }


def test_optuna_is_not_installed(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "cntkpy.commands.sweeps.optuna_study", raising=False)
    monkeypatch.delattr("cntkpy.commands.sweeps.optuna_study", raising=False)
    for option, what in (
        (["--sampler", "tpe", "--trials", "2"], "--sampler tpe"),
        (["--pruner", "median"], "--pruner"),
    ):
        got = cntkpy("sweep", *WORDS, *option, files=small.files(""))
        assert got.code == 1 and f"{what} needs optuna, which is not installed" in got.err
        assert "help: add the extra sweep: " in got.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["m.cntk", "train/SGD/maxEpochs=2,x"], "'x' is not an integer"),
        (["m.cntk", "train/SGD/maxEpoch=2,3"], "maxEpoch"),
        (["m.cntk", "reader=[file=data.ctf]", "reader/file=data.ctf,other.ctf"], "other.ctf"),
        (["m.cntk", "train/SGD/maxEpochs=2"], "no word of this sweep has a choice"),
        (["m.cntk", "n.cntk", "a=1,2"], "a sweep has one configuration"),
        (["m.cntk", "train/SGD/maxEpochs=range(1, 5)", "--trials", "3"], "a grid has as many trials as combinations"),
        (["m.cntk", "train/SGD/maxEpochs=1,2", "--sampler", "random"], "needs a number of trials"),
        (["m.cntk", "train/SGD/maxEpochs=1,2", "--criterion", "tset:err"], "no command 'tset' is listed"),
        (["m.cntk", "train/SGD/maxEpochs=1,2", "--criterion", "er"], "help: did you mean 'err'?"),
    ],
)
def test_mistakes_are_found_before_any_trial(cntkpy, tmp_path: Path, words: list[str], part: str) -> None:
    got = cntkpy("sweep", *words, files=small.files(""))
    assert got.code == 2 and part in got.err
    assert not (tmp_path / "sweeps").exists()


def test_a_value_that_is_wrong_is_named(cntkpy) -> None:
    got = cntkpy("sweep", "m.cntk", "train/SGD/maxEpochs=2,x,y", files=small.files(""))
    assert (
        "in the trials with train/SGD/maxEpochs=x" in got.err and "in the trials with train/SGD/maxEpochs=y" in got.err
    )


@pytest.mark.thorough
def test_another_sweep_in_the_same_folder(cntkpy) -> None:
    assert cntkpy("sweep", "m.cntk", "train/SGD/maxEpochs=1,2", files=small.files("")).code == 0
    got = cntkpy("sweep", "m.cntk", "train/SGD/maxEpochs=1,3")
    assert got.code == 2 and "another sweep has begun in sweeps/m; it differs in its words" in got.err
    assert "it began with: configFile=m.cntk train/SGD/maxEpochs=1,2" in got.err
    got = cntkpy("sweep", "m.cntk", "train/SGD/maxEpochs=1,2", files=small.files("# more\nunused = 5\n"))
    assert got.code == 2 and "it differs in its configuration" in got.err and "undo the change" in got.err


def test_rows_that_cannot_be_written(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "s" / "trials.jsonl").mkdir(parents=True)
    got = cntkpy("sweep", *WORDS, "-o", "s", files=small.files(""))
    assert got.code == 1 and "error: the sweep cannot go on: " in got.err and "trials.jsonl: " in got.err


@pytest.mark.thorough
def test_random_search_goes_on_with_more_trials(cntkpy, tmp_path: Path) -> None:
    words = ("sweep", "m.cntk", "train/SGD/learningRatesPerSample=range(0.001, 0.1, log)", "--sampler", "random")
    assert cntkpy(*words, "--trials", "2", files=small.files("")).code == 0
    before = rows(tmp_path / "sweeps" / "m")
    assert cntkpy(*words, "--trials", "3").code == 0
    found = rows(tmp_path / "sweeps" / "m")
    assert found[:2] == before and [row["number"] for row in found] == [0, 1, 2]
    assert len({row["values"]["train/SGD/learningRatesPerSample"] for row in found}) == 3


@pytest.mark.thorough
def test_two_jobs(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("sweep", "--jobs", "2", "m.cntk", "train/SGD/maxEpochs=1,2,3", files=small.files(""))
    assert got.code == 0, got.err
    assert sorted(row["number"] for row in rows(tmp_path / "sweeps" / "m")) == [0, 1, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_signal_ends_the_trials_which_resume(tmp_path: Path, cntkpy_process, number: int) -> None:
    for name, text in small.files("").items():
        (tmp_path / name).write_text(text)
    words = ["sweep", "m.cntk", "train/SGD/maxEpochs=40", "train/SGD/learningRatesPerSample=0.01,0.02", "-o", "s"]
    command = [sys.executable, "-m", "cntkpy", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    STARTED.append(process)
    until(lambda: len(epochs(tmp_path / "s", 0)) > 3)
    process.send_signal(number)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number and "the same command goes on with s\n" in err
    assert rows(tmp_path / "s") == [] and len(epochs(tmp_path / "s", 0)) < 40
    assert cntkpy_process(*words).code == 0
    assert epochs(tmp_path / "s", 0) == list(range(1, 41))


@pytest.mark.thorough
def test_an_array_job(cntkpy, tmp_path: Path) -> None:
    """Two tasks of the array, as Slurm would start them, share the trials."""
    words = ("m.cntk", "train/SGD/learningRatesPerSample=0.01,0.02,0.03", "-o", "a b")
    got = cntkpy("sweep", "--slurm", "--jobs", "2", *words, files=small.files(""))
    assert got.code == 0, got.err
    assert got.out.strip() == "a b/sweep.slurm: 2 tasks run 3 trials; submit it with sbatch"
    script = tmp_path / "a b" / "sweep.slurm"
    assert "#SBATCH --array=0-1\n" in script.read_text() and rows(tmp_path / "a b") == []
    slurm = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_JOB_ID": "7"}
    tasks = [
        subprocess.Popen(["sh", str(script)], cwd="/", env=os.environ | slurm, stdout=subprocess.PIPE) for _ in "ab"
    ]
    STARTED.extend(tasks)
    said = [task.communicate(timeout=100)[0].decode() for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert sorted(row["number"] for row in rows(tmp_path / "a b")) == [0, 1, 2]
    assert sum(text.count("\ntrial ") for text in said) == 3
    again = cntkpy("sweep", "--join", "a b")
    assert again.code == 0 and "3 trials in a b, 3 have ended before" in again.out
    (tmp_path / "m.cntk").write_text(small.CONFIG.replace("minibatchSize = 10", "minibatchSize = 20"))
    again = cntkpy("sweep", "--join", "a b")
    assert again.code == 2 and "the configuration is not the one that the sweep began with" in again.err


def test_rows_survive_half_a_line(tmp_path: Path) -> None:
    table = Rows(tmp_path)
    assert table.read() == {}
    row = Row(0, "finished", {"a": "1"}, 0.5, 3, 1.25)
    table.append(row)
    with table.path.open("a") as file:
        file.write('{"number": 1, "sta')
    table.append(Row(2, "failed", {"a": "2"}, float("nan"), 0, 0.1, "no"))
    assert table.read() == {0: row, 2: Row(2, "failed", {"a": "2"}, None, 0, 0.1, "no")}


@pytest.mark.thorough
def test_a_terminal_shows_what_is_running(tmp_path: Path) -> None:
    for name, text in small.files("").items():
        (tmp_path / name).write_text(text)
    words = ["sweep", "m.cntk", "train/SGD/maxEpochs=60,61", "--jobs", "2"]
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "cntkpy", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    STARTED.append(process)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while got := os.read(ours, 4096):
            seen += got
    assert process.wait(60) == 0
    text = seen.decode()
    assert "2 trials in sweeps/m" in text and "trial 1 of 2: " in text and "best: trial" in text
    assert re.search(r"trial 0: \d+ epochs(, [\d.]+)?; trial 1: \d+ epochs", text), text


def test_lines_of_trials() -> None:
    assert shown_values({"train/SGD/rate": "1", "b.c": "2"}) == "rate=1  c=2"
    assert shown_values({"train/SGD/rate": "1", "b.Rate": "2"}) == "train/SGD/rate=1  b.Rate=2"
    assert describe(Row(1, "finished", {"a": "1"}, 0.5, 3, 1.25), 4) == "trial 1 of 4: 0.5, 3 epochs, 1.2 s  a=1"
    assert (
        describe(Row(1, "pruned", {"a": "1"}, 0.5, 3, 1.25), 9)
        == "trial 1 of 9: 0.5, 3 epochs, 1.2 s, ended early  a=1"
    )
    assert describe(Row(1, "failed", {}, None, 0, 1, "bad\nmore"), 2) == "trial 1 of 2: failed after 1.0 s  \n  bad"


@pytest.mark.thorough
def test_the_greatest_value_is_the_best_and_trials_are_tracked_apart(cntkpy, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    words = (*WORDS, "train/SGD/maxEpochs=1", "tracking=[type=tensorboard;folder=tb]")
    got = cntkpy("sweep", *words, "--maximize", "--track", "tensorboard:more", files=small.files(""))
    assert got.code == 0, got.err
    found = rows(tmp_path / "sweeps" / "m")
    best = max(found, key=lambda row: row["criterion"])
    assert f"best: trial {best['number']}, {best['criterion']:.6g}" in got.out
    for place in ("tb", "more"):
        assert sorted(path.name for path in (tmp_path / place).iterdir()) == ["0", "1"]
        assert all(any((tmp_path / place / name).rglob("*tfevents*")) for name in ("0", "1"))
    other = cntkpy("sweep", *words)
    assert other.code == 2
    assert "it differs in --maximize" in other.err


def test_draws_of_whole_numbers_that_are_equal_are_trained_once(cntkpy, tmp_path: Path) -> None:
    words = ["sweep", "m.cntk", "train/SGD/maxEpochs=range(1, 2, log)", "--sampler", "random", "--trials", "4"]
    got = cntkpy(*words, files=small.files(""))
    assert got.code == 0, got.err
    trials = rows(tmp_path / "sweeps" / "m")
    assert len(trials) == 4
    trained = [trial for trial in trials if "same" not in trial]
    assert len({trial["values"]["train/SGD/maxEpochs"] for trial in trained}) == len(trained) <= 2
