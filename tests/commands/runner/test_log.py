"""The log: prefixes, redirection, names of files, the banner; the lines of progress tracing."""

import errno
import io
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

import pytest

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.commands.context.progress import NoProgress, ProgressTracing, TerminalProgress, make_progress
from cntkpy.commands.runner import log as run_log
from cntkpy.commands.runner.run import run

STAMP = r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d: "


def test_time_stamps_stand_before_all_but_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("cntkpy.somewhere")
    with run_log.Log() as opened:
        log.info("before")
        opened.handler.timestamping = True
        log.info("one\ntwo")
        log.info("plain", extra={"plain": True})
        run_log.blank_line()
    assert re.fullmatch(f"before\n{STAMP}one\ntwo\nplain\n\n", capsys.readouterr().err)


def test_the_banner_of_an_action_is_78_wide() -> None:
    lines = run_log.action_banner("train", "trainRNN")
    assert [len(line) for line in lines] == [78] * 5
    assert lines[2] == "# train command (trainRNN action)".ljust(77) + "#"
    assert run_log.action_banner("c" * 90, "train")[2].endswith("(train action) #")


def test_the_program_banner_separates_words_by_two_blanks() -> None:
    first, blank, command = run_log.program_banner(["configFile=a", "x=1"]).split("\n")
    assert re.fullmatch(r"cntkpy \S+ on \S+ at \d{4}/\d\d/\d\d \d\d:\d\d:\d\d", first)
    assert (blank, command) == ("", "cntkpy  configFile=a  x=1")


@pytest.mark.parametrize(
    ("path", "commands", "timestamping", "expected"),
    [
        ("log/x", ["a", "b"], False, "log/x"),
        ("log/x", ["a", "b"], True, "log/x_a_b.log"),
        ("log/x", [], True, "log/x.log"),
        ("-", ["a"], True, "-"),
    ],
)
def test_names_of_log_files(path: str, commands: list[str], timestamping: bool, expected: str) -> None:
    assert run_log.log_file_name(path, commands, timestamping) == expected


def test_redirection_makes_folders_overwrites_and_ends_with_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a" / "b"
    target.parent.mkdir()
    target.write_text("old\n" * 100)
    log = logging.getLogger("cntkpy.somewhere")
    stderr = sys.stderr
    with run_log.Log() as opened:
        opened.redirect(str(target))
        log.info("inside é")
        print("of a library", file=sys.stderr)
        assert target.read_text(encoding="utf-8") == "inside é\nof a library\n", "lines are written at once"
    assert sys.stderr is stderr
    assert capsys.readouterr().err == f"Redirecting stderr to file {target}\n"


def test_a_log_file_that_cannot_be_written_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with run_log.Log() as opened, pytest.raises(ConfigError, match="cannot write the log file"):
        opened.redirect(str(tmp_path / "file" / "log"))


def test_without_a_terminal_there_is_no_bar() -> None:
    assert isinstance(make_progress(redirected=False), NoProgress)
    bar = make_progress(redirected=True)
    bar.start("x", 3)
    bar.update(1, "y")
    bar.finish()


def test_on_a_terminal_there_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = make_progress(redirected=False)
    assert isinstance(bar, TerminalProgress)
    bar.start("Epoch 1", 10)
    bar.update(5, "ce = 0.5")
    bar.start("Epoch 2", 10)
    bar.finish()
    bar.finish()
    assert make_progress(redirected=True).__class__ is NoProgress


def test_progress_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tracing = ProgressTracing(enabled=True, total_epochs=8)
    tracing.point(0.5, 1.0)
    assert capsys.readouterr().out == "", "not before ten seconds have passed"
    monkeypatch.setattr(tracing, "_last", tracing._last - 11)
    tracing.point(0.5, 1.0)
    assert capsys.readouterr().out == "PROGRESS: 6.25%\nEVALERR: 1.0000000%\n"
    tracing.finished_epochs = 4
    tracing.point(4, 0.43100261, at_end=True)
    assert capsys.readouterr().out == "PROGRESS: 100.00%\nEVALERR: 0.4310026%\n"
    for minibatch in range(201):
        tracing.keep_alive(minibatch)
    assert capsys.readouterr().out == "PROGRESS: 0.00%\n" * 2
    ProgressTracing().point(1, 1, at_end=True)
    ProgressTracing().keep_alive(100)
    assert capsys.readouterr().out == ""


BAR = """
import sys, time, logging
from cntkpy.commands.runner.log import Log
from cntkpy.commands.context.progress import make_progress

bar = make_progress(redirected=False)
with Log():
    bar.start("epoch 1 of 2", 1000)
    for done in range(0, 1001, 250):
        bar.update(done, "ce = 0.5 * 20")
        time.sleep(0.15)  # speed is measured
    logging.getLogger("cntkpy.x").info("a line " + "of words " * 20 + "end")
    bar.finish()
"""


