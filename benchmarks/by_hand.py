"""The networks of networks.py written by hand: one step for JAX, one for PyTorch.

A case says with the operations of these classes how its scores are computed, so that both compute the same.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

RATE, MOMENTUM = 0.001, 0.9


def start(case: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The hand-written parameters before training."""
    random = np.random.default_rng(1)
    for name, shape in case.parameters.items():
        scale = 0.05 if len(shape) > 1 else 0.0
        yield name, random.standard_normal(shape, np.float32) * np.float32(scale)


class Jax:
    """By hand in JAX."""

    def __init__(self, case: Any) -> None:
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

    def lstm(self, x: Any, w: Any, r: Any, b: Any) -> Any:
        """A layer from states of 0; gates in the order of PyTorch."""

        def step(carry: Any, into: Any) -> Any:
            h, c = carry
            i, f, g, o = self.split(into + h @ r, 4)
            c = self.sigmoid(f) * c + self.sigmoid(i) * self.tanh(g)
            h = self.sigmoid(o) * self.tanh(c)
            return (h, c), h

        start = self.zeros(x.shape[1], len(r))
        return self.scan(step, (start, start), self.linear(x, w, b))

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
    """By hand in PyTorch, on a device of its own; `compiled`: the loss through `torch.compile`."""

    def __init__(self, case: Any, device: str = "cpu", compiled: bool = False) -> None:
        import torch  # pyright: ignore[reportMissingImports]
        from torch.nn import functional  # pyright: ignore[reportMissingImports]

        self.case, self.torch, self.f, self.device = case, torch, functional, device
        self.loss = torch.compile(self._loss) if compiled else self._loss
        self.relu, self.sigmoid, self.tanh = torch.relu, torch.sigmoid, torch.tanh
        self.p = {k: torch.tensor(v, device=device) for k, v in start(case)}
        if "K1" in self.p:  # its own order of axes
            self.p |= {k: self.p[k].permute(3, 2, 0, 1).contiguous() for k in ("K1", "K2")}
        for value in self.p.values():
            value.requires_grad_()
        self.data = [{k: torch.tensor(a) for k, a in m.items()} for m in case.minibatches]
        for m in self.data:
            m["y"] = m["y"].long()
            if case.sparse:
                m["global"] = m["rows"].long()[m["index"].long()]
        if device != "cpu":  # from memory that the device reads by itself, as a DataLoader gives it
            self.data = [{k: v.pin_memory() for k, v in m.items()} for m in self.data]
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
        bags, values = (m[k].reshape(-1, m[k].shape[-1]) for k in ("global", "values"))
        found = self.f.embedding_bag(bags, w, mode="sum", sparse=True, per_sample_weights=values)
        return found.reshape(*m["values"].shape[:-1], -1)

    def scan(self, step: Any, start: Any, inputs: Any) -> Any:
        results = []
        for one in inputs.unbind(0):
            start, out = step(start, one)
            results.append(out)
        return self.torch.stack(results)

    def lstm(self, x: Any, w: Any, r: Any, b: Any) -> Any:
        """The layer of PyTorch."""
        start = self.zeros(1, x.shape[1], len(r))
        weights = [w.t(), r.t(), b, self.torch.zeros_like(b)]
        return self.torch._VF.lstm(x, (start, start), weights, True, 1, 0.0, True, False, False)[0]

    def split(self, x: Any, parts: int) -> Any:
        return x.chunk(parts, -1)

    def zeros(self, *shape: int) -> Any:
        return self.torch.zeros(shape, device=self.device)

    def _loss(self, p: Any, m: Any) -> Any:
        """The criterion and the number of errors, summed over the minibatch."""
        z = self.case.scores(self, p, m)
        if "mask" in m:
            cost = self.f.cross_entropy(z.reshape(-1, z.shape[-1]), m["y"].reshape(-1), reduction="none")
            return (cost * m["mask"].reshape(-1)).sum(), ((z.argmax(-1) != m["y"]) & (m["mask"] > 0)).sum()
        return self.f.cross_entropy(z, m["y"], reduction="sum"), (z.argmax(-1) != m["y"]).sum()

    def run(self, count: int) -> None:
        """Train on `count` minibatches."""
        for k in range(count):
            m = {k: v.to(self.device, non_blocking=True) for k, v in self.data[k % len(self.data)].items()}
            value, wrong = self.loss(self.p, m)
            self.sgd.zero_grad()
            if self.moment is not None:
                self.p["W"].grad = None
            value.backward()
            self.sgd.step()
            if self.moment is not None:
                sparse: Any = self.p["W"].grad
                gradient = sparse.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                with self.torch.no_grad():
                    new = self.moment[rows].mul_(MOMENTUM).add_(values, alpha=1 - MOMENTUM)
                    self.moment.index_copy_(0, rows, new)
                    self.p["W"].index_add_(0, rows, new, alpha=-RATE)
            self.last = value, wrong
        self.last = tuple(one.item() for one in self.last)  # waits for the device
