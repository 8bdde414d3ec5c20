"""Reduction: what the workers of a training compute for their parts of a minibatch becomes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray

    from cntkpy.networks.arrays.sparse import RowGradient
    from cntkpy.networks.compile.evaluate import Batch

    Named = dict[str, Array]
    Gradients = dict[str, Array | RowGradient]


class Reduction:
    """Joins nothing: there is one worker."""

    def mask_key(self, key: PRNGKeyArray) -> PRNGKeyArray:
        """Return, in the compiled step, the random key of a worker's masks."""
        return key

    def reduce(
        self, gradients: Gradients, sums: Named, state: Named, start: Named, batch: Batch
    ) -> tuple[Gradients, Named, Named]:
        """Join, in the compiled step, what the workers have computed for their parts of one minibatch.

        Args:
            gradients: of a worker, by parameter.
            sums: of the nodes of a worker, by name.
            state: the network's state after the minibatch.
            start: the network's state before it.
            batch: the worker's part.

        Returns:
            Gradients, sums and state to continue with.
        """
        return gradients, sums, state
