"""Completion: the words of a command line, and the scripts in real shells where there are any."""

import json
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml

Shell = Callable[..., str]
ROOT = Path(__file__).resolve().parents[3]
MAIN = """\
command = train
modelPath = m
train = [
    action = train
    SGD = [ maxEpochs = 3 ; learningRatesPerMB = 0.1 ]
    reader = [ file = t.ctf ; input = [ features = [ dim = 2 ; format = dense ]
        labels = [ dim = 3 ; format = dense ] ] ]
]
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["exp"], ["explain", "export"]),
        (["expl"], ["explain"]),
        (["check", "--sel"], ["--select"]),
        (["check", "ma"], ["main.cntk"]),
        (["configFile=ma"], ["configFile=main.cntk"]),
        (["configFile=main.cntk+ma"], ["configFile=main.cntk+main.cntk"]),
        (["explain", "main.cntk", "train/SGD/maxE"], ["train/SGD/maxEpochs"]),
        (["explain", "main.cntk", "train/S"], ["train/SGD/", "train/SimpleNetworkBuilder/"]),
        (["configFile=main.cntk", "train=[SGD=[maxE"], ["train=[SGD=[maxEpochs="]),
        (["configFile=main.cntk", "train=[SGD=[maxEpochs=3;useN"], ["train=[SGD=[maxEpochs=3;useNAG="]),
        (["configFile=main.cntk", "train=[rea"], ["train=[reader=["]),
        (["check", "--format", ""], ["github", "gitlab", "json", "junit", "sarif", "text"]),
        (["check", "--format", "s"], ["sarif"]),
        (["convert", "--precision", "d"], ["double"]),
        (["configFile=main.cntk", "command="], ["command=train"]),
        (["run", "configFile=main.cntk", "command=train:t"], ["command=train:train"]),
        (["run", "ma"], ["main.cntk"]),
        (["run", "main.cntk", "command=train:t"], ["command=train:train"]),
        (["run", "main.cntk", "train/SGD/maxE"], ["train/SGD/maxEpochs="]),
        (["configFile=main.cntk", "train/SGD/maxE"], ["train/SGD/maxEpochs="]),
        (["check", "main.cntk", "train/SGD/learningRatesPerM"], ["train/SGD/learningRatesPerMB="]),
        (["run", "main.cntk", "train/SGD/maxEpochs=2", "train/SGD/useN"], ["train/SGD/useNAG="]),
        (["run", "main.cntk", "modelP"], ["modelPath="]),
        (["help", "learningRatesPerS"], ["learningRatesPerSample"]),
        (["configFile=gone.cntk", "tra"], []),
        (["sweep", "main.cntk", "train/SGD/maxE"], ["train/SGD/maxEpochs="]),
        (["sweep", "main.cntk", "train/S"], ["train/SGD/", "train/SimpleNetworkBuilder/"]),
        (["sweep", "--sampler", "t"], ["tpe"]),
        (["sweep", "--jobs", "2", "--slurm", "main.cntk", "train/SGD/maxE"], ["train/SGD/maxEpochs="]),
    ],
)
def test_words(words: list[str], expected: list[str], cntkpy) -> None:
    got = cntkpy("completion", "words", *words, files={"main.cntk": MAIN})
    assert got.out.splitlines() == expected


IN_SHELLS = [
    ("cntkpy expl", "explain"),
    pytest.param("cntkpy check ma", "main.cntk", marks=pytest.mark.thorough),
    pytest.param("cntkpy explain main.cntk train/SGD/maxE", "train/SGD/maxEpochs", marks=pytest.mark.thorough),
    pytest.param("cntkpy configFile=ma", "configFile=main.cntk", marks=pytest.mark.thorough),
    pytest.param("cntkpy check --format sa", "sarif", marks=pytest.mark.thorough),
    ("cntkpy configFile=main.cntk command=tr", "command=train"),
    pytest.param("cntkpy run main.cntk train/SGD/maxE", "train/SGD/maxEpochs=", marks=pytest.mark.thorough),
]
"""What is typed, and the last word when it has been completed."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A folder with a configuration, and `cntkpy` on the path."""
    (tmp_path / "main.cntk").write_text(MAIN)
    binary = tmp_path / "bin"
    binary.mkdir()
    (binary / "cntkpy").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cntkpy "$@"\n')
    (binary / "cntkpy").chmod(0o755)
    env = {**os.environ, "PATH": f"{binary}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "TERM": "dumb"}

    def run(*command: str, typed: str = "") -> str:
        if not shutil.which(command[0]):
            pytest.skip(f"{command[0]} is not installed here")
        if not typed:
            done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
            assert done.stderr == ""
            return done.stdout
        return at_a_terminal(command, typed, tmp_path, env)

    yield run


def at_a_terminal(command: Sequence[str], typed: str, folder: Path, env: dict[str, str]) -> str:
    """Run a shell at a terminal of its own and type; the text of the file `answer` when the shell has ended."""
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while select.select([ours], [], [], 60)[0] and (chunk := os.read(ours, 1 << 16)):
            shown += chunk
    except OSError:  # the shell has closed the terminal
        pass
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    answer = folder / "answer"
    assert answer.exists(), shown.decode("utf-8", "replace")
    return answer.read_text()


@pytest.mark.parametrize(("line", "expected"), IN_SHELLS)
def test_bash(line: str, expected: str, shell: Shell) -> None:
    parts = [part for part in re.split(r"(=|:)|\s+", line) if part]
    words = " ".join(f"'{part}'" for part in parts)
    script = f"""
source <(cntkpy completion bash)
COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_WORDS=({words}); COMP_CWORD={len(parts) - 1}
_cntkpy
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    assert shell("bash", "-c", script).splitlines() == [
        expected if expected.endswith("=") else expected.rpartition("=")[2]
    ]


@pytest.mark.parametrize(("line", "expected"), IN_SHELLS)
def test_fish(line: str, expected: str, shell: Shell) -> None:
    script = f"cntkpy completion fish | source; complete -C '{line}'"
    assert shell("fish", "--no-config", "-c", script).splitlines() == [expected]


@pytest.mark.parametrize(("line", "expected"), IN_SHELLS)
def test_zsh(line: str, expected: str, shell: Shell) -> None:
    """A key of our own tells what is in the line after the Tab key."""
    start = (
        "autoload -Uz compinit && compinit -u -D; source <(cntkpy completion zsh); "
        "tell() { print -r -- $BUFFER > answer; exit }; zle -N tell; bindkey '^X' tell\n"
    )
    typed = shell("zsh", "-f", "-i", typed=f"{start}{line}\t\x18")
    assert typed.split() == [*line.split()[:-1], expected]


def test_hooks_and_grammar_for_editors() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["cntkpy-check", "cntkpy-format"]
    assert {hook["files"] for hook in hooks} == {
        r"\.cntk$",
        r"\.(cntk|bs|ndl)$|(^|/)cntkpy\.toml$",
    }  # other endings are those of other programs, too (B6)
    text = (ROOT / "editors/cntk.tmLanguage.json").read_text()
    patterns = re.findall(r'"(?:match|begin|end)": ("(?:[^"\\]|\\.)*")', text)
    assert len(patterns) >= 10
    assert json.loads(text)["scopeName"] == "source.cntk"
    for pattern in patterns:
        re.compile(json.loads(pattern))


def test_the_page_of_the_command_line_lists_every_command() -> None:
    from cntkpy.commands.cli import cntkpy as group

    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8").partition("## ")[0]
    assert [name for name in group.commands if f"\ncntkpy {name} " not in page] == []
