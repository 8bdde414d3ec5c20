"""The state of a training as one value, and the other arguments of the compiled step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Bool, Float, PRNGKeyArray

    from cntkpy.networks.arrays.sparse import RowGradient
    from cntkpy.networks.compile.evaluate import Batch, Settings


class TrainState(NamedTuple):
    """Everything that changes while training, on the devices. The compiled step takes it over: its buffers are donated.

    Attributes:
        weights: by name, the parameters under training; by its key, a vector of small ones
        (`cntkpy.networks.compile.flat`). updates: by the same names, the arrays of the update rule.
        network: by name, what the network itself changes: running statistics, carried activations, and parameters
            that are not trained.
        finite: whether every criterion of this epoch was finite so far; nothing else changes once it is False.
    """

    weights: dict[str, Array]
    updates: dict[str, dict[str, Array]]
    network: dict[str, Array]
    finite: Bool[Array, ""]


class StepInput(NamedTuple):
    """A stack of minibatches for the compiled step, and the scalars of its updates.

    Attributes:
        batches: the data; every array has the minibatches of the stack in front.
        count: how many of them there are; the rest is padding.
        scalars: per minibatch its momentum and its number of samples, in the element type of the network.
        rate: learning rate per sample.
        seed: of the random masks: that of the epoch, and the number of the stack's first minibatch.
        settings: what the epoch sets in the network.
        group_scalars: scalars of groups of parameters, see `cntkpy.trainers.rules.update_step.Update`.
    """

    batches: Batch
    count: Any
    scalars: Float[Array, "minibatches 2"]
    rate: Any
    seed: tuple[Any, Any]
    settings: Settings
    group_scalars: Any = None


@dataclass
class EpochSettings:
    """The scalars of an epoch.

    Attributes:
        rate: learning rate per sample.
        momentum: per sample.
        settings: what the epoch sets in the network.
        seed: of dropout masks and noise.
        frozen: compute the criteria, but change nothing.
        pieces: see `cntkpy.trainers.step.pieces`.
        per_step: `momentum` is per time step of a minibatch instead, however many sequences it has.
        rate_for: what `rate` is for, see `cntkpy.trainers.rules.update_step.PER_SAMPLE`.
        group_scalars: the scalars of groups of parameters, see `cntkpy.trainers.rules.update_step.Update`.
        counted: samples are those that the criterion counts, and a minibatch is one time step, as in CNTK 2.
    """

    rate: float
    momentum: float
    settings: Settings
    seed: int
    frozen: bool = False
    pieces: int = 1
    per_step: bool = False
    rate_for: int = 0
    group_scalars: tuple[tuple[float, ...], ...] = ()
    counted: bool = False


class StepOptions(NamedTuple):
    """Options that the step is compiled for.

    Attributes:
        frozen: compute the criteria, but change no parameter.
        pieces: number of pieces that a minibatch is computed in; see `cntkpy.trainers.step.pieces`.
        rate_for: what the learning rate is for, see `cntkpy.trainers.rules.update_step.PER_SAMPLE`.
    """

    frozen: bool = False
    pieces: int = 1
    rate_for: int = 0


if TYPE_CHECKING:
    GradientResult = tuple[dict[str, Array | RowGradient], dict[str, Array], dict[str, Array]]
    """By parameter its gradient, by node its total, and the state of the network after."""
    Gradient = Callable[[dict[str, Array], dict[str, Array], Batch, PRNGKeyArray | None, Settings], GradientResult]
    """Result of `compile_gradient`, a function of parameters, state, minibatch, random key and settings."""
    Step = Callable[[TrainState, StepInput, StepOptions], tuple[TrainState, Float[Array, "minibatches nodes"]]]
    """The training step: the state after a stack, and the sums of the nodes for each of its minibatches."""
