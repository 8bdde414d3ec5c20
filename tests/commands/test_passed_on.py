"""What people pass on (models, checkpoints, events, reports, sweeps, trackers) has no credentials of URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
import small_classification as small

from cntkpy.cntk_config import ConfigError, load
from cntkpy.cntk_config.base.names import shareable
from cntkpy.commands.sweeps import sweep as sweeps
from cntkpy.commands.sweeps.choices import read_words
from cntkpy.commands.sweeps.plan import Plan, check_same, check_whole, digest, load_plan, save_plan
from cntkpy.commands.sweeps.rows import Row, Rows
from cntkpy.commands.sweeps.running import describe
from cntkpy.commands.sweeps.trial_folder import TrialFolder
from cntkpy.commands.words import RESOLVED
from cntkpy.trainers.checkpoints.checkpoint import TrainingRecord

URL = "memory://alice:s3cretA{0}@d/data.ctf?token=s3cretB{0}"
MORE = 'dataUrl = "{}"\ntracking = [ type = mine ; tags = [ from = "{}" ] ]\nstderr = log\nlogFormat = json\n'


@pytest.fixture(autouse=True)
def data() -> Iterator[None]:
    for number in (1, 2):
        fsspec.filesystem("memory").pipe_file(URL.format(number).removeprefix("memory:/"), small.DATA.encode())
    yield
    fsspec.filesystem("memory").store.clear()


def files(number: int) -> dict[str, str]:
    found = small.files(MORE.format(URL.format(number), URL.format(number)))
    return found | {"m.cntk": found["m.cntk"].replace("file = data.ctf", 'file = "$dataUrl$"')}


def leaks(folder: Path) -> list[str]:
    """The files below a folder that have a secret, but for the configuration itself."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "m.cntk"]
    assert paths
    return [str(path) for path in paths if b"s3cret" in path.read_bytes()]


class Tracker:
    """Keeps what it gets."""

    got: list[Any] = []  # noqa: RUF012

    def __init__(self, place: Any) -> None:
        self.got.append(place)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.got.append((name, *arguments))


def test_files_of_a_training_and_its_resumption(cntkpy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = SimpleNamespace(name="mine", load=lambda: Tracker)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point] if group == "cntkpy.trackers" else [])
    Tracker.got.clear()
    words = ["run", "configFile=m.cntk", "train=[SGD=[maxEpochs=2;checkpointEveryMinutes=0.00001]]"]
    got = cntkpy(*words, files=files(1))
    assert got.code == 0, got.err
    record = TrainingRecord.of(str(tmp_path / "run/m"))
    assert record is not None and record.settings["reader/file"] == "memory://d/data.ctf"
    assert cntkpy("export", "run/m", "m.onnx").code == 0 and cntkpy("export", "run/m", "m.npz").code == 0
    assert cntkpy("report", ".", "-o", "report.html").code == 0
    assert cntkpy("runs", ".", "--format", "json").code == 0
    assert leaks(tmp_path) == []
    assert len(Tracker.got) > 5 and "s3cret" not in repr(Tracker.got)
    assert "memory://d/data.ctf" in repr(Tracker.got)
    # new credentials of the same data are the same training
    got = cntkpy("run", "configFile=m.cntk", "train=[SGD=[maxEpochs=3]]", "strict=true", files=files(2))
    assert got.code == 0, got.err + (tmp_path / "log").read_text()
    assert "was trained with" not in (tmp_path / "log").read_text()
    (tmp_path / "m.cntk").write_text(files(2)["m.cntk"].replace("@d/data.ctf", "@e/data.ctf"))
    fsspec.filesystem("memory").pipe_file("/alice:s3cretA2@e/data.ctf?token=s3cretB2", small.DATA.encode())
    assert cntkpy("run", "configFile=m.cntk", "train=[SGD=[maxEpochs=4]]").code == 0
    log = (tmp_path / "log").read_text()
    assert re.search(r"reader/file is memory://e/data.ctf, but run/m.3 was trained with memory://d/data.ctf", log), log
    assert leaks(tmp_path) == []


def test_a_model_of_an_earlier_version_with_credentials_is_the_same_training(cntkpy: Any, tmp_path: Path) -> None:
    record = TrainingRecord(1, {"reader/file": URL.format(1)})
    assert record.to_json()["settings"] == {"reader/file": "memory://d/data.ctf"}
    for name, text in files(1).items():
        (tmp_path / name).write_text(text)
    from cntkpy.commands.catalogue.settings import Settings

    root = load([f"configFile={tmp_path / 'm.cntk'}"])
    settings = Settings(root.section("train"), "train")
    kept = settings.texts()
    assert list(settings.changed(kept)) == []
    assert list(settings.changed(kept | {"reader/file": URL.format(2)})) == []
    assert [one[0] for one in settings.changed(kept | {"reader/file": "memory://e/data.ctf"})] == ["reader/file"]


def test_values_at_any_depth() -> None:
    value = {"a": ["http://u:p@h/x?k=v", ("http://h/x?k", 1)], "http://u@h": {"b": None, "c": 1.5, "d": True}}
    assert shareable(value) == {"a": ["http://h/x", ["http://h/x", 1]], "http://h": {"b": None, "c": 1.5, "d": True}}


CHOICES = f'dataUrl="{URL.format(1)}","{URL.format(2)}"'
RATES = "train/SGD/learningRatesPerSample=0.1,0.2"


