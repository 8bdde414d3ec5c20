"""Files of other systems, on this one."""

import os
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.systems import files
from cntkpy.cntk_config.base.writing import atomic_write


class Windows:
    """`sys` of Windows, as far as `files` asks."""

    platform = "win32"


def test_the_null_device_has_another_name_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "devnull", "nul")
    assert [files.system_name(name) for name in ("/dev/null", "dev/null", "C:\\x")] == ["nul", "dev/null", "C:\\x"]


def test_windows_is_asked_again_while_a_program_has_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A virus scanner has a model for a moment that is to be replaced."""
    monkeypatch.setattr(files, "sys", Windows)
    monkeypatch.setattr(files, "IN_USE_POLL_SECONDS", 0.001)
    refused = iter([True, True])
    replace = Path.replace

    def busy(self: Path, target: Path) -> Path:
        if next(refused, False):
            raise PermissionError(13, "The process cannot access the file", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", busy)
    with atomic_write(tmp_path / "model") as file:
        file.write(b"new")
    assert (tmp_path / "model").read_bytes() == b"new"
    assert next(refused, None) is None


def test_it_is_asked_for_some_time_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "sys", Windows)
    monkeypatch.setattr(files, "IN_USE_SECONDS", 0.02)
    monkeypatch.setattr(files, "IN_USE_POLL_SECONDS", 0.001)
    (tmp_path / "model").write_bytes(b"old")

    def busy(self: Path, target: Path) -> Path:
        raise PermissionError(13, "The process cannot access the file", str(self))

    monkeypatch.setattr(Path, "replace", busy)
    with pytest.raises(PermissionError) as caught, atomic_write(tmp_path / "model") as file:
        file.write(b"new")
    assert caught.value.filename == str(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(files.HAS_DRIVES, reason="this is Windows")
def test_other_systems_are_not_asked_again() -> None:
    calls: list[int] = []

    def refuse() -> None:
        calls.append(1)
        raise PermissionError(13, "not yours")

    with pytest.raises(PermissionError):
        files.once_free(refuse)
    assert len(calls) == 1
