"""Caches hold code, so they lie only where nobody else can write; a folder that others made is not touched."""

import os
import pickle
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cntkpy.cntk_config.base import grammars
from cntkpy.cntk_config.base.cache_folders import LONGEST_PATH, is_private, private_folder, socket_folder
from cntkpy.grammar import _checksum, _sum_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The user's caches and the temporary folder, both empty."""
    caches, temporary = tmp_path / "caches", tmp_path / "temporary"
    caches.mkdir()
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return caches, temporary


def mode(folder: Path | None) -> int:
    assert folder is not None
    return stat.S_IMODE(folder.stat().st_mode)


def in_temporary(temporary: Path) -> Path:
    return temporary.resolve() / f"cntkpy-{os.geteuid()}"


def test_the_folder_is_closed_to_others(places: tuple[Path, Path]) -> None:
    found = private_folder("kernels", "a")
    assert found == places[0].resolve() / "cntkpy" / "kernels" / "a"
    assert [mode(places[0] / one) for one in ("cntkpy", "cntkpy/kernels", "cntkpy/kernels/a")] == [0o700] * 3
    assert private_folder("kernels", "a") == found
    assert found is not None
    assert is_private(found)


def test_a_folder_of_an_older_version_is_closed(places: tuple[Path, Path]) -> None:
    (places[0] / "cntkpy").mkdir()
    (places[0] / "cntkpy").chmod(0o755)
    found = private_folder()
    assert found == places[0].resolve() / "cntkpy"
    assert mode(found) == 0o700


@pytest.mark.parametrize("part", ["cntkpy", "cntkpy/kernels"])
def test_a_folder_that_others_may_write_to_is_not_used(part: str, places: tuple[Path, Path]) -> None:
    planted = places[0] / part
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    assert private_folder("kernels") == in_temporary(places[1]) / "kernels"
    assert mode(in_temporary(places[1])) == 0o700
    assert mode(planted) == 0o777
    assert not list(planted.iterdir())
    assert not is_private(planted)


def test_nor_one_below_a_folder_that_others_may_write_to(places: tuple[Path, Path]) -> None:
    places[0].chmod(0o777)
    assert private_folder() == in_temporary(places[1])
    mine = places[0] / "mine"
    mine.mkdir(mode=0o700)
    assert not is_private(mine)


def test_nor_a_link(places: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (places[0] / "cntkpy").symlink_to(tmp_path / "elsewhere")
    assert private_folder() == in_temporary(places[1])
    in_temporary(places[1]).rmdir()
    in_temporary(places[1]).symlink_to(tmp_path / "elsewhere")
    assert private_folder("kernels") is None
    assert not list((tmp_path / "elsewhere").iterdir())


def test_nor_one_of_another_user(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    planted = [places[0] / "cntkpy", places[1] / f"cntkpy-{os.geteuid() + 1}"]
    for one in planted:
        one.mkdir(mode=0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr("os.geteuid", lambda: other)  # we are now somebody else
    assert private_folder() is None
    assert not is_private(planted[0])
    assert not any(list(one.iterdir()) for one in planted)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_planted_tables_of_a_grammar_are_not_read(places: tuple[Path, Path], tmp_path: Path) -> None:
    grammars.load("ndl")
    (tables,) = (places[0] / "cntkpy").glob("grammar-ndl-*")
    tables.write_bytes(b"x\n" + pickle.dumps(Bomb(tmp_path / "ran")))
    _sum_file(tables).write_text(_checksum(tables))
    (places[0] / "cntkpy").chmod(0o777)
    grammars.load("ndl")
    assert not (tmp_path / "ran").exists()
    (places[0] / "cntkpy").chmod(0o700)  # the bomb does work
    grammars.load("ndl")
    assert (tmp_path / "ran").exists()


def plant(places: tuple[Path, Path]) -> None:
    for one in (places[0] / "cntkpy", in_temporary(places[1])):
        one.mkdir()
        one.chmod(0o777)


def test_kernels_and_programs_are_not_kept_there(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from cntkpy.networks.arrays import lazy
    from cntkpy.readers.kernels import jit, kept

    kept.place_for_compiled_code.cache_clear()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    plant(places)
    try:
        assert kept.place_for_compiled_code() is None
        function: Any = jit.kernel(lambda x: x + 1)
        assert function(1) == 2
        assert type(function._cache).__name__ == "NullCache"
        lazy.cache_folder.cache_clear()
        assert lazy.cache_folder() is None
        for name in ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR"):
            monkeypatch.setenv(name, str(places[0] / "cntkpy"))
        kept.place_for_compiled_code.cache_clear()
        assert kept.place_for_compiled_code() is None
        lazy.cache_folder.cache_clear()
        assert lazy.cache_folder() is None
        assert "others may write to NUMBA_CACHE_DIR=" in caplog.text
        assert "others may write to JAX_COMPILATION_CACHE_DIR=" in caplog.text
        for name in ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR"):
            monkeypatch.setenv(name, str(places[1].parent / name))
        kept.place_for_compiled_code.cache_clear()
        assert kept.place_for_compiled_code() == str(places[1].parent / "NUMBA_CACHE_DIR")
        lazy.cache_folder.cache_clear()
        assert lazy.cache_folder() == places[1].parent / "JAX_COMPILATION_CACHE_DIR"
    finally:
        kept.place_for_compiled_code.cache_clear()


def test_damaged_tables_of_a_grammar_are_not_read(places: tuple[Path, Path], tmp_path: Path) -> None:
    wanted = str(grammars.load("ndl").rules)
    (tables,) = (places[0] / "cntkpy").glob("grammar-ndl-*")
    whole = tables.read_bytes()
    for at in (0, 100, len(whole) // 2, len(whole) - 1):
        tables.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert str(grammars.load("ndl").rules) == wanted
        assert _sum_file(tables).read_text() == _checksum(tables)
    tables.write_bytes(b"x\n" + pickle.dumps(Bomb(tmp_path / "ran")))
    grammars.load("ndl")
    assert not (tmp_path / "ran").exists()


def test_sockets_lie_where_only_this_user_comes(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the temporary folder; where that one is too long for the name of a socket, or of somebody else, elsewhere."""
    short = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))
    try:
        monkeypatch.setattr("tempfile.tempdir", str(short))
        short.chmod(0o1777)
        found = socket_folder()
        assert found is not None and found == in_temporary(short) / "run"
        assert mode(found) == mode(found.parent) == 0o700
        found.chmod(0o755)
        assert socket_folder() == found and mode(found) == 0o700
        found.chmod(0o777)  # somebody else may have made a link there
        other = socket_folder()
        assert other is None or (other != found and mode(other) == 0o700)
        long = short / ("x" * 90)
        long.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(long))
        other = socket_folder()
        assert other is None or len(str(other)) <= LONGEST_PATH
    finally:
        shutil.rmtree(short)
