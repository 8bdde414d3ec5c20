"""`gradientcheck`: gradients of back-propagation compared with finite differences, before every update."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.arrays.sparse import RowGradient
from cntkpy.networks.compile.evaluate import compile_gradient, compile_network, node_total
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.step.context import StepContext

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray

    from cntkpy.networks.arrays.batch import Batch
    from cntkpy.networks.compile.evaluate import Settings

log = logging.getLogger("cntkpy.trainers")

ELEMENTS = 50
"""Elements of a parameter that are compared, at most; drawn again for every minibatch."""

STEPS = (1e-5, 1e-6)
"""Half the distance of the two points of a difference. The second is tried where the first fails: a network with
rectifiers may have a kink between the points."""


class GradientCheck:
    """Compares gradients with central differences.

    Args:
        network, nodes: as the trainer has them; the first node is the criterion.
        digits: significant digits that have to agree.
        report: log a line per parameter.
    """

    def __init__(self, network: ValidatedNetwork, nodes: Sequence[Node], digits: float = 6, report: bool = True):
        self.network, self.digits, self.report = network, digits, report
        criterion = nodes[0]
        names = [node.name for node in nodes]
        self._gradients = jax.jit(compile_gradient(network, names[0], names))
        forward = compile_network(network, names, training=True)

        def total(
            weights: dict[str, Array],
            state: dict[str, Array],
            batch: Batch,
            key: PRNGKeyArray | None,
            settings: Settings,
        ) -> Array:
            return node_total(criterion, forward(weights, state, batch, key, settings)[0], batch)

        def differences(name: str, indices: Array, step: Array, weights: dict[str, Array], *arguments: Any) -> Array:
            def difference(index: Array) -> Array:
                flat = weights[name].reshape(-1)
                above, below = (
                    total({**weights, name: flat.at[index].add(by).reshape(weights[name].shape)}, *arguments)
                    for by in (step, -step)
                )
                return (above - below) / (2 * step)

            return jax.lax.map(difference, indices)

        self._differences = jax.jit(differences, static_argnums=0)

    def __call__(self, context: StepContext) -> None:
        """Check one minibatch.

        Raises:
            UserError: if a gradient is wrong; it names the first parameter.
        """
        w = context
        arguments = (w.state, w.batch, w.key, w.settings)
        gradients, totals, _ = self._gradients(w.weights, *arguments)
        size = abs(float(next(iter(totals.values()))))
        random = np.random.default_rng(w.number)
        for name in sorted(w.weights):
            gradient = gradients[name]
            if isinstance(gradient, RowGradient):
                gradient = gradient.dense(w.weights[name])
            flat = np.asarray(gradient, np.float64).reshape(-1)
            indices = np.sort(random.choice(flat.size, min(ELEMENTS, flat.size), replace=False))
            analytic = flat[indices]
            best = np.full(len(indices), math.inf)
            numeric = np.zeros(len(indices))
            for step in STEPS:
                tried = np.asarray(self._differences(name, indices, step, w.weights, *arguments), np.float64)
                bound = [allowed(b, n, self.digits) for b, n in zip(analytic, tried, strict=True)]
                rounding = 8 * np.finfo(np.float64).eps * size / step
                excess = np.abs(analytic - tried) / (np.array(bound) + rounding)
                excess[np.isnan(excess)] = math.inf
                better = (excess < best) | ~np.isfinite(best)
                best[better], numeric[better] = excess[better], tried[better]
                if best.max(initial=0) <= 1:
                    break
            worst = int(np.argmax(best))
            if best[worst] > 1:
                raise UserError(
                    "GradientCheck",
                    f"the gradient check fails for parameter '{name}' in minibatch {w.number}: element "
                    f"{self._subscript(name, int(indices[worst]))} has the gradient {analytic[worst]:.10g}, "
                    f"but finite differences say {numeric[worst]:.10g}",
                    hint="a node between this parameter and the criterion has a wrong gradient or none; "
                    "sigFigs sets how many digits have to agree",
                )
            if self.report:
                log.info(
                    "Gradient check, minibatch %d: %s: %d of %d elements, largest difference %.3g",
                    w.number,
                    name,
                    len(indices),
                    flat.size,
                    np.abs(analytic - numeric).max(initial=0),
                )

    def _subscript(self, name: str, flat: int) -> str:
        shape = self.network.nodes[name].shape or (1,)
        return f"[{','.join(str(i) for i in np.unravel_index(flat, shape, order='F'))}]"


def allowed(analytic: float, numeric: float, digits: float) -> float:
    """Return the difference that is allowed between two derivatives: `digits` digits of the smaller one, or
    decimals.
    """
    smaller = min(abs(analytic), abs(numeric))
    before_point = max(0, math.ceil(math.log10(smaller))) if smaller > 0 and math.isfinite(smaller) else 0
    return 10 ** (before_point - digits)
