"""sample_configs/plugin: a package with a reader, a writer and an action is installed and found by its entry points."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "sample_configs" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package, without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(PLUGIN, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--target", str(folder / "site"), str(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def in_a_process(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`cntkpy(*words)` in a process of its own that has the package installed."""
    path = os.pathsep.join([str(installed), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "cntkpy", *words]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def here(installed: Path, cntkpy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """`here(*words)`: the same in this process, as long as the test lasts."""
    monkeypatch.syspath_prepend(str(installed))
    yield lambda *words: cntkpy(*words, cwd=ROOT)
    for name in [one for one in sys.modules if one.startswith("cntkpy_jsonlines")]:
        del sys.modules[name]


@pytest.mark.thorough
def test_reader_writer_and_action_of_an_installed_package(installed: Path, tmp_path: Path) -> None:
    got = in_a_process(installed, "configFile=sample_configs/plugin/flowers.cntk", f"RunDir={tmp_path}")
    assert got.returncode == 0, got.stderr
    assert [line.split()[-2:] for line in got.stderr.splitlines() if line.endswith(": 20")] == [
        ["daisy:", "20"],
        ["rose:", "20"],
        ["tulip:", "20"],
    ]
    answers = [json.loads(line)["PosteriorProb"] for line in (tmp_path / "flowers.answers.jsonl").open()]
    kinds = [json.loads(line)["kind"] for line in (PLUGIN / "flowers.jsonl").open()]
    found = [("daisy", "rose", "tulip")[i] for i in np.argmax(answers, axis=1)]
    assert np.allclose(np.sum(answers, axis=1), 1, atol=0.01)
    assert np.mean([a == b for a, b in zip(found, kinds, strict=True)]) > 0.9


@pytest.mark.thorough
def test_tools_know_the_package(here) -> None:
    got = here("preview", "sample_configs/plugin/flowers.cntk", "train", "--format", "json")
    assert got.code == 0, got.err
    found = json.loads(got.out)
    assert found["reader"] == "JsonLinesReader"
    assert found["bytes"] == (PLUGIN / "flowers.jsonl").stat().st_size
    assert {c["class"]: c["count"] for c in found["streams"][1]["classes"]} == {"daisy": 20, "rose": 20, "tulip": 20}
    listed = here("list", "readers").out + here("list", "actions").out
    assert "JsonLinesReader" in listed
    assert "countClasses" in listed
    assert here("check", "sample_configs/plugin/flowers.cntk").code == 0
    words = "reader=[randomise=auto;labels=[klasses=a]]", "count=[streem=y]"
    checked = here("check", "sample_configs/plugin/flowers.cntk", *words)
    for name in ("randomize", "classes", "stream"):
        assert f"did you mean '{name}'" in checked.out
    wrong = here("configFile=sample_configs/plugin/flowers.cntk", "command=count", "count=[action=countClass]")
    assert wrong.code == 2
    assert "countClasses" in wrong.err


def test_errors_of_the_package_name_the_line(here, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"size": [1, 2], "kind": "rose"}\n{"size": [1], "kind": "rose"}\n')
    words = ("configFile=sample_configs/plugin/flowers.cntk", "command=count", f"reader=[file={tmp_path}/bad.jsonl]")
    got = here(*words)
    assert got.code == 1
    assert "bad.jsonl, line 2: ValueError: 1 numbers, not 2" in got.err
    assert "Traceback" not in got.err


def test_the_reader_alone(here) -> None:
    """Every line once in a sweep, for one worker and for three; a restored reader continues exactly."""
    from cntkpy.readers import create_reader

    text = f'readerType=JsonLinesReader ; file="{PLUGIN}/flowers.jsonl" ; features=[field=size;dim=2]'
    lines = []
    for rank in range(3):
        reader = create_reader(text)
        reader.start_minibatch_loop(7, 1, None, rank, 3)
        while (minibatch := reader.get_minibatch()) is not None:
            lines += minibatch.keys
    assert sorted(lines) == list(range(60))
    reader = create_reader(text)
    reader.start_minibatch_loop(7, 2, 100)
    for _ in range(5):
        reader.get_minibatch()
    state = json.loads(json.dumps(reader.get_state()))
    rest = [m.keys for m in iter(reader.get_minibatch, None)]
    reader = create_reader(text)
    reader.set_state(state)
    assert [m.keys for m in iter(reader.get_minibatch, None)] == rest
    assert len(rest) > 5
