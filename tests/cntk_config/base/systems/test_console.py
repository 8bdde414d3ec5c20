"""What the console cannot show ends no command."""

import io
import sys
from types import SimpleNamespace

import pytest

from cntkpy.cntk_config.base.systems import console


@pytest.mark.parametrize(
    ("platform", "variable", "written"),
    [("linux", None, rb"\u65e5"), ("win32", None, "日".encode()), ("win32", "cp1252", rb"\u65e5")],
)
def test_texts_of_all_languages(
    platform: str, variable: str | None, written: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if variable:
        monkeypatch.setenv("PYTHONIOENCODING", variable)
    into = io.BytesIO()
    stream = io.TextIOWrapper(into, encoding="cp1252")
    monkeypatch.setattr(console, "sys", SimpleNamespace(platform=platform, stdout=stream, stderr=None))
    console.show_everything()
    stream.write("日")
    stream.flush()
    assert into.getvalue() == written


def test_streams_of_a_program_around_us_stay() -> None:
    before = sys.stdout
    console.show_everything()
    assert sys.stdout is before
