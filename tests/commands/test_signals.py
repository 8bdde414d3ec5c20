"""Ctrl-C and SIGTERM end every command within a second, whatever the process is doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

PROGRAM = """\
import os, signal, sys, threading, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

def here():
    Path("here").touch()

{place}

from cntkpy.commands.cli import main
sys.argv[1:] = {words!r}
sys.exit(main())
"""
DEAF = """
def deaf(*_, **__):
    here()
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
"""
BUSY = """
def busy(*_, **__):
    here()
    while True:
        pass
"""
KERNEL = """
def kernel(*_, **__):
    import numba
    spin(1)
    here()
    spin(10**13)

import numba

@numba.njit(nogil=True)
def spin(n):
    x = 0.0
    for i in range(n):
        x += 1.0 / (i + x + 1.0)
    return x
"""
COMPILER = """
def compiler(*_, **__):
    import jax
    import jax.numpy as jnp

    def long(x):
        for i in range(3000):
            x = jnp.sin(x) @ x + i
        return x

    lowered = jax.jit(long).lower(jnp.ones((3, 3)))
    here()
    lowered.compile()
    while True:
        lowered.compile()
"""
NAMED = """
def named(*_, **__):
    class Slow:
        def __set_name__(self, *_):
            busy()

    class Holder:
        slow = Slow()
"""
HANDLED = """
def handled(*_, **__):
    try:
        busy()
    except KeyboardInterrupt:
        Path("handled").touch()
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        raise
"""
WRITER = """
def writer(*_, **__):
    from cntkpy.cntk_config.base.writing import atomic_write
    with atomic_write("out.npz") as file:
        file.write(b"half")
        file.flush()
        deaf()
