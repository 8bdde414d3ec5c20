"""One update of all parameters: clipping, L2, the update rule, noise and L1, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.sparse import RowGradient
from cntkpy.networks.compile.flat import Flat
from cntkpy.trainers.rules.updates import Rule, StepScalars, clip, shrink, update_rows

Array = Any

PER_SAMPLE, OF_MEAN, OF_MINIBATCH = 0, 1, 2
"""Meanings of a learning rate: for each sample; for the mean gradient; for the sum of a minibatch."""


@dataclass(frozen=True)
class Regularisation:
    """Changes of a gradient before, and of a weight after, the update rule.

    See docs/specification/actions-and-training.md 2.6.

    The fields are the parameters of the `SGD` section of the same meaning, per sample where it says so there.
    """

    clipping: float = float("inf")
    clip_elements: bool = True
    l2: float = 0.0
    l1: float = 0.0
    noise: float = 0.0
    unregularised: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Group:
    """Rule and regularisation of some parameters.

    Attributes:
        rule: how a gradient changes them.
        regularisation: what is added to the gradient, and how it is clipped.
        index: the row of their scalars, see `Update.__call__`.
    """

    rule: Rule
    regularisation: Regularisation
    index: int


@dataclass(frozen=True)
class Update:
    """A function that changes all parameters.

    Attributes:
        rule: how a gradient changes a parameter.
        regularisation: what is added to the gradient, and how it is clipped.
        multipliers: the factor of the learning rate per parameter.
        groups: of parameters with a rule of their own, that rule.
    """

    rule: Rule
    regularisation: Regularisation
    multipliers: dict[str, float]
    groups: dict[str, Group] = field(default_factory=dict[str, Group])

    @property
    def noisy(self) -> bool:
        """Return whether noise is added to any weights."""
        return any(
            settings.noise
            for settings in (self.regularisation, *(group.regularisation for group in self.groups.values()))
        )

    def rule_of(self, name: str) -> Rule:
        """Return the rule of a parameter."""
        group = self.groups.get(name)
        return self.rule if group is None else group.rule

    def shared(self, name: str) -> tuple[int, float, bool] | None:
        """Return the common properties of parameters that are updated as one array; None: this one must be alone."""
        group = self.groups.get(name)
        r, rule = self.regularisation if group is None else group.regularisation, self.rule_of(name)
        if not rule.elementwise or r.noise or (np.isfinite(r.clipping) and not r.clip_elements):
            return None
        return -1 if group is None else group.index, self.multipliers[name], name in r.unregularised

    def with_flat(self, flats: Sequence[Flat]) -> Update:
        """Return the same, also for vectors of parameters in the place of these."""
        first = {flat.key: flat.names[0] for flat in flats}

        def with_keys(r: Regularisation) -> Regularisation:
            return replace(r, unregularised=r.unregularised.union(k for k in first if first[k] in r.unregularised))

        groups = self.groups | {key: self.groups[name] for key, name in first.items() if name in self.groups}
        return replace(
            self,
            regularisation=with_keys(self.regularisation),
            multipliers=self.multipliers | {key: self.multipliers[name] for key, name in first.items()},
            groups={
                name: replace(group, regularisation=with_keys(group.regularisation)) for name, group in groups.items()
            },
        )

    def __call__(
        self,
        weights: dict[str, Array],
        updates: dict[str, Any],
        gradients: dict[str, Array],
        scalars: StepScalars,
        key: Array | None,
        finite: Array,
        group_scalars: Array | None = None,
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return one update of all parameters.

        Args:
            weights: by name, the parameters.
            updates: by name of the parameter, the arrays of the update rule.
            gradients: by name of the parameter, summed over the samples; arrays or `RowGradient`.
            scalars: of this minibatch, for a parameter without a multiplier of its own.
            key: random key of the noise; None: there is none.
            finite: bool; if not, parameters stay as they were: gradients, rate and momentum count as 0.
            group_scalars: the scalars of groups (groups, 4): rate, momentum, what the rate is for, see `PER_SAMPLE`,
                whether the momentum is per sample.

        Returns:
            Parameters and arrays of the update rule after the update.
        """
        samples = scalars.samples
        rate, momentum = (jnp.where(finite, value, 0) for value in (scalars.rate, scalars.momentum))
        usual = scalars._replace(rate=rate, momentum=momentum)
        new_weights: dict[str, Array] = {}
        new_updates: dict[str, Any] = {}
        for index, name in enumerate(sorted(weights)):
            weight, gradient = weights[name], gradients[name]
            rule, r, common = self.rule, self.regularisation, usual
            group = self.groups.get(name)
            if group is not None and group_scalars is not None:
                rule, r, common = (
                    group.rule,
                    group.regularisation,
                    scalars_of(group_scalars[group.index], samples, finite),
                )
            own_rate = common.rate * self.multipliers[name]
            step = common._replace(rate=own_rate)
            regularised = name not in r.unregularised
            decay = r.l2 * samples if r.l2 and regularised else None
            if isinstance(gradient, RowGradient):
                if np.isfinite(r.clipping):
                    values = clip(jnp.where(finite, gradient.values, 0), r.clipping * samples, r.clip_elements)
                    gradient = gradient._replace(values=values)
                weight, new_updates[name] = update_rows(
                    rule, weight, gradient, updates[name], step, partial(_rows_to_apply, finite, decay)
                )
            else:
                gradient = jax.lax.select(finite, gradient, jnp.zeros_like(gradient))
                if np.isfinite(r.clipping):
                    gradient = clip(gradient, r.clipping * samples, r.clip_elements)
                if decay is not None:
                    gradient = gradient + decay * weight
                weight, new_updates[name] = rule.apply(weight, gradient, updates[name], step)
            if r.noise:
                assert key is not None
                weight += jnp.where(finite, r.noise, 0) * jax.random.normal(
                    jax.random.fold_in(key, index), weight.shape, weight.dtype
                )
            if r.l1 and regularised:
                weight = shrink(weight, own_rate * r.l1 * samples)
            new_weights[name] = weight
        return new_weights, new_updates


def scalars_of(row: Array, samples: Array, finite: Array) -> StepScalars:
    """Rate and momentum of a group for this minibatch."""
    number = jnp.maximum(samples, 1)
    rate = jnp.where(row[2] == PER_SAMPLE, row[0], row[0] / number)
    momentum = jnp.where(row[3] > 0, row[1] ** samples, row[1])
    divisor = jnp.where(row[2] == OF_MEAN, number, 1)
    return StepScalars(jnp.where(finite, rate, 0), jnp.where(finite, momentum, 0), samples, divisor)


def _rows_to_apply(finite: Array, decay: Array | None, values: Array, weight: Array) -> Array:
    """Rows of a gradient, or 0 unless `finite`; with `decay` times those of the weight."""
    values = jnp.where(finite, values, 0)
    return values if decay is None else values + decay * weight
