"""What is opened for writing in place is a regular file of ours and is reached through no link (A1); names (A5)."""

import contextlib
import os
import socket
import stat
from pathlib import Path

import pytest

from cntkpy.cntk_config import atomic_write
from cntkpy.cntk_config.base import writing
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.writing import NotOurFile, empty, open_in_place, open_text_in_place, output_file

PRECIOUS = "precious\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "victim"
    path.parent.mkdir()
    path.write_text(PRECIOUS)
    return path


def listening(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as one:  # the name of a socket is short
        one.bind(path.name)


OTHERS = {
    "a link": lambda path, victim: path.symlink_to(victim),
    "a link to a file next to it": lambda path, victim: path.symlink_to((path.parent / "z").open("w").name),
    "a link that leads nowhere": lambda path, victim: path.symlink_to(victim.with_name("missing")),
    "a hard link": lambda path, victim: path.hardlink_to(victim),
    "a pipe": lambda path, victim: os.mkfifo(path),
    "a folder": lambda path, victim: path.mkdir(),
    "a socket": lambda path, victim: listening(path),
    "a link to a device": lambda path, victim: path.symlink_to("/dev/null"),
}


@pytest.mark.skipif(os.name != "posix", reason="needs pipes and sockets with names, and links that anybody makes")
@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_file_of_ours_is_refused(other: str, tmp_path: Path, victim: Path) -> None:
    path = tmp_path / "log"
    OTHERS[other](path, victim)
    for append in (False, True):
        with pytest.raises(NotOurFile, match=r"link|not a regular file"):
            open_in_place(path, append=append)
    assert victim.read_text() == PRECIOUS
    assert [one.name for one in victim.parent.iterdir()] == ["victim"]


def test_a_file_is_made_in_folders_that_may_be_links(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim.parent)
    (victim.parent / "new").mkdir()
    path = tmp_path / "link" / "new" / "log"
    for text in ("one\n", "two\n"):
        with open_text_in_place(path) as file:
            empty(file)
            file.write(text)
            assert (victim.parent / "new" / "log").read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_mask()


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_is_in_a_file_stays_until_it_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("abc")
    descriptor = open_in_place(path)
    assert os.read(descriptor, 9) == b"abc"
    os.close(descriptor)
    with open_text_in_place(path) as file:
        file.write("d")
    assert path.read_text() == "abcd"


@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout", "/dev/stderr", "/proc/self/fd/1"])
def test_devices_are_opened(name: str) -> None:
    with open_text_in_place(name) as file:
        empty(file)
    for other in ("/dev/shm/../log", "/dev/../etc/x", "/proc/self/fd/x"):
        assert not writing.DEVICE.fullmatch(other)


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="files of other users are made by root only")
def test_files_and_links_of_other_users(tmp_path: Path, victim: Path) -> None:
    link, other = tmp_path / "link", victim.with_name("other")
    other.write_text(PRECIOUS)
    link.symlink_to(victim)
    for path, user in ((victim, 23456), (victim.parent, 23456), (tmp_path, 23456), (other, 34567), (link, 34567)):
        os.chown(path, user, -1, follow_symlinks=False)
    with pytest.raises(NotOurFile, match="belongs to another user"):
        open_in_place(other)
    with pytest.raises(NotOurFile, match="link that another user has made"), atomic_write(link):
        pass
    with pytest.raises(UserError, match="link cannot be written: it is a link that another user"), output_file(link):
        pass
    os.close(open_in_place(victim))  # of the owner of the folder
    os.chown(link, 23456, -1, follow_symlinks=False)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink() and victim.read_text() == "new" and other.read_text() == PRECIOUS


def test_a_link_can_be_replaced(tmp_path: Path, victim: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(victim)
    with atomic_write(link, through_link=False) as file:
        file.write(b"new")
    assert not link.is_symlink() and link.read_text() == "new" and victim.read_text() == PRECIOUS


NAMES = {
    "a\0b": "NUL character",
    "\ud800": "a character that no file name can have",
    "x" * 300: "File name too long",
    "": "name is missing|folder of that name",
    ".": "folder of that name",
    "folder": "folder of that name",
    "file/x": "Not a directory",
    "/dev/null": "a device, not a regular file",
    "x/" * 3000: "too long",
}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:12])
def test_names_that_no_file_can_have(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    reached = False
    with pytest.raises(OSError, match=NAMES[name]), atomic_write(name):
        reached = True
    with pytest.raises(UserError, match=NAMES[name]), output_file(name):
        reached = True
    assert not reached, "found only when everything is written"
    if name != "/dev/null":
        with pytest.raises(OSError):
            open_in_place(name)
        with pytest.raises(OSError):
            open_input(name)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]
