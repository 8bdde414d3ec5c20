"""Update rules of the `SGD` section: SGD with momentum, Nesterov, AdaGrad, RMSProp, FSAdaGrad.

Every rule is a few pure functions over one parameter array. A matrix that multiplies a sparse input is updated row by
row, only where the input was not zero; RMSProp and FSAdaGrad then work like AdaGrad (as in CNTK).

Notation of the formulas (docs/specification/actions-and-training.md 2.5): `W` weight, `g` gradient summed over the
samples of the minibatch, `n` samples in the minibatch, `lr` learning rate per sample, `m = mu**n` momentum of this
minibatch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cntkpy.networks.arrays.blocks import blocks_of, in_blocks
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.sparse import RowGradient

Array = Any
State = dict[str, Array]


class StepScalars(NamedTuple):
    """The scalars of one minibatch, all in the element type of the network.

    **Fields:**

    - `rate`: learning rate per sample, multiplied by the parameter's own multiplier.
    - `momentum`: `mu**n`.
    - `samples`: `n`.
    - `divisor`: the gradient that the rate is for is the sum divided by it: `n` for a rate of the mean gradient.
    """

    rate: Array
    momentum: Array
    samples: Array
    divisor: Array | float = 1.0


Apply = Callable[[Array, Array, State, StepScalars], tuple[Array, State]]
ApplyRows = Callable[[Array, Array, State, StepScalars, Array], tuple[Array, State]]


class Rule(NamedTuple):
    """One update rule.

    **Fields:**

    - `start(weight) -> state`: the state before the first update; a dict of arrays (scalars or of the weight's shape),
      of numpy, so that nothing is compiled for them.
    - `apply(weight, gradient, state, scalars) -> (weight, state)`: one update.
    - `apply_rows(weight, gradient, state, scalars, real)`: the same for the rows of a matrix that a sparse input
      touches; `real` (rows, 1) is False for rows that are padding. None: all rows are updated always.
    - `alone`: what `apply_rows` makes of a row does not depend on the other rows.
    - `elementwise`: what `apply` makes of an element does not depend on the others. Numbers of the state are the same
      for all parameters, if they are before the first update.
    """

    start: Callable[[Array], State]
    apply: Apply
    apply_rows: ApplyRows | None
    alone: bool = False
    elementwise: bool = False


def update_rows(
    rule: Rule,
    weight: Array,
    gradient: RowGradient,
    state: State,
    scalars: StepScalars,
    change: Callable[[Array, Array], Array] = lambda values, weight: values,
) -> tuple[Array, State]:
    """Return one update of the rows that a gradient touches; the others keep their values and their state.

    Many rows are updated block by block, where the rule allows it: what is computed for them takes less memory.

    Args:
        rule: how they change.
        weight: the whole matrix.
        gradient: of its rows.
        state: that of the rule.
        scalars: of the minibatch.
        change: rows of the gradient and of the weight -> the rows of the gradient that the rule is given.
    """
    if rule.apply_rows is None:
        some = weight.at[gradient.rows].get(mode="fill", fill_value=0)
        whole = jnp.zeros_like(weight).at[gradient.rows].add(change(gradient.values, some), mode="drop")
        return rule.apply(weight, whole, state, scalars)
    apply_rows = rule.apply_rows

    def update(carried: tuple[Array, State], block: RowGradient) -> tuple[tuple[Array, State], None]:
        weight, state = carried
        rows = block.rows

        def gather(array: Array) -> Array:
            return jnp.asarray(array).at[rows].get(mode="fill", fill_value=0) if array.ndim else array

        def scatter(array: Array, new: Array) -> Array:
            return jnp.asarray(array).at[rows].set(new, mode="drop", unique_indices=True) if array.ndim else new

        some, arrays = gather(weight), {key: gather(array) for key, array in state.items()}
        real = (rows < weight.shape[0])[:, None]
        some, new = apply_rows(some, change(block.values, some), arrays, scalars, real)
        return (scatter(weight, some), {key: scatter(state[key], array) for key, array in new.items()}), None

    count = blocks_of(len(gradient.rows), gradient.values.size) if rule.alone else 1
    if count == 1:
        return update((weight, state), gradient)[0]
    blocks = RowGradient(in_blocks(gradient.rows, count, weight.shape[0]), in_blocks(gradient.values, count))
    return jax.lax.scan(update, (weight, state), blocks)[0]


def momentum(unit_gain: bool = True, by_rows: bool = True) -> Rule:
    """Momentum with the rate inside the velocity: `v <- m v + lr g; W <- W - v`.

    Args:
        unit_gain: `(1-m) lr g` in the place of `lr g`.
        by_rows: only rows that a sparse input touches are updated; their state is the smoothed gradient without rate.
    """

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        velocity = scalars.momentum * state["v"] + gain(unit_gain, scalars) * scalars.rate * gradient
        return weight - velocity, {"v": velocity}

    def apply_rows(
        weight: Array, gradient: Array, state: State, scalars: StepScalars, real: Array
    ) -> tuple[Array, State]:
        smoothed = scalars.momentum * state["v"] + (1 - scalars.momentum) * gradient
        return weight - scalars.rate * smoothed, {"v": smoothed}

    return Rule(zeros("v"), apply, apply_rows if by_rows else None, alone=by_rows, elementwise=True)


def nesterov(unit_gain: bool = True, by_rows: bool = True) -> Rule:
    """Nesterov's form: `v <- m v + lr g; W <- W - m v - lr g`; for the arguments see `momentum`."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        step = gain(unit_gain, scalars) * scalars.rate * gradient
        velocity = scalars.momentum * state["v"] + step
        return weight - scalars.momentum * velocity - step, {"v": velocity}

    return Rule(zeros("v"), apply, of_each_row(apply) if by_rows else None, alone=by_rows, elementwise=True)


def gain(unit_gain: bool, scalars: StepScalars) -> Array | float:
    """Return the factor of a gradient in a mean of gradients, or 1 without unit gain."""
    return 1 - scalars.momentum if unit_gain else 1.0


def of_each_row(apply: Apply) -> ApplyRows:
    """Return a rule for rows that is that of whole arrays."""
    return lambda weight, gradient, state, scalars, real: apply(weight, gradient, state, scalars)


def adagrad(normalise: bool) -> Rule:
    """`a <- a + g^2; r = 1/sqrt(a + 1e-16); W <- W - lr/k g r`, `k` the mean of `r` if `normalise`, else 1."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        total = state["a"] + gradient * gradient
        scale = 1 / jnp.sqrt(total + 1e-16)
        return weight - scalars.rate / _mean(scale, normalise) * gradient * scale, {"a": total}

    return Rule(zeros("a"), apply, _adagrad_rows(normalise), alone=not normalise, elementwise=not normalise)


def _adagrad_rows(normalise: bool) -> ApplyRows:
    """AdaGrad on touched rows: the mean step factor is taken over their elements only."""

    def apply_rows(
        weight: Array, gradient: Array, state: State, scalars: StepScalars, real: Array
    ) -> tuple[Array, State]:
        total = state["a"] + gradient * gradient
        scale = jnp.where(real, 1 / jnp.sqrt(total + 1e-16), 0)
        mean = jnp.sum(scale) / jnp.maximum(1, jnp.sum(real) * scale.shape[1]) if normalise else 1.0
        return weight - scalars.rate / mean * gradient * scale, {**state, "a": total}

    return apply_rows


def rmsprop(normalise: bool, gamma: float, increase: float, decrease: float, largest: float, smallest: float) -> Rule:
    """RMSProp with a step factor per element that grows while the sign of the gradient stays.

    `a <- gamma a + (1-gamma) g^2` (`a = g^2` before the first update); `t <- min(t inc, max)` where the sign repeats,
    else `max(t dec, min)`; `q = t / sqrt(a + 1e-6)`; `W <- W - lr/k g q`.
    """

    def start(weight: Array) -> State:
        zeros = {name: np.zeros(weight.shape, weight.dtype) for name in ("a", "s")}
        return {**zeros, "t": np.full(weight.shape, 0.02, weight.dtype), "started": np.zeros((), bool)}

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        square = gradient * gradient
        mean_square = gamma * jnp.where(state["started"], state["a"], square) + (1 - gamma) * square
        sign = jnp.sign(gradient)
        grown = jnp.minimum(state["t"] * increase, largest)
        step = jnp.where(state["s"] * sign > 0, grown, jnp.maximum(state["t"] * decrease, smallest))
        scale = step / jnp.sqrt(mean_square + 1e-6)
        weight = weight - scalars.rate / _mean(scale, normalise) * gradient * scale
        return weight, {"a": mean_square, "s": sign, "t": step, "started": jnp.ones((), bool)}

    return Rule(start, apply, _adagrad_rows(normalise), alone=not normalise, elementwise=not normalise)


def fsadagrad(time_constant: float, target: float, normalise: bool = True, unit_gain: bool = True) -> Rule:
    """AdaGrad with a forgetting mean square, a bounded scale, then momentum, usually with unit gain.

    `b = exp(-n/time_constant)`; `c <- b c + (1-b) n`; `a <- b a + (1-b) g^2`; `w = min(10, target sqrt(c/a))` (1 where
    `a = 0`); `h = w g`; if `m > 0`: `p <- m p + (1-m) h; h = p`; `W <- W - lr h`. Without unit gain `p <- m p + h`.

    As in CNTK, `c` is in double precision, and `a` has the `b` of the element type. With the usual time constant `b` is
    nearly 1, and a single-precision `1-b` is off by up to a percent; `c` and `a` differ by that.
    """

    def start(weight: Array) -> State:
        zeros = {name: np.zeros(weight.shape, weight.dtype) for name in ("a", "p")}
        return {**zeros, "c": np.zeros((), np.float64)}

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        samples = scalars.samples.astype(jnp.float64)
        exact = jnp.exp(-samples / time_constant)
        count = exact * state["c"] + (1 - exact) * samples
        keep = exact.astype(weight.dtype)
        mean_square = keep * state["a"] + (1 - keep) * gradient * gradient
        seen = mean_square > 0
        root = jnp.sqrt(jnp.where(seen, mean_square, 1))
        wanted = (target * jnp.sqrt(count)).astype(weight.dtype)
        scaled = jnp.where(seen, jnp.minimum(10, wanted / root), 1) * gradient
        smoothed = scalars.momentum * state["p"] + gain(unit_gain, scalars) * scaled
        step = jnp.where(scalars.momentum > 0, smoothed, scaled)
        kept = jnp.where(scalars.momentum > 0, smoothed, state["p"])
        return weight - scalars.rate * step, {"a": mean_square, "p": kept, "c": count}

    return Rule(start, apply, _adagrad_rows(normalise), alone=not normalise, elementwise=True)


def clip(gradient: Array, limit: Array, by_element: bool) -> Array:
    """Clamp every element to `[-limit, limit]`, or scale the whole gradient to a Frobenius norm of at most `limit`."""
    if by_element:
        return jnp.clip(gradient, -limit, limit)
    norm = jnp.sqrt(jnp.sum(gradient * gradient))
    return gradient * jnp.where(norm > limit, limit / jnp.where(norm > 0, norm, 1), 1)


def shrink(weight: Array, threshold: Array) -> Array:
    """Return the proximal step of L1 regularisation: `sign(W) max(|W| - threshold, 0)`."""
    return jnp.sign(weight) * jnp.maximum(jnp.abs(weight) - threshold, 0)


def zeros(*names: str) -> Callable[[Array], State]:
    """Return a state of zeros like the weight."""
    return lambda weight: {name: np.zeros(weight.shape, weight.dtype) for name in names}


def _mean(scale: Array, normalise: bool) -> Array | float:
    return jnp.mean(scale) if normalise else 1.0