"""
PLACES = {
    "kernel": KERNEL + 'import cntkpy.cntk_config.parse\nsys.modules["cntkpy.cntk_config.parse"]._parse = kernel\n',
    "compiler": COMPILER
    + 'import cntkpy.cntk_config.parse\nsys.modules["cntkpy.cntk_config.parse"]._parse = compiler\n',
    "busy": BUSY + 'import cntkpy.cntk_config.parse\nsys.modules["cntkpy.cntk_config.parse"]._parse = busy\n',
    "deaf": DEAF + 'import cntkpy.cntk_config.parse\nsys.modules["cntkpy.cntk_config.parse"]._parse = deaf\n',
    "named": BUSY + NAMED + 'import cntkpy.cntk_config.parse\nsys.modules["cntkpy.cntk_config.parse"]._parse = named\n',
    "handled": BUSY
    + HANDLED
    + 'import cntkpy.cntk_config.parse\nsys.modules["cntkpy.cntk_config.parse"]._parse = handled\n',
    "writer": DEAF + WRITER + "import cntkpy.readers.convert.formats as formats\nformats.format_of = writer\n",
}
CONFIG = """\
command = train
train = [ action = train ; modelPath = m ; NDLNetworkBuilder = [ networkDescription = n.ndl ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 1 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf ; input = [ x = [ dim = 3 ; format = dense ] ] ] ]
"""
COMMANDS = {
    "run": ["configFile=m.cntk"],
    "check": ["check", "m.cntk"],
    "show": ["show", "m.cntk"],
    "format": ["format", "m.cntk"],
    "preview": ["preview", "m.cntk", "train/reader"],
    "sweep": ["sweep", "m.cntk", "train/SGD/maxEpochs=1,2"],
    "convert": ["convert", "-q", "configFile=m.cntk", "train/reader", "out.npz"],
}


def folder_of(path: Path) -> Path:
    (path / "m.cntk").write_text(CONFIG)
    (path / "n.ndl").write_text("x = Input(3)\n")
    (path / "a.ctf").write_text("|x 1 2 3\n")
    return path


def started(folder: Path, words: list[str], place: str) -> subprocess.Popen[str]:
    """A command that has come to a place and stays there."""
    program = PROGRAM.format(place=place, words=words)
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 100
    while not (folder / "here").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert (folder / "here").exists(), process.communicate()
    return process


SAID: dict[int, str] = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated by signal SIGTERM\n"}


def ended(process: subprocess.Popen[str], number: int) -> str:
    """What a command says that a signal ends; it takes a second, 30 where only the last resort ends it."""
    begun = time.monotonic()
    process.send_signal(number)
    output, log = process.communicate(timeout=60)
    assert time.monotonic() - begun < 20, log
    assert process.returncode == 128 + number, log
    assert "Traceback" not in log
    assert log.endswith(SAID[number]), log
    assert log.count(SAID[number]) == 1
    return output + log


def cases() -> list:
    quick = {("run", "busy", signal.SIGTERM), ("check", "deaf", signal.SIGTERM), ("check", "busy", signal.SIGINT)}
    found = []
    for command in COMMANDS:
        for place in ("busy", "deaf", "kernel", "compiler"):
            for number in (signal.SIGINT, signal.SIGTERM):
                marks = [] if (command, place, number) in quick else [pytest.mark.thorough]
                found.append(pytest.param(command, place, number, marks=marks))
    return found


@pytest.mark.parametrize(("command", "place", "number"), cases())
def test_wherever_the_main_thread_is(command: str, place: str, number: int, tmp_path: Path) -> None:
    process = started(folder_of(tmp_path), COMMANDS[command], PLACES[place])
    ended(process, number)


def test_an_exception_that_python_makes_of_it_is_no_defect(tmp_path: Path) -> None:
    """What is raised in `__set_name__`, as while modules are imported, comes out as a RuntimeError."""
    process = started(folder_of(tmp_path), COMMANDS["check"], PLACES["named"])
    assert ended(process, signal.SIGINT).lstrip() == SAID[signal.SIGINT]  # click ends the line of ^C


def test_a_second_signal_at_once_does_not_disturb_the_end(tmp_path: Path) -> None:
    process = started(folder_of(tmp_path), COMMANDS["check"], PLACES["handled"])
    process.send_signal(signal.SIGINT)
    while not (tmp_path / "handled").exists() and process.poll() is None:
        time.sleep(0.01)
    assert ended(process, signal.SIGINT).lstrip() == SAID[signal.SIGINT]  # click ends the line of ^C


EARLY = """
import importlib.abc
import cntkpy.__main__

class Waiting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        while name == "cntkpy.commands.cli":
            here()

sys.meta_path.insert(0, Waiting())
sys.exit(cntkpy.__main__.main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_the_command_line_is_being_imported(number: int, tmp_path: Path) -> None:
    process = started(tmp_path, ["check", "m.cntk"], EARLY)
    assert ended(process, number) == SAID[number]


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.thorough), signal.SIGTERM])
def test_a_half_written_file_is_removed(number: int, tmp_path: Path) -> None:
    process = started(folder_of(tmp_path), ["convert", "-q", "a.ctf", "out.npz", "--stream", "x:3"], PLACES["writer"])
    assert list(tmp_path.glob(".out.npz.*.tmp"))
    ended(process, number)
    assert not list(tmp_path.glob("*.npz"))
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_language_server(number: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(place="", words=["lsp"])],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    request = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": null, "capabilities": {}}}'
    process.stdin.write(f"Content-Length: {len(request)}\r\n\r\n{request}")
    process.stdin.flush()
    assert process.stdout.readline().startswith("Content-Length: ")
    ended(process, number)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("size", [3_000_000])
def test_a_long_text_is_being_read(number: int, size: int, tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "m.cntk").write_text(
        "command = a\na = [ action = edit ; editPath = m.mel ]\n" + "x = [ y = 1 ]\n" * (size // 14)
    )
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(place="here()", words=["check", "m.cntk"])],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2.5)
    assert process.poll() is None
    ended(process, number)
