"""How the devices of a run train together: what every strategy answers, and the strategy of a single device.

A trainer knows strategies by the protocol `Strategy` only. `cntkpy.trainers.parallel.data_parallel` and
`cntkpy.trainers.parallel.averaging` have those of several devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cntkpy.networks.arrays.lazy import jax
from cntkpy.trainers.step.memory import has_own_memory, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Float, Int64, PRNGKeyArray
    from numpy.typing import NDArray

    from cntkpy.trainers.rules.updates import Rule
    from cntkpy.trainers.step.batching import Batcher
    from cntkpy.trainers.step.stack import Stack
    from cntkpy.trainers.step.state import EpochSettings, Step, TrainState

Array = Any
Tree = Any
Saved = dict[str, "NDArray[Any]"]


class Strategy(Protocol):
    """Where the arrays of a training lie, what of them is saved, and how the work of the devices is joined.

    A body that does nothing holds where all devices have the same weights at all times.
    """

    # ---- data

    def batcher(self, batcher: Batcher) -> Batcher:
        """Return what pads and stacks the minibatches; `batcher`: that of a process by itself."""
        ...

    def place_batch(self, stack: Stack) -> Any:
        """Return the `batch` of a stack (numpy) as the compiled step takes it."""
        ...

    @property
    def copies(self) -> bool:
        """Whether `place_batch` begins a copy to the device, during which the device computes something else."""
        return False

    def step_scalars(
        self, stack: Stack, settings: EpochSettings, dtype: Any, gaps: bool = True
    ) -> Float[Array, "*workers capacity 2"]:
        """Per minibatch of a stack its momentum and its number of samples.

        Args:
            stack: the minibatches.
            settings: of the epoch.
            dtype: element type of the network.
            gaps: cells without sample count, see `Stack.sizes`.

        Returns:
            Zeros after the last minibatch; with one row per worker in front where workers train on their own.
        """
        ...

    # ---- arrays

    @property
    def joins_parameters(self) -> bool:
        """Whether small parameters may lie in one vector; else arrays are saved and summed by name."""
        return False

    def place(self, array: Any, slots: bool = False) -> Array:
        """Return a copy of an array on the devices; `slots`: axis 1 is that of the parallel sequences."""
        ...

    def flag(self) -> Bool[Array, "*workers"]:
        """Return a bool, the same everywhere, that is True."""
        ...

    def initial_update_state(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """Return the state of an update rule before its first update; what is NumPy's is placed when it is needed."""
        ...

    def to_host(self, array: Array) -> NDArray[Any]:
        """Return the array as numpy, without a copy where the device's memory is the machine's; that of worker 0."""
        ...

    def to_process(self, arrays: Tree) -> Tree:
        """Arrays as this process alone can compute with them."""
        ...

    # ---- what is saved

    def to_save(self, array: Array, slots: bool = False) -> NDArray[Any]:
        """Return everything about an array that differs from worker to worker, as numpy; `slots`: see `place`."""
        ...

    def from_saved(self, array: NDArray[Any], slots: bool = False) -> Array:
        """The inverse of `to_save`."""
        ...

    def start_from(self, weights: dict[str, Array], saved: dict[str, Saved] | None) -> None:
        """Training resumes from these weights; `saved`: by parameter, what a checkpoint has of its updates."""

    def saved_updates(self) -> dict[str, Saved]:
        """Return by parameter what a checkpoint after an epoch saves besides the state of the update rule."""
        return {}

    def save_state(self) -> Saved:
        """Return what of the strategy itself is saved inside an epoch."""
        return {}

    def restore_state(self, saved: Saved) -> None:
        """The inverse of `save_state`."""

    # ---- in the compiled step

    @property
    def identity(self) -> Any:
        """What the compiled step depends on besides its arguments, see `cntkpy.networks.compile.executables.digest`."""
        ...

    @property
    def devices(self) -> Sequence[Any]:
        """Those of all processes on which its arrays lie; none: the first of this process."""
        return ()

    def compiled(self, step: Step) -> Step:
        """Return the step of one device as a step of all devices, to be jitted."""
        ...

    def mask_key(self, key: PRNGKeyArray) -> PRNGKeyArray:
        """Return the random key of a worker's masks."""
        ...

    def reduce(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """Join what the workers have computed for their parts of one minibatch.

        Args:
            gradients: of a worker, by parameter.
            sums: of the nodes of a worker, by name.
            state: the network's state after the minibatch.
            before: the network's state before it.
            batch: the worker's part.

        Returns:
            Gradients, sums and state to continue with.
        """
        ...

    def updated(self, new: Tree, old: Tree, samples: Float[Array, ""]) -> Tree:
        """Weights and updates after a minibatch with that number of samples of this worker."""
        return new

    # ---- between stacks and epochs

    def after_stack(self, state: TrainState, stack: Stack, rule: Rule) -> TrainState:
        """Return the state to continue with after a stack."""
        return state

    def after_epoch(self, state: TrainState, rule: Rule) -> TrainState:
        """Return the state to continue with after an epoch, the same for all workers."""
        return state


class SingleDevice(Strategy):
    """Everything on one device."""

    def batcher(self, batcher: Batcher) -> Batcher:
        """As it is."""
        return batcher

    def place_batch(self, stack: Stack) -> Any:
        """In the memory that it has, or on its way to that of the device."""
        return place(stack.batch, len(stack.minibatches), self.copies)

    @property
    def copies(self) -> bool:
        """Where the device has memory of its own."""
        return has_own_memory()

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: Any, gaps: bool = True) -> Array:
        """See `Strategy.step_scalars`; array (capacity, 2)."""
        return whole_scalars(stack, settings, dtype, gaps)

    @property
    def joins_parameters(self) -> bool:
        """They may: there are no others to agree with."""
        return True

    def place(self, array: Any, slots: bool = False) -> Array:
        """A copy on the device."""
        return copy_to_device(array)

    def flag(self) -> Array:
        """True, on the device."""
        return self.place(True)

    def initial_update_state(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """See `Rule.start`; zeros of NumPy take no memory yet."""
        return rule.start(weight)

    def to_host(self, array: Array) -> NDArray[Any]:
        """As numpy."""
        return np.asarray(array)

    def to_process(self, arrays: Tree) -> Tree:
        """As they are."""
        return arrays

    def to_save(self, array: Array, slots: bool = False) -> NDArray[Any]:
        """As numpy."""
        return np.asarray(array)

    def from_saved(self, array: NDArray[Any], slots: bool = False) -> Array:
        """On the device again."""
        return self.place(array, slots)

    @property
    def identity(self) -> Any:
        """There are no others."""
        return "one device"

    def compiled(self, step: Step) -> Step:
        """As it is."""
        return step

    def mask_key(self, key: Array) -> Array:
        """As it is."""
        return key

    def reduce(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """There is nothing to join."""
        return gradients, sums, state


def copy_to_device(array: Any, device: Any = None) -> Array:
    """Return a copy of an array that shares no memory with it, so that its buffer can be donated.

    Args:
        array: NumPy's, JAX's, or a number.
        device: where to; None: the default device.
    """
    given = np.asarray(array)
    placed = jax.device_put(given, device, may_alias=False)
    # in spite of its option, JAX shares aligned arrays of NumPy with a processor
    if placed.device.platform == "cpu" and placed.unsafe_buffer_pointer() == given.ctypes.data:
        placed = jax.device_put(placed, device, may_alias=False)
    return jax.block_until_ready(placed)


def whole_scalars(stack: Stack, settings: EpochSettings, dtype: Any, gaps: bool) -> Float[NDArray[Any], "capacity 2"]:
    """Return `Strategy.step_scalars` of whole minibatches."""
    sizes = exponents = stack.sizes(gaps and not settings.counted)
    if settings.per_step:
        exponents = np.ones(len(sizes)) if settings.counted else filled_steps(stack.steps, sizes, stack.columns)
    return padded_scalars(sizes, stack.batch.mask.shape[0], settings.momentum**exponents, dtype)


def filled_steps(
    steps: Int64[NDArray[np.int64], " minibatches"],
    sizes: Int64[NDArray[np.int64], " minibatches"],
    columns: Int64[NDArray[np.int64], " minibatches"],
) -> Float[NDArray[Any], " minibatches"]:
    """Time steps of every minibatch, the fewer the fewer of its columns count; as they are where it has none."""
    return steps * np.where(columns > 0, sizes / np.maximum(columns, 1), 1)


def padded_scalars(
    columns: Int64[NDArray[np.int64], " minibatches"],
    capacity: int,
    momenta: Float[NDArray[Any], " minibatches"],
    dtype: Any,
) -> Float[NDArray[Any], "capacity 2"]:
    """Momentum and number of columns of every minibatch, zeros after them."""
    scalars = np.zeros((capacity, 2), dtype)
    scalars[: len(columns), 0] = momenta
    scalars[: len(columns), 1] = columns
    return scalars
