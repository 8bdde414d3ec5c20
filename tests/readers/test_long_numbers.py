"""Numbers of thousands of digits, which Python does not read, and of more than an int64 holds: located errors."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import create_reader
from cntkpy.readers.convert.batches import parse_stream
from cntkpy.readers.convert.sources import find_streams
from cntkpy.readers.formats.kaldi.features import Counts
from cntkpy.readers.kernels import budget

LONG = "9" * 5000


def first_minibatch(section: str) -> None:
    reader = create_reader(section)
    reader.start_minibatch_loop(2, 0)
    reader.get_minibatch()


def sparse(folder: Path) -> None:
    (folder / "t").write_text(f"|x {LONG}:1\n")
    first_minibatch(f'file="{folder}/t";input=[x=[dim=3;format=sparse]]')


def counts(folder: Path) -> None:
    (folder / "t").write_text(f"u {LONG}\n")
    Counts(str(folder / "t"))


def streams(folder: Path) -> None:
    (folder / "t").write_text(f"|x 1:1\n|x {LONG}:1\n")
    find_streams(str(folder / "t"))


def dimension(_: Path) -> None:
    parse_stream(f"x:{LONG}")


def no_digit(_: Path) -> None:
    parse_stream("x:²")


CASES: dict[Callable[[Path], None], str] = {
    sparse: "line 1",
    counts: "line 1: malformed",
    streams: "line 2: b'9.*' is not the index",
    dimension: "x:999",
    no_digit: "x:²",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_long_numbers(case: Callable[[Path], None], tmp_path: Path) -> None:
    budget.reset(budget.BUDGET)
    with pytest.raises(UserError, match=CASES[case]):
        case(tmp_path)


@pytest.mark.parametrize("label", ["9" * 19, LONG])
@pytest.mark.parametrize("key", ["0", "9" * 19, LONG])
def test_long_labels_and_keys_of_pictures(tmp_path: Path, label: str, key: str) -> None:
    import cv2
    import numpy as np

    picture = base64.b64encode(cv2.imencode(".png", np.zeros((2, 2, 3), np.uint8))[1].tobytes()).decode()
    (tmp_path / "t").write_text(f"{key}\t{label}\t{picture}\n")
    section = (
        f'deserializers=([type=Base64ImageDeserializer;file="{tmp_path}/t";input=[x=[transforms=([type=Transpose])];'
        "y=[labelDim=2]]]);randomize=false"
    )
    with pytest.raises(UserError):
        first_minibatch(section)
