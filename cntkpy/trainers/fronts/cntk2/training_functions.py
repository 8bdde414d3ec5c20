"""Functions in training mode, compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import compile_network
from cntkpy.networks.graph.network import ValidatedNetwork

if TYPE_CHECKING:
    from jax import Array, ShapeDtypeStruct

    Named = dict[str, Array]
    PassArguments = tuple[Mapping[str, object], Mapping[str, object], Batch, object]
    """Parameters, state, minibatch, key of random numbers."""
    GradientsOfPass = tuple[Named, Named, tuple[Named, Named]]
    """Values and state after, and the gradients by parameters and by inputs."""


class TrainingFunctions:
    """Computes nodes in training mode, and gradients.

    Args:
        network: the network.
        names: of the nodes.
    """

    def __init__(self, network: ValidatedNetwork, names: Iterable[str]) -> None:
        self._network, self._names = network, list(dict.fromkeys(names))
        self._shapes: dict[Any, Mapping[str, Any]] = {}
        """By shapes of data, those of the results."""

    @cached_property
    def values(self) -> Callable[..., tuple[dict[str, Array], dict[str, Array]]]:
        """Computes the nodes in training mode: `f(parameters, state, batch, key, settings) -> (values, state)`.

        Dropout is active, batch normalisation takes the statistics of the minibatch.
        """
        return jax.jit(self._function)

    @cached_property
    def gradients(self) -> Callable[..., GradientsOfPass]:
        """The same and gradients, in one program: `f(variables, roots, given) -> (values, state, gradients)`.

        `variables` has parameters and inputs to differentiate by, `roots` by node a factor for each element of its
        value, `given` the arguments of `values`; its parameters need not have those of `variables`.
        """
        compute = self._function

        def function(
            variables: tuple[dict[str, Array], dict[str, Array]], roots: Mapping[str, Array], arguments: PassArguments
        ) -> GradientsOfPass:
            parameters, state, batch, *options = arguments

            def outputs(
                chosen: dict[str, Array], data: dict[str, Array]
            ) -> tuple[dict[str, Array], tuple[dict[str, Array], dict[str, Array]]]:
                inputs = batch._replace(inputs={**batch.inputs, **data})
                results, after = compute({**parameters, **chosen}, state, inputs, *options)
                return {name: results[name] for name in roots}, (results, after)

            _, pull_back, (outcome, after) = jax.vjp(outputs, *variables, has_aux=True)
            return outcome, after, pull_back(roots)

        return jax.jit(function)

    def shapes(self, arguments: PassArguments) -> Mapping[str, ShapeDtypeStruct]:
        """Return the shapes and types of what `values` computes, by name, without computing it.

        Args:
            arguments: its arguments.
        """
        key = tuple(np.shape(array) for array in jax.tree.leaves(arguments[2]))
        if key not in self._shapes:
            self._shapes[key] = jax.eval_shape(self.values, *arguments)[0]
        return self._shapes[key]

    @property
    def _function(self) -> Callable[..., tuple[dict[str, Array], dict[str, Array]]]:
        return compile_network(self._network, self._names, training=True)
