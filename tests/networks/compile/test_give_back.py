"""Free memory is given back where the system has a function for it."""

import ctypes
import sys

import pytest

from networks.compile import give_back


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_without_the_function_nothing_is_done(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    give_back._trim.cache_clear()  # pyright: ignore[reportPrivateUsage]
    give_back.give_back()
    monkeypatch.undo()
    give_back._trim.cache_clear()  # pyright: ignore[reportPrivateUsage]
    give_back.give_back()
