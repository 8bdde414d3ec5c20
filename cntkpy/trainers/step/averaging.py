"""Averaging: what happens to the models of workers that train by themselves for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Float
    from numpy.typing import NDArray

    from cntkpy.trainers.rules.updates import Rule
    from cntkpy.trainers.step.placement import EndsBlock
    from cntkpy.trainers.step.stack import Stack
    from cntkpy.trainers.step.state import TrainState

    Saved = dict[str, NDArray[Any]]

T = TypeVar("T")


class Averaging:
    """Averages nothing: all devices have the same weights at all times."""

    def start_block(self) -> EndsBlock | None:
        """Return the function that ends stacks where models are averaged; None if there is none."""
        return None

    def start_from(self, weights: dict[str, Array], saved: dict[str, Saved] | None) -> None:
        """Resume from these weights; `saved`: by parameter, the arrays that a checkpoint has of its updates."""

    def saved_updates(self) -> dict[str, Saved]:
        """Return by parameter what a checkpoint after an epoch saves besides the state of the update rule."""
        return {}

    def save_state(self) -> Saved:
        """Return the state to save inside an epoch."""
        return {}

    def restore_state(self, saved: Saved) -> None:
        """Restore the result of `save_state`."""

    def updated(self, new: T, old: T, samples: Float[Array, ""]) -> T:
        """Return, in the compiled step, weights and updates after a minibatch with this many samples of this worker."""
        return new

    def after_stack(self, state: TrainState, stack: Stack, rule: Rule) -> TrainState:
        """Return the state to continue with after a stack."""
        return state

    def after_epoch(self, state: TrainState, rule: Rule) -> TrainState:
        """Return the state to continue with after an epoch, the same for all workers."""
        return state