def test_the_bar_says_how_fast_and_how_long_and_leaves_log_lines_whole() -> None:
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 80))
    child = subprocess.Popen([sys.executable, "-c", BAR], stderr=end, env={**os.environ, "TERM": "xterm"})
    os.close(end)
    written = b""
    try:
        while chunk := os.read(terminal, 4096):
            written += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    assert child.wait(60) == 0
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    assert re.search(r"epoch 1 of 2 \S+ +75% \d+/s 0:00:0\d ce = 0\.5 \* 20", text), text
    assert "a line " + "of words " * 20 + "end\r\n" in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(one.split(), id=one, marks=[pytest.mark.thorough] * (one != "check m.cntk"))
        for one in ("show m.cntk", "check m.cntk", "help train")
    ],
)
def test_output_that_cannot_be_written_is_an_error(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "m.cntk").write_text("command = c\nc = [ action = train ]\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cntkpy", *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")


class Full(io.StringIO):
    """A file on a disk that has room for three lines."""

    def write(self, text: str) -> int:
        if self.getvalue().count("\n") >= 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(text)


def test_a_log_that_cannot_be_written_ends_the_run_with_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.cntk").write_text("command = c\nc = [ action = dumpNode ; modelPath = m.dnn ]\n")
    full = Full()
    monkeypatch.setattr(run_log, "open_text_in_place", lambda *_: full)
    monkeypatch.setattr(run_log, "_hold", lambda *_: None)
    assert run(["configFile=m.cntk", "stderr=log"]) == 1
    printed = capsys.readouterr().err
    assert printed.endswith("\nEXCEPTION occurred: cannot write the log file log: No space left on device\n")
    assert printed.count("EXCEPTION") == 1


@pytest.mark.parametrize("full", ["log", "log.jsonl"])
@pytest.mark.parametrize("bytes_left", [0, 300])
def test_a_full_disk_under_the_log_or_the_events_ends_the_run_with_one_message(
    full: str, bytes_left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has whole lines and no traceback; the console has the message."""
    from cntkpy.commands.runner import log_events

    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.cntk").write_text("command = c\nc = [ action = dumpNode ; modelPath = m.dnn ]\n")

    class Disk:
        """A file with room for some bytes."""

        def __init__(self, file: TextIO, left: int) -> None:
            self.file, self.left = file, left

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, text: str) -> int:
            if len(text) > self.left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.left -= len(text)
            return self.file.write(text)

        def close(self) -> None:
            self.file.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for module in (run_log, log_events):
        original = module.open_text_in_place

        def opened(path: str, *more: Any, original: Any = original) -> Any:
            file = original(path, *more)
            return Disk(file, bytes_left) if str(path) == full else file

        monkeypatch.setattr(module, "open_text_in_place", opened)
    assert run(["configFile=m.cntk", "stderr=log", "logFormat=json", "traceLevel=1"]) == 1
    printed = capsys.readouterr().err
    what = "cannot write the log file log" if full == "log" else "cannot write the events to log.jsonl"
    assert printed.endswith(f"\nEXCEPTION occurred: {what}: No space left on device\n")
    assert printed.count("EXCEPTION") == 1
    text = (tmp_path / "log").read_text()
    assert "Traceback" not in text + printed and (not text or text.endswith("\n"))


def test_what_another_thread_cannot_write_ends_the_run_too() -> None:
    handler = run_log.LogHandler()
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    thread = threading.Thread(target=handler.fail, args=("the events", error))
    thread.start()
    thread.join()
    assert str(handler.failure) == "cannot write the events: No space left on device"
    with pytest.raises(UserError, match="cannot write the events"):
        handler.fail("the log", error)
    handler.fail("the log", error)  # once


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    ("words", "status"), [("run m.cntk", 1), ("check nothing.cntk", 2), ("nocommand", 1), ("run m.cntk stderr=-", 1)]
)
def test_a_standard_error_that_cannot_be_written(words: str, status: int, tmp_path: Path) -> None:
    """Python itself would end with status 120."""
    (tmp_path / "m.cntk").write_text("command = c\nc = [ action = dumpNode ; modelPath = m.dnn ]\n")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-P", "-m", "cntkpy", *words.split()]
        done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=full, check=False, timeout=100)
    assert done.returncode == status


def test_the_files_of_a_process_that_may_write_little(tmp_path: Path) -> None:
    """As on a full disk, but of the system itself: the log, the events, and what a run writes at its end."""
    pytest.importorskip("resource")
    (tmp_path / "m.cntk").write_text("command = c\nc = [ action = dumpNode ; modelPath = m.dnn ]\n")
    for words, size, what in (
        (["stderr=log"], 20, "cannot write the log file log"),
        (["stderr=log", "logFormat=json"], 700, "cannot write the events to log.jsonl"),
    ):
        limited = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
        command = [sys.executable, "-P", "-m", "cntkpy", "run", "m.cntk", *words]
        done = subprocess.run(
            [sys.executable, "-c", f"{limited}; os.execv(sys.argv[1], sys.argv[1:])", *command],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
        assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"EXCEPTION occurred: {what}: File too large")
        assert "Traceback" not in done.stderr + (tmp_path / "log").read_text()
