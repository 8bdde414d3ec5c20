"""cntk.contrib.deeprl.agent.shared.cntk_utils: losses of agents."""

from __future__ import annotations

from typing import Any

from cntkpy.networks.builders.python.functions.function import Function

from .....missing import no_attribute
from .....ops import abs, element_select, less, log_softmax, reduce_sum, softmax, square


def huber_loss(y: Any, y_hat: Any, delta: float) -> Function:
    """Return half the square of an error up to `delta`, beyond that a line; summed over the elements of a sample.

    Args:
        y: the value.
        y_hat: the value that is wanted.
        delta: the error where the line begins.
    """
    error = y - y_hat
    size = abs(error)
    return reduce_sum(element_select(less(size, delta), 0.5 * square(error), delta * (size - 0.5 * delta)), name="loss")


def negative_of_entropy_with_softmax(p: Any) -> Function:
    """Return the sum of q ln q over the elements of each sample, where q is the softmax of `p`."""
    return reduce_sum(softmax(p) * log_softmax(p))


__all__ = ["huber_loss", "negative_of_entropy_with_softmax"]

__getattr__ = no_attribute("cntk.contrib.deeprl.agent.shared.cntk_utils", __all__)
