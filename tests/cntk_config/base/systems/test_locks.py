"""Locks on open files; those of Windows are tried in tests/test_systems.py, where `msvcrt` is imitated."""

import os
import threading
import time
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.systems import locks


@pytest.fixture
def two(tmp_path: Path):
    """The same file opened twice."""
    descriptors = [os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    yield descriptors
    for one in descriptors:
        os.close(one)


def test_one_process_has_a_lock(two: list[int], tmp_path: Path) -> None:
    assert locks.lock(two[0]) is True
    assert locks.lock(two[1]) is False
    third = os.open(tmp_path / "file", os.O_RDONLY)
    assert locks.lock(third, shared=True) is False
    os.close(third)


@pytest.mark.skipif(not locks.CAN_BE_PASSED_ON, reason="Windows has no shared locks")
def test_shared_locks(two: list[int]) -> None:
    assert locks.lock(two[0], shared=True) is True
    assert locks.lock(two[1], shared=True) is True
    assert locks.lock(two[1]) is False


@pytest.mark.parametrize("shared", [False, True])
def test_a_look_at_a_lock_is_waited_for(two: list[int], shared: bool) -> None:
    """`cntkpy runs` must not keep a run from its log by looking whether it is written."""
    assert locks.lock(two[0]) is True
    begun = time.monotonic()
    assert locks.lock_soon(two[1], shared) is False
    assert time.monotonic() - begun >= locks.PROBE_SECONDS
    released = threading.Timer(locks.PROBE_SECONDS / 4, locks.lock, (two[0], True))
    released.start()
    assert locks.lock_soon(two[1], shared=True) is True
    released.join()


def test_a_system_without_locks(two: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_module", lambda name: None)
    assert locks.lock(two[0]) is None and locks.lock(two[1]) is None


class Busy:
    """`msvcrt` where another process has the byte, or the file system has no locks."""

    LK_NBLCK = 2

    def __init__(self, error: OSError) -> None:
        self.error, self.at = error, -1

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        self.at = os.lseek(descriptor, 0, os.SEEK_CUR)
        raise self.error


@pytest.mark.parametrize(("error", "found"), [(PermissionError(13, "x"), False), (OSError(22, "x"), None)])
def test_the_byte_of_windows(
    error: OSError, found: bool | None, two: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies behind the data, and where the file is read and written stays."""
    busy = Busy(error)
    monkeypatch.setattr(locks, "_module", lambda name: busy if name == "msvcrt" else None)
    os.write(two[0], b"abc")
    assert locks.lock(two[0]) is found
    assert busy.at == locks.BYTE > 1 << 30
    assert os.lseek(two[0], 0, os.SEEK_CUR) == 3


@pytest.mark.parametrize("posix", [False, *([True] if locks.CAN_BE_PASSED_ON else [])])
def test_a_locked_file_is_removed(posix: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "CAN_BE_PASSED_ON", posix)
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    locks.remove_locked(descriptor, path)
    assert not path.exists()
    with pytest.raises(OSError):
        os.fstat(descriptor)
