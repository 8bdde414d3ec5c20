"""Configurations, models and output behind URLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from cntkpy.cntk_config import ConfigError, load
from cntkpy.commands.cli import execute
from cntkpy.training import load_model

READER = "reader=[readerType=CNTKTextFormatReader;file=a.ctf;input=[x=[dim=3;format=dense];y=[dim=2;format=dense]]]\n"
NETWORK = (
    "x=Input{3};y=Input{2};W=ParameterTensor{(2:3)};z=W*x;ce=CrossEntropyWithSoftmax(y,z,tag='criterion');"
    "featureNodes=(x);labelNodes=(y);outputNodes=(z)"
)
TEST = "command=test\nprecision=float\ndeviceId=cpu\ninclude=base.cntk\ntest=[action=test;modelPath=memory://d/m.dnn]\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("a.ctf").write_text("".join(f"|x {k} {k % 3} {k % 5} |y {k % 2} {1 - k % 2}\n" for k in range(20)))
    yield
    fsspec.filesystem("memory").store.clear()


def put(name: str, content: str) -> str:
    fsspec.filesystem("memory").pipe_file(f"/{name}", content.encode())
    return f"memory://{name}"


def test_configurations_need_leave() -> None:
    put("c/base.cntk", READER)
    url = put("c/test.cntk", TEST)
    with pytest.raises(ConfigError, match=r"the configuration memory://c/test.cntk is not on this machine") as caught:
        load([f"configFile={url}"])
    assert caught.value.hint == "add --allow-remote if you trust it"
    root = load([f"configFile={url}", "allowRemote=true"])
    assert str(root.section("reader")("file")) == "a.ctf"
    Path("local.cntk").write_text(f"allowRemote=true\ninclude={url}\n")  # a file cannot allow it
    with pytest.raises(ConfigError, match="is not on this machine"):
        load(["configFile=local.cntk"])
    root = load(["configFile=local.cntk", "allowRemote=true"])
    assert str(root("command")) == "test"


@pytest.mark.malformed
def test_errors_in_configurations_have_the_url(capsys: pytest.CaptureFixture[str]) -> None:
    url = put("c/test.cntk", "command=test\ntest=[\n")
    assert execute(["check", f"configFile={url}", "--allow-remote"]) != 0
    assert "memory://c/test.cntk:2:6" in (printed := capsys.readouterr().out) and "s3cret" not in printed
    assert execute(["check", "configFile=memory://me:s3cret@c/none.cntk", "--allow-remote"]) != 0
    assert "cannot read 'memory://c/none.cntk': there is no such object" in (printed := capsys.readouterr().out)
    assert "s3cret" not in printed
    put("c/twice.cntk", "include=memory://c/test2.cntk\ninclude=test2.cntk\n")
    put("c/test2.cntk", "command=test\n")
    root = load(["configFile=memory://c/twice.cntk", "allowRemote=true"])
    assert str(root("command")) == "test"
    put("c/lost.cntk", "include=lost2.cntk\n")
    with pytest.raises(ConfigError, match=r"cannot read 'memory://c/lost2.cntk': there is no such object"):
        load(["configFile=memory://c/lost.cntk", "allowRemote=true"])


@pytest.mark.thorough
def test_models_and_output(capfd: pytest.CaptureFixture[str]) -> None:
    Path("t.cntk").write_text(
        f"command=train\nprecision=float\ndeviceId=cpu\n{READER}train=[action=train;modelPath=m.dnn;"
        f"SGD=[maxEpochs=1;minibatchSize=5;learningRatesPerMB=0.1];BrainScriptNetworkBuilder=[{NETWORK}]]\n"
    )
    assert execute(["configFile=t.cntk"]) == 0
    system: Any = fsspec.filesystem("memory")
    system.pipe_file("/d/m.dnn", Path("m.dnn").read_bytes())
    system.pipe_file("/d/a.ctf", Path("a.ctf").read_bytes())
    put("c/base.cntk", READER.replace("a.ctf", "memory://d/a.ctf"))
    put("c/test.cntk", TEST)
    words = ["configFile=memory://c/test.cntk", "--allow-remote"]
    assert execute(words) == 0
    assert "Final Results: Minibatch[1-1]: ce = " in capfd.readouterr().err
    assert execute(["check", *words]) == 0
    assert execute([*words, "test=[modelPath=memory://me:s3cret@d/n.dnn?sig=s3cret]"]) == 1
    printed = capfd.readouterr()
    assert "there is no model memory://d/n.dnn" in printed.err and "s3cret" not in printed.err + printed.out
    Path("w.cntk").write_text(
        f"command=w\nprecision=float\n{READER}w=[action=write;modelPath=memory://d/m.dnn;outputPath=memory://o/w]\n"
    )
    assert execute(["configFile=w.cntk"]) == 0
    assert system.ls("/o", detail=False) == ["/o/w.z"] and len(system.cat_file("/o/w.z").split(b"\n")) > 20
    assert execute(["convert", "-q", "a.ctf", "memory://o/a.npz", "--stream", "x:3"]) == 0
    assert execute(["export", "memory://d/m.dnn", "memory://o/m.npz"]) == 0
    found = load_model("memory://d/m.dnn")
    found.save("memory://o/m.dnn")
    assert [one.name for one in load_model("memory://o/m.dnn").parameters] == ["W"]
    assert sorted(system.ls("/o", detail=False)) == ["/o/a.npz", "/o/m.dnn", "/o/m.npz", "/o/w.z"]
    Path("e.mel").write_text("m=LoadModel(memory://d/m.dnn,format=cntk)\nSaveModel(m,memory://o/e.dnn)\n")
    Path("e.cntk").write_text("command=e\ne=[action=edit;editPath=e.mel]\n")
    assert execute(["configFile=e.cntk"]) == 0 and system.exists("/o/e.dnn")
    assert execute(["configFile=t.cntk", "train=[modelPath=memory://o/t.dnn]"]) == 2
    assert "is a URL, and a training keeps files of its epochs next to the model" in capfd.readouterr().err
    assert not [path.name for path in Path().iterdir() if ":" in path.name]


def test_includes_without_end() -> None:
    """R12: each part names another one."""
    for number in range(120):
        put(f"e/{number}.cntk", f"x{number}=1\ninclude={number + 1}.cntk\n")
    put("e/20.cntk", "x=1\n")
    assert load(["configFile=memory://e/0.cntk", "allowRemote=true"])("x19") == "1"
    put("e/20.cntk", "include=21.cntk\n")
    with pytest.raises(ConfigError, match="more than 100 parts that are not on this machine") as caught:
        load(["configFile=memory://e/0.cntk", "allowRemote=true"])
    assert caught.value.kind == "RemoteConfiguration" and str(caught.value.span) == "memory://e/99.cntk:2:9"


@pytest.mark.parametrize(
    "name", ["file://{0}/secret", "FILE://{0}/secret", "local://{0}/secret", "zip://x::file://{0}/secret", "dir://x"]
)
def test_a_remote_configuration_includes_no_file_of_this_machine(name: str, tmp_path: Path) -> None:
    """R12: one that is included might be sent elsewhere, or shown in a message."""
    (tmp_path / "secret").write_text("password=1\n")
    put("c/bad.cntk", f"include={name.format(tmp_path)}\n")
    with pytest.raises(ConfigError, match=r"c/bad.cntk includes '.*', which may be a file of this machine") as caught:
        load(["configFile=memory://c/bad.cntk", "allowRemote=true"])
    assert caught.value.kind == "RemoteConfiguration" and str(caught.value.span) == "memory://c/bad.cntk:1:9"
    Path("here.cntk").write_text(f"include=file://{tmp_path}/secret\n")
    assert load(["configFile=here.cntk", "allowRemote=true"])("password") == "1"


@pytest.mark.parametrize("command", [["check"], ["show"], ["explain", "train/SGD"], ["diff", "c.cntk"]])
def test_no_server_is_asked_without_leave(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither for networks, scripts and macros, nor for data and models; `check --data` asks for data."""
    from cntkpy.cntk_config.base.remote import RemoteObject

    asked: list[str] = []
    monkeypatch.setattr(RemoteObject, "__init__", lambda self, url: asked.append(url))
    Path("c.cntk").write_text(
        f"command=train:edit:test\nprecision=float\n{READER.replace('a.ctf', 'memory://d/a.ctf')}"
        "train=[action=train;modelPath=m;SGD=[maxEpochs=1];NDLNetworkBuilder=[networkDescription=memory://c/n.ndl"
        ";ndlMacros=memory://c/m.ndl]]\nedit=[action=edit;editPath=memory://c/e.mel]\n"
        "test=[action=test;modelPath=memory://d/m.dnn]\n"
    )
    execute([command[0], "c.cntk", *command[1:]])
    assert asked == [] and "internal error" not in capsys.readouterr().err
