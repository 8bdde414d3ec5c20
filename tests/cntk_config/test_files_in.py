"""Opening of inputs: what is not a regular file, names that cannot be, sizes (R12, R16)."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from cntkpy.cntk_config.base import files
from cntkpy.cntk_config.base.files import exists, open_input, read_input

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs pipes and sockets with names")


def test_a_regular_file_and_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert read_input(path) == b"abc"
    assert read_input(str(path), limit=3) == b"abc"
    with open_input(path, buffering=0) as file:
        assert file.read(2) == b"ab"
    assert read_input(os.devnull) == b""


@pytest.mark.parametrize(
    ("name", "said"), [("a\0b", "NUL"), ("x" * 300, "too long"), ("missing", "No such file"), (".", "directory")]
)
def test_names_that_are_no_files(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=said) as caught:
        open_input(name)
    assert caught.value.strerror
    assert isinstance(caught.value, FileNotFoundError) == (name == "missing")
    assert exists(name) == (name == ".")


@POSIX
def test_devices_pipes_and_sockets_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("/dev/zero", "a device"), (tmp_path / "pipe", "a pipe")):
        with pytest.raises(OSError, match=f"it is {what}, not a regular file"):
            open_input(name)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="No such device"):
            open_input(tmp_path / "s")


@POSIX
def test_a_pipe_where_it_makes_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=lambda: path.write_bytes(b"x" * 300_000))
    thread.start()
    assert len(read_input(path, pipe=True)) == 300_000
    thread.join()
    monkeypatch.setattr(files, "PIPE_TIMEOUT_SECONDS", 0.1)
    with pytest.raises(OSError, match="nobody wrote to it"):
        read_input(path, pipe=True)


def test_a_text_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="more than 67,108,864 bytes"):
        read_input(path)
