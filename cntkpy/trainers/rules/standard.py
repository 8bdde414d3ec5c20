"""Update rules as the field defines them, for `cntkpy.training`; those of the `SGD` section are in `updates`.

Notation: `g` the gradient that the learning rate `lr` is for, `m` the momentum of this minibatch, `W` weight. A rate
for minibatches of any size is for the mean gradient; one per sample is for the gradient summed over the samples, as
in CNTK: what a rule keeps of a large minibatch counts by its samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cntkpy.networks.arrays.lazy import jnp
from cntkpy.trainers.rules.updates import Rule, State, StepScalars, gain, of_each_row, zeros

Array = Any


def _given(gradient: Array, scalars: StepScalars) -> Array:
    """`g`: the mean gradient, or the sum."""
    return gradient / scalars.divisor


def _rate(scalars: StepScalars) -> Array:
    """`lr`."""
    return scalars.rate * scalars.divisor


def _nothing(weight: Array) -> State:
    return {}


def sgd() -> Rule:
    """`W <- W - lr g`."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        return weight - scalars.rate * gradient, state

    return Rule(_nothing, apply, of_each_row(apply), alone=True, elementwise=True)


def kept_gradient() -> Rule:
    """`W` stays, and the state is the gradient summed over the samples: Python code changes the weight."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        return weight, {"gradient": gradient}

    return Rule(zeros("gradient"), apply, None)


def adagrad(epsilon: float) -> Rule:
    """`a <- a + g^2; W <- W - lr g / (sqrt(a) + epsilon)`."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        g = _given(gradient, scalars)
        total = state["a"] + g * g
        return weight - _rate(scalars) * g / (jnp.sqrt(total) + epsilon), {"a": total}

    return Rule(zeros("a"), apply, of_each_row(apply), alone=True, elementwise=True)


def rmsprop(rho: float, epsilon: float) -> Rule:
    """`a <- rho a + (1-rho) g^2; W <- W - lr g / (sqrt(a) + epsilon)`."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        g = _given(gradient, scalars)
        square = rho * state["a"] + (1 - rho) * g * g
        return weight - _rate(scalars) * g / (jnp.sqrt(square) + epsilon), {"a": square}

    return Rule(zeros("a"), apply, None, elementwise=True)


def _adam_start(weight: Array) -> State:
    arrays = {name: np.zeros(weight.shape, weight.dtype) for name in ("m", "v")}
    return {**arrays, "mean": np.zeros((), weight.dtype), "square": np.zeros((), weight.dtype)}


def _new(beta: float, per_sample: bool, scalars: StepScalars) -> Array:
    """`1 - b`, from `b` in double precision: in single, a `b` of nearly 1 leaves a digit or two of it."""
    return -jnp.expm1(scalars.samples * math.log(beta)) if per_sample and beta else 1 - beta


def adam(beta: float, epsilon: float, per_sample: bool = False, unit_gain: bool = True) -> Rule:
    """`a <- m a + (1-m) g; v <- b v + (1-b) g^2; W <- W - lr (a / (1-m^t)) / (sqrt(v / (1-b^t)) + epsilon)`.

    (D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.) The state `mean` is `1-m^t`,
    `square` is `1-b^t`: what `a` and `v` would be of gradients of 1.

    Args:
        beta: b.
        epsilon: added to the root.
        per_sample: b is that of a sample.
        unit_gain: False: `a <- m a + g`, and no correction of `a`.
    """

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        g, new = _given(gradient, scalars), _new(beta, per_sample, scalars)
        first, ones = _first(g, state, scalars, unit_gain)
        second = state["v"] + new * (g * g - state["v"])
        square = state["square"] + new * (1 - state["square"])
        scale = jnp.sqrt(second / square) + epsilon
        changed = {"m": first, "v": second, "mean": ones, "square": square}
        return weight - _rate(scalars) * (first / ones if unit_gain else first) / scale, changed

    return Rule(_adam_start, apply, None, elementwise=True)


def _first(g: Array, state: State, scalars: StepScalars, unit_gain: bool) -> tuple[Array, Array]:
    """`a`, and `1-m^t`."""
    kept = scalars.momentum
    return kept * state["m"] + gain(unit_gain, scalars) * g, kept * state["mean"] + (1 - kept)


def adamax(beta: float, epsilon: float, per_sample: bool = False, unit_gain: bool = True) -> Rule:
    """`a <- m a + (1-m) g; u <- max(b u, |g|); W <- W - lr (a / (1-m^t)) / (u + epsilon)`; see `adam`."""

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        g = _given(gradient, scalars)
        first, ones = _first(g, state, scalars, unit_gain)
        largest = jnp.maximum((1 - _new(beta, per_sample, scalars)) * state["v"], jnp.abs(g))
        change = (first / ones if unit_gain else first) / (largest + epsilon)
        return weight - _rate(scalars) * change, {**state, "m": first, "v": largest, "mean": ones}

    return Rule(_adam_start, apply, None, elementwise=True)


def adadelta(rho: float, epsilon: float) -> Rule:
    """`a <- rho a + (1-rho) g^2; d = g sqrt(x + epsilon) / sqrt(a + epsilon); x <- rho x + (1-rho) d^2; W <- W - lr d`.

    (M. D. Zeiler, "ADADELTA: an adaptive learning rate method", 2012.)
    """

    def apply(weight: Array, gradient: Array, state: State, scalars: StepScalars) -> tuple[Array, State]:
        g = _given(gradient, scalars)
        square = rho * state["a"] + (1 - rho) * g * g
        change = g * jnp.sqrt(state["x"] + epsilon) / jnp.sqrt(square + epsilon)
        changes = rho * state["x"] + (1 - rho) * change * change
        return weight - _rate(scalars) * change, {"a": square, "x": changes}

    return Rule(zeros("a", "x"), apply, None, elementwise=True)
