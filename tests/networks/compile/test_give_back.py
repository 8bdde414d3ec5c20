"""Memory is given back where the system has functions for it."""

import ctypes
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

from networks.arrays.lazy import jax, jnp
from networks.compile import give_back


def forget() -> None:
    """Functions are looked up again."""
    give_back._function.cache_clear()  # pyright: ignore[reportPrivateUsage]


def of_files() -> int:
    """Bytes of mapped files that this process has in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_without_the_functions_nothing_is_done(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    forget()
    give_back.give_back(give_back.MUCH)
    monkeypatch.undo()
    forget()
    give_back.give_back()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes code back")
def test_the_code_of_the_compiler_goes_where_much_memory_is_needed_and_comes_again() -> None:
    def total(length: int) -> float:
        return float(jax.jit(lambda x: jnp.sum(x * 2))(jnp.ones(length)))

    assert total(3) == 6
    before = of_files()
    give_back.give_back(give_back.MUCH - 1)
    assert of_files() > before - (4 << 20), "it stays where little is needed: reading it again takes time"
    give_back.give_back(give_back.MUCH)
    assert of_files() < before - (8 << 20)
    assert total(3) == 6 and total(5) == 10
