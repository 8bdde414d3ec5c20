"""Completion: the words of a command line, and the scripts in real shells where there are any."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MAIN = """\
command = train
modelPath = m
train = [
    action = train
    SGD = [ maxEpochs = 3 ; learningRatesPerMB = 0.1 ]
    reader = [ file = t.ctf ; input = [ features = [ dim = 2 ; format = dense ] ] ]
]
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["exp"], ["explain"]),
        (["check", "--sel"], ["--select"]),
        (["check", "ma"], ["main.cntk"]),
        (["configFile=ma"], ["configFile=main.cntk"]),
        (["configFile=main.cntk+ma"], ["configFile=main.cntk+main.cntk"]),
        (["explain", "main.cntk", "train/SGD/maxE"], ["train/SGD/maxEpochs"]),
        (["explain", "main.cntk", "train/S"], ["train/SGD/", "train/SimpleNetworkBuilder/"]),
        (["configFile=main.cntk", "train=[SGD=[maxE"], ["train=[SGD=[maxEpochs="]),
        (["configFile=main.cntk", "train=[SGD=[maxEpochs=3;useN"], ["train=[SGD=[maxEpochs=3;useNAG="]),
        (["configFile=main.cntk", "train=[rea"], ["train=[reader=["]),
        (["help", "learningRatesPerS"], ["learningRatesPerSample"]),
        (["configFile=gone.cntk", "tra"], []),
    ],
)
def test_words(words: list[str], expected: list[str], cntkpy) -> None:
    got = cntkpy("completion", "words", *words, files={"main.cntk": MAIN})
    assert got.out.splitlines() == expected


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cntkpy exp", "explain"),
        ("cntkpy check ma", "main.cntk"),
        ("cntkpy explain main.cntk train/SGD/maxE", "train/SGD/maxEpochs"),
        ("cntkpy configFile=ma", "main.cntk"),
    ],
)
def test_bash(line: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "main.cntk").write_text(MAIN)
    binary = tmp_path / "bin"
    binary.mkdir()
    (binary / "cntkpy").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cntkpy "$@"\n')
    (binary / "cntkpy").chmod(0o755)
    parts = [part for part in re.split(r"(=|:)|\s+", line) if part]
    words = " ".join(f"'{part}'" for part in parts)
    script = f"""
source <(cntkpy completion bash)
COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_WORDS=({words}); COMP_CWORD={len(parts) - 1}
_cntkpy
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    env = {**os.environ, "PATH": f"{binary}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [expected], done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_accept_their_script(shell: str, cntkpy, tmp_path: Path) -> None:
    script = cntkpy("completion", shell).out
    assert "cntkpy completion words" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_hooks_and_grammar_for_editors() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["cntkpy-check", "cntkpy-format"]
    text = (ROOT / "editors/cntk.tmLanguage.json").read_text()
    patterns = re.findall(r'"(?:match|begin|end)": ("(?:[^"\\]|\\.)*")', text)
    assert len(patterns) >= 10
    assert json.loads(text)["scopeName"] == "source.cntk"
    for pattern in patterns:
        re.compile(json.loads(pattern))
