"""Strategies for programs: without the section of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.parallel.averaging import BlockMomentum, LocalSGD, momentum_of_time_constant
from cntkpy.trainers.parallel.communicator import Communicator
from cntkpy.trainers.parallel.data_parallel import data_parallel
from cntkpy.trainers.parallel.process_group import process_group_of
from cntkpy.trainers.step.strategy import Strategy


def shared_strategy(
    communicator: Communicator,
    devices: Sequence[Any],
    block: tuple[int, float | None, float] | None,
    nesterov: bool,
    reset: bool,
) -> Strategy:
    """How all processes train together.

    Args:
        communicator: the connection to the others.
        devices: those of this process.
        block: samples of a block, time constant of its momentum (None: by the number of workers), rate of its own
            change; None: gradients are summed in every minibatch.
        nesterov: workers start a block ahead.
        reset: the learner starts afresh after a block.
    """
    group = process_group_of(communicator, devices)
    if block is None:
        return data_parallel(group)
    size, constant, rate = block
    if size < 1:
        raise ArgumentError(f"a block has samples, not {size}", "block_size=120000, for instance")
    momentum = 1 - 1 / group.workers if constant is None else momentum_of_time_constant(size, constant)
    if not 0 <= momentum < 1:
        raise ArgumentError(f"the time constant {constant:g} is too long for blocks of {size} samples")
    return LocalSGD(group, size, BlockMomentum(momentum, rate, nesterov, reset))
