"""People's own `readers.py` and `networks/` beside a configuration are never imported, nor are they in the way (N1)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "cntk_config", "commands", "grammar", "networks", "readers", "trainers", "tests", "tools", "testing", "training",
)  # fmt: skip
DIGITS, DATA = "sample_configs/digits.cntk", "sample_configs/data/digits_test.ctf"
PROGRAM = "import cntk, cntkpy.training, cntkpy.testing\nprint(cntk.plus(1, 2).eval(), cntkpy.__version__)\n"
EPOCH = ("train/SGD/maxEpochs=1", "command=train")
MESSAGES = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}',
    b'{"jsonrpc":"2.0","id":2,"method":"shutdown"}',
    b'{"jsonrpc":"2.0","method":"exit"}',
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file and a package of each name, which raise where they are imported, and the samples."""
    for name in NAMES:
        for path in (tmp_path / f"{name}.py", tmp_path / name / "__init__.py"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"raise RuntimeError({path.name + ' of the user is imported'!r})\n")
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def run(folder: Path, path: str | None, *command: str, text: bytes = b"", status: int = 0) -> str:
    """Run Python in the folder and return its output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    environment |= {"PYTHONPATH": path} if path else {}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout.decode() + done.stderr.decode()


CONSOLE = ("-P", "-c", "import sys; from cntkpy.__main__ import main; sys.exit(main())")
"""The console command: the installed script does not put the current folder first."""


@pytest.mark.parametrize("path", [pytest.param(None, marks=pytest.mark.thorough), "."])
def test_quick_commands_and_programs(path: str | None, folder: Path) -> None:
    assert "cntkpy 0." in run(folder, path, *CONSOLE, "--version")
    assert "no problems" in run(folder, path, *CONSOLE, "check", DIGITS)
    assert "3" in run(folder, path, "-m", "cntkpy.compat", "program.py")
    assert "3" in run(folder, path, *CONSOLE, "run", "program.py")


@pytest.mark.thorough
@pytest.mark.parametrize("path", [None, "."])
def test_every_command(path: str | None, folder: Path) -> None:
    plain = run(folder, path, *CONSOLE, "--help")
    listed = set(re.findall(r"(?m)^  ([a-z]+)  ", plain.partition("Commands:")[2]))
    framed = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(message), message) for message in MESSAGES)
    words = {
        "run": [DIGITS, *EPOCH, "RunDir=out", "logFormat=json", "stderr=out/log"],
        "runs": ["out"],
        "report": ["out", "-o", "report.html"],
        "plot": ["out/log.log", "-o", "curves.svg"],
        "export": ["out/digits.model", "digits.onnx"],
        "preview": [DIGITS],
        "convert": [DATA, "digits.parquet"],
        "sweep": [DIGITS, *EPOCH, "RunDir=swept", "train/SGD/minibatchSize=32,64"],
        "show": [DIGITS],
        "explain": [DIGITS, "train/SGD/maxEpochs"],
        "diff": [DIGITS, DIGITS],
        "format": [DIGITS],
        "help": ["minibatchSize"],
        "list": ["readers"],
        "completion": ["bash"],
        "new": ["reader", "my-reader"],
        "lsp": [],
        "check": ["--data", DIGITS],
    }
    assert set(words) == listed
    for command, arguments in words.items():
        if command == "plot":
            arguments[0] = next(f"out/{path.name}" for path in (folder / "out").glob("log*") if path.suffix != ".jsonl")
        run(folder, path, *CONSOLE, command, *arguments, text=framed if command == "lsp" else b"")
    assert "COMPLETED" in run(folder, path, *CONSOLE, "run", "--workers", "2", DIGITS, *EPOCH, "RunDir=two")
    assert "3" in run(folder, path, *CONSOLE, "run", "--workers", "2", "program.py")
    run(folder, path, "-m", "cntkpy", f"configFile={DIGITS}", *EPOCH, "RunDir=classic")
