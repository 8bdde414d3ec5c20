"""Time per minibatch of six networks, beside the same networks written by hand in JAX and in PyTorch.

All three train the same network on the same minibatches, which lie ready in memory, from a start of the same scale:
forward, backward, momentum SGD, and the criterion and the number of errors of every minibatch. Rounds are interleaved,
so that whatever else the machine does disturbs all alike; times are medians of rounds, ratios medians of the ratios
within rounds, of the clock and of the processor. By hand means one function per minibatch: jitted with donated
arguments in JAX; `torch.nn.functional` and `torch.optim.SGD` in PyTorch, whose OpenMP threads wait passively.

    python benchmarks/steps.py [CASE...] [--rounds N] [--seconds S]

PyTorch is left out where it is not installed, see peers.py.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import peers
from by_hand import MOMENTUM, RATE, Jax, Torch

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when PyTorch is loaded

ROUNDS, SECONDS = 9, 0.6
GOLDENS = Path(__file__).resolve().parent.parent / "tests/goldens/runs"
HEAD = "run=n\nn=[\n"
TAIL = """
ce = CrossEntropyWithSoftmax(y, z)
err = ErrorPrediction(y, z)
FeatureNodes = (x)
LabelNodes = (y)
CriterionNodes = (ce)
EvalNodes = (err)
]
"""
Arrays = dict[str, np.ndarray]


@dataclass
class Case:
    """A network to train.

    Attributes:
        ndl: its text between features `x`, labels `y` and scores `z`
        minibatches: each the arrays the hand-written versions take (first axes: time and slot, or sample)
        scores: a function of a library's operations, the parameters and the minibatch
        parameters: names and shapes (outputs last)
        lengths: sequence lengths per minibatch, or None for frames
        sparse: the width of a sparse input.
    """

    title: str
    ndl: str
    minibatches: list[Arrays]
    scores: Callable[[Any, Any, Any], Any]
    parameters: dict[str, tuple[int, ...]]
    lengths: list[np.ndarray] | None = None
    sparse: int = 0


class Ours:
    """The compiled step of the trainers, over stacks of minibatches."""

    def __init__(self, case: Case, precision: str = "float") -> None:
        from cntkpy.cntk_config import parse
        from cntkpy.networks.builders.build import build_network
        from cntkpy.networks.compile.evaluate import Settings
        from cntkpy.networks.graph.initialize import SeedCounter
        from cntkpy.readers.minibatch import Layout, Minibatch
        from cntkpy.trainers.rules.updates import momentum
        from cntkpy.trainers.step.state import EpochSettings
        from cntkpy.trainers.step.step import CompiledStep

        folder = Path(tempfile.mkdtemp())
        (folder / "n.ndl").write_text(HEAD + case.ndl + TAIL)
        config = parse(f'NDLNetworkBuilder = [ networkDescription = "{folder}/n.ndl" ]')
        network = build_network(config, precision, SeedCounter())
        self.trainer = CompiledStep(network, [network["ce"], network["err"]], momentum())
        self.settings = EpochSettings(RATE, MOMENTUM ** (1 / len(case.minibatches[0]["y"])), Settings(), 1)
        minibatches = []
        for k, m in enumerate(case.minibatches):
            x, y = m.get("x"), m["y"]
            if case.lengths is None:
                layout = Layout(1, len(y), np.array([[i, i, 0, 1] for i in range(len(y))]))
                x, y = (None if x is None else x[None]), y[None]
            else:
                layout = Layout(y.shape[0], y.shape[1], np.array([[i, i, 0, n] for i, n in enumerate(case.lengths[k])]))
            labels = np.eye(network["y"].shape[0], dtype=np.float32)[y]  # pyright: ignore[reportOptionalSubscript]
            streams = {"x": _csr(m, case.sparse) if case.sparse else x, "y": labels}
            minibatches.append(Minibatch(streams, dict.fromkeys(streams, layout)))
        self.stacks = list(
            self.trainer.batcher(len(minibatches[0].streams["y"][0])).stacks(iter(minibatches), lambda number: False)
        )
        self.stacked = len(minibatches)

    def run(self, count: int) -> None:
        """Train on `count` minibatches (a multiple of `stacked`)."""
        for _ in range(count // self.stacked):
            for stack in self.stacks:
                self.last = self.trainer.run(stack, self.settings, 0)
        np.asarray(self.last)

    def first(self) -> None:
        """Train on the first stack."""
        np.asarray(self.trainer.run(self.stacks[0], self.settings, 0))

    def compilations(self) -> int:
        """How often the step was compiled."""
        return self.trainer.compilations


def _csr(m: Arrays, width: int) -> Any:
    from scipy.sparse import csr_matrix

    entries = m["index"].shape[-1]
    count = m["index"].size // entries
    columns = m["rows"][m["index"]].reshape(-1)
    return csr_matrix((m["values"].reshape(-1), columns, np.arange(count + 1) * entries), (count, width))


# ---- the cases


def _frames(size: int, inputs: int, classes: int, count: int) -> list[Arrays]:
    random = np.random.default_rng(0)
    return [
        {"x": random.random((size, inputs), np.float32), "y": random.integers(0, classes, size).astype(np.int32)}
        for _ in range(count)
    ]


def _layers(*sizes: int) -> dict[str, tuple[int, ...]]:
    pairs = list(itertools.pairwise(sizes))
    return {f"W{k}": pair for k, pair in enumerate(pairs)} | {f"b{k}": pair[1:] for k, pair in enumerate(pairs)}


def _feed_forward(sizes: tuple[int, ...]) -> tuple[str, Any]:
    lines, last = [f"x = Input({sizes[0]})", f"y = Input({sizes[-1]})"], "x"
    depth = len(sizes) - 1
    for k in range(depth):
        lines += [
            f"W{k} = Parameter({sizes[k + 1]}, {sizes[k]})",
            f"b{k} = Parameter({sizes[k + 1]}, 1, init=fixedValue, value=0)",
            f"p{k} = Plus(Times(W{k}, {last}), b{k})" if k < depth - 1 else f"z = Plus(Times(W{k}, {last}), b{k})",
        ]
        if k < depth - 1:
            lines.append(f"h{k} = Sigmoid(p{k})")
            last = f"h{k}"

    def scores(o: Any, p: Any, m: Any) -> Any:
        h = m["x"]
        for k in range(depth - 1):
            h = o.sigmoid(o.linear(h, p[f"W{k}"], p[f"b{k}"]))
        return o.linear(h, p[f"W{depth - 1}"], p[f"b{depth - 1}"])

    return "\n".join(lines), scores


def mlp() -> Case:
    """784-200-10, minibatch 32."""
    ndl, scores = _feed_forward((784, 200, 10))
    return Case("MLP 784-200-10, 32", ndl, _frames(32, 784, 10, 64), scores, _layers(784, 200, 10))


def dnn() -> Case:
    """363-512x3-132, minibatch 256."""
    sizes = (363, 512, 512, 512, 132)
    ndl, scores = _feed_forward(sizes)
    return Case("DNN 363-512x3-132, 256", ndl, _frames(256, 363, 132, 16), scores, _layers(*sizes))


CONV = """
x = ImageInput(28, 28, 1, imageLayout=CHW)
y = Input(10)
K1 = Parameter(16, 25)
c1 = Convolution(K1, x, 5, 5, 16, 1, 1, zeroPadding=false, imageLayout=CHW)
S1 = ImageParameter(1, 1, 16, init=fixedValue, value=0, imageLayout=CHW)
r1 = RectifiedLinear(Plus(c1, S1))
p1 = MaxPooling(r1, 2, 2, 2, 2, imageLayout=CHW)
K2 = Parameter(32, 400)
c2 = Convolution(K2, p1, 5, 5, 32, 1, 1, zeroPadding=false, imageLayout=CHW)
S2 = ImageParameter(1, 1, 32, init=fixedValue, value=0, imageLayout=CHW)
r2 = RectifiedLinear(Plus(c2, S2))
p2 = MaxPooling(r2, 2, 2, 2, 2, imageLayout=CHW)
W0 = Parameter(128, 512)
b0 = Parameter(128, 1, init=fixedValue, value=0)
h = RectifiedLinear(Plus(Times(W0, p2), b0))
W1 = Parameter(10, 128)
b1 = Parameter(10, 1, init=fixedValue, value=0)
z = Plus(Times(W1, h), b1)
"""


def conv() -> Case:
    """Two convolutions with pooling, two dense layers, minibatch 64."""

    def scores(o: Any, p: Any, m: Any) -> Any:
        h = o.image(m["x"])
        for k in "12":
            h = o.pool(o.relu(o.conv(h, p["K" + k], p["B" + k])))
        h = o.relu(o.linear(h.reshape(h.shape[0], -1), p["W0"], p["b0"]))
        return o.linear(h, p["W1"], p["b1"])

    parameters = {"K1": (5, 5, 1, 16), "B1": (16,), "K2": (5, 5, 16, 32), "B2": (32,), **_layers(512, 128, 10)}
    return Case("convolutional 28x28, 64", CONV, _frames(64, 784, 10, 8), scores, parameters)


LSTM_LAYER = """
Lp{k} = PastValue({out}, 1, Lh{k}, timeStep=1)
Lq{k} = PastValue({cell}, 1, Lc{k}, timeStep=1)
{gates}
Li{k} = Sigmoid(Plus(Plus(Plus(Times(Wxi{k}, {x}), bi{k}), Times(Whi{k}, Lp{k})), DiagTimes(di{k}, Lq{k})))
Lf{k} = Sigmoid(Plus(Plus(Plus(Times(Wxf{k}, {x}), bf{k}), Times(Whf{k}, Lp{k})), DiagTimes(df{k}, Lq{k})))
La{k} = Tanh(Plus(Plus(Times(Wxc{k}, {x}), bc{k}), Times(Whc{k}, Lp{k})))
Lc{k} = Plus(ElementTimes(Lf{k}, Lq{k}), ElementTimes(Li{k}, La{k}))
Lo{k} = Sigmoid(Plus(Plus(Plus(Times(Wxo{k}, {x}), bo{k}), Times(Who{k}, Lp{k})), DiagTimes(do{k}, Lc{k})))
Lm{k} = ElementTimes(Lo{k}, Tanh(Lc{k}))
Wp{k} = Parameter({out}, {cell})
Lh{k} = Times(Wp{k}, Lm{k})
"""


def lstm() -> Case:
    """Two layers with peepholes and projection, 32 sequences of 20 to 60 frames."""
    inputs, cell, out, classes = 80, 256, 128, 132
    ndl = f"x = Input({inputs})\ny = Input({classes})\n"
    parameters: dict[str, tuple[int, ...]] = {}
    for k, (x, width) in enumerate((("x", inputs), ("Lh0", out))):
        gates = []
        for g in "ifco":
            gates += [f"Wx{g}{k} = Parameter({cell}, {width})", f"Wh{g}{k} = Parameter({cell}, {out})"]
            gates += [f"b{g}{k} = Parameter({cell}, 1, init=fixedValue, value=0)"]
            gates += [f"d{g}{k} = Parameter({cell}, 1)"] if g != "c" else []
        ndl += LSTM_LAYER.format(k=k, x=x, out=out, cell=cell, gates="\n".join(gates))
        parameters |= {f"X{k}": (width, 4 * cell), f"H{k}": (out, 4 * cell), f"c{k}": (4 * cell,), f"P{k}": (cell, out)}
        parameters |= {f"d{k}{g}": (cell,) for g in "ifo"}
    ndl += f"W0 = Parameter({classes}, {out})\nb0 = Parameter({classes}, 1, init=fixedValue, value=0)\n"
    ndl += "z = Plus(Times(W0, Lh1), b0)\n"

    def layer(o: Any, p: Any, k: int, x: Any) -> Any:
        def step(carry: Any, into: Any) -> Any:
            h, c = carry
            i, f, a, g = o.split(into + h @ p[f"H{k}"], 4)
            new = o.sigmoid(f + p[f"d{k}f"] * c) * c + o.sigmoid(i + p[f"d{k}i"] * c) * o.tanh(a)
            h = (o.sigmoid(g + p[f"d{k}o"] * new) * o.tanh(new)) @ p[f"P{k}"]
            return (h, new), h

        slots = x.shape[1]
        return o.scan(step, (o.zeros(slots, out), o.zeros(slots, cell)), o.linear(x, p[f"X{k}"], p[f"c{k}"]))

    def scores(o: Any, p: Any, m: Any) -> Any:
        return o.linear(layer(o, p, 1, layer(o, p, 0, m["x"])), p["W0"], p["b0"])

    random = np.random.default_rng(0)
    minibatches, lengths = [], []
    for _ in range(6):
        lengths.append(random.integers(20, 61, 32))
        lengths[-1][0] = 60
        mask = (np.arange(60)[:, None] < lengths[-1]).astype(np.float32)
        x = random.random((60, 32, inputs), np.float32) * mask[..., None]
        minibatches.append({"x": x, "y": random.integers(0, classes, mask.shape).astype(np.int32), "mask": mask})
    parameters |= _layers(out, classes)
    return Case("LSTM 2 x 256/128, 32 sequences", ndl, minibatches, scores, parameters, lengths)


def atis() -> Case:
    """`atis_lstm` of the goldens: one layer on a vector for each word, minibatches of 20 sentences of ATIS."""
    words, vector, cells, classes, slots = 943, 32, 48, 129, 20
    ndl = f"x = SparseInput({words})\ny = Input({classes})\nW = Parameter({vector}, {words})\ne = Times(W, x)\n"
    ndl += f"hp = PastValue({cells}, 1, h)\ncp = PastValue({cells}, 1, c)\n"
    for g in "ifog":
        ndl += f"W{g} = Parameter({cells}, {vector})\nR{g} = Parameter({cells}, {cells})\n"
        ndl += f"b{g} = Parameter({cells}, 1, init=fixedValue, value=0)\n"
        ndl += f"{g} = {'Tanh' if g == 'g' else 'Sigmoid'}(Plus(Plus(Times(W{g}, e), Times(R{g}, hp)), b{g}))\n"
    ndl += "c = Plus(ElementTimes(i, g), ElementTimes(f, cp))\nh = ElementTimes(o, Tanh(c))\n"
    ndl += f"W0 = Parameter({classes}, {cells})\nb0 = Parameter({classes}, 1, init=fixedValue, value=0)\n"
    ndl += "z = Plus(Times(W0, h), b0)\n"

    def scores(o: Any, p: Any, m: Any) -> Any:
        return o.linear(o.lstm(o.bag(p["W"], m), p["X"], p["H"], p["c"]), p["W0"], p["b0"])

    random = np.random.default_rng(0)
    with (GOLDENS / "data/atis/atis.test.denselabels.ctf").open() as file:
        sentences = [len(list(lines)) for _, lines in itertools.groupby(file, lambda line: line.split()[0])]
    minibatches, lengths = [], []
    for k in range(10):
        lengths.append(np.array(sentences[slots * k : slots * (k + 1)]))
        mask = (np.arange(lengths[-1].max())[:, None] < lengths[-1]).astype(np.float32)
        rows, index = np.unique(random.integers(0, words, mask.shape), return_inverse=True)
        rows = np.concatenate([rows, words + np.arange(mask.size - len(rows))])
        labels = random.integers(0, classes, mask.shape).astype(np.int32)
        entries = {"rows": rows, "index": index.reshape(*mask.shape, 1), "values": mask[..., None]}
        minibatches.append({"y": labels, "mask": mask, **entries})
    parameters = {"W": (words, vector), "X": (vector, 4 * cells), "H": (cells, 4 * cells), "c": (4 * cells,)}
    parameters |= _layers(cells, classes)
    return Case("LSTM 48, 20 sentences of ATIS", ndl, minibatches, scores, parameters, lengths, sparse=words)


def sparse() -> Case:
    """1,000,000 inputs, 20 of them not zero, 128 hidden nodes, minibatch 256."""
    width, hidden, classes, entries = 1_000_000, 128, 10, 20
    ndl = f"x = SparseInput({width})\ny = Input({classes})\nW = Parameter({hidden}, {width})\n"
    ndl += f"b = Parameter({hidden}, 1, init=fixedValue, value=0)\nh = Sigmoid(Plus(Times(W, x), b))\n"
    ndl += f"W0 = Parameter({classes}, {hidden})\nb0 = Parameter({classes}, 1, init=fixedValue, value=0)\n"
    ndl += "z = Plus(Times(W0, h), b0)\n"

    def scores(o: Any, p: Any, m: Any) -> Any:
        return o.linear(o.sigmoid(o.bag(p["W"], m) + p["b"]), p["W0"], p["b0"])

    random = np.random.default_rng(0)
    minibatches = []
    for m in _frames(256, 1, classes, 16):
        picked = random.integers(0, width, (256, entries))
        rows, index = np.unique(picked, return_inverse=True)
        rows = np.concatenate([rows, width + np.arange(256 * entries - len(rows))])  # one shape; the rest is dropped
        values = random.random((256, entries), np.float32)
        minibatches.append({"y": m["y"], "rows": rows, "index": index.reshape(256, entries), "values": values})
    parameters = {"W": (width, hidden), "b": (hidden,), **_layers(hidden, classes)}
    return Case("sparse 1,000,000-128-10, 256", ndl, minibatches, scores, parameters, sparse=width)


CASES = {"mlp": mlp, "dnn": dnn, "conv": conv, "lstm": lstm, "atis": atis, "sparse": sparse}


def row(case: Case, rounds: int, seconds: float) -> str:
    """Measure one case, in rounds of about so many seconds of each peer: a line of the table."""
    kinds = [Ours, Jax, *([Torch] if peers.available("torch") else [])]
    firsts, runners = {}, {}
    for kind in kinds:
        began = time.perf_counter()
        runner = runners[kind] = kind(case)
        getattr(runner, "first", lambda r=runner: r.run(1))()
        firsts[kind] = time.perf_counter() - began
    stack = runners[Ours].stacked
    once = min(peers.timed(lambda: runners[Ours].run(stack)).clock for _ in range(2))
    count = stack * max(1, round(seconds / once))
    times: dict[Any, list[peers.Seconds]] = {kind: [] for kind in (Ours, Jax, Torch)}
    for _ in range(rounds):
        for kind, runner in runners.items():
            times[kind].append(peers.timed(lambda runner=runner: runner.run(count)))
    cells = [
        f"{1e6 * statistics.median(one.clock for one in found) / count:.0f}" if found else ""
        for found in times.values()
    ]
    cells += [peers.ratio(times[Ours], times[kind]) for kind in (Jax, Torch)]
    cells += [f"{firsts[kind]:.2f}" if kind in firsts else "" for kind in times]
    return f"| {case.title} | {' | '.join(cells)} | {runners[Ours].compilations()} |"


def main(argv: list[str] | None = None) -> str:
    """The table."""
    given = peers.options(__doc__, list(CASES), ROUNDS, SECONDS).parse_args(argv)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp()  # first minibatches compile
    lines = [
        "## Networks",
        "Training, single precision, microseconds per minibatch (medians of interleaved rounds; "
        f"load of the machine at the start {os.getloadavg()[0]:.1f}); ratios in brackets: of processor time. "
        "First: seconds until the first result, compilation included.",
        "",
        "| network, minibatch | cntkpy | JAX | PyTorch | / JAX | / PyTorch | first | JAX | PyTorch | compiled |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in given.cases:
        lines.append(row(CASES[name](), given.rounds, given.seconds))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    print(main())
