"""Time per minibatch of five networks, beside the same networks written by hand in JAX and in PyTorch.

All three train the same network on the same minibatches, which lie ready in memory, from a start of the same scale:
forward, backward, momentum SGD, and the criterion and the number of errors of every minibatch. Rounds are interleaved,
so that whatever else the machine does disturbs all alike; times are medians of rounds, ratios medians of the ratios
within rounds. By hand means one function per minibatch: jitted with donated arguments in JAX; `torch.nn.functional`
and `torch.optim.SGD` in PyTorch, whose OpenMP threads wait passively.

    python benchmarks/networks.py [CASE...]
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when PyTorch is loaded

ROUNDS, SECONDS = 9, 0.6
RATE, MOMENTUM = 0.001, 0.9
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

    **Arguments:** `ndl`, its text between features `x`, labels `y` and scores `z`; `minibatches`, each the arrays the
    hand-written versions take (first axes: time and slot, or sample); `scores`, a function of a library's operations,
    the parameters and the minibatch; `parameters`, names and shapes (outputs last); `lengths`, sequence lengths per
    minibatch, or None for frames; `sparse`, the width of a sparse input.
    """

    title: str
    ndl: str
    minibatches: list[Arrays]
    scores: Callable[[Any, Any, Any], Any]
    parameters: dict[str, tuple[int, ...]]
    lengths: list[np.ndarray] | None = None
    sparse: int = 0


# ---- the operations in which the hand-written networks differ between the two libraries


class Jax:
    """By hand in JAX."""

    def __init__(self, case: Case) -> None:
        import jax
        import jax.numpy as jnp
        from jax import lax

        self.case, self.jnp, self.lax = case, jnp, lax
        self.relu, self.sigmoid, self.tanh = jax.nn.relu, jax.nn.sigmoid, jnp.tanh
        self.p = {k: jnp.asarray(v) for k, v in start(case)}
        self.v = {k: jnp.zeros_like(v) for k, v in self.p.items()}
        self.data = [{k: jnp.asarray(a) for k, a in m.items()} for m in case.minibatches]

        def loss(p: Any, m: Any) -> Any:
            z = case.scores(self, p, m)
            picked = jnp.take_along_axis(jax.nn.log_softmax(z), m["y"][..., None], -1)[..., 0]
            wrong = jnp.argmax(z, -1) != m["y"]
            if "mask" in m:
                picked, wrong = picked * m["mask"], wrong & (m["mask"] > 0)
            return -picked.sum(), wrong.sum()

        def step(p: Any, v: Any, m: Any, rate: Any, momentum: Any) -> Any:
            if case.sparse:  # only the rows that occur
                rows = m["rows"]
                inner = {**p, "W": p["W"][rows]}
                (value, wrong), g = jax.value_and_grad(loss, has_aux=True)(inner, m)
                new = {k: momentum * (v[k][rows] if k == "W" else v[k]) + (1 - momentum) * g[k] for k in g}
                set_rows = {"mode": "drop", "unique_indices": True}
                v = {k: v[k].at[rows].set(new[k], **set_rows) if k == "W" else new[k] for k in g}
                p = {k: p[k].at[rows].add(-rate * new[k], **set_rows) if k == "W" else p[k] - rate * new[k] for k in g}
                return p, v, value, wrong
            (value, wrong), g = jax.value_and_grad(loss, has_aux=True)(p, m)
            v = jax.tree.map(lambda v, g: momentum * v + (1 - momentum) * rate * g, v, g)
            return jax.tree.map(lambda p, v: p - v, p, v), v, value, wrong

        self.step = jax.jit(step, donate_argnums=(0, 1))

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    def conv(self, x: Any, w: Any, b: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        return self.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=names) + b

    def pool(self, x: Any) -> Any:
        n, h, w, c = x.shape
        return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))

    def image(self, x: Any) -> Any:
        return x.reshape(-1, 28, 28, 1)

    def bag(self, w: Any, m: Any) -> Any:
        return (w[m["index"]] * m["values"][..., None]).sum(-2)

    def scan(self, step: Any, start: Any, inputs: Any) -> Any:
        return self.lax.scan(lambda c, x: step(c, x), start, inputs)[1]

    def split(self, x: Any, parts: int) -> Any:
        return self.jnp.split(x, parts, -1)

    def zeros(self, *shape: int) -> Any:
        return self.jnp.zeros(shape, np.float32)

    def run(self, count: int) -> None:
        """Train on `count` minibatches."""
        for k in range(count):
            data = self.data[k % len(self.data)]
            self.p, self.v, value, wrong = self.step(self.p, self.v, data, np.float32(RATE), np.float32(MOMENTUM))
            self.last = value, wrong
        self.last[0].block_until_ready()


