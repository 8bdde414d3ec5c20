"""cntk.contrib.deeprl.agent.shared.customized_models: a network for pictures of games."""

from __future__ import annotations

from typing import Any

from .....initializer import he_uniform
from .....layers import Convolution2D, Dense, Sequential, default_options
from .....missing import no_attribute
from .....ops import relu
from .cntk_utils import huber_loss
from .models import Loss, value_network


def conv_dqn(shape_of_inputs: Any, number_of_outputs: int, loss_function: Loss | None = None) -> dict[str, Any]:
    """Return three convolutions and two Dense layers: the values of actions for pictures.

    Args:
        shape_of_inputs: of a picture.
        number_of_outputs: the actions.
        loss_function: a loss of the values that are wanted and those of the network; None: the squared error.

    Returns:
        A dictionary: `inputs`, the pictures; `outputs`, the values that are wanted; `f`, the network; `loss`.
    """
    with default_options(activation=relu, init=he_uniform()):
        model = Sequential(
            [
                Convolution2D((8, 8), 32, strides=4),
                Convolution2D((4, 4), 64, strides=2),
                Convolution2D((3, 3), 64, strides=1),
                Dense(512),
                Dense(number_of_outputs, activation=None),
            ]
        )
    return value_network(shape_of_inputs, number_of_outputs, model, loss_function)


__all__ = ["conv_dqn", "huber_loss"]

__getattr__ = no_attribute("cntk.contrib.deeprl.agent.shared.customized_models", __all__)
