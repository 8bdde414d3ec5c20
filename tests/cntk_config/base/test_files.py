"""Writing files in one step."""

import stat

import pytest

from cntkpy.cntk_config import atomic_write


def test_folders_are_made_and_the_file_replaced(tmp_path):
    path = tmp_path / "a" / "b.txt"
    for text in ("one\n", "två\n"):
        with atomic_write(path, "w") as file:
            file.write(text)
        assert path.read_bytes() == text.encode()
    assert [found.name for found in path.parent.iterdir()] == ["b.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"), atomic_write(path) as file:
        file.write(b"half")
        raise OSError("disk full")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["x.bin"]


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