class Torch:
    """By hand in PyTorch."""

    def __init__(self, case: Case) -> None:
        import torch
        from torch.nn import functional

        self.case, self.torch, self.f = case, torch, functional
        self.relu, self.sigmoid, self.tanh = torch.relu, torch.sigmoid, torch.tanh
        self.p = {k: torch.tensor(v) for k, v in start(case)}
        if "K1" in self.p:  # its own order of axes
            self.p |= {k: self.p[k].permute(3, 2, 0, 1).contiguous() for k in ("K1", "K2")}
        for value in self.p.values():
            value.requires_grad_()
        self.data = [{k: torch.tensor(a) for k, a in m.items()} for m in case.minibatches]
        for m in self.data:
            m["y"] = m["y"].long()
            if case.sparse:
                m["global"] = m["rows"].long()[m["index"].long()]
        dense = [v for k, v in self.p.items() if not (case.sparse and k == "W")]
        self.sgd = torch.optim.SGD(dense, lr=RATE, momentum=MOMENTUM, dampening=MOMENTUM)
        self.moment = torch.zeros_like(self.p["W"]) if case.sparse else None

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        if x.dim() > 2:
            return self.torch.addmm(b, x.reshape(-1, x.shape[-1]), w).reshape(*x.shape[:-1], -1)
        return self.torch.addmm(b, x, w)

    def conv(self, x: Any, w: Any, b: Any) -> Any:
        return self.f.conv2d(x, w, b)

    def pool(self, x: Any) -> Any:
        return self.f.max_pool2d(x, 2)

    def image(self, x: Any) -> Any:
        return x.reshape(-1, 1, 28, 28)

    def bag(self, w: Any, m: Any) -> Any:
        return self.f.embedding_bag(m["global"], w, mode="sum", sparse=True, per_sample_weights=m["values"])

    def scan(self, step: Any, start: Any, inputs: Any) -> Any:
        results = []
        for one in inputs.unbind(0):
            start, out = step(start, one)
            results.append(out)
        return self.torch.stack(results)

    def split(self, x: Any, parts: int) -> Any:
        return x.chunk(parts, -1)

    def zeros(self, *shape: int) -> Any:
        return self.torch.zeros(shape)

    def run(self, count: int) -> None:
        """Train on `count` minibatches."""
        for k in range(count):
            m = self.data[k % len(self.data)]
            z = self.case.scores(self, self.p, m)
            if "mask" in m:
                cost = self.f.cross_entropy(z.reshape(-1, z.shape[-1]), m["y"].reshape(-1), reduction="none")
                value = (cost * m["mask"].reshape(-1)).sum()
                wrong = ((z.argmax(-1) != m["y"]) & (m["mask"] > 0)).sum()
            else:
                value = self.f.cross_entropy(z, m["y"], reduction="sum")
                wrong = (z.argmax(-1) != m["y"]).sum()
            self.sgd.zero_grad()
            if self.moment is not None:
                self.p["W"].grad = None
            value.backward()
            self.sgd.step()
            if self.moment is not None:
                gradient = self.p["W"].grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                with self.torch.no_grad():
                    new = self.moment[rows].mul_(MOMENTUM).add_(values, alpha=1 - MOMENTUM)
                    self.moment.index_copy_(0, rows, new)
                    self.p["W"].index_add_(0, rows, new, alpha=-RATE)
            self.last = value.item(), wrong.item()


