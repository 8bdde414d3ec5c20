"""Files beside a configuration that are called like modules of the program are not run, whichever way it is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = "command = a\nparallelTrain = maybe\na = [ action = train ]\n"
PLANTED = (
    "commands.py",
    "commands/__init__.py",
    "readers/__init__.py",
    "networks/__init__.py",
    "typing.py",
    "click.py",
    "multiprocessing.py",
    "concurrent.py",
    "grammar.py",
    "cntk_config.py",
    "trainers.py",
    "training.py",
    "testing.py",
    "tests/__init__.py",
    "tools/__init__.py",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration whose run ends with an error, and modules that say when they are imported."""
    (tmp_path / "m.cntk").write_text(CONFIG)
    for name in PLANTED:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name + chr(10)!r})\n")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    return done


CONSOLE = ("-P", "-c", "import sys; from cntkpy.commands.cli import main; sys.exit(main())")
"""What the installed script `cntkpy` does, whose folder is first."""


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(CONSOLE, id="cntkpy", marks=pytest.mark.thorough),
        pytest.param(("-m", "cntkpy"), id="python -m cntkpy"),
    ],
)
def test_workers(start: tuple[str, ...], folder: Path) -> None:
    done = run(folder, *start, "run", "--workers", "2", "configFile=m.cntk")
    assert done.returncode == 2
    assert done.stderr.count("EXCEPTION occurred") == 2
    assert "parallelTrain" in done.stderr


def test_processes_of_check(folder: Path) -> None:
    """Those of Python's own pool, started again as on macOS and Windows."""
    code = (
        "import multiprocessing; multiprocessing.set_start_method('spawn')\n"
        "from cntkpy.commands.checks import check\nfrom cntkpy.cntk_config.base.systems import cores\n"
        "check.CONFIGS_PER_PROCESS, cores.count = 1, lambda: 2\n"
        "print(check.check(['m.cntk', 'm.cntk'], False, 'text', check.CheckOptions()))"
    )
    done = run(folder, "-P", "-c", code)
    assert done.stdout.endswith("2\n"), done.stderr
    assert done.stdout.count("parallelTrain") == 2
