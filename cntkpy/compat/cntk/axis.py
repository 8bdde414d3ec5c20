"""cntk.axis: names of time axes; axes of samples are numbers."""

from __future__ import annotations

from dataclasses import dataclass

from networks.builders.python.operators import Axes


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        name: of a time axis: inputs of the same name have sequences of the same lengths.
    """

    name: str = ""

    @staticmethod
    def default_batch_axis() -> Axes:
        """The axis of minibatches."""
        return Axes.BATCH

    @staticmethod
    def default_dynamic_axis() -> Axis:
        """The usual time axis."""
        return Axis("")

    @staticmethod
    def all_axes() -> Axes:
        """All axes of a sample, and the minibatch, for reductions."""
        return Axes.ALL

    @staticmethod
    def all_static_axes() -> Axes:
        """All axes of a sample, for reductions."""
        return Axes.STATIC

    @staticmethod
    def unknown_dynamic_axes() -> tuple[Axis, ...]:
        """The axes that follow from how something is used."""
        return (Axis(""),)

    @staticmethod
    def new_unique_dynamic_axis(name: str) -> Axis:
        """A time axis of its own."""
        return Axis(name)
