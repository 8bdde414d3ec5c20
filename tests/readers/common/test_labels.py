"""Labels are found by the kernel, however many there are and however they came in."""

from __future__ import annotations

import numpy as np
import pytest

from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.kernels.label_kernels import find_label


@pytest.mark.parametrize("at_once", [0, 1, 85, 86, 3000])
def test_labels_are_found(at_once: int) -> None:
    rng = np.random.default_rng(at_once)
    lengths = rng.choice([1, 2, *range(6, 26), 30, 99, 100, 101, 400], 4000)
    labels = list({rng.integers(33, 256, int(n), np.uint8).tobytes() for n in lengths} | {b"", b"a", bytes(200)})
    labels = labels[: at_once + 500]
    found = LabelMap(labels[:at_once])
    for number, label in enumerate(labels[at_once:], at_once):
        assert label not in found
        assert found.add(label) == number
    assert len(found) == len(labels)
    for number, label in enumerate(labels):
        text = np.frombuffer(label + b"?", np.uint8)
        assert find_label(text, 0, len(label), found.names, found.starts, found.table) == number
        other = np.frombuffer(label + b"\n!", np.uint8)
        assert find_label(other, 0, len(other), found.names, found.starts, found.table) == -1
