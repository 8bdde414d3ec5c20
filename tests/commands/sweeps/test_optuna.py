"""`cntkpy sweep` with Optuna: samplers, pruners, storages, several processes on one study."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import small_classification as small
from sweep_processes import STARTED, rows, until

from cntkpy.cntk_config import UserError
from cntkpy.commands.sweeps import names
from cntkpy.commands.sweeps.plan import Plan
from cntkpy.commands.sweeps.rows import Row, Rows

optuna = pytest.importorskip("optuna")
from cntkpy.commands.sweeps import optuna_study  # noqa: E402 - it imports Optuna

RATES = "train/SGD/learningRatesPerSample=range(0.001, 0.1, log)"


def plan(*words: str, **more) -> Plan:
    made = Plan(tuple(words), "tpe", "none", 3, 0, "", "", "digest", "s")
    return replace(made, **more)


def row(number: int, criterion: float | None = 1.0, state="finished", error: str = "") -> Row:
    return Row(number, state, {}, criterion, 1, 1.0, error)


def test_names_of_samplers_and_pruners() -> None:
    assert tuple(optuna_study.SAMPLERS) == names.SAMPLERS and tuple(optuna_study.PRUNERS) == names.PRUNERS


def test_a_sampler_chooses_and_the_study_has_what_happened(cntkpy, tmp_path: Path) -> None:
    words = ("sweep", "m.cntk", RATES, "train/SGD/minibatchSize=10,20", "--sampler", "tpe", "--trials", "2")
    got = cntkpy(*words, files=small.files(""))
    assert got.code == 0, got.err
    found = rows(tmp_path / "sweeps" / "m")
    assert [one["state"] for one in found] == ["finished", "finished"]
    storage = optuna_study.open_storage(str(tmp_path / "sweeps/m/study.journal"))
    study = optuna.load_study(study_name="m", storage=storage)
    assert [trial.value for trial in study.trials] == [one["criterion"] for one in found]
    for trial, one in zip(study.trials, found, strict=True):
        assert one["values"]["train/SGD/minibatchSize"] == trial.params["train/SGD/minibatchSize"]
        assert float(one["values"]["train/SGD/learningRatesPerSample"]) == pytest.approx(
            trial.params["train/SGD/learningRatesPerSample"], rel=1e-9
        )
        assert list(trial.intermediate_values) == [1, 2, 3]  # a report of every epoch
    got = cntkpy(*words[:-1], "3")  # one more
    assert got.code == 0 and "3 trials in sweeps/m, 2 have ended before" in got.out
    assert [one["number"] for one in rows(tmp_path / "sweeps" / "m")] == [0, 1, 2]


@pytest.mark.thorough
def test_values_that_are_chosen_again_are_not_trained_again(cntkpy, tmp_path: Path) -> None:
    """With few choices TPE repeats them (U9): the outcome of the first trial is that of the others."""
    words = ("sweep", "m.cntk", "train/SGD/minibatchSize=10,20", "--sampler", "tpe", "--trials", "5")
    got = cntkpy(*words, files=small.files(""))
    assert got.code == 0, got.err
    assert "5 trials have 2 combinations of values; none is trained twice" in got.err
    trials = rows(tmp_path / "sweeps" / "m")
    trained = {one["values"]["train/SGD/minibatchSize"]: one for one in trials if "same" not in one}
    assert len(trials) == 5
    assert len(list((tmp_path / "sweeps" / "m").glob("*/log.jsonl"))) == len(trained) <= 2
    for one in trials:
        first = trained[one["values"]["train/SGD/minibatchSize"]]
        assert one["criterion"] == first["criterion"]
        if "same" in one:
            assert one["same"] == first["number"]
            assert f"trial {one['number']} of 5: {one['criterion']:.6g}, not trained again, as trial" in got.out
    storage = optuna_study.open_storage(str(tmp_path / "sweeps/m/study.journal"))
    study = optuna.load_study(study_name="m", storage=storage)
    assert [trial.value for trial in study.trials] == [one["criterion"] for one in trials]
    assert cntkpy(*words).code == 0
    assert rows(tmp_path / "sweeps" / "m") == trials


@pytest.mark.thorough
def test_a_pruner_ends_bad_trials_early(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial with a good rate, then one with hardly any: after an epoch it is worse. The median is of one trial."""
    monkeypatch.setitem(optuna_study.PRUNERS, "median", lambda: optuna.pruners.MedianPruner(n_startup_trials=1))
    rates = "train/SGD/learningRatesPerSample=0.05,1e-9"
    words = ("sweep", "m.cntk", rates, "train/SGD/maxEpochs=120", "--pruner", "median")
    got = cntkpy(*words, files=small.files(""))
    assert got.code == 0, got.err
    good, bad = rows(tmp_path / "sweeps" / "m")
    assert good["state"] == "finished" and good["epochs"] == 120
    assert bad["state"] == "pruned" and bad["epochs"] < 120
    assert "ended early" in got.out and "1 finished, 1 pruned" in got.out


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("journal", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_two_processes_share_a_study_and_a_killed_one_is_replaced(cntkpy_process, tmp_path: Path, kind: str) -> None:
    for name, text in small.files("").items():
        (tmp_path / name).write_text(text)
    storage = "sqlite:///study.db" if kind == "sqlite" else "study.log"
    words = ["sweep", "m.cntk", "train/SGD/maxEpochs=30", "train/SGD/learningRatesPerSample=0.01,0.02,0.03", "-o", "s"]
    command = [sys.executable, "-m", "cntkpy", *words, "--storage", storage]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    STARTED.append(process)
    log = tmp_path / "s" / "0" / "log.jsonl"
    until(lambda: log.exists() and log.read_text().count("epoch finished") > 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    joins = [sys.executable, "-m", "cntkpy", "sweep", "--join", storage]
    joining = [
        subprocess.Popen(joins, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in "ab"
    ]
    STARTED.extend(joining)
    said = [one.communicate(timeout=200)[0] for one in joining]
    assert [one.returncode for one in joining] == [0, 0], said
    found = rows(tmp_path / "s")
    assert sorted(one["number"] for one in found) == [0, 1, 2]
    assert {one["values"]["train/SGD/learningRatesPerSample"] for one in found} == {"0.01", "0.02", "0.03"}
    assert {(one["state"], one["epochs"]) for one in found} == {("finished", 30)}
    assert sum(text.count("\ntrial ") for text in said) == 3, said


# ---- the study alone


def open_(tmp_path: Path, made: Plan, joins: bool = False) -> optuna_study.OptunaStudy:
    (tmp_path / "s").mkdir(exist_ok=True)
    return optuna_study.open_study(made, tmp_path / "s", joins)


def test_all_trials_are_there_from_the_beginning(tmp_path: Path) -> None:
    study = open_(tmp_path, plan("a=1,2", "b=range(0.5, 2)", "c=zip(x, y)", "d=zip((1, 2), [q=3])"))
    other = open_(tmp_path, plan("a=1,2", "b=range(0.5, 2)", "c=zip(x, y)", "d=zip((1, 2), [q=3])"), joins=True)
    taken = [study.next(), other.next(), study.next(), other.next()]
    assert [one.number for one in taken if one] == [0, 1, 2] and taken[3] is None
    assert other.busy == {0, 2} and study.size() == other.size() == 3
    for one in taken[:3]:
        assert one is not None and 0.5 <= float(one.values["b"]) <= 2
        assert (one.values["c"], one.values["d"]) in (("x", "(1, 2)"), ("y", "[q=3]"))
        one.release()


def test_a_grid_in_a_study(tmp_path: Path) -> None:
    study = open_(tmp_path, plan("a=1,2", "n=range(3, 4)", "x=range(0, 1, count=2)", sampler="grid", trials=0))
    taken = [study.next() for _ in range(8)]
    assert [tuple(one.values.values()) for one in taken if one] == [(a, n, x) for a in "12" for n in "34" for x in "01"]
    assert study.next() is None


def test_ends_are_told_and_known(tmp_path: Path) -> None:
    study = open_(tmp_path, plan("a=1,2", pruner="median"))
    ends = [("finished", 0.5, ""), ("pruned", 0.9, ""), ("failed", None, "no memory")]
    for state, criterion, error in ends:
        trial = study.next()
        assert trial is not None
        if criterion is not None:
            assert study.report(trial, 1, criterion) is False
        study.finish(trial, row(trial.number, criterion, state, error))
        trial.release()
    assert [(one.state, one.criterion, one.error) for one in open_(tmp_path, plan("a=1,2"), True).ended()] == ends


def test_the_median_of_five(tmp_path: Path) -> None:
    study = open_(tmp_path, plan("a=1,2", pruner="median", trials=6))
    for _ in range(5):
        trial = study.next()
        assert trial is not None and not study.report(trial, 1, 0.5)
        study.finish(trial, row(trial.number, 0.5))
        trial.release()
    trial = study.next()
    assert trial is not None and study.report(trial, 1, 0.6)
    trial.release()


def test_a_trial_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    study = open_(tmp_path, plan("a=1,2", "b=range(1.0, 2)", trials=1))
    trial = study.next()
    assert trial is not None
    other = open_(tmp_path, plan("a=1,2", "b=range(1.0, 2)", trials=1), joins=True)
    assert other.next() is None and other.busy == {0}
    trial.release()  # what the end of the process does
    again = other.next()
    assert again is not None and (again.number, again.values) == (0, trial.values)
    again.release()


def test_a_row_that_the_study_has_not_heard_of(tmp_path: Path) -> None:
    study = open_(tmp_path, plan("a=1,2", trials=1))
    trial = study.next()
    assert trial is not None
    Rows(tmp_path / "s").append(row(0, 0.25))
    trial.release()
    other = open_(tmp_path, plan("a=1,2", trials=1), joins=True)
    assert other.next() is None and [(one.number, one.criterion) for one in other.ended()] == [(0, 0.25)]


def test_a_storage_that_fails_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_(tmp_path, plan("a=1,2"))

    def fail(*_: object) -> None:
        raise optuna.exceptions.StorageInternalError("connection lost")

    monkeypatch.setattr(optuna.Study, "ask", fail)
    with pytest.raises(UserError, match=r"the storage .*study.journal cannot be used: connection lost"):
        study.next()


@pytest.mark.thorough
def test_another_machine_has_the_folders_of_its_own_trials(cntkpy, tmp_path: Path) -> None:
    """The second folder stands for a machine with the same files; the trials run there."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for file, text in small.files("").items():
            (tmp_path / name / file).write_text(text)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    words = ("m.cntk", "train/SGD/maxEpochs=1", "train/SGD/minibatchSize=10,20", "--storage", storage)
    assert cntkpy("sweep", "--slurm", *words, cwd=tmp_path / "one").code == 0
    got = cntkpy("sweep", "--join", storage, cwd=tmp_path / "two")
    assert got.code == 0 and "2 trials in sweeps/m\n" in got.out, got.err
    assert len(rows(tmp_path / "two/sweeps/m")) == 2 and rows(tmp_path / "one/sweeps/m") == []
    got = cntkpy("sweep", *words, cwd=tmp_path / "one")
    assert got.code == 0 and "2 trials in sweeps/m, 2 have ended before" in got.out
    assert "best: trial" in got.out and "minibatchSize=" in got.out
    (tmp_path / "two" / "m.cntk").write_text(small.CONFIG.replace("maxEpochs = 3", "maxEpochs = 4 ; l2RegWeight = 1"))
    got = cntkpy("sweep", "--join", storage, cwd=tmp_path / "two")
    assert got.code == 2 and "the configuration is not the one that the sweep began with" in got.err


def test_a_storage_with_another_sweep_of_the_name(tmp_path: Path) -> None:
    open_(tmp_path, plan("a=1,2"))
    with pytest.raises(UserError, match="another sweep has begun in the study s; it differs in its words"):
        open_(tmp_path, plan("a=1,3"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--join", "sqlite:///none.db"], "there is no sweep in sqlite:///none.db"),
        (["--join", "none.log"], "there is no sweep none.log"),
        (["--join", "."], "it has no sweep.json"),
        (["--join", "nosuch://u:secret@host/db"], "the storage nosuch://host/db cannot be used"),
        (["--join", "x", "m.cntk"], "--join has no words"),
        ([], "No configuration is given"),
        (["m.cntk", RATES, "--sampler", "tpe"], "needs a number of trials"),
        (["m.cntk", RATES, "--sampler", "cmaes", "--trials", "2"], "needs cmaes, which is not installed"),
        (
            ["m.cntk", "precision=float,double", "command=train:test", "--criterion", "test", "--pruner", "median"],
            "after every epoch",
        ),
    ],
)
def test_mistakes(cntkpy, monkeypatch: pytest.MonkeyPatch, words: list[str], part: str) -> None:
    monkeypatch.setattr(optuna_study, "find_spec", lambda name: None)
    got = cntkpy("sweep", *words, files=small.files("test = [ action = test ]\na = 0\n"))
    assert got.code in (1, 2) and part in got.err and "secret" not in got.err, got.err
    assert "help:" in got.err or "Usage" in got.err


@pytest.mark.thorough
def test_several_sweeps_in_one_storage(cntkpy, tmp_path: Path) -> None:
    for name in "ab":
        words = ("m.cntk", "train/SGD/maxEpochs=1", "train/SGD/minibatchSize=10", "train/SGD/momentumPerMB=choice(0)")
        assert cntkpy("sweep", *words, "--storage", "both.log", "-o", name, files=small.files("")).code == 0
    got = cntkpy("sweep", "--join", "both.log")
    assert got.code == 1 and "both.log has several sweeps: a, b" in got.err and "both.log#a" in got.err
    got = cntkpy("sweep", "--join", "both.log#c")
    assert got.code == 1 and "has no sweep 'c'" in got.err
    got = cntkpy("sweep", "--join", "both.log#b")
    assert got.code == 0 and "1 trials in b, 1 have ended before" in got.out
