"""Stacks lie in memory that the device reads without a copy."""

from typing import Any

import numpy as np
import pytest
from batching_cases import batcher, case

from cntkpy.networks.arrays.lazy import jax
from cntkpy.trainers.step import memory
from cntkpy.trainers.step.memory import ALIGNED, MAX_COPIED_BYTES, empty, lend, zeros


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
@pytest.mark.parametrize("shape", [(), (7,), (3, 1, 5, 2)])
def test_stacks_are_aligned(shape: tuple[int, ...], dtype: type) -> None:
    assert not zeros(shape, dtype).any()
    for found in (zeros(shape, dtype), empty(shape, dtype)):
        assert found.shape == shape and found.dtype == dtype
        assert found.ctypes.data % ALIGNED == 0 and found.flags.writeable


def test_little_data_are_given_as_they_are() -> None:
    (stack,) = batcher().stacks(iter([case([4, 2]).minibatch]), lambda number: False)
    assert lend(stack.batch) is stack.batch
    large = {"x": zeros((MAX_COPIED_BYTES // 4,), np.float32), "y": zeros((1,), np.float32)}
    assert all(isinstance(array, jax.Array) for array in lend(large).values())


def test_what_the_reader_delivered_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_COPIED_BYTES", 0)
    (stack,) = batcher().stacks(iter([case([4, 2]).minibatch]), lambda number: False)
    lent = lend(stack.batch)
    values, placed = stack.batch.inputs["x"], lent.inputs["x"]
    assert np.array_equal(values, placed, equal_nan=True)  # after the last minibatch is anything
    if jax.default_backend() == "cpu":
        assert placed.unsafe_buffer_pointer() == values.ctypes.data
    kept = np.array(values)
    del stack, values
    assert np.array_equal(kept, placed, equal_nan=True), "the memory stays as long as the device has it"


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 2), (3, 4), (5, 6), (6, 6)])
def test_what_is_empty_of_a_stack_is_not_copied_to_a_device(
    count: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    put = jax.device_put

    def watched(arrays: Any, **more: Any) -> Any:
        copied.extend(len(array) for array in jax.tree.leaves(arrays))
        return put(arrays, **more)

    monkeypatch.setattr(jax, "device_put", watched)
    capacity = 6
    arrays = {"x": np.arange(capacity * 2.0).reshape(capacity, 2), "y": np.ones((capacity, 1, 3), np.int32)}
    arrays["mask"] = np.ones((capacity, 1, 3), bool)
    placed = memory.place(arrays, count, copies=True)
    assert copied == [rows] * 3
    for name, array in arrays.items():
        assert isinstance(placed[name], jax.Array)
        assert placed[name].shape == array.shape and placed[name].dtype == array.dtype
        assert np.array_equal(placed[name][:count], array[:count])
