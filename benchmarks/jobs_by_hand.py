"""The two jobs of jobs.py by hand in PyTorch: a program that trains, tests after every epoch, and saves its state.

    python benchmarks/jobs_by_hand.py JOB DATA FOLDER EPOCHS SEED RATES WIDTH...

The data are arrays, DATA/JOB.train.npz and DATA/JOB.test.npz, read once and kept in memory as tensors. Minibatches are
taken by index; no DataLoader is between. After every epoch it prints `epoch K error E`, E a fraction. Networks, scales
of start values, momentum and clipping are those of benchmarks/configs/JOB.cntk;
RATES are written as there, `0.003*2:0.0015`, and hold per epoch.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peers

peers.available("torch")  # puts its folder on Python's path

import torch  # noqa: E402  # pyright: ignore[reportMissingImports]
from torch.nn import functional  # noqa: E402  # pyright: ignore[reportMissingImports]

Tensor = Any


class Digits:
    """Two convolutions with pooling, two layers; SGD with momentum of unit gain, minibatches of 32."""

    size, momentum = 32, 0.9

    def __init__(self, data: Path, maps: int, hidden: int) -> None:
        self.data = {part: self._read(data / f"digits.{part}.npz") for part in ("train", "test")}
        maps2 = 2 * maps
        shapes = [(maps, 1, 5, 5), (maps2, maps, 5, 5), (hidden, 16 * maps2), (10, hidden)]
        self.weights = [(torch.randn(s) / np.sqrt(np.prod(s[1:]))).requires_grad_() for s in shapes]
        self.biases = [torch.zeros(s[0]).requires_grad_() for s in shapes]
        self.parameters = self.weights + self.biases
        gain = {"lr": 0.0, "momentum": self.momentum, "dampening": self.momentum}
        self.sgd = torch.optim.SGD(self.parameters, **gain, fused=True)
        for p in self.parameters:  # else the first update is not damped
            self.sgd.state[p]["momentum_buffer"] = torch.zeros_like(p)

    def _read(self, path: Path) -> tuple[Tensor, Tensor]:
        with np.load(path) as file:
            x = torch.from_numpy(file["x"].astype(np.float32) / 256).reshape(-1, 1, 28, 28)
            return x, torch.from_numpy(file["y"].astype(np.int64))

    def scores(self, x: Tensor) -> Tensor:
        for k in (0, 1):
            x = functional.max_pool2d(functional.relu(functional.conv2d(x, self.weights[k], self.biases[k])), 2)
        h = torch.sigmoid(functional.linear(x.flatten(1), self.weights[2], self.biases[2]))
        return functional.linear(h, self.weights[3], self.biases[3])

    def train(self, rate: float) -> None:
        x, y = self.data["train"]
        for some in torch.randperm(len(y)).split(self.size):
            z = self.scores(x[some])
            self.sgd.zero_grad()
            functional.cross_entropy(z, y[some], reduction="sum").backward()
            group, n = self.sgd.param_groups[0], len(some)
            group["lr"] = rate / self.size
            group["momentum"] = group["dampening"] = self.momentum ** (n / self.size)
            self.sgd.step()

    def error(self) -> float:
        x, y = self.data["test"]
        wrong = sum(int((self.scores(a).argmax(1) != b).sum()) for a, b in zip(x.split(256), y.split(256), strict=True))
        return wrong / len(y)

    def state(self) -> dict[str, Any]:
        return {"parameters": self.parameters, "sgd": self.sgd.state_dict()}


class Slots:
    """Vectors of words, an LSTM, a layer of tags; FSAdaGrad, minibatches of 70 words in whole sentences.

    As CNTK does, the vectors of the words that occur are updated by AdaGrad.
    """

    size, clipping, momentum, target = 70, 15.0, np.exp(-1 / 700), 1.0

    def __init__(self, data: Path, vector: int, cells: int) -> None:
        self.data = {part: self._read(data / f"slots.{part}.npz") for part in ("train", "test")}

        def glorot(outputs: int, inputs: int) -> Tensor:
            bound = np.sqrt(6 / (inputs + outputs))
            return torch.empty(outputs, inputs).uniform_(-bound, bound)

        self.words = glorot(vector, 943).t().contiguous().requires_grad_()
        self.dense = [glorot(4 * cells, vector), glorot(4 * cells, cells), torch.zeros(4 * cells)]
        self.dense += [glorot(129, cells), torch.zeros(129)]
        for p in self.dense:
            p.requires_grad_()
        self.no_bias, self.cells = torch.zeros(4 * cells), cells
        self.squares, self.smoothed = ([torch.zeros_like(p) for p in self.dense] for _ in range(2))
        self.word_squares, self.count = torch.zeros(943, vector), 0.0

    def _read(self, path: Path) -> tuple[Tensor, Tensor, np.ndarray]:
        """Words and tags, padded (time, sentence), and lengths; the tag of padding is -100."""
        with np.load(path) as file:
            lengths = file["lengths"]
            inside = np.arange(lengths.max())[:, None] < lengths
            x, y = np.zeros(inside.T.shape, np.int64), np.full(inside.T.shape, -100)
            x[inside.T], y[inside.T] = file["x"], file["y"]
            return torch.from_numpy(x.T.copy()), torch.from_numpy(y.T.copy()), lengths

    def scores(self, x: Tensor) -> Tensor:
        """(time, sentence) -> (time * sentence, tags)."""
        start = torch.zeros(1, x.shape[1], self.cells)
        e = functional.embedding(x, self.words, sparse=True)
        weights = [*self.dense[:3], self.no_bias]
        h = torch._VF.lstm(e, (start, start), weights, True, 1, 0.0, True, False, False)[0]
        return functional.linear(h.flatten(0, 1), self.dense[3], self.dense[4])

    def minibatches(self, order: np.ndarray, lengths: np.ndarray, size: int) -> Iterator[tuple[Tensor, int, int]]:
        """Sentences, their longest length and their number of words: as many as fit, at least one."""
        begin, total = 0, 0
        for k, length in enumerate(lengths[order].tolist()):
            if k > begin and total + length > size:
                yield self._minibatch(order[begin:k], lengths)
                begin, total = k, 0
            total += length
        yield self._minibatch(order[begin:], lengths)

    def _minibatch(self, some: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, int, int]:
        here = lengths[some]
        return torch.from_numpy(some), int(here.max()), int(here.sum())

    def train(self, rate: float) -> None:
        x, y, lengths = self.data["train"]
        order = torch.randperm(len(lengths)).numpy()
        for some, longest, n in self.minibatches(order, lengths, self.size):
            z = self.scores(x[:longest, some])
            loss = functional.cross_entropy(z, y[:longest, some].flatten(), reduction="sum")
            gradients = list(torch.autograd.grad(loss, [*self.dense, self.words]))
            self._update(gradients[:-1], gradients[-1].coalesce(), rate, n)

    @torch.no_grad()
    def _update(self, g: list[Tensor], of_words: Tensor, rate: float, n: int) -> None:
        limit = self.clipping * n
        torch._foreach_clamp_min_(g, -limit)
        torch._foreach_clamp_max_(g, limit)
        keep, m = np.exp(-n / 720000), self.momentum**n
        self.count = keep * self.count + (1 - keep) * n
        keep = np.float32(keep)
        torch._foreach_mul_(self.squares, float(keep))
        torch._foreach_addcmul_(self.squares, g, g, float(1 - keep))
        scaled = torch._foreach_sqrt(self.squares)
        torch._foreach_reciprocal_(scaled)
        torch._foreach_mul_(scaled, self.target * float(np.sqrt(self.count)))
        torch._foreach_clamp_max_(scaled, 10.0)
        torch._foreach_mul_(scaled, g)
        torch._foreach_lerp_(self.smoothed, scaled, 1 - m)
        torch._foreach_add_(self.dense, self.smoothed, alpha=-rate)

        rows, values = of_words.indices()[0], of_words.values().clamp_(-limit, limit)
        squares = self.word_squares[rows].addcmul_(values, values)
        self.word_squares[rows] = squares
        step = squares.add_(1e-16).rsqrt_()
        self.words.index_add_(0, rows, values.mul_(step), alpha=-rate / float(step.mean()))

    @torch.no_grad()
    def error(self) -> float:
        x, y, lengths = self.data["test"]
        wrong = 0
        for some in torch.from_numpy(np.argsort(lengths)).split(64):
            longest = int(lengths[some].max())
            tags = y[:longest, some].flatten()
            wrong += int(((self.scores(x[:longest, some]).argmax(1) != tags) & (tags >= 0)).sum())
        return wrong / int(lengths.sum())

    def state(self) -> dict[str, Any]:
        return {"parameters": [self.words, *self.dense], "squares": [self.word_squares, *self.squares]} | {
            "smoothed": self.smoothed,
            "count": self.count,
        }


def train(job: str, data: str, folder: str, epochs: str, seed: str, rates: str, *widths: str) -> None:
    """Train a job; `rates` are CNTK's values per epoch."""
    torch.manual_seed(int(seed))
    made = {"digits": Digits, "slots": Slots}[job](Path(data), *map(int, widths))
    parts = [part.partition("*")[::2] for part in rates.split(":")]
    listed = [float(rate) for rate, times in parts for _ in range(int(times or 1))]
    for epoch in range(int(epochs)):
        made.train(listed[min(epoch, len(listed) - 1)])
        with torch.no_grad():
            print(f"epoch {epoch + 1} error {made.error()}", flush=True)
        torch.save(made.state(), Path(folder) / f"{job}.{epoch + 1}.pt")


if __name__ == "__main__":
    train(*sys.argv[1:])
