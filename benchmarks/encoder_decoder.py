"""An encoder and a decoder, 32 pairs of sequences in a minibatch, compared with JAX and PyTorch by hand.

An LSTM reads a sequence; its last state and memory are those that the LSTM of the decoder starts from, which reads
another sequence, of another length, and classifies each of its steps. What is measured, and how: see `sequences.py`.

    python benchmarks/encoder_decoder.py [CASE...] [--rounds N] [--seconds S]
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sequences
from sequences import MOMENTUM, RATE, SEQUENCES, last_cells, packed, padded

SCRIPT = """
t = DynamicAxis {}
x = Input {INPUTS, dynamicAxis=t}
d = Input {INPUTS}
y = Input {CLASSES}
read = BS.RNNs.LSTMBlock {CELLS}
encoder = { before = BS.RNNs.PreviousHC (now) ; now = read (x, before) }
thought = { h = BS.Sequences.Last (encoder.now.h) ; c = BS.Sequences.Last (encoder.now.c) }
write = BS.RNNs.LSTMBlock {CELLS}
decoder = { before = BS.RNNs.PreviousHC (now, initialState=thought) ; now = write (d, before) }
z = DenseLayer {CLASSES} (decoder.now.h)
ce = CrossEntropyWithSoftmax (y, z)
err = ClassificationError (y, z)
criterionNodes = (ce)
evaluationNodes = (err)
"""


@dataclass
class Pairs(sequences.Sizes):
    """A network and its data.

    Attributes:
        data: by minibatch, the samples that the encoder reads, those that the decoder reads, and the classes.
    """

    data: list[tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        random = np.random.default_rng(0)
        for _ in range(self.batches):
            x, d = (
                [random.standard_normal((n, self.inputs), np.float32) for n in lengths]
                for lengths in random.integers(self.shortest, self.longest + 1, (2, SEQUENCES))
            )
            self.data.append((x, d, [random.integers(0, self.classes, (len(one), 1)) for one in d]))

    def start(self) -> dict[str, np.ndarray]:
        """The hand-written parameters before training."""
        random, wide = np.random.default_rng(1), 4 * self.cells
        shapes = {"X": (self.inputs, wide), "H": (self.cells, wide), "Y": (self.inputs, wide), "G": (self.cells, wide)}
        shapes["W"] = self.cells, self.classes
        found = {k: 0.05 * random.standard_normal(shape, np.float32) for k, shape in shapes.items()}
        biases = {"a": wide, "c": wide, "b": self.classes}
        return found | {name: np.zeros(size, np.float32) for name, size in biases.items()}


CASES = {
    "sentences": Pairs("50-100-50, 10 to 50 steps", 50, 100, 50, 10, 50),
    "long": Pairs("50-100-50, 100 to 500 steps", 50, 100, 50, 100, 500, 4),
}


class Ours(sequences.Ours):
    """The compiled step of the trainers, over stacks of minibatches."""

    script = SCRIPT

    @staticmethod
    def samples(x: list[np.ndarray], d: list[np.ndarray], y: list[np.ndarray]) -> int:
        """Those that the decoder reads."""
        return sum(map(len, d))

    @staticmethod
    def minibatch(case: Pairs, x: list[np.ndarray], d: list[np.ndarray], y: list[np.ndarray]) -> Any:
        """A minibatch as a reader gives it."""
        from cntkpy.readers.minibatch import Layout, Minibatch

        classes = [np.eye(case.classes, dtype=np.float32)[one[:, 0]] for one in y]
        streams: dict[str, Any] = {}
        layouts: dict[str, Layout] = {}
        for name, some in (("x", x), ("d", d), ("y", classes)):
            streams[name] = padded(some, max(map(len, some)))
            table = np.array([[i, i, 0, len(one)] for i, one in enumerate(some)])
            layouts[name] = Layout(len(streams[name]), SEQUENCES, table)
        return Minibatch(streams, layouts)


class Padded(sequences.Padded):
    """By hand in JAX, a slot for each sequence."""

    @staticmethod
    def loss(case: Pairs) -> Any:
        """A function of parameters and a minibatch: the criterion and the number of errors."""
        import jax
        import jax.numpy as jnp

        def lstm(x: Any, w: Any, r: Any, b: Any, start: Any, fresh: Any, owner: Any) -> Any:
            def step(before: Any, now: Any) -> Any:
                known, fresh, owner = now
                if fresh is not None:
                    rows = [0, 0] if start is None else [one[owner] for one in start]
                    before = [jnp.where(fresh[:, None], a, b) for a, b in zip(rows, before, strict=True)]
                h, c = before
                i, f, o, g = jnp.split(known + h @ r, 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return [h, c], (h, c)

            zeros = jnp.zeros((x.shape[1], case.cells), np.float32)
            first = [zeros, zeros] if start is None or fresh is not None else start
            return jax.lax.scan(step, first, (x @ w + b, fresh, owner))[1]

        def loss(p: Any, m: Any) -> Any:
            states = lstm(m["x"], p["X"], p["H"], p["a"], None, m.get("x fresh"), None)
            start = [one.reshape(-1, case.cells)[m["last"]] for one in states]
            h, _ = lstm(m["d"], p["Y"], p["G"], p["c"], start, m.get("d fresh"), m.get("owner"))
            z = h @ p["W"] + p["b"]
            picked = jnp.take_along_axis(jax.nn.log_softmax(z), m["y"], -1)[..., 0]
            wrong = (jnp.argmax(z, -1) != m["y"][..., 0]) & m["mask"]
            return -jnp.where(m["mask"], picked, 0).sum(), wrong.sum()

        return loss

    @staticmethod
    def arrays(x: list[np.ndarray], d: list[np.ndarray], y: list[np.ndarray]) -> dict[str, np.ndarray]:
        """The samples and classes, what of them is there, and the cell `t * S + s` of the last sample of each x."""
        steps = [-(-max(map(len, some)) // 8) * 8 for some in (x, d)]
        mask = padded([np.ones((len(one), 1), np.float32) for one in d], steps[1])[..., 0] > 0
        labels = padded([one.astype(np.float32) for one in y], steps[1]).astype(np.int32)
        found = {"x": padded(x, steps[0]), "d": padded(d, steps[1]), "y": labels, "mask": mask}
        return found | {"last": last_cells(x)}


class Packed(Padded):
    """By hand in JAX, sequences after each other in slots."""

    @staticmethod
    def arrays(x: list[np.ndarray], d: list[np.ndarray], y: list[np.ndarray]) -> dict[str, np.ndarray]:
        """As in `Padded`, where sequences begin, and the number of the sequence that a cell of d belongs to."""
        found = dict(zip(("x", "x fresh", "last"), packed(x), strict=True))
        numbers = [np.full((len(one), 1), number, np.float32) for number, one in enumerate(d)]
        both = packed([np.hstack([*some, np.ones_like(some[1])]) for some in zip(d, y, numbers, strict=True)])
        rest, (labels, owner, mask) = both[0][..., :-3], np.moveaxis(both[0][..., -3:], -1, 0)
        found |= {"d": np.ascontiguousarray(rest), "d fresh": both[1], "mask": mask > 0}
        return found | {"y": labels[..., None].astype(np.int32), "owner": owner.astype(np.int32)}


class Torch:
    """By hand in PyTorch."""

    def __init__(self, case: Pairs) -> None:
        import torch  # pyright: ignore[reportMissingImports]
        from torch.nn.utils import rnn  # pyright: ignore[reportMissingImports]

        self.rnn, self.cross_entropy = rnn, torch.nn.functional.cross_entropy
        self.reads, self.writes = (torch.nn.LSTM(case.inputs, case.cells) for _ in range(2))
        self.dense = torch.nn.Linear(case.cells, case.classes)
        parameters = [*self.reads.parameters(), *self.writes.parameters(), *self.dense.parameters()]
        self.sgd = torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM, dampening=MOMENTUM)
        self.data = [
            [
                (torch.tensor(padded(some, max(map(len, some)))), torch.tensor(list(map(len, some))))
                for some in (x, d, [one.astype(np.float32) for one in y])
            ]
            for x, d, y in case.data
        ]

    def run(self, count: int) -> None:
        """Train `count` times on all minibatches."""
        for _ in range(count):
            for data in self.data:
                x, d, y = (self.rnn.pack_padded_sequence(*one, enforce_sorted=False) for one in data)
                _, state = self.reads(x)
                out, _ = self.writes(d, state)
                z, classes = self.dense(out.data), y.data[:, 0].long()
                self.last, _ = self.cross_entropy(z, classes, reduction="sum"), (z.argmax(-1) != classes).sum()
                self.sgd.zero_grad()
                self.last.backward()
                self.sgd.step()
        self.last.item()


def main(argv: list[str] | None = None) -> str:
    """The table."""
    head = (
        "## Encoder and decoder",
        "LSTM, another LSTM that starts from its last state, dense layer. Training, single precision, microseconds per "
        f"minibatch of 32 pairs of sequences (load at the start {os.getloadavg()[0]:.1f}); ratios in brackets: of "
        "processor time. JAX: the faster of padded and packed.",
    )
    return sequences.table(argv, __doc__, CASES, head, (Ours, Padded, Packed, Torch))


if __name__ == "__main__":
    print(main())