class Ours:
    """The compiled step of the trainers, over stacks of minibatches."""

    def __init__(self, case: Case) -> None:
        from cntk_config import parse
        from networks.build import build_network
        from networks.evaluate import Settings
        from networks.initialize import SeedCounter
        from readers.minibatch import Layout, Minibatch
        from trainers.step import EpochSettings, Trainer
        from trainers.updates import momentum

        folder = Path(tempfile.mkdtemp())
        (folder / "n.ndl").write_text(HEAD + case.ndl + TAIL)
        config = parse(f'NDLNetworkBuilder = [ networkDescription = "{folder}/n.ndl" ]')
        network = build_network(config, "float", SeedCounter())
        self.trainer = Trainer(network, [network["ce"], network["err"]], momentum())
        self.settings = EpochSettings(RATE, MOMENTUM ** (1 / len(case.minibatches[0]["y"])), Settings(), 1)
        minibatches = []
        for k, m in enumerate(case.minibatches):
            x, y = m.get("x"), m["y"]
            if case.lengths is None:
                layout = Layout(1, len(y), np.array([[i, i, 0, 1] for i in range(len(y))]))
                x, y = (None if x is None else x[None]), y[None]
            else:
                layout = Layout(*y.shape, np.array([[i, i, 0, n] for i, n in enumerate(case.lengths[k])]))
            labels = np.eye(network["y"].shape[0], dtype=np.float32)[y]  # pyright: ignore[reportOptionalSubscript]
            streams = {"x": _csr(m, case.sparse) if case.sparse else x, "y": labels}
            minibatches.append(Minibatch(streams, dict.fromkeys(streams, layout)))
        self.groups = list(
            self.trainer.feeder(len(minibatches[0].streams["y"][0])).groups(iter(minibatches), lambda number: False)
        )
        self.stacked = len(minibatches)

    def run(self, count: int) -> None:
        """Train on `count` minibatches (a multiple of `stacked`)."""
        for _ in range(count // self.stacked):
            for group in self.groups:
                self.last = self.trainer.run(group, self.settings, 0)
        np.asarray(self.last)

    def first(self) -> None:
        """Train on the first stack."""
        np.asarray(self.trainer.run(self.groups[0], self.settings, 0))

    def compilations(self) -> int:
        """How often the step was compiled."""
        return self.trainer.compilations


def _csr(m: Arrays, width: int) -> Any:
    from scipy.sparse import csr_matrix

    count, entries = m["index"].shape
    columns = m["rows"][m["index"]].reshape(-1)
    return csr_matrix((m["values"].reshape(-1), columns, np.arange(count + 1) * entries), (count, width))


def start(case: Case) -> Iterator[tuple[str, np.ndarray]]:
    """The hand-written parameters before training."""
    random = np.random.default_rng(1)
    for name, shape in case.parameters.items():
        scale = 0.05 if len(shape) > 1 else 0.0
        yield name, random.standard_normal(shape, np.float32) * np.float32(scale)


# ---- the cases


def _frames(size: int, inputs: int, classes: int, count: int) -> list[Arrays]:
    random = np.random.default_rng(0)
    return [
        {"x": random.random((size, inputs), np.float32), "y": random.integers(0, classes, size).astype(np.int32)}
        for _ in range(count)
    ]


def _layers(*sizes: int) -> dict[str, tuple[int, ...]]:
    pairs = list(zip(sizes, sizes[1:], strict=False))
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


CASES = {"mlp": mlp, "dnn": dnn, "conv": conv, "lstm": lstm, "sparse": sparse}


def _seconds(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def row(case: Case) -> str:
    """Measure one case: a line of the table."""
    firsts, runners = {}, {}
    for kind in (Ours, Jax, Torch):
        began = time.perf_counter()
        runner = runners[kind] = kind(case)
        firsts[kind] = time.perf_counter() - began + _seconds(getattr(runner, "first", lambda r=runner: r.run(1)))
    stack = runners[Ours].stacked
    once = min(_seconds(lambda: runners[Ours].run(stack)) for _ in range(2))
    count = stack * max(1, round(SECONDS / once))
    times: dict[Any, list[float]] = {kind: [] for kind in runners}
    for _ in range(ROUNDS):
        for kind, runner in runners.items():
            times[kind].append(_seconds(lambda runner=runner: runner.run(count)) / count)
    ratios = [statistics.median(a / b for a, b in zip(times[Ours], times[kind], strict=True)) for kind in (Jax, Torch)]
    cells = [f"{1e6 * statistics.median(times[kind]):.0f}" for kind in (Ours, Jax, Torch)]
    cells += [f"{ratio:.2f}" for ratio in ratios] + [f"{firsts[kind]:.2f}" for kind in (Ours, Jax, Torch)]
    return f"| {case.title} | {' | '.join(cells)} | {runners[Ours].compilations()} |"


def main(names: list[str] | None = None) -> str:
    """The table."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp()  # first minibatches compile
    lines = [
        "## Networks",
        "Training, single precision, microseconds per minibatch (medians of interleaved rounds; "
        f"load of the machine at the start {os.getloadavg()[0]:.1f}). First: seconds until the first result, "
        "compilation included.",
        "",
        "| network, minibatch | cntkpy | JAX by hand | PyTorch | / JAX | / PyTorch | first | JAX | PyTorch | compiled |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in names or CASES:
        lines.append(row(CASES[name]()))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    here = str(Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != here]  # files here have the names of packages
    print(main(sys.argv[1:] or None))
