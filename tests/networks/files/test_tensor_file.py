"""Files of tensors, written and read piece by piece."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from cntkpy.networks.files import tensor_file
from cntkpy.networks.files.tensor_file import TensorFile, write_tensors

shapes = st.lists(st.integers(0, 9), max_size=4).map(tuple)


@given(st.lists(st.tuples(shapes, st.permutations(range(4)), st.booleans()), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arrays_of_any_order_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: list[tuple[tuple[int, ...], list[int], bool]]
) -> None:
    """In pieces of 24 bytes, whose rows are two elements at least, so that small arrays have many."""
    monkeypatch.setattr(tensor_file, "_READ_BYTES", 24)
    monkeypatch.setattr(tensor_file, "_SHORTEST", 2)
    arrays: dict[str, np.ndarray] = {}
    for number, (shape, order, double) in enumerate(cases):
        lies = [axis for axis in order if axis < len(shape)]  # in memory
        values = np.random.default_rng(number).normal(size=[shape[axis] for axis in lies])
        turned = values.astype(np.float64 if double else np.float32).transpose(np.argsort(lies))
        assert turned.shape == shape
        arrays[str(number)] = turned
    path = tmp_path / "x.safetensors"
    write_tensors(path, arrays, {"a": "b"})
    other = load_file(path)
    with TensorFile(path) as file:
        for name, array in arrays.items():
            np.testing.assert_array_equal(other[name], array)
            np.testing.assert_array_equal(file.read(name), array)
            turned = file.read(name, np.float64, transposed=True)
            np.testing.assert_array_equal(turned, array.transpose())
            assert turned.flags.c_contiguous


def test_numbers_that_all_elements_are(tmp_path):
    """Read without NumPy, for checks that look at constants."""
    arrays = {
        "same": np.full((2, 3), 0.1, np.float32),
        "double": np.full((4,), -0.1),
        "other": np.array([1.0, 1.0, 2.0]),
        "none": np.zeros((0,), np.float32),
        "whole": np.ones((2,), np.int32),
    }
    write_tensors(tmp_path / "m", arrays, {})
    with TensorFile(tmp_path / "m") as file:
        found = {name: file.same(name) for name in arrays}
    assert found == {"same": float(np.float32(0.1)), "double": -0.1, "other": None, "none": None, "whole": None}
