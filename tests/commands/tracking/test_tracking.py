"""Trackers: which are asked for, what they get, what happens when they fail; TensorBoard and MLflow where installed."""

import json
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import small_classification as actions

from cntkpy.commands.tracking import handler as handler_module
from cntkpy.commands.tracking import tracker as tracker_module
from cntkpy.commands.tracking.messages import Messages

MORE = "test = [ action = test ]\n"
VALIDATED = (
    "train=[cvReader=[readerType=CNTKTextFormatReader;file=data.ctf;"
    "input=[x=[dim=2;format=dense];y=[dim=3;format=dense]]]]"
)


class Recorder:
    """A tracker that keeps what it gets, and fails in one of its methods."""

    made: ClassVar[list["Recorder"]] = []

    def __init__(self, place, fails: str = "") -> None:
        self.place, self.fails = place, fails
        self.calls: list[tuple] = []
        self.threads: set[str] = set()
        Recorder.made.append(self)

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments) -> None:
            self.threads.add(threading.current_thread().name)
            self.calls.append((name, *arguments))
            if name == self.fails:
                raise ConnectionError("no server\nmore lines")

        return call


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch):
    """An installed package that offers the trackers `mine`, `fails` and `broken`."""
    Recorder.made = []

    def broken(place):
        raise RuntimeError("cannot start")

    offered = {"mine": Recorder, "fails": lambda place: Recorder(place, "scalars"), "broken": broken}
    points = [SimpleNamespace(name=name, load=lambda made=made: made) for name, made in offered.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points if group == "cntkpy.trackers" else [])
    return Recorder.made


@pytest.fixture
def run(cntkpy):
    def run(*words: str, more: str = ""):
        return cntkpy("run", "configFile=m.cntk", "train=[SGD=[maxEpochs=2]]", *words, files=actions.files(MORE + more))

    return run


def scalars(tracker: Recorder) -> dict[tuple[str, int], float]:
    return {(name, call[2]): value for call in tracker.calls if call[0] == "scalars" for name, value in call[1].items()}


def test_what_a_tracker_gets(run, recorder, tmp_path: Path) -> None:
    section = "tracking = [ type = mine ; name = n ; tags = [ team = a ] ; options = [ key = v ] ; uri = u ]\n"
    words = ["stderr=log", "logFormat=json", "command=train:test", "train=[SGD=[numMBsToShowResult=2]]", VALIDATED]
    got = run(*words, more=section)
    assert got.code == 0, got.err
    (tracker,) = recorder
    place = tracker.place
    assert (place.type, place.target, place.experiment, place.name) == ("mine", "u", "cntkpy", "n")
    assert (place.tags, place.options) == ({"team": "a"}, {"key": "v"})
    assert tracker.threads == {"cntkpy-track-mine"}

    first, last = tracker.calls[0], tracker.calls[-1]
    assert first[0] == "started" and first[1]["train/SGD/maxEpochs"] == "2"
    assert first[2]["command line"].startswith("configFile=m.cntk ") and "jax" in first[2] and "host" in first[2]
    assert last == ("finished", 0, "")
    assert [call[1] for call in tracker.calls if call[0] == "artifact"] == ["run/m", "log", "log.jsonl"]

    found = scalars(tracker)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    for event in events:
        if event["event"] in ("epoch finished", "validation"):
            prefix = "train/validation" if event["event"] == "validation" else "train"
            assert found[f"{prefix}/ce", event["epoch"]] == event["nodes"]["ce"]
    progress = [event["nodes"]["ce"] for event in events if event["event"] == "progress"]
    assert [found["train/progress/ce", step] for step in (2, 4, 6, 8)] == progress
    assert found["test/err", 0] == pytest.approx(actions.errors(actions.model(tmp_path / "run/m")))
    assert found["train/learningRatePerSample", 2] == pytest.approx(0.05)
    assert found["train/samplesPerSecond", 1] > 0
    assert ("train/ce", 0) not in found  # the final results of a validation are in `validation`


def test_the_option(run, recorder) -> None:
    assert run("--track", "mine:a:b", "--track", "mine:c").code == 0
    assert [one.place.target for one in recorder] == ["a:b", "c"]
    assert all(one.calls[-1] == ("finished", 0, "") for one in recorder)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fails", "fails fails, and this run is tracked no further: ConnectionError: no server"),
        ("broken", "cannot start"),
    ],
)
def test_a_tracker_that_fails_is_warned_of_once(run, recorder, tmp_path: Path, name: str, expected: str) -> None:
    got = run("--track", f"{name}:x", "stderr=log")
    assert got.code == 0
    log = (tmp_path / "log").read_text()
    assert log.count(expected) == 1 and log.count("WARNING") == 1 and "more lines" not in log
    assert "COMPLETED." in log


