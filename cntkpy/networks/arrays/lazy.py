"""JAX, imported on first use.

Declarations (node kinds, builders) must be importable in a fraction of a second, so modules that compute write
`from cntkpy.networks.arrays.lazy import jax, jnp` and JAX is loaded when one of its functions is first touched.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cntkpy.cntk_config.base.cache_folders import is_private, private_folder
from cntkpy.cntk_config.base.lazy_modules import LazyModule, np

log = logging.getLogger("cntkpy.networks")

Residuals = tuple[Any, ...]
"""Arrays that the forward pass keeps for the backward pass."""
Gradients = tuple[Any, ...]
"""Gradients of the operands of a function; None: it has none."""

__all__ = [
    "DETERMINISTIC", "Array", "Gradients", "Residuals", "ask_for_determinism", "cache_folder", "checkpoint_name",
    "custom_gradient", "default_device", "gradient_by_operands", "gradient_by_result", "imported", "io_callback", "jax",
    "jnp", "number_of", "prepare", "row_major",
]  # fmt: skip


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder in which compiled programs are kept, machine code: see `cntkpy.cntk_config.base.cache_folders`;
    or None.
    """
    value = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if not value:
        return private_folder("jax")
    folder = Path(value)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    if is_private(folder):
        return folder
    log.warning(
        "WARNING: others may write to JAX_COMPILATION_CACHE_DIR=%s: no compiled programs are kept there.", value
    )
    return None


def imported(name: str) -> ModuleType:
    """Return a module of JAX, imported without a change of the random numbers that NumPy and Python draw next.

    JAX 0.10 draws some when it is imported: the first run of a seeded program would differ from its second.
    """
    if name in sys.modules:
        return sys.modules[name]
    import random

    python, numpy = random.getstate(), np.random.get_state()
    try:
        return importlib.import_module(name)
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@functools.cache
def prepare() -> None:
    """Configure JAX once, before its first use: 64-bit numbers allowed, compiled programs kept on disk."""
    real = imported("jax")
    imported("jax.numpy")
    real.config.update("jax_enable_x64", True)
    folder = cache_folder()
    real.config.update("jax_compilation_cache_dir", str(folder) if folder is not None else None)
    if folder is None:
        return
    real.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    real.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
"""The flag of XLA for the same results in every run on GPUs; on CPUs they are anyway."""


def ask_for_determinism() -> bool:
    """Let XLA choose algorithms with the same results in every run.

    Returns:
        Whether it was asked in time: XLA reads its flags once, when JAX is first used.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if DETERMINISTIC in flags:
        return True
    if "jax" in sys.modules:
        return False
    os.environ["XLA_FLAGS"] = f"{flags} {DETERMINISTIC}".strip()
    return True


if TYPE_CHECKING:
    # JAX's own functions are only partly annotated: their results would be "unknown" wherever they go.
    jax: Any
    jnp: Any
    from jax import Array

    R = TypeVar("R")

    class Client(Protocol):
        """The backend of a device; JAX's own class has no annotations."""

        @property
        def platform_version(self) -> str: ...

    class Device(Protocol):
        """A device of JAX."""

        @property
        def id(self) -> int: ...
        @property
        def local_hardware_id(self) -> int | None: ...
        @property
        def platform(self) -> str: ...
        @property
        def process_index(self) -> int: ...
        @property
        def device_kind(self) -> str: ...
        @property
        def client(self) -> Client: ...
        def memory_stats(self) -> dict[str, int] | None: ...
else:
    Array = Any
    jax = LazyModule("jax", prepare)
    jnp = LazyModule("jax.numpy", prepare)


def io_callback(function: Callable[..., object], result: object, *arrays: object) -> Any:
    """`jax.experimental.io_callback`: a compiled program calls a function of the process with its arrays."""
    prepare()
    return imported("jax.experimental").io_callback(function, result, *arrays)


def row_major(array: Array) -> Array:
    """Return the array, copied in a compiled program if its axes lie in another order.

    XLA leaves a transposed array as it lies. An inner loop over its last axis then jumps through memory.
    """
    prepare()
    layout = imported("jax.experimental.layout")
    return layout.with_layout_constraint(array, layout.Layout(major_to_minor=tuple(range(array.ndim))))


def checkpoint_name(array: Array, name: str) -> Array:
    """`jax.ad_checkpoint.checkpoint_name`: policies of `jax.checkpoint` know the array by a name."""
    prepare()
    return imported("jax.ad_checkpoint").checkpoint_name(array, name)


def default_device() -> Device:
    """Return the device that arrays lie on and programs run on where nothing else is said."""
    return jax.config.jax_default_device or jax.local_devices()[0]


def number_of(device: Device) -> int:
    """Return the number of a device of JAX on its machine: processes that train together count `id` over all
    machines.
    """
    return device.id if device.local_hardware_id is None else device.local_hardware_id


def custom_gradient(
    forward: Callable[..., tuple[Array, R]],
    backward: Callable[[R, Array], Gradients],
    primal: Callable[..., Array] | None = None,
) -> Callable[..., Array]:
    """`jax.custom_vjp` without importing JAX now.

    Args:
        forward: arrays -> (result, residuals).
        backward: (residuals, gradient of the result) -> one gradient per array (None for "no gradient").
        primal: arrays -> result, where less work than `forward` is enough.

    Returns:
        A function of the arrays with that gradient.
    """

    def result(*arrays: Array) -> Array:
        return forward(*arrays)[0]

    @functools.cache
    def build() -> Callable[..., Array]:
        function = jax.custom_vjp(primal or result)
        function.defvjp(forward, backward)
        return function

    @functools.wraps(primal or forward)
    def call(*arrays: object) -> Array:
        return build()(*arrays)

    return call


def gradient_by_operands(
    primal: Callable[..., Array], backward: Callable[[Residuals, Array], Gradients]
) -> Callable[..., Array]:
    """Return a function whose gradient needs its operands: `backward(operands, gradient of the result)`."""
    return custom_gradient(lambda *arrays: (primal(*arrays), arrays), backward, primal)


def gradient_by_result(
    primal: Callable[..., Array], backward: Callable[[Array, Array], Gradients]
) -> Callable[..., Array]:
    """Return a function whose gradient needs its result: `backward(result, gradient of the result)`."""

    def forward(*arrays: Array) -> tuple[Array, Array]:
        result = primal(*arrays)
        return result, result

    return custom_gradient(forward, backward, primal)
