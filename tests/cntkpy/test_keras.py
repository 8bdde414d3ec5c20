"""Keras 2.3.1 with KERAS_BACKEND=cntk.

The programs in `keras/` are skipped where Keras 2.3.1 is not installed: it is not a dependency. They run where it
is, or where CNTKPY_KERAS names a folder with it (docs/training-from-python.md says how to install it).
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cntkpy.compat.keras_support import go_by_steps

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((Path(__file__).parent / "keras").glob("*.py"))
FOLDER = os.environ.get("CNTKPY_KERAS", "")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), *([FOLDER] if FOLDER else [])])
    environment = {**os.environ, "KERAS_BACKEND": "cntk", "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)


@pytest.mark.skipif(
    not FOLDER and importlib.util.find_spec("keras") is None, reason="Keras 2.3.1 is not installed; see the docstring"
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_trains_and_predicts(program: Path) -> None:
    done = run("-m", "cntkpy.compat", str(program))
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_are_programs() -> None:
    assert [path.stem for path in PROGRAMS] == [
        "backend",
        "convolution",
        "dense",
        "dream",
        "flatten",
        "functional",
        "gradients",
        "recurrent",
        "residual",
        "siamese",
        "slices",
        "stateful",
        "steps",
        "text",
        "unknown",
    ]


NAMES = """
import cntkpy.compat; cntkpy.compat.install()
import collections, collections.abc, numpy
assert collections.Iterable is collections.abc.Iterable and numpy.Inf == numpy.inf
from cntkpy.compat.keras_support import Text
assert Text("a").decode("utf8") == "a"
"""


def test_keras_gets_the_names_that_it_needs() -> None:
    assert run("-c", NAMES).returncode == 0


def test_other_programs_are_left_alone() -> None:
    code = (
        "import cntkpy.compat; cntkpy.compat.install(); import collections; assert not hasattr(collections, 'Iterable')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, check=False).returncode == 0


class Layer:
    """A layer of Keras, as far as its wrapper asks for it."""

    activity_regularizer = None

    def call(self, x: list[int]) -> list[int]:
        return [-x[0]]


class Wrapper:
    """Keras' class `TimeDistributed`, as far as it is replaced."""

    def __init__(self) -> None:
        self.layer, self._input_map = Layer(), {}

    def call(self, inputs, training=None, mask=None) -> str:
        return "reshaped"


def test_a_layer_is_applied_step_by_step() -> None:
    """Without Keras: its module and its backend are stood in for."""

    def rnn(step, inputs, initial_states, input_length, unroll) -> tuple[None, list[int], list[int]]:
        assert (initial_states, input_length, unroll) == ([], len(inputs), False)
        return None, [step([x], ())[0][0] for x in inputs], []

    backend = SimpleNamespace(int_shape=lambda x: (None, len(x) or None), rnn=rnn)
    module = SimpleNamespace(K=backend, TimeDistributed=Wrapper, object_list_uid=id, has_arg=lambda call, name: False)
    go_by_steps(module)
    wrapper, inputs = Wrapper(), [1, 2]
    assert wrapper.call(inputs) == [-1, -2] and wrapper._input_map == {id(inputs): inputs}
    assert wrapper.call([]) == "reshaped"  # the number of steps is not known
