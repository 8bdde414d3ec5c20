"""Programs that say `import cntk`: the import hook, `python -m cntkpy.compat`, the distribution cntkpy-cntk2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "distributions" / "cntkpy-cntk2"

PROGRAM = """\
import sys
import numpy as np
import cntk as C
import cntk.ops.functions
from cntk import sequence
from cntk.layers import Dense, default_options
from cntk.io import MinibatchSource, StreamDefs
from _cntk_py import set_fixed_random_seed

set_fixed_random_seed(1)
x = C.input_variable(2)
y = C.ops.plus(x, 1)
import cntkpy.compat.cntk as own
assert C is own and C.ops is own.ops and cntk.ops.functions is own.ops.functions
assert C.__spec__.name == "cntkpy.compat.cntk" and C.__name__ == "cntkpy.compat.cntk"
print(y.eval({x: np.ones((1, 2), np.float32)}).tolist(), sys.argv, __name__)
"""
SHAPE = PROGRAM.replace("y.eval({x: np.ones((1, 2), np.float32)}).tolist()", "y.shape")
"""The same without JAX, which takes half of the time."""


def run(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_program_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper.py").write_text("print('helper')\n")
    (tmp_path / "sub" / "p.py").write_text("import helper\n" + PROGRAM)
    done = run("-m", "cntkpy.compat", "sub/p.py", "-a", "b", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["helper", "[[2.0, 2.0]] ['sub/p.py', '-a', 'b'] __main__"]


def test_a_module_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "p.py").write_text(SHAPE)
    done = run("-m", "cntkpy.compat", "-m", "mine.p", "c", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("(2,)") and "'c'" in done.stdout


@pytest.mark.thorough
def test_workers_run_a_program_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("NAME = 'helper'\n")
    (tmp_path / "p.py").write_text(
        "import sys\nfrom helper import NAME\nfrom cntk.distributed import Communicator\n"
        "words = NAME, Communicator.rank(), Communicator.num_workers(), sys.argv[1:]\n"
        "sys.stdout.write(f'{words}\\n')\nCommunicator.finalize()\n"
    )
    done = run("-m", "cntkpy", "run", "--workers", "2", "p.py", "a", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"('helper', {rank}, 2, ['a'])" for rank in (0, 1)]


def test_install_in_a_program(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import cntkpy.compat\ncntkpy.compat.install()\ncntkpy.compat.install()\n" + SHAPE)
    done = run("p.py", folder=tmp_path)
    assert (done.returncode, done.stderr, done.stdout.split()[0]) == (0, "", "(2,)")


@pytest.mark.thorough
def test_the_package_of_the_distribution(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PROGRAM)
    path = os.pathsep.join([str(PACKAGE), str(ROOT)])
    done = run("p.py", folder=tmp_path, PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    again = run("-m", "cntkpy.compat", "p.py", folder=tmp_path, PYTHONPATH=path)
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.thorough
def test_another_package_is_not_hidden_silently(tmp_path: Path) -> None:
    other = tmp_path / "other" / "cntk"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("print('the other one')\n")
    path = os.pathsep.join([str(tmp_path / "other"), str(ROOT)])
    (tmp_path / "p.py").write_text(PROGRAM)
    done = run("-m", "cntkpy.compat", "p.py", folder=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0 and f"the package cntk of {other / '__init__.py'} is hidden" in done.stderr
    (tmp_path / "q.py").write_text("import cntk\nfrom cntkpy.compat import install\ninstall()\n")
    done = run("q.py", folder=tmp_path, PYTHONPATH=path)
    assert done.returncode == 1 and "is imported already: call cntkpy.compat.install() before" in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import cntk.contrib.crosstalk", "cntk.contrib.crosstalk of CNTK does not exist in cntkpy: use numpy arrays"),
        ("from cntk.layers import Dens", "did you mean 'Dense'?"),
        ("import cntk.learners.adams", "did you mean 'adam'?"),
    ],
)
@pytest.mark.sampled
def test_what_is_missing_says_what_there_is(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(f"import cntk\n{line}\n")
    done = run("-m", "cntkpy.compat", "p.py", folder=tmp_path)
    assert done.returncode == 1 and message in done.stderr


def test_usage(tmp_path: Path) -> None:
    assert run("-m", "cntkpy.compat", "--help", folder=tmp_path).stdout.startswith("usage: python -m cntkpy.compat")
    none = run("-m", "cntkpy.compat", folder=tmp_path)
    assert none.returncode == 2 and none.stderr.startswith("usage:")
    missing = run("-m", "cntkpy.compat", "none.py", folder=tmp_path)
    assert missing.returncode == 2 and missing.stderr.startswith("error: there is no program none.py")
    odd = run("-m", "cntkpy.compat", "--run", folder=tmp_path)
    assert odd.returncode == 2 and odd.stderr.startswith("error: --run is not a program")
