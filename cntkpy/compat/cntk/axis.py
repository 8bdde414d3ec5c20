"""cntk.axis: names of time axes; axes of samples are numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        name: of a time axis: inputs of the same name have sequences of the same lengths.
    """

    name: str = ""

    @staticmethod
    def default_batch_axis() -> Axis:
        """The axis of minibatches."""
        return Axis("defaultBatchAxis")

    @staticmethod
    def default_dynamic_axis() -> Axis:
        """The usual time axis."""
        return Axis("")

    @staticmethod
    def new_unique_dynamic_axis(name: str) -> Axis:
        """A time axis of its own."""
        return Axis(name)
