"""Files that a configuration of Windows names."""

from pathlib import Path

import pytest

from cntkpy.cntk_config.base.systems.names import meant


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (r"Data\train.ctf", "Data/train.ctf"),
        (r"data\TRAIN.ctf", "Data/train.ctf"),
        ("DATA/train.ctf", "Data/train.ctf"),
        (r"Data\sub\..\train.ctf", "Data/sub/../train.ctf"),
        ("Data/train.ctf", None),
        ("Data/test.ctf", None),
        ("DATA/both", None),
        ("nothing/train.ctf", None),
        (r"C:\Data\train.ctf", None),
        ("a\0b", None),
    ],
)
def test_what_is_meant(name: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Data/sub").mkdir(parents=True)
    for one in ("train.ctf", "Both", "bOth"):
        (tmp_path / "Data" / one).write_text("")
    if (tmp_path / "data").exists() and found:
        pytest.skip("the case of letters does not count here")
    monkeypatch.chdir(tmp_path)
    assert meant(name) == found
    assert meant(f"{tmp_path.as_posix()}/{name}") == (f"{tmp_path.as_posix()}/{found}" if found else None)
