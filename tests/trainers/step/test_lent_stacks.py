"""Stacks lie in memory that the device reads without a copy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from batching_cases import batcher, case

from cntkpy.networks.arrays.lazy import jax
from cntkpy.trainers.step import memory
from cntkpy.trainers.step.memory import ALIGNED, MAX_COPIED_BYTES, empty, join, lend, zeros


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
@pytest.mark.parametrize("shape", [(), (7,), (3, 1, 5, 2)])
def test_stacks_are_aligned(shape: tuple[int, ...], dtype: type) -> None:
    assert not zeros(shape, dtype).any()
    for found in (zeros(shape, dtype), empty(shape, dtype)):
        assert found.shape == shape and found.dtype == dtype
        assert found.ctypes.data % ALIGNED == 0 and found.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_arrays_are_joined(dtype: type) -> None:
    """Whatever their own type, and however they lie."""
    arrays = [np.arange(6.0).reshape(2, 3), np.arange(6, 12, dtype=dtype).reshape(3, 2).T, np.zeros((0, 3), dtype)]
    arrays[0].setflags(write=False)
    target = np.full((3, 2, 3), 7, dtype)
    join(arrays, target)
    assert np.array_equal(target, np.stack([*arrays[:2], np.full((2, 3), 7)]))


def test_numbers_of_another_kind_are_not_joined() -> None:
    with pytest.raises(TypeError, match="same_kind"):
        join([np.array([1.5])], np.zeros(1, np.int32))


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