def test_a_run_that_fails(run, recorder) -> None:
    assert run("--track", "mine:x", "train=[SGD=[learningRatesPerSample=1e300]]").code == 1
    (tracker,) = recorder
    method, status, error = tracker.calls[-1]
    assert (method, status) == ("finished", 1) and error


def test_a_tracker_that_hangs_does_not_hold_up_the_run(run, recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = threading.Event()
    monkeypatch.setattr(Recorder, "started", lambda self, *_: blocked.wait(60), raising=False)
    monkeypatch.setattr(handler_module, "WAIT_SECONDS", 0.2)
    before = time.monotonic()
    got = run("--track", "mine:x")
    blocked.set()
    assert got.code == 0 and time.monotonic() - before < 30
    assert got.err.count("mine has not taken everything after 0.2 s") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--track", "mlfow:x"], "there is no tracker 'mlfow'"),
        (["--track", "mlfow:x"], "mlflow"),
        (["tracking=[type=tensorbord]"], "did you mean 'tensorboard'?"),
        (["tracking=[uri=x]"], "type"),
        (["tracking=[type=mine;foldr=x]"], "foldr"),
        (["--trak", "x"], "--track"),
    ],
)
def test_mistakes(run, recorder, words: list[str], expected: str) -> None:
    got = run(*words, "strict=true")
    assert got.code == 2
    assert expected in got.err


def test_check(cntkpy, recorder) -> None:
    """`check` knows the names of trackers, and needs none of their packages."""
    files = actions.files(
        "tracking = [ type = mlflow : mine : tensorbord ; tags = [ any = 1 ] ; options = [ x = 1 ] ]\n"
    )
    got = cntkpy("check", "m.cntk", files=files)
    assert got.code == 2
    assert got.out.count("tracker") == 1 and "there is no tracker 'tensorbord' - did you mean 'tensorboard'?" in got.out
    files["m.cntk"] = files["m.cntk"].replace(" : tensorbord ;", " ; fodler = a ;")
    got = cntkpy("check", "m.cntk", files=files)
    assert "'fodler'" in got.out and "'folder'" in got.out
    files["m.cntk"] = files["m.cntk"].replace("type = mlflow : mine", "uri = a")
    assert "tracking:type is missing" in cntkpy("check", "m.cntk", files=files).out
    assert "mlflow  " in cntkpy("list", "trackers").out


@pytest.mark.parametrize(("name", "package"), [("tensorboard", "tensorboardX"), ("mlflow", "mlflow")])
def test_without_the_package(run, monkeypatch: pytest.MonkeyPatch, name: str, package: str, tmp_path: Path) -> None:
    """Nothing is trained that could not be tracked."""
    real = tracker_module.importlib.util.find_spec
    hidden = lambda one, *rest: None if one == package else real(one, *rest)  # noqa: E731
    monkeypatch.setattr(tracker_module.importlib.util, "find_spec", hidden)
    got = run("--track", f"{name}:x")
    assert got.code == 2
    assert f"by the package {package}, which is not installed" in got.err and f"help: add the extra {name}: " in got.err
    assert not (tmp_path / "run/m").exists()


def test_only_the_command_that_asks_for_it() -> None:
    messages = Messages(command="a")
    events = [{"event": "epoch finished", "command": name, "epoch": 1, "nodes": {"ce": 1.0}} for name in ("a", "b")]
    assert [call.arguments[0] for event in events for call in messages.of(event)] == [{"a/ce": 1.0}]


def test_steps_of_progress_go_on_after_an_epoch() -> None:
    messages = Messages()
    steps = []
    for epoch in (1, 2):
        for last in (10, 20):
            event = {"event": "progress", "command": "t", "minibatches": [last - 9, last], "nodes": {"ce": 1.0}}
            steps += [call.arguments[1] for call in messages.of(event)]
        list(messages.of({"event": "epoch finished", "command": "t", "epoch": epoch, "nodes": {}}))
    assert steps == [10, 20, 30, 40]


def test_tensorboard_reads_what_was_written(run, tmp_path: Path) -> None:
    """`tensorBoardLogDir` of a configuration, read by TensorBoard itself."""
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    got = run("logFormat=json", "train/SGD/tensorBoardLogDir=tb", "command=train:test")
    assert got.code == 0, got.err
    reader = accumulator.EventAccumulator(str(tmp_path / "tb"))
    reader.Reload()
    scalars = {one: [(event.step, event.value) for event in reader.Scalars(one)] for one in reader.Tags()["scalars"]}
    events = [json.loads(line) for line in (tmp_path / "cntkpy.jsonl").read_text().splitlines()]
    expected = [(e["epoch"], e["nodes"]["ce"]) for e in events if e["event"] == "epoch finished"]
    assert [step for step, _ in scalars["train/ce"]] == [1, 2]
    assert [value for _, value in scalars["train/ce"]] == pytest.approx([value for _, value in expected])
    assert not [name for name in scalars if name.startswith("test")]  # another command
    assert any("configuration" in one for one in reader.Tags()["tensors"])


