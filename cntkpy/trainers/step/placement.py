"""Placement of a training's arrays on devices: place, fetch, shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from cntkpy.networks.arrays.lazy import jax
from cntkpy.trainers.step.memory import HostArray, has_own_memory, place

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import DTypeLike
    from jaxtyping import Bool, Float, Int64
    from numpy.typing import NDArray

    from cntkpy.networks.compile.evaluate import Batch
    from cntkpy.trainers.rules.updates import Rule
    from cntkpy.trainers.step.feed import Batcher
    from cntkpy.trainers.step.stack import Stack
    from cntkpy.trainers.step.state import EpochSettings, Step

    Device = Any
    Scalars = Float[NDArray[Any], "capacity 2"]

T = TypeVar("T")
EndsBlock = Callable[[int], bool]
"""Gets the samples of the next minibatch; says whether a stack has to end with it."""


class Placement(Protocol):
    """Lays the arrays of a training on devices, and fetches them."""

    @property
    def identity(self) -> object:
        """Whatever the compiled step depends on besides its arguments; see `executables.digest`."""
        ...

    @property
    def devices(self) -> Sequence[Device]:
        """Devices of all processes on which arrays lie; none: the first of this process."""
        return ()

    @property
    def copies(self) -> bool:
        """Return whether `place_batch` begins a copy to the device, during which the device computes something else."""
        return False

    @property
    def joins_parameters(self) -> bool:
        """Return whether small parameters may lie in one vector; else arrays are saved and summed by name."""
        return False

    # ---- minibatches

    def batcher(self, batcher: Batcher, ends_block: EndsBlock | None) -> Batcher:
        """Return the batcher of this placement; `batcher`: that of a single process."""
        ...

    def place_batch(self, stack: Stack) -> Batch:
        """Return the `batch` of a stack (numpy) as the compiled step takes it."""
        ...

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: DTypeLike, gaps: bool = True) -> Array:
        """Return for each minibatch of a stack its momentum and its number of samples.

        Args:
            stack: the minibatches.
            settings: of the epoch.
            dtype: element type of the network.
            gaps: cells without sample count, see `Stack.sizes`.

        Returns:
            Array (capacity, 2), zeros after the last minibatch; with one row per worker in front where workers train
            on their own.
        """
        ...

    # ---- arrays

    def place(self, array: HostArray | Array, slots: bool = False) -> Array:
        """Return a copy of an array on the devices; `slots`: axis 1 is that of the parallel sequences."""
        ...

    def flag(self) -> Bool[Array, "*workers"]:
        """Return a bool, the same everywhere, that is True."""
        ...

    def start_update(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """Return the arrays of an update rule before its first update; NumPy's are placed when they are needed."""
        ...

    def fetch(self, array: Array) -> HostArray:
        """Return the array of worker 0 as numpy, without a copy where the device's memory is the machine's."""
        ...

    def local(self, arrays: T) -> T:
        """Return arrays that this process alone can compute with."""
        ...

    def fetch_all(self, array: Array, slots: bool = False) -> HostArray:
        """Return everything about an array that differs from worker to worker; `slots`: see `place`."""
        ...

    def place_all(self, array: HostArray, slots: bool = False) -> Array:
        """Place a result of `fetch_all`."""
        ...

    def shard(self, step: Step) -> Step:
        """Return the step of one device as a step of all devices, to be jitted."""
        ...


class OneDevice(Placement):
    """Everything on one device."""

    @property
    def identity(self) -> object:
        """There are no other devices."""
        return "one device"

    @property
    def copies(self) -> bool:
        """Return whether the device has memory of its own."""
        return has_own_memory()

    @property
    def joins_parameters(self) -> bool:
        """They may: there are no other workers to agree with."""
        return True

    def batcher(self, batcher: Batcher, ends_block: EndsBlock | None) -> Batcher:
        """Return the batcher as it is."""
        return batcher

    def place_batch(self, stack: Stack) -> Batch:
        """Return it in the memory that it has, or on its way to that of the device."""
        return place(stack.batch, len(stack.minibatches), self.copies)

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: DTypeLike, gaps: bool = True) -> Array:
        """See `Placement.step_scalars`; array (capacity, 2)."""
        return cast("Array", whole_scalars(stack, settings, dtype, gaps))

    def place(self, array: HostArray | Array, slots: bool = False) -> Array:
        """Return a copy on the device."""
        return copy_to_device(array)

    def flag(self) -> Array:
        """Return True, on the device."""
        return self.place(np.asarray(True))

    def start_update(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """See `Rule.start`; zeros of NumPy take no memory yet."""
        return rule.start(weight)

    def fetch(self, array: Array) -> HostArray:
        """Return it as numpy."""
        return np.asarray(array)

    def local(self, arrays: T) -> T:
        """Return them as they are."""
        return arrays

    def fetch_all(self, array: Array, slots: bool = False) -> HostArray:
        """Return it as numpy."""
        return np.asarray(array)

    def place_all(self, array: HostArray, slots: bool = False) -> Array:
        """Place it on the device again."""
        return self.place(array, slots)

    def shard(self, step: Step) -> Step:
        """Return it as it is."""
        return step


def copy_to_device(array: object, device: Device | None = None) -> Array:
    """Return a copy of an array that shares no memory with it, so that its buffer can be donated.

    Args:
        array: NumPy's, JAX's, or a number.
        device: where to; None: the default device.
    """
    host = np.asarray(array)
    placed = jax.device_put(host, device, may_alias=False)
    # in spite of its option, JAX shares aligned arrays of NumPy with a processor
    if placed.device.platform == "cpu" and placed.unsafe_buffer_pointer() == host.ctypes.data:
        placed = jax.device_put(placed, device, may_alias=False)
    return jax.block_until_ready(placed)


def whole_scalars(stack: Stack, settings: EpochSettings, dtype: DTypeLike, gaps: bool) -> HostArray:
    """Return `Placement.step_scalars` of whole minibatches."""
    sizes = exponents = stack.sizes(gaps and not settings.counted)
    if settings.per_step:
        exponents = np.ones(len(sizes)) if settings.counted else filled_steps(stack.steps, sizes, stack.columns)
    return padded_scalars(sizes, stack.batch.mask.shape[0], settings.momentum**exponents, dtype)


def filled_steps(
    steps: Int64[NDArray[np.int64], " minibatches"],
    sizes: Int64[NDArray[np.int64], " minibatches"],
    columns: Int64[NDArray[np.int64], " minibatches"],
) -> NDArray[np.float64]:
    """Time steps of every minibatch, the fewer the fewer of its columns count; as they are where it has none."""
    filled: NDArray[np.float64] = np.where(columns > 0, sizes / np.maximum(columns, 1), 1.0)
    return steps * filled


def padded_scalars(
    columns: Int64[NDArray[np.int64], " minibatches"], capacity: int, momenta: HostArray, dtype: DTypeLike
) -> HostArray:
    """Momentum and number of columns of every minibatch, zeros after them."""
    scalars = np.zeros((capacity, 2), dtype)
    scalars[: len(columns), 0] = momenta
    scalars[: len(columns), 1] = columns
    return scalars
