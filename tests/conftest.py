"""What all tests share: running `cntkpy` as a person does, in its own process or in this one."""

import contextlib
import gc
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import haste
import hypothesis
import pytest

SLOW_IS_NO_FAULT = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
}
hypothesis.settings.register_profile("same", derandomize=True, **SLOW_IS_NO_FAULT)
hypothesis.settings.register_profile("random", **SLOW_IS_NO_FAULT)
hypothesis.settings.load_profile("same")

# Hypothesis reads every module for numbers and texts to try: seconds in each process, and inputs that change with them.
with contextlib.suppress(ImportError):
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.constants_ast import Constants

    providers._get_local_constants = Constants  # type: ignore[attr-defined]

ROOT = Path(__file__).resolve().parent.parent

# Where PYTHONDONTWRITEBYTECODE is set, every process that a test starts would compile the sources again, half a second.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


gc.disable()


def pytest_collection_finish() -> None:
    """The garbage collector leaves alone what collecting has made, which lives as long as the process.

    Without this, every full collection walks through some hundred thousand objects of pytest; collecting makes little
    garbage, and takes a fifth less time while the collector is off.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `sampled` two of three are thorough; digests of their names choose them."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for several in cases.values():
        several.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in several[(len(several) + 2) // 3 :]:
            item.add_marker(pytest.mark.thorough)


@dataclass(frozen=True)
class Result:
    """What a run left behind."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The line that says what went wrong."""
        marker = "EXCEPTION occurred: "
        lines = [line for line in self.err.splitlines() if marker in line]
        return lines[-1].split(marker, 1)[1] if lines else ""


Runner = Callable[..., Result]


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write small text files, folders included, byte for byte."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))


@pytest.fixture
def cntkpy_process(tmp_path: Path) -> Runner:
    """`cntkpy_process(*words, files={...})`: a whole process in a fresh folder."""

    def run(*words: str, files: Mapping[str, str] | None = None, cwd: Path | None = None) -> Result:
        write_files(tmp_path, files or {})
        env = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
        command = [sys.executable, "-m", "cntkpy", *words]
        done = subprocess.run(command, cwd=cwd or tmp_path, env=env, capture_output=True, timeout=300, check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def cntkpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """`cntkpy(*words, files={...})`: the same in this process, which is much faster."""

    def run(*words: str, files: Mapping[str, str] | None = None, cwd: Path | None = None) -> Result:
        from cntkpy.commands.cli import main

        write_files(tmp_path, files or {})
        environment = dict(os.environ)
        here = Path.cwd()
        os.chdir(cwd or tmp_path)
        capsys.readouterr()
        try:
            code = main(list(words))
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture(autouse=True, scope="session")
def disks_need_not_keep_what_tests_write() -> Iterator[None]:
    """Thousands of `os.fsync` of some milliseconds each do nothing. Processes that tests start have the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def the_c_library_keeps_what_was_freed() -> Iterator[None]:
    """Each program that is compiled gives freed memory back twice, and the next one takes it anew: a twentieth of the
    time in a worker that is some minutes old. Processes that tests start do as for users."""
    from cntkpy.cntk_config.base.systems import memory

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "release_freed", lambda: None)
        yield


@pytest.fixture(autouse=True)
def work_without_kernels() -> None:
    """Little data are read as in a new process, whatever the tests before have read; see
    `cntkpy.readers.kernels.budget`."""
    from cntkpy.readers.kernels import budget

    budget.reset(budget.BUDGET)


HASTY = ("cntkpy", "commands", "networks", "readers", "trainers")
COMPILED_IN_HASTE = tuple(f"{ROOT / 'tests' / name}{os.sep}" for name in HASTY)
"""Tests of what programs mean, not of how fast or to which last bit they compute it: XLA optimises little for them.

All others, and what is marked `optimised`, have the programs that users have. So has every fourth file of thorough
tests, and of the folders of `SAMPLED` every fourth thorough case, which a digest of the name chooses: they take three
times as long. The cases of a file often share what a fixture has computed, and have to agree with it bit for bit.
"""
SAMPLED = tuple(f"{ROOT / 'tests/networks' / name}{os.sep}" for name in ("nodes", "onnx"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whether XLA optimises for a test and its fixtures; processes that the test starts do as it does."""
    marks = {mark.name for mark in item.iter_markers()}
    path = str(item.path)
    name = item.nodeid if path.startswith(SAMPLED) else item.nodeid.partition("::")[0]
    as_for_users = "optimised" in marks or ("thorough" in marks and zlib.crc32(name.encode()) % 4 == 0)
    haste.switch(path.startswith(COMPILED_IN_HASTE) and not as_for_users)


@pytest.fixture(autouse=True)
def the_current_folder_stays() -> Iterator[None]:
    """`currentDirectory=` moves the whole process; the next test begins where the first one did."""
    yield
    os.chdir(ROOT)


WATCHED = {f"test_{name}" for name in (
    "adapt", "bn_statistics", "check", "check_typos", "create_label_map", "cross_validate", "dump_node", "edit",
    "explain", "run", "sample_actions", "show", "svd",
)}  # fmt: skip
"""Tests of whole configurations, of every action and reader; `CNTKPY_READS=1` watches all tests."""


@pytest.fixture(autouse=True)
def only_declared_names_are_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test in which the program reads a name from a configuration that it has not declared."""
    if request.path.stem not in WATCHED and "CNTKPY_READS" not in os.environ:
        yield
        return
    from declared_reads import Watch

    watch = Watch()
    watch.start(monkeypatch)
    yield
    undeclared = watch.undeclared()
    assert not undeclared, "\n".join(["read, but not declared:", *undeclared])
