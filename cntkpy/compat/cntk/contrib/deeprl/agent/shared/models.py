"""cntk.contrib.deeprl.agent.shared.models: networks of the values of actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cntkpy.networks.builders.python.functions.function import Function

from .....layers import Dense, Sequential, default_options, identity
from .....losses import squared_error
from .....missing import no_attribute
from .....ops import input_variable, reduce_mean, relu

Loss = Callable[[Function, Function], Function]
"""A loss of a value that is wanted and a value of the network."""


def value_network(
    shape_of_inputs: Any, number_of_outputs: int, model: Any, loss_function: Loss | None
) -> dict[str, Any]:
    """Return a network of the values of actions with its inputs and its loss.

    Args:
        shape_of_inputs: of a state.
        number_of_outputs: the actions.
        model: a layer of the state.
        loss_function: the loss; None: the squared error.

    Returns:
        A dictionary: `inputs`, the state; `outputs`, the values that are wanted; `f`, the network; `loss`.
    """
    state, wanted = input_variable(shape_of_inputs), input_variable(number_of_outputs)
    values = model(state)
    loss = squared_error(values, wanted) if loss_function is None else loss_function(wanted, values)
    return {"inputs": state, "outputs": wanted, "f": values, "loss": loss}


class Models:
    """Networks of agents."""

    @staticmethod
    def feedforward_network(
        shape_of_inputs: Any, number_of_outputs: int, hidden_layers: Sequence[int], loss_function: Loss | None = None
    ) -> dict[str, Any]:
        """Return a network of Dense layers with ReLU.

        Args:
            shape_of_inputs: of a state.
            number_of_outputs: the actions.
            hidden_layers: sizes of the layers.
            loss_function: a loss of the values that are wanted and those of the network; None: the squared error.

        Returns:
            A dictionary: `inputs`, `outputs`, `f`, `loss`; see `value_network`.
        """
        model = Sequential([_hidden(hidden_layers), Dense(number_of_outputs)])
        return value_network(shape_of_inputs, number_of_outputs, model, loss_function)

    @staticmethod
    def dueling_network(
        shape_of_inputs: Any, number_of_outputs: int, hidden_layers: Sequence[Any], loss_function: Loss | None = None
    ) -> dict[str, Any]:
        """Return a network of the value of a state and the advantages of the actions, whose mean is 0.

        Args:
            shape_of_inputs: of a state.
            number_of_outputs: the actions.
            hidden_layers: sizes of the layers: a list of shared ones, those of the value, those of the advantages.
            loss_function: as of `feedforward_network`.

        Returns:
            A dictionary: `inputs`, `outputs`, `f`, `loss`; see `value_network`.
        """
        shared, of_value, of_advantages = hidden_layers
        common = _hidden(shared)
        value, advantages = (
            Sequential([_hidden(sizes), Dense(size)])
            for sizes, size in ((of_value, 1), (of_advantages, number_of_outputs))
        )

        def model(state: Function) -> Function:
            hidden = common(state)
            gains = advantages(hidden)
            return value(hidden) + (gains - reduce_mean(gains))

        return value_network(shape_of_inputs, number_of_outputs, model, loss_function)


def _hidden(sizes: Sequence[int]) -> Any:
    with default_options(activation=relu):
        return Sequential([Dense(size) for size in sizes]) if sizes else identity


__all__ = ["Models"]

__getattr__ = no_attribute("cntk.contrib.deeprl.agent.shared.models", __all__)
