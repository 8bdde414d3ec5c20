"""Whole programs for CNTK 2 after the subjects of its tutorials, run by `python -m cntkpy.compat` as they are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import haste
import pytest

pytestmark = pytest.mark.optimised
PROGRAMS = Path(__file__).parent / "tutorials"
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120

# What a program prints: a pattern with one number, and the greatest value of it; or words.
EXPECTED: dict[str, list[tuple[str, float]]] = {
    "logistic_regression": [(r"^test error: (\S+)$", 0.2)],
    "dense_digits": [(r"^linear test error: (\S+)$", 0.15), (r"^dense test error: (\S+)$", 0.1)],
    "conv_digits": [(r"^strided test error: (\S+)$", 0.6), (r"^pooled test error: (\S+)$", 0.15)],
    "lstm_series": [(r"^mse for test: (\S+)$", 0.04), (r"^series loss: (\S+)$", 0.01)],
    "resnet_pictures": [
        (r"^resnet test error: (\S+)$", 0.1),
        (r"^plain test error: (\S+)$", 0.4),
        (r"^block test error: (\S+)$", 0.1),
    ],
    "slot_tagging": [
        (r"^one way tag error: (\S+)$", 0.05),
        (r"^two ways tag error: (\S+)$", 0.05),
        (r"^intent error: (\S+)$", 0.1),
    ],
    "seq2seq_attention": [(r"^string error: (\S+)$", 0.3), (r"^beam errors: (\d+)$", 2)],
    "autoencoder": [
        (r"^shallow mean square: (\S+)$", 0.05),
        (r"^deep mean square: (\S+)$", 0.04),
        (r"^neighbours of another kind: (\S+)$", 0.05),
    ],
    "adversarial_digits": [(r"^dense distance: (\S+)$", 0.1), (r"^convolutional distance: (\S+)$", 0.3)],
    "reinforcement": [(r"^values ratio: (\S+)$", 0.8), (r"^policy ratio: (\S+)$", 0.8)],
    "style_transfer": [(r"^loss ratio: (\S+)$", 0.6), (r"^gradient error: (\S+)$", 0.05)],
    "transfer_learning": [
        (r"^base test error: (\S+)$", 0.1),
        (r"^frozen test error: (\S+)$", 0.2),
        (r"^tuned test error: (\S+)$", 0.2),
    ],
    "language_model": [(r"^perplexity ratio: (\S+)$", 1.5), (r"^unlikely words: (\d+)$", 2)],
    "sessions": [(r"^session test error: (\S+)$", 0.3)],
    "variational_autoencoder": [(r"^reconstruction ratio: (\S+)$", 0.8), (r"^pixel error: (\S+)$", 0.25)],
    "shared_towers": [(r"^pair error: (\S+)$", 0.1), (r"^search error: (\S+)$", 0.1)],
    "function_tools": [(r"^done: (1)$", 1)],
    "recurrences": [(r"^cell error: (\S+)$", 0.15)],
    "criterion_training": [
        (r"^arrays test error: (\S+)$", 0.1),
        (r"^file test error: (\S+)$", 0.1),
        (r"^sequences test error: (\S+)$", 0.15),
    ],
    "segmentation": [(r"^overlap error: (\S+)$", 0.3)],
    "data_sources": [(r"^done: (1) ", 1)],
    "speech_alignment": [(r"^edits: (\S+)$", 0.5), (r"^utterance error: (\S+)$", 0.2)],
    "user_code": [(r"^moons error: (\S+)$", 0.1)],
    "normalisation": [(r"^statistics error: (\S+)$", 0.01)],
    "captions": [(r"^caption error: (\S+)$", 0.5), (r"^unfolded differently: (\d+)$", 0)],
    "word_vectors": [(r"^neighbour error: (\S+)$", 0.1), (r"^unexplained: (\S+)$", 0.2)],
    "characters": [(r"^letter error: (\S+)$", 0.45), (r"^wrong brackets: (\d+)$", 4)],
    "video": [(r"^best error: (\S+)$", 0.1), (r"^clip error: (\S+)$", 0.1)],
    "double_precision": [
        (r"^coefficient error: (\S+)$", 1e-4),
        (r"^gradient error: (\S+)$", 1e-6),
        (r"^minimum error: (\S+)$", 1e-4),
    ],
    "speech_files": [(r"^frame error: (\S+)$", 0.1), (r"^utterance error: (\S+)$", 0.1)],
}
QUICK = ("logistic_regression", "data_sources")
COMPUTING = ("conv_digits", "language_model")


def run(name: str, folder: Path) -> str:
    """Return what a program prints. XLA optimises little for programs that take longer to compile than to run."""
    command = [sys.executable, "-m", "cntkpy.compat", str(PROGRAMS / f"{name}.py")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | (haste.environment() if name not in COMPUTING else {})
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.thorough]) for name in EXPECTED]
)
def test_a_tutorial(name: str, tmp_path: Path) -> None:
    printed = run(name, tmp_path)
    for pattern, bound in EXPECTED[name]:
        found = re.search(pattern, printed, re.MULTILINE)
        assert found, f"nothing like {pattern!r} in\n{printed[-2000:]}"
        assert float(found[1]) <= bound, f"{found[0]}: more than {bound}"


def test_every_program_has_a_test() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in PROGRAMS.glob("*.py"))
