"""A part of gpu.py: from the host's memory to the device, and loops of XLA whose number of rounds is not known.

JAX copies arrays of NumPy through page-locked memory of its own. The second row copies them there by hand first
(`memory_kind="pinned_host"`), the third begins with arrays that lie there, PyTorch with what `pin_memory` made. The
last rows are microseconds of a round of a small loop: XLA may ask the device after every round whether it was the last.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from on_device import choose, options, torch_for

ROUNDS, TRIPS, SIZE = 7, 64, 256


def seconds(run: Callable[[], Any]) -> float:
    """The median of some runs, after one."""
    run()
    found: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def copies(device: Any, name: str, megabytes: int) -> dict[str, float]:
    """GB per second by what is copied."""
    import jax

    array = np.random.default_rng(0).random((megabytes, 1 << 18), np.float32)
    pinned = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    lies_there = jax.block_until_ready(jax.device_put(array, pinned))
    there = jax.sharding.SingleDeviceSharding(device, memory_kind=device.default_memory().kind)

    def put(source: Any) -> None:
        jax.block_until_ready(jax.device_put(source, there, may_alias=False))

    found = {
        "NumPy": seconds(partial(put, array)),
        "NumPy, by hand through page-locked memory": seconds(lambda: put(jax.device_put(array, pinned))),
        "JAX, page-locked": seconds(partial(put, lies_there)),
    }
    torch = torch_for(name)
    if torch is not None and name != "cpu":
        tensor = torch.tensor(array).pin_memory()

        def put_tensor() -> None:
            tensor.to("cuda", non_blocking=True)
            torch.cuda.synchronize()

        found["PyTorch, page-locked"] = seconds(put_tensor)
    return {name: array.nbytes / 1e9 / value for name, value in found.items()}


def loops() -> dict[str, float]:
    """Microseconds of a round: a product and what is done with it, the number of rounds known and not."""
    import jax
    import jax.numpy as jnp

    def body(_: Any, x: Any) -> Any:
        return jnp.tanh(x @ x)

    start = jnp.full((SIZE, SIZE), 1e-3, jnp.float32)
    unknown = jax.jit(lambda x, count: jax.lax.fori_loop(0, count, body, x))
    known = jax.jit(lambda x: jax.lax.fori_loop(0, TRIPS, body, x))
    return {
        "loop, rounds not known": 1e6 / TRIPS * seconds(lambda: unknown(start, TRIPS).block_until_ready()),
        "loop, rounds known": 1e6 / TRIPS * seconds(lambda: known(start).block_until_ready()),
    }


if __name__ == "__main__":
    given = options(__doc__)
    chosen, megabytes = choose(given.device), 1 if given.small else 32
    print("| what | | |\n|---|---:|---|", flush=True)
    for what, speed in copies(chosen, given.device, megabytes).items():
        print(f"| {what}, {megabytes} MB | {speed:.1f} | GB/s |", flush=True)
    for what, microseconds in loops().items():
        print(f"| {what} | {microseconds:.1f} | us |", flush=True)
