"""A part of gpu.py: attention of all steps of a sequence to all of them (attention.py), by the clock.

The sequence is copied to the device in each call, and the gradients back. All are in full single precision (no TF32).
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import attention
from on_device import cell, choose, options, torch_for

STEPS, CALLS = (4000, 16000), 5


def milliseconds(run: Callable[[], Any], calls: int) -> list[float]:
    """Of some calls after two."""
    found: list[float] = []
    for _ in range(calls + 2):
        began = time.perf_counter()
        run()
        found.append(1e3 * (time.perf_counter() - began))
    return found[2:]


def exact(run: Callable[[], Any]) -> Any:
    """A call of JAX without TF32."""
    import jax

    with jax.default_matmul_precision("highest"):
        return run()


def row(steps: int, device: str) -> str:
    """Measure one length: a line of the table."""
    given = attention.numbers(steps)
    by_hand = attention.in_jax(*given, blocks=True)
    runs = {"cntkpy": attention.ours(*given), "JAX": partial(exact, by_hand)}
    if torch_for(device) is not None:
        runs["PyTorch"] = attention.in_torch(*given, device="cpu" if device == "cpu" else "cuda")
    times = {name: statistics.median(milliseconds(run, CALLS)) for name, run in runs.items()}
    torch = times.get("PyTorch")
    cells = [f"{times['cntkpy']:.1f}", f"{times['JAX']:.1f}", cell(torch, ".1f")]
    cells += [f"{times['cntkpy'] / times['JAX']:.2f}", cell(torch and times["cntkpy"] / torch, ".2f")]
    return f"| {steps:,} | {' | '.join(cells)} |"


if __name__ == "__main__":
    given = options(__doc__)
    choose(given.device)
    names = "cntkpy, ms | JAX in blocks, ms | PyTorch, ms | / JAX | / PyTorch"
    print(f"| steps | {names} |\n|---:{'|---:' * 5}|", flush=True)
    for line in map(partial(row, device=given.device), (500,) if given.small else STEPS):
        print(line, flush=True)
