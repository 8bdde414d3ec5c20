"""Attention of all steps of a sequence to all of them, as programs for CNTK 2 write it, compared with JAX and PyTorch.

The value is the sum of squares of what was attended to; its gradient by three matrices is computed. Every measurement
is a process of its own, in turns: processor time is the median of some calls after the first, memory is what the
process has at most (`ru_maxrss`) less what it has after its imports.

`BENCHMARK_SITE` names a folder with PyTorch.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE, CALLS = 64, 3
STEPS = (1000, 2000, 4000)
PEERS = ("cntkpy", "JAX, direct", "JAX, in blocks", "PyTorch")
BLOCK = 256
"""Steps of a block of JAX by hand; of 64 to 1,024 it takes the least time."""


def numbers(steps: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The sequence, and three matrices."""
    random = np.random.default_rng(0)
    x = random.normal(size=(steps, SIZE)).astype(np.float32)
    return x, [(random.normal(size=(SIZE, SIZE)) / 8).astype(np.float32) for _ in range(3)]


def ours(x: np.ndarray, matrices: list[np.ndarray]) -> Callable[[], Any]:
    """As a program for CNTK 2."""
    import cntkpy.compat.cntk as C

    given = C.sequence.input_variable(SIZE)
    parameters = [C.parameter(init=one) for one in matrices]
    query, keys, values = (C.times(given, one) for one in parameters)
    keys, mask = C.sequence.unpack(keys, 0).outputs
    values = C.sequence.unpack(values, 0, no_mask_output=True)
    scores = C.times_transpose(query, C.sequence.broadcast_as(keys, query)) * (1 / math.sqrt(SIZE))
    shares = C.softmax(C.element_select(C.sequence.broadcast_as(mask, query), scores, -1e30))
    total = C.reduce_sum(C.square(C.times(shares, C.sequence.broadcast_as(values, query))))
    return lambda: total.grad({given: [x]}, wrt=parameters)


def in_jax(x: np.ndarray, matrices: list[np.ndarray], blocks: bool) -> Callable[[], Any]:
    """By hand in JAX; `blocks`: of steps, computed once more for the gradient."""
    import jax
    import jax.numpy as jnp

    def attended(query: Any, keys: Any, values: Any) -> Any:
        return jax.nn.softmax(query @ keys.T / math.sqrt(SIZE), axis=-1) @ values

    def total(matrices: Any, x: Any) -> Any:
        query, keys, values = (x @ one for one in matrices)
        if not blocks:
            return jnp.sum(attended(query, keys, values) ** 2)
        count = math.ceil(len(x) / BLOCK)
        query = jnp.pad(query, ((0, count * BLOCK - len(x)), (0, 0))).reshape(count, BLOCK, SIZE)
        found = jax.lax.map(jax.checkpoint(lambda block: attended(block, keys, values)), query)
        return jnp.sum(found.reshape(-1, SIZE)[: len(x)] ** 2)

    gradient = jax.jit(jax.grad(total))
    return lambda: [np.asarray(one) for one in gradient(matrices, x)]


def in_torch(x: np.ndarray, matrices: list[np.ndarray], device: str = "cpu") -> Callable[[], Any]:
    """`scaled_dot_product_attention` of PyTorch."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)  # threads that wait for each other take processor time
    parameters = [torch.tensor(one, requires_grad=True, device=device) for one in matrices]

    def run() -> Any:
        given = torch.tensor(x, device=device)
        query, keys, values = ((given @ one)[None, None] for one in parameters)
        found = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
        return [one.cpu().numpy() for one in torch.autograd.grad((found**2).sum(), parameters)]

    return run


def used() -> tuple[float, float]:
    """Processor time in seconds, and the most memory so far in MB."""
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime, now.ru_maxrss / 1024


def measure(peer: str, steps: int) -> tuple[float, float]:
    """Milliseconds of processor time of a call, and MB."""
    x, matrices = numbers(steps)
    small = numbers(16)
    make = {
        "cntkpy": ours,
        "JAX, direct": lambda *given: in_jax(*given, blocks=False),
        "JAX, in blocks": lambda *given: in_jax(*given, blocks=True),
        "PyTorch": in_torch,
    }[peer]
    make(*small)()  # imports, and what a first call needs
    before = used()[1]
    run = make(x, matrices)
    run()
    times: list[float] = []
    for _ in range(CALLS):
        start = used()[0]
        run()
        times.append(used()[0] - start)
    return 1e3 * statistics.median(times), used()[1] - before


def in_a_process(peer: str, steps: int) -> tuple[float, float]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--peer", peer, "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    milliseconds, megabytes = json.loads(done.stdout.splitlines()[-1])
    return milliseconds, megabytes


def main(rounds: int = 2) -> str:
    """The table as Markdown."""
    rows: list[str] = []
    for steps in STEPS:
        found = [{peer: in_a_process(peer, steps) for peer in PEERS} for _ in range(rounds)]
        times = {peer: statistics.median(one[peer][0] for one in found) for peer in PEERS}
        sizes = {peer: statistics.median(one[peer][1] for one in found) for peer in PEERS}
        ratios = [statistics.median(one["cntkpy"][0] / one[peer][0] for one in found) for peer in PEERS[2:]]
        cells = [f"{times[peer]:.0f} ({sizes[peer]:.0f})" for peer in PEERS]
        rows.append(f"| {steps:,} | {' | '.join(cells)} | {' | '.join(f'{one:.2f}' for one in ratios)} |")
    return "\n".join(
        [
            "## Attention",
            f"One sequence, {SIZE} elements, one head; gradient by three matrices, single precision; milliseconds of "
            "processor time, in brackets MB of memory in addition to that of the process. `sequence.unpack` and "
            "`sequence.broadcast_as` of a program for CNTK 2; `scaled_dot_product_attention` of PyTorch, one thread.",
            "",
            f"| steps | {' | '.join(PEERS)} | / JAX, in blocks | / PyTorch |",
            "|---:" * (len(PEERS) + 3) + "|",
            *rows,
        ]
    )


if __name__ == "__main__":
    if site := os.environ.get("BENCHMARK_SITE"):
        sys.path.append(site)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peer", choices=PEERS)
    parser.add_argument("--steps", type=int, default=STEPS[0])
    given = parser.parse_args()
    print(json.dumps(measure(given.peer, given.steps)) if given.peer else main(given.rounds))
