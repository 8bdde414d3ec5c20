"""A part of gpu.py: training of one network of steps.py, compared with JAX by hand and PyTorch, or `torch.compile`.

All train on the same minibatches, copied from the host's memory as in any training: forward, backward, momentum SGD,
the criterion and the number of errors. `float` is full single precision (no TF32). With `bfloat16` products of cntkpy
are in bfloat16; so is all of JAX by hand but its weights and its criterion, and PyTorch runs under `torch.autocast`.
By hand, the next minibatch is on its way to the device before the step begins. Rounds take turns; speeds are medians.
`NETWORK-PRECISION-compiled` compares with `torch.compile` alone, which may take minutes to compile.
"""

import contextlib
import dataclasses
import itertools
import operator
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import steps
from by_hand import MOMENTUM, RATE, Jax
from on_device import Utilisation, cell, choose, options, peak_memory, torch_for

ROUNDS, SECONDS = 3, 3.0
"""Rounds, and the seconds of a network and peer in all of them."""
COMPILED = "torch.compile"


class Pipelined(steps.Ours):
    """The compiled step of the trainers; stacks are copied to the device as in an epoch
    (cntkpy/trainers/fronts/config/epoch.py)."""

    def run(self, count: int) -> None:
        """Train on `count` minibatches (a multiple of `stacked`)."""
        from cntkpy.trainers.step.feed import Placed, Unsaved

        again = itertools.chain.from_iterable(itertools.repeat(self.stacks, count // self.stacked))
        feed = Placed(Unsaved(again), self.trainer.place)
        waiting: list[Any] = []

        def wait() -> None:
            while len(waiting) > 1:
                np.asarray(waiting.pop(0))

        for placed in feed:
            waiting.append(self.trainer.run(placed, self.settings, 0))
            if self.trainer.copies:
                feed.read_ahead(wait)
            wait()
        np.asarray(waiting.pop())


class FromHost(Jax):
    """By hand in JAX, with minibatches in the memory of the host."""

    def __init__(self, case: Any, precision: str) -> None:
        import jax
        import jax.numpy as jnp

        self._jax, self._short = jax, precision != "float"
        self._type = jnp.bfloat16 if self._short else jnp.float32
        scores = case.scores

        def mixed(o: Any, p: Any, m: Any) -> Any:
            short = {name: value.astype(self._type) for name, value in p.items()}
            return scores(o, short, {**m, "x": m["x"].astype(self._type)}).astype(jnp.float32)

        super().__init__(dataclasses.replace(case, scores=mixed if self._short else scores))
        self.data = case.minibatches

    def zeros(self, *shape: int) -> Any:
        """In the type that is computed in."""
        return self.jnp.zeros(shape, self._type)

    def run(self, count: int) -> None:
        """Train on `count` minibatches."""
        precision = None if self._short else "highest"
        with self._jax.default_matmul_precision(precision) if precision else contextlib.nullcontext():
            following = self._jax.device_put(self.data[0])
            for k in range(count):
                data, following = following, self._jax.device_put(self.data[(k + 1) % len(self.data)])
                self.p, self.v, value, wrong = self.step(self.p, self.v, data, np.float32(RATE), np.float32(MOMENTUM))
                self.last = value, wrong
        self.last[0].block_until_ready()


def small(case: Any) -> Any:
    """The case with two minibatches of 8 samples, or of 4 sequences of 2 frames."""
    case.minibatches = [
        {k: v[:8] if case.lengths is None else v[:2, :4] for k, v in m.items()} for m in case.minibatches[:2]
    ]
    if case.lengths is not None:
        case.lengths = [lengths[:4].clip(max=2) for lengths in case.lengths[:2]]
    return case


class Measured:
    """A runner with its speeds, in samples per second, and how busy the device was.

    Args:
        runner: has `run(count)`, which waits until all is computed.
        around: gives a context to run in.
    """

    def __init__(self, runner: Any, around: Callable[[], Any] = contextlib.nullcontext) -> None:
        self._runner, self._around = runner, around
        self.speeds: list[float] = []
        self.busy: list[float] = []
        self._count = 0

    def prepare(self, stack: int, seconds: float) -> None:
        """Compile, and choose a number of minibatches that takes so long."""
        with self._around():
            self._runner.run(stack)
            began = time.perf_counter()
            self._runner.run(stack)
        self._count = stack * max(1, round(seconds / (time.perf_counter() - began)))

    def measure(self, samples: float, utilisation: Utilisation) -> None:
        """One round; `samples`: of a minibatch."""
        with self._around():
            began = time.perf_counter()
            self._runner.run(self._count)
            ended = time.perf_counter()
        self.speeds.append(samples * self._count / (ended - began))
        self.busy += utilisation.between(began, ended)


def peers(case: Any, precision: str, device: str, compiled: bool) -> Iterator[tuple[str, Measured]]:
    """What is compared with cntkpy: JAX and PyTorch, or `torch.compile`."""
    if not compiled:
        yield "JAX", Measured(FromHost(case, precision))
    torch, kind = torch_for(device), "cpu" if device == "cpu" else "cuda"
    if torch is not None:
        around = contextlib.nullcontext if precision == "float" else partial(torch.autocast, kind, torch.bfloat16)
        yield COMPILED if compiled else "PyTorch", Measured(steps.Torch(case, kind, compiled), around)


def table(name: str, precision: str, device: str, is_small: bool, compiled: bool) -> Iterator[str]:
    """Measure one network: the lines of a table."""
    chosen = choose(device)
    case = small(steps.CASES[name]()) if is_small else steps.CASES[name]()
    seconds = 0.05 if is_small else SECONDS / ROUNDS
    every = case.lengths or [np.ones(len(m["y"])) for m in case.minibatches]
    stack, real = len(case.minibatches), float(sum(lengths.sum() for lengths in every))
    ours = Measured(Pipelined(case, precision))
    ours.prepare(stack, seconds)
    memory = {"cntkpy": peak_memory(chosen)}  # before others use memory by JAX
    found = {"cntkpy": ours}
    for peer, measured in peers(case, precision, device, compiled):
        measured.prepare(stack, seconds)
        found[peer] = measured
    if device != "cpu" and (torch := torch_for(device)) is not None:
        memory[COMPILED if compiled else "PyTorch"] = torch.cuda.max_memory_allocated() / 2**20
    with Utilisation() as utilisation:
        for _ in range(ROUNDS):
            for one in found.values():
                one.measure(real / stack, utilisation)
    others = [peer for peer in found if peer != "cntkpy"]
    head = [*found, *(f"/ {peer}" for peer in others), *(f"busy: {peer}" for peer in found)]
    head += [f"peak MB: {peer}" for peer in memory]
    cells = [f"{statistics.median(one.speeds):,.0f}" for one in found.values()]
    for peer in others:
        cells.append(f"{statistics.median(map(operator.truediv, ours.speeds, found[peer].speeds)):.2f}")
    cells += [cell(statistics.mean(one.busy) if one.busy else None, ".0f", " %") for one in found.values()]
    cells += [cell(value, ",.0f") for value in memory.values()]
    yield f"| network, minibatch | {' | '.join(head)} |\n|---{'|---:' * len(head)}|"
    yield f"| {case.title} | {' | '.join(cells)} |"


if __name__ == "__main__":
    given = options(__doc__)
    network, *others = given.part.split("-")
    is_compiled = "compiled" in others
    for lines in table(network, others[0], given.device, given.small, is_compiled):
        print(lines, flush=True)
