"""Minibatches of a small network, with what they hold sample by sample, for tests of batchers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.pipeline.pack import place
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.feed import Batcher
from cntkpy.trainers.step.padding import Inputs, SingleAxis

DIM, WORDS = 3, 20
NETWORK = f"""NDLNetworkBuilder = [ run = net ; net = [
    x = Input({DIM})
    s = SparseInput({WORDS})
    W = Parameter(2, {DIM})
    E = Parameter(2, {WORDS})
    wx = Times(W, x)
    es = Times(E, s)
    z = Plus(wx, es)
    FeatureNodes = (x, s)
    OutputNodes = (z)
] ]"""


def network(precision: str = "float") -> ValidatedNetwork:
    return build_network(parse(NETWORK), precision, SeedCounter())


def batcher(minibatch_size: int = 10, precision: str = "float", **more: Any) -> Batcher:
    made = network(precision)
    exact = more.pop("exact", False)
    return replace(Batcher.of(made, [made["z"]], minibatch_size, **more), exact=exact)


def dense_batcher(minibatch_size: int) -> Batcher:
    """The batcher of the dense input alone."""
    whole = batcher(minibatch_size)
    inputs = whole.padding.inputs
    return replace(whole, padding=SingleAxis(Inputs(inputs.dense, inputs.dtype)), buckets=Buckets())


@dataclass
class Case:
    """A minibatch; x and the words of `s`, by sequence and step."""

    minibatch: Minibatch
    x: list[list[list[float]]]
    words: list[list[list[int]]]


def case(lengths: Sequence[int], seed: int = 0) -> Case:
    """A minibatch of whole sequences of these lengths, laid out as a reader does it."""
    random = np.random.default_rng(seed)
    x = [random.integers(1, 100, (length, DIM)).astype(float).tolist() for length in lengths]
    words = [
        [sorted(random.choice(WORDS, size=random.integers(0, 4), replace=False).tolist()) for _ in range(length)]
        for length in lengths
    ]
    layout = place(np.array(lengths, np.int64))
    dense = np.zeros((layout.T, layout.S, DIM), np.float32)
    sparse = scipy.sparse.lil_matrix((layout.T * layout.S, WORDS), dtype=np.float32)
    for number, slot, begin, end in layout.sequences.tolist():
        for step in range(begin, end):
            dense[step, slot] = x[number][step - begin]
            for word in words[number][step - begin]:
                sparse[step * layout.S + slot, word] = 1
    data = {"x": dense, "s": sparse.tocsr()}
    return Case(Minibatch(data, dict.fromkeys(data, layout), list(range(len(lengths)))), x, words)


def minibatch(layout: Layout, truncated: bool = False) -> Minibatch:
    """A minibatch of zeros with a layout."""
    data = {
        "x": np.zeros((layout.T, layout.S, DIM), np.float32),
        "s": scipy.sparse.csr_matrix((layout.T * layout.S, WORDS), dtype=np.float32),
    }
    return Minibatch(data, dict.fromkeys(data, layout), list(range(len(layout.sequences))), truncated=truncated)
