"""The sequence classifier, 32 sequences in a minibatch, beside the same network by hand in JAX and in PyTorch.

An LSTM reads a sequence, its last state goes through a dense layer, and each sequence has one label. All train on the
same minibatches, which lie ready in memory: forward, backward, momentum SGD, criterion and number of errors. By hand in
JAX means one jitted function per minibatch with donated arguments, on minibatches that are padded (to a multiple of
eight steps, one program for each) or packed (sequences after each other in as few slots as hold them); the faster of
the two counts. By hand in PyTorch means `torch.nn.LSTM` on `pack_padded_sequence`.

Rounds are interleaved. Times are medians of rounds, ratios medians of the ratios within rounds, of the clock and of the
processor: on a machine with other work the second says more.

    python benchmarks/sequences.py [CASE...] [--rounds N] [--seconds S]

PyTorch is left out where it is not installed, see peers.py.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import peers

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when PyTorch is loaded

ROUNDS, SECONDS = 9, 0.5
RATE, MOMENTUM, SEQUENCES = 0.001, 0.9, 32
SCRIPT = """
t = DynamicAxis {}
x = Input {INPUTS, dynamicAxis=t}
y = Input {CLASSES}
z = Sequential (RecurrentLSTMLayer {CELLS} : BS.Sequences.Last : DenseLayer {CLASSES}) (x)
answer = ReconcileDynamicAxis (z, y)
ce = CrossEntropyWithSoftmax (y, answer)
err = ClassificationError (y, answer)
criterionNodes = (ce)
evaluationNodes = (err)
"""


HEADER = (
    "| inputs, cells, classes | cntkpy | JAX, padded | JAX, packed | PyTorch | / JAX | / PyTorch | compiled |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
)


@dataclass
class Sizes:
    """A network and the sizes of its data.

    Attributes:
        title: what it is called in the table.
        inputs, cells, classes: the sizes of its layers.
        shortest, longest: steps of a sequence.
        batches: how many minibatches there are.
    """

    title: str
    inputs: int
    cells: int
    classes: int
    shortest: int
    longest: int
    batches: int = 16


@dataclass
class Case(Sizes):
    """A network and its data.

    Attributes:
        x: by minibatch, the samples of each sequence.
        y: by minibatch, the class of each sequence.
    """

    x: list[list[np.ndarray]] = field(default_factory=list[list[np.ndarray]])
    y: list[np.ndarray] = field(default_factory=list[np.ndarray])

    @property
    def data(self) -> list[tuple[list[np.ndarray], np.ndarray]]:
        """By minibatch, `x` and `y`."""
        return list(zip(self.x, self.y, strict=True))

    def __post_init__(self) -> None:
        random = np.random.default_rng(0)
        for _ in range(self.batches):
            lengths = random.integers(self.shortest, self.longest + 1, SEQUENCES)
            self.x.append([random.standard_normal((n, self.inputs), np.float32) for n in lengths])
            self.y.append(random.integers(0, self.classes, SEQUENCES).astype(np.int32))

    def start(self) -> dict[str, np.ndarray]:
        """The hand-written parameters before training."""
        random, wide = np.random.default_rng(1), 4 * self.cells
        shapes = {"X": (self.inputs, wide), "H": (self.cells, wide), "W": (self.cells, self.classes)}
        found = {k: 0.05 * random.standard_normal(shape, np.float32) for k, shape in shapes.items()}
        return found | {"a": np.zeros(wide, np.float32), "b": np.zeros(self.classes, np.float32)}


CASES = {
    "golden": Case("3-3-4, 2 to 6 steps (the goldens' network)", 3, 3, 4, 2, 6),
    "words": Case("17-32-3, 3 to 12 steps", 17, 32, 3, 3, 12),
    "sentences": Case("50-100-5, 10 to 50 steps", 50, 100, 5, 10, 50),
    "wide": Case("80-256-10, 20 to 60 steps", 80, 256, 10, 20, 60),
    "long": Case("50-100-5, 100 to 500 steps", 50, 100, 5, 100, 500, 4),
}


class Ours:
    """The compiled step of the trainers, over stacks of minibatches."""

    script = SCRIPT

    def __init__(self, case: Any) -> None:
        from cntkpy.cntk_config import parse
        from cntkpy.networks.builders.build import build_network
        from cntkpy.networks.compile.evaluate import Settings
        from cntkpy.networks.graph.initialize import SeedCounter
        from cntkpy.trainers.rules.updates import momentum
        from cntkpy.trainers.step.state import EpochSettings
        from cntkpy.trainers.step.step import CompiledStep

        text = self.script
        for word in ("INPUTS", "CELLS", "CLASSES"):
            text = text.replace(word, str(getattr(case, word.lower())))
        network = build_network(parse(f"BrainScriptNetworkBuilder = {{ {text} }}"), "float", SeedCounter())
        self.trainer = CompiledStep(network, [network["ce"], network["err"]], momentum())
        self.settings = EpochSettings(RATE, MOMENTUM ** (1 / SEQUENCES), Settings(), 1)
        batcher = self.trainer.batcher(self.samples(*case.data[0]))
        minibatches = [self.minibatch(case, *one) for one in case.data]
        self.stacks = list(batcher.stacks(iter(minibatches), lambda number: False))

    @staticmethod
    def samples(x: list[np.ndarray], _: np.ndarray) -> int:
        """How many samples of a minibatch count."""
        return sum(map(len, x))

    @staticmethod
    def minibatch(case: Case, x: list[np.ndarray], y: np.ndarray) -> Any:
        """A minibatch as a reader gives it."""
        from cntkpy.readers.minibatch import Layout, Minibatch

        values = padded(x, max(map(len, x)))
        layouts = {
            "x": Layout(len(values), SEQUENCES, np.array([[i, i, 0, len(one)] for i, one in enumerate(x)])),
            "y": Layout(1, SEQUENCES, np.array([[i, i, 0, 1] for i in range(SEQUENCES)])),
        }
        return Minibatch({"x": values, "y": np.eye(case.classes, dtype=np.float32)[y][None]}, layouts)

    def run(self, count: int) -> None:
        """Train `count` times on all minibatches."""
        for _ in range(count):
            for stack in self.stacks:
                self.last = self.trainer.run(stack, self.settings, 0)
        np.asarray(self.last)


def padded(sequences: list[np.ndarray], steps: int) -> np.ndarray:
    found = np.zeros((steps, len(sequences), sequences[0].shape[1]), np.float32)
    for slot, values in enumerate(sequences):
        found[: len(values), slot] = values
    return found


def last_cells(sequences: list[np.ndarray]) -> np.ndarray:
    """The cell `t * S + s` of the last sample of each sequence, where each has a slot of its own."""
    return np.array([(len(values) - 1) * len(sequences) + slot for slot, values in enumerate(sequences)], np.int32)


def packed(sequences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sequences after each other, longest first, in slots as long as the longest.

    Returns:
        The samples, where sequences begin, and the cell `t * S + s` of the last sample of each.
    """
    steps, free, place = max(map(len, sequences)), [], {}
    for number in sorted(range(len(sequences)), key=lambda i: -len(sequences[i])):
        need = len(sequences[number])
        slot = next((s for s, left in enumerate(free) if left >= need), len(free))
        if slot == len(free):
            free.append(steps)
        place[number] = slot, steps - free[slot]
        free[slot] -= need
    slots = -(-len(free) // 4) * 4  # few shapes
    steps = -(-steps // 8) * 8
    x, fresh = np.zeros((steps, slots, sequences[0].shape[1]), np.float32), np.zeros((steps, slots), bool)
    last = np.zeros(len(sequences), np.int32)
    for number, (slot, begin) in place.items():
        end = begin + len(sequences[number])
        x[begin:end, slot], fresh[begin, slot], last[number] = sequences[number], True, (end - 1) * slots + slot
    return x, fresh, last


class Padded:
    """By hand in JAX, a slot for each sequence."""

    def __init__(self, case: Any) -> None:
        import jax
        import jax.numpy as jnp

        loss = self.loss(case)

        def train(p: Any, v: Any, m: Any, rate: Any, momentum: Any) -> Any:
            (value, wrong), g = jax.value_and_grad(loss, has_aux=True)(p, m)
            v = jax.tree.map(lambda v, g: momentum * v + (1 - momentum) * rate * g, v, g)
            return jax.tree.map(lambda p, v: p - v, p, v), v, value, wrong

        self.p = {k: jnp.asarray(v) for k, v in case.start().items()}
        self.v = {k: jnp.zeros_like(v) for k, v in self.p.items()}
        self.data = [{k: jnp.asarray(v) for k, v in self.arrays(*one).items()} for one in case.data]
        self.train = jax.jit(train, donate_argnums=(0, 1))

    @staticmethod
    def loss(case: Case) -> Any:
        """A function of parameters and a minibatch: the criterion and the number of errors."""
        import jax
        import jax.numpy as jnp

        def loss(p: Any, m: Any) -> Any:
            def step(before: Any, now: Any) -> Any:
                (h, c), (known, fresh) = before, now
                if fresh is not None:
                    h, c = (jnp.where(fresh[:, None], 0, one) for one in (h, c))
                i, f, o, g = jnp.split(known + h @ p["H"], 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            x = m["x"]
            zeros = jnp.zeros((x.shape[1], case.cells), np.float32)
            _, states = jax.lax.scan(step, (zeros, zeros), (x @ p["X"] + p["a"], m.get("fresh")))
            z = states.reshape(-1, case.cells)[m["last"]] @ p["W"] + p["b"]
            picked = jnp.take_along_axis(jax.nn.log_softmax(z), m["y"][:, None], -1)
            return -picked.sum(), (jnp.argmax(z, -1) != m["y"]).sum()

        return loss

    @staticmethod
    def arrays(x: list[np.ndarray], y: np.ndarray) -> dict[str, np.ndarray]:
        """The samples and classes, and the cell `t * S + s` of the last sample of each sequence."""
        steps = -(-max(map(len, x)) // 8) * 8
        return {"x": padded(x, steps), "last": last_cells(x), "y": y}

    def run(self, count: int) -> None:
        """Train `count` times on all minibatches."""
        for _ in range(count):
            for data in self.data:
                self.p, self.v, self.last, _ = self.train(self.p, self.v, data, np.float32(RATE), np.float32(MOMENTUM))
        self.last.block_until_ready()


class Packed(Padded):
    """By hand in JAX, sequences after each other in slots."""

    @staticmethod
    def arrays(x: list[np.ndarray], y: np.ndarray) -> dict[str, np.ndarray]:
        """As in `Padded`, and where sequences begin."""
        return dict(zip(("x", "fresh", "last"), packed(x), strict=True)) | {"y": y}


class Torch:
    """By hand in PyTorch."""

    def __init__(self, case: Case) -> None:
        import torch  # pyright: ignore[reportMissingImports]
        from torch.nn.utils import rnn  # pyright: ignore[reportMissingImports]

        self.rnn, self.cross_entropy = rnn, torch.nn.functional.cross_entropy
        self.lstm, self.dense = torch.nn.LSTM(case.inputs, case.cells), torch.nn.Linear(case.cells, case.classes)
        parameters = [*self.lstm.parameters(), *self.dense.parameters()]
        self.sgd = torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM, dampening=MOMENTUM)
        self.data = [
            (
                torch.tensor(padded(x, max(map(len, x)))),
                torch.tensor([len(values) for values in x]),
                torch.tensor(y).long(),
            )
            for x, y in zip(case.x, case.y, strict=True)
        ]

    def run(self, count: int) -> None:
        """Train `count` times on all minibatches."""
        for _ in range(count):
            for x, lengths, y in self.data:
                packed = self.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
                _, (state, _) = self.lstm(packed)
                z = self.dense(state[0])
                self.last, _ = self.cross_entropy(z, y, reduction="sum"), (z.argmax(-1) != y).sum()
                self.sgd.zero_grad()
                self.last.backward()
                self.sgd.step()
        self.last.item()


def row(case: Any, rounds: int, seconds: float, kinds: tuple[Any, ...]) -> str:
    """Measure one case, in rounds of about so many seconds of the slowest: a line of the table."""
    ours, *by_hand, torch = kinds
    runners: dict[Any, Any] = {
        kind: kind(case) for kind in (ours, *by_hand, *([torch] if peers.available("torch") else []))
    }
    for runner in runners.values():
        runner.run(2)  # compiles
    once = max(peers.timed(lambda runner=runner: runner.run(1)).clock for runner in runners.values())
    count = max(1, round(seconds / once))
    times: dict[Any, list[peers.Seconds]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, runner in runners.items():
            times[kind].append(peers.timed(lambda runner=runner: runner.run(count)))
    micro = {kind: 1e6 * statistics.median(one.clock for one in times[kind]) / count / case.batches for kind in runners}
    best = min(by_hand, key=lambda kind: micro[kind])
    cells = [f"{micro[kind]:.0f}" if kind in micro else "" for kind in kinds]
    cells += [peers.ratio(times[ours], times[kind]) for kind in (best, torch)]
    return f"| {case.title} | {' | '.join(cells)} | {runners[ours].trainer.compilations} |"


def table(
    argv: list[str] | None, about: str | None, cases: Mapping[str, Any], head: Sequence[str], kinds: tuple[Any, ...]
) -> str:
    """The heading and the text of a section, and the rows of the cases that words of the command line name."""
    arguments = peers.options(about, list(cases), ROUNDS, SECONDS).parse_args(argv)
    lines = [*head, "", *HEADER]
    for name in arguments.cases:
        lines.append(row(cases[name], arguments.rounds, arguments.seconds, kinds))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> str:
    """The table."""
    head = (
        "## Sequence classifier",
        "LSTM, last state, dense layer. Training, single precision, microseconds per minibatch of 32 sequences "
        f"(medians of interleaved rounds; load at the start {os.getloadavg()[0]:.1f}); ratios in brackets: of "
        "processor time. JAX: the faster of padded and packed.",
    )
    return table(argv, __doc__, CASES, head, (Ours, Padded, Packed, Torch))


if __name__ == "__main__":
    print(main())