@pytest.mark.parametrize("store", ["sqlite", "files"])
def test_mlflow_reads_what_was_written(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    mlflow = pytest.importorskip("mlflow")
    if store == "sqlite":
        pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"sqlite:///{tmp_path / 'ml.db'}" if store == "sqlite" else (tmp_path / "store").as_uri()
    section = f'tracking = [ type = mlflow ; uri = "{uri}" ; experiment = digits ; name = n ; tags = [ team = a ] ]\n'
    got = run("stderr=log", "command=train:test", more=section)
    assert got.code == 0, got.err
    assert "WARNING" not in (tmp_path / "log").read_text()
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("digits")
    (found,) = client.search_runs([experiment.experiment_id])
    assert (found.info.status, found.info.run_name) == ("FINISHED", "n")
    assert found.data.params["train/SGD/maxEpochs"] == "2"
    assert found.data.tags["team"] == "a" and found.data.tags["command line"].startswith("configFile=m.cntk")
    assert {one.path for one in client.list_artifacts(found.info.run_id)} == {"m", "log"}
    steps = [(one.step, one.value) for one in client.get_metric_history(found.info.run_id, "train/ce")]
    assert [step for step, _ in steps] == [1, 2]
    assert found.data.metrics["test/ce"] == pytest.approx(actions.criterion(actions.model(tmp_path / "run/m")))


def test_event_files_on_a_full_disk_are_an_error_and_nothing_waits(tmp_path: Path, monkeypatch) -> None:
    """The thread of tensorboardX would end with a traceback, and the eleventh scalar would wait for it for ever."""
    pytest.importorskip("tensorboardX")
    from cntkpy.cntk_config import UserError
    from cntkpy.trainers.log.event_files import EventFile

    file = EventFile(tmp_path)
    inner = file._writer.file_writer.event_writer._ev_writer._py_recordio_writer

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inner, "write", full)
    with pytest.raises(UserError, match=r"cannot be written: No space left on device"):
        for step in range(1000):
            file.scalars({"x": 1.0}, step)
            time.sleep(0.001)
    with pytest.raises(UserError, match=r"cannot be written: No space left on device"):
        file.close()
    file.close()


def test_mlflow_where_nothing_listens_ends_fast_and_says_why(run) -> None:
    """MLflow's own requests are retried for two minutes; the end of a run waited for them twice."""
    pytest.importorskip("mlflow")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begin = time.monotonic()
    got = run("--track", f"mlflow:http://me:s3cret@127.0.0.1:{port}/?k=s3cret")
    assert got.code == 0 and time.monotonic() - begin < 15
    warnings = [line for line in got.err.splitlines() if line.startswith("WARNING")]
    assert warnings == [
        "WARNING: mlflow fails, and this run is tracked no further: ConnectionError: "
        f"http://127.0.0.1:{port}/ refused the connection: is the server running?"
    ]


def test_a_server_that_goes_away_is_left_alone_soon(run, recorder, monkeypatch) -> None:
    monkeypatch.setattr(handler_module, "STALL_SECONDS", 0.2)
    begun = threading.Event()

    def scalars(self, values, step) -> None:
        begun.wait(60)

    monkeypatch.setattr(Recorder, "scalars", scalars, raising=False)
    monkeypatch.setattr(Recorder, "problem", lambda self: "it refused the connection", raising=False)
    begin = time.monotonic()
    got = run("--track", "mine")
    begun.set()
    assert got.code == 0 and time.monotonic() - begin < 30
    assert "WARNING: mine has not taken everything after 0." in got.err
    assert " s: it refused the connection; it is left alone." in got.err and got.err.count("WARNING: mine") == 1


def test_why_a_server_cannot_be_reached(monkeypatch) -> None:
    from cntkpy.commands.tracking import mlflow

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert mlflow.why_unreachable(f"http://{address}") == ""
    assert mlflow.why_unreachable(f"http://{address}").endswith("refused the connection: is the server running?")
    for url in ("", "mlruns", "sqlite:///a.db", "databricks", "http://[::1", "http://h:99999999"):
        assert mlflow.why_unreachable(url) == ""
    assert "cannot be reached" in mlflow.why_unreachable("http://no-such-host.invalid")
    monkeypatch.setattr(mlflow, "getproxies", lambda: {"http": "http://proxy"})
    monkeypatch.setattr(mlflow, "proxy_bypass", lambda host: False)
    assert mlflow.why_unreachable(f"http://{address}") == ""
