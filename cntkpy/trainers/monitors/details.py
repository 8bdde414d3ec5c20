"""`traceLevel` from 2 on: after every progress line times, memory, the reader's position, and norms of gradients."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.systems import memory as systems_memory
from cntkpy.networks.arrays.lazy import default_device, jax
from cntkpy.networks.arrays.sparse import RowGradient
from cntkpy.networks.compile.evaluate import compile_gradient
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.common.planned import State
from cntkpy.trainers.hooks import Hook, Interval
from cntkpy.trainers.log.nodes import SHAPES_LEVEL
from cntkpy.trainers.step.context import StepContext

if TYPE_CHECKING:
    from jax import Array

log = logging.getLogger("cntkpy.trainers")

DETAILS_LEVEL = 2
"""The `traceLevel` from which on there are details."""

MAX_STATE_CHARACTERS = 300
"""Characters of the reader's state that are shown."""

_MEGABYTE = 1 << 20


class Details(Hook):
    """Logs details of the minibatches since the last progress line.

    Args:
        network, nodes: as the trainer has them; the first node is the criterion.
        position: gives the reader's state.
        trace_level: from 3 on with the shapes of the last minibatch.
        gradients: with norms, for which a minibatch is computed as a whole.
    """

    def __init__(
        self,
        network: ValidatedNetwork,
        nodes: Sequence[Node],
        position: Callable[[], State],
        trace_level: int = DETAILS_LEVEL,
        gradients: bool = True,
    ):
        self._network, self._names = network, [node.name for node in nodes]
        self._position, self._trace_level = position, trace_level
        self._gradients = gradients
        self._norms: Any = None

    def on_interval(self, interval: Interval) -> None:
        """Log the details; norms are those of the last minibatch, after its update."""
        assert interval.context is not None
        context = interval.context()
        log.info("  Waited %.4fs for data; %s.", interval.waited, memory())
        log.info("  The reader is at %s.", json.dumps(self._position())[:MAX_STATE_CHARACTERS])
        for name, gradient, weight in self._measured(context) if self._gradients else ():
            log.info("  %s: norm of the gradient %.6g, of the values %.6g", name, gradient, weight)
        if self._trace_level >= SHAPES_LEVEL:
            for name, layout in context.stack.minibatches[-1].layouts.items():
                log.info(
                    "  %s: %d steps of %d sequences side by side, %d samples",
                    name,
                    layout.T,
                    layout.S,
                    layout.num_samples,
                )

    def _measured(self, context: StepContext) -> Iterator[tuple[str, float, float]]:
        """Name, norm of the gradient and norm of the values of every parameter under training."""
        if self._norms is None:
            gradients = compile_gradient(self._network, self._names[0], self._names)

            def norms(weights: dict[str, Array], *arguments: Any) -> dict[str, tuple[Array, Array]]:
                results, _, _ = gradients(weights, *arguments)
                parts = {
                    name: gradient.values if isinstance(gradient, RowGradient) else gradient
                    for name, gradient in results.items()
                }
                return {name: (_norm(parts[name]), _norm(weights[name])) for name in weights}

            self._norms = jax.jit(norms)
        c = context
        measured = self._norms(c.weights, c.state, c.batch, c.key, c.settings)
        for name in sorted(measured):
            gradient, weight = measured[name]
            yield name, float(gradient), float(weight)


def _norm(array: Array) -> Array:
    return jax.numpy.sqrt(jax.numpy.sum(jax.numpy.square(array.astype(np.float32))))


def memory() -> str:
    """Return the memory of the process, now and at most, and of the device, as far as these can be asked."""
    parts: list[str] = []
    if (now := systems_memory.of_process()) is not None:
        parts.append(f"memory {now / _MEGABYTE:.0f} MB")
    if (peak := systems_memory.peak_of_process()) is not None:
        parts.append(f"at most {peak / _MEGABYTE:.0f} MB")
    device = default_device().memory_stats()
    if device and "bytes_in_use" in device:
        parts.append(f"of the device {device['bytes_in_use'] / _MEGABYTE:.0f} MB")
    return ", ".join(parts) or "memory unknown"
