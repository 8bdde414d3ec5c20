"""The strategy of a single device, and the rules that every strategy of a trainer follows."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cntkpy.networks.compile.evaluate import Settings
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.rules.updates import momentum
from cntkpy.trainers.step.placement import OneDevice, copy_to_device, padded_scalars, whole_scalars
from cntkpy.trainers.step.state import EpochSettings, TrainState
from cntkpy.trainers.step.strategy import Strategy

pytestmark = pytest.mark.optimised


def test_scalars_of_a_stack_are_padded_with_zeros() -> None:
    got = padded_scalars(np.array([4, 2]), 3, np.array([0.5, 0.25]), np.float32)
    np.testing.assert_array_equal(got, np.array([[0.5, 4], [0.25, 2], [0, 0]], np.float32))
    assert got.dtype == np.float32


@pytest.mark.parametrize(
    ("per_step", "gaps", "exponents"),
    [(False, True, [6, 4]), (True, True, [3, 2]), (False, False, [5, 4]), (True, False, [2.5, 2])],
)
def test_momentum_counts_columns_samples_or_time_steps(per_step: bool, gaps: bool, exponents: list[float]) -> None:
    columns, samples = np.array([6, 4]), np.array([5, 4])
    stack: Any = SimpleNamespace(
        columns=columns,
        steps=np.array([3, 2]),
        batch=SimpleNamespace(mask=np.zeros((4, 3, 2), bool)),
        sizes=lambda gaps: columns if gaps else samples,
    )
    settings = EpochSettings(0.1, 0.9, Settings(), 1, per_step=per_step)
    got = whole_scalars(stack, settings, np.float64, gaps)
    np.testing.assert_allclose(got[:2, 0], [0.9**n for n in exponents], rtol=1e-12)
    np.testing.assert_array_equal(got[:2, 1], columns if gaps else samples)
    np.testing.assert_array_equal(OneDevice().step_scalars(stack, settings, np.float64, gaps), got)
    counted = whole_scalars(stack, replace(settings, counted=True), np.float64, False)
    np.testing.assert_allclose(counted[:2, 0], [0.9, 0.9] if per_step else [0.9**5, 0.9**4], rtol=1e-12)


def test_workers_that_train_on_their_own_count_their_own_columns_or_samples() -> None:
    """Two workers with two slots each; three of the four slots are the reader's."""
    from cntkpy.trainers.parallel.placement import PerWorker

    mask = np.zeros((2, 3, 4), bool)
    mask[0, :, 0] = mask[0, :2, 1] = mask[0, 0, 2] = True
    group: Any = SimpleNamespace(local=[0, 1], on_all=lambda array, axis: array)
    stack: Any = SimpleNamespace(batch=SimpleNamespace(mask=mask), layouts=[SimpleNamespace(T=3, S=3)], placed=None)
    for gaps, expected in ((True, [6, 3]), (False, [5, 1])):
        scalars = PerWorker(group).step_scalars(stack, EpochSettings(0.1, 0.9, Settings(), 1), np.float64, gaps=gaps)
        np.testing.assert_allclose(scalars[:, 0, 1], expected)
        np.testing.assert_allclose(scalars[:, 0, 0], 0.9 ** np.array(expected))


@pytest.mark.parametrize("offset", [0, 1])
def test_a_copy_on_the_device_shares_nothing_and_can_be_donated(offset: int) -> None:
    import jax

    whole = np.zeros(5000, np.float32)
    first = -whole.ctypes.data // 4 % 16 + offset  # with offset 0, JAX would share the memory
    array = whole[first : first + 4096]
    placed = copy_to_device(array)
    array[:] = 7
    np.testing.assert_array_equal(np.asarray(placed), 0)
    place = placed.unsafe_buffer_pointer()
    assert jax.jit(lambda x: x + 1, donate_argnums=0)(placed).unsafe_buffer_pointer() == place


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
def test_an_array_is_copied_to_the_device_once() -> None:
    def megabytes(key: str) -> float:
        return int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0]) / 1024

    array = np.ones(64 << 18, np.float32)  # 64 MB
    copy_to_device(array[:1])
    Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    placed = copy_to_device(array)
    assert megabytes("VmHWM") - before < 80
    assert placed.shape == array.shape


def test_a_single_device_saves_and_restores_arrays_as_they_are() -> None:
    placement, array = OneDevice(), np.arange(6.0, dtype=np.float32).reshape(2, 3)
    placed = placement.place(array)
    array[:] = -1  # a copy of its own is on the device
    saved = placement.fetch_all(placed)
    np.testing.assert_array_equal(saved, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(placement.fetch(placement.place_all(saved)), saved)
    assert bool(placement.flag())


def test_a_single_device_has_nothing_of_its_own_to_save_and_changes_no_state() -> None:
    averaging: Any = Strategy().averaging
    averaging.start_from({"w": np.zeros(2)}, {"w": {"v": np.ones(2)}})
    assert averaging.saved_updates() == {} and averaging.save_state() == {} and averaging.start_block() is None
    state = TrainState({}, {}, {}, np.array(True))  # type: ignore[arg-type]
    assert averaging.after_stack(state, None, momentum()) is state
    assert averaging.after_epoch(state, momentum()) is state


class Recorder:
    """A trainer that says which strategies it was told to use."""

    def __init__(self, strategy: Any) -> None:
        self.strategy, self.used = strategy, []

    def use(self, strategy: Any) -> None:
        self.strategy = strategy
        self.used.append(strategy)


@pytest.mark.thorough
def test_the_plan_chooses_the_strategy_of_an_epoch(caplog: pytest.LogCaptureFixture) -> None:
    shared, group = Strategy(), SimpleNamespace(workers=2, communicator=SimpleNamespace(size=1, rank=0, main=True))
    plan: Any = SimpleNamespace(
        method="DataParallelSGD",
        parallel=lambda epoch: epoch >= 1,
        strategy=lambda group: shared,
        describe=lambda group, bits, reads_share: f"{bits} bits",
        p=SimpleNamespace(data_parallel=SimpleNamespace(bits=None)),
    )
    training = ParallelTraining(group, plan)  # type: ignore[arg-type]
    trainer: Any = Recorder(training.alone)
    reader: Any = object()
    assert [training.start_epoch(trainer, reader, epoch) for epoch in range(3)] == ["", "32 bits", "32 bits"]
    assert trainer.used == [shared]  # only where the strategy changes
    training.train_alone(trainer, reader)
    assert trainer.used == [shared, training.alone]


def test_a_process_by_itself_agrees_with_itself() -> None:
    training = ParallelTraining()
    assert training.main and training.evaluating is None and training.settings() == {}
    assert training.any_of(True, False) == [True, False]
    state = {"position": 3}
    assert training.own(training.gather(state)) == state
    reader: Any = object()
    assert training.part_of(reader).inner is reader
    assert training.total_slots(5, reader) == 5
    written: list[int] = []
    training.write(lambda: written.append(1))
    assert written == [1]