def plan(*words: str, storage: str = "") -> Plan:
    return Plan(tuple(words), "grid", "none", 0, 0, "", storage, "digest", "s")


def test_the_plan_of_a_sweep(tmp_path: Path) -> None:
    made = plan("configFile=m.cntk", RATES, f'dataUrl="{URL.format(1)}"')
    save_plan(tmp_path, made)
    kept = load_plan(tmp_path)
    assert kept is not None and leaks(tmp_path) == [] and kept.withheld == ("words",)
    assert kept.to_json() == made.to_json()
    check_same(kept, made, "here")
    check_same(kept, plan("configFile=m.cntk", RATES, f'dataUrl="{URL.format(2)}"'), "here")
    with pytest.raises(ConfigError, match="another sweep has begun in here; it differs in its words") as caught:
        check_same(kept, plan("configFile=m.cntk", RATES, 'dataUrl="memory://e/x"'), "here")
    assert "s3cret" not in caught.value.diagnostic.render()
    with pytest.raises(
        ConfigError, match="the words of the sweep in F had a URL with a user, password or query"
    ) as caught:
        check_whole(kept, "F")
    assert caught.value.hint is not None and caught.value.hint.startswith("give the words of the sweep again; or keep")
    made = plan("configFile=m.cntk", RATES, storage="mysql://me:s3cret@host/db")
    save_plan(tmp_path, made)
    kept = load_plan(tmp_path)
    assert kept is not None and leaks(tmp_path) == [] and kept.withheld == ("storage",)
    with pytest.raises(ConfigError, match="--storage of the sweep in F had a URL with a user, password or query"):
        check_whole(kept, "F")
    made = plan("configFile=m.cntk", RATES, storage="sqlite:///study.db")
    save_plan(tmp_path, made)
    kept = load_plan(tmp_path)
    assert kept is not None and kept == made and "withheld" not in made.to_json()
    check_whole(kept, "F")


def test_the_folder_of_a_trial_and_the_table_of_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files(1).items():
        Path(name).write_text(text)
    space = read_words(["configFile=m.cntk", RATES, CHOICES])
    values = {"train/SGD/learningRatesPerSample": "0.1", "dataUrl": f'"{URL.format(2)}"'}
    folder = TrialFolder(tmp_path / "0")
    folder.path.mkdir()
    words = folder.words(space, values)
    assert f'dataUrl="{URL.format(2)}"' in words  # the run itself needs them
    row = Row(0, "failed", values, None, 0, 1.0, f"cannot read {URL.format(2)}")
    Rows(tmp_path).append(row)
    assert leaks(tmp_path) == [] and "s3cret" not in describe(row, 2)
    assert str(load([f"configFile={folder.path / RESOLVED}"])("dataUrl")) == "memory://d/data.ctf"
    digests = [digest(load(["configFile=m.cntk", f'dataUrl="{URL.format(number)}"'])) for number in (1, 2)]
    assert digests[0] == digests[1] != digest(load(["configFile=m.cntk", 'dataUrl="memory://e/x"']))


def test_the_study_of_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cntkpy.commands.sweeps import optuna_study

    monkeypatch.chdir(tmp_path)
    made = plan(f'note="{URL.format(1)}"', RATES, CHOICES)
    optuna_study.open_study(made, tmp_path / "F", False)
    study = optuna_study.open_study(made, tmp_path / "F", False)  # resumed
    seen: set[str] = set()
    for _ in range(4):
        trial = study.next()
        assert trial is not None
        seen.add(trial.values["dataUrl"])
        study.finish(trial, Row(trial.number, "failed", dict(trial.values), None, 0, 1.0, URL.format(1)))
        trial.release()
    assert seen == {f'"{URL.format(number)}"' for number in (1, 2)}  # both choices, whole
    assert leaks(tmp_path) == []
    found, _ = optuna_study.find_plan(str(tmp_path / "F" / optuna_study.JOURNAL), None)
    assert found.withheld == ("words",)


def test_slurm_needs_words_that_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files(1).items():
        Path(name).write_text(text.replace("type = mine", "type = tensorboard"))
    words = ["configFile=m.cntk", RATES, f'dataUrl="{URL.format(2)}"']
    with pytest.raises(ConfigError, match="the words of the sweep in F had a URL with a user, password or query"):
        sweeps.sweep(words, sweeps.Options(out="F", slurm=True))
    printed = capfd.readouterr()
    assert sweeps.sweep(words[:2], sweeps.Options(out="G", slurm=True)) == 0
    with pytest.raises(ConfigError) as refused:
        sweeps.sweep([], sweeps.Options(join="F"))
    assert "give the words of the sweep again" in (refused.value.hint or "")
    assert leaks(tmp_path / "F") == [] and "s3cret" not in printed.err + printed.out


def test_events_are_masked_value_by_value(tmp_path: Path) -> None:
    """Also where a text has quotes, which JSON escapes."""
    import logging

    from cntkpy.commands.runner.log_events import EventHandler

    handler = EventHandler(str(tmp_path / "e.jsonl"), pytest.fail)
    event: Mapping[str, Any] = {"event": "run started", "words": ['a="http://u:s3cret@h/x?k=s3cret"', "b"]}
    record = logging.LogRecord("cntkpy", logging.DEBUG, "", 0, "", (), None)
    record.event = event
    handler.emit(record)
    handler.close()
    assert json.loads((tmp_path / "e.jsonl").read_text())["words"] == ['a="http://h/x"', "b"]
