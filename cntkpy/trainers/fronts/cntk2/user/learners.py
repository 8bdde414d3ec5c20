"""Learners whose update rule is Python code of the program: `UserLearner`, `universal`."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.variables import constant
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.learners import Learner, checked_parameters
from cntkpy.trainers.fronts.cntk2.schedules import Schedule, as_schedule
from cntkpy.trainers.fronts.cntk2.values import values_of
from cntkpy.trainers.rules import standard
from cntkpy.trainers.rules.update_step import Regularisation
from cntkpy.trainers.step.memory import HostArray


class UserLearner:
    """A learner whose subclass changes the parameters in `update`, which a trainer calls after each minibatch.

    Args:
        parameters: what it changes.
        lr_schedule: its learning rate: a number or a schedule; `learning_rate()` is that of now.
        as_numpy: accepted; gradients are arrays.
    """

    def __init__(self, parameters: object, lr_schedule: object = 1.0, as_numpy: bool = True) -> None:
        self._learner = PythonLearner(self, parameters, lr_schedule)
        self._as_numpy = as_numpy

    @property
    def parameters(self) -> tuple[Function, ...]:
        """Return the parameters that it changes."""
        return self._learner.parameters

    @property
    def learning_rate_schedule(self) -> Schedule:
        """Return the schedule of the learning rate."""
        return self._learner.rate

    def learning_rate(self) -> float:
        """Return the learning rate of now."""
        return self._learner.learning_rate()

    def reset_learning_rate(self, learning_rate: object) -> None:
        """Continue with another learning rate or schedule of it."""
        self._learner.reset_learning_rate(learning_rate)

    @property
    def total_number_of_samples_seen(self) -> int:
        """Samples that it was trained on."""
        return self._learner.samples_seen

    def update(self, gradient_values: object, training_sample_count: int, is_sweep_end: bool = False) -> bool:
        """Change the parameters.

        Args:
            gradient_values: by parameter, an array: the gradient summed over the samples.
            training_sample_count: how many samples these are.
            is_sweep_end: whether a pass over the data ends.

        Returns:
            False to say that training is over: `train_minibatch` returns False then.
        """
        raise NotImplementedError(
            f"{type(self).__name__} needs update(self, gradient_values, training_sample_count, sweep_end)"
        )

    def as_learner(self) -> PythonLearner:
        """Return the learner in the form that trainers use."""
        return self._learner

    def given(self, gradient: object) -> Any:
        """Return a gradient as `update` is given it."""
        return gradient


class PythonLearner(Learner):
    """A `UserLearner` as trainers use it; its own attributes may have any names.

    Args:
        code: the learner.
        parameters: what it changes.
        lr_schedule: its learning rate.
    """

    def __init__(self, code: UserLearner, parameters: object, lr_schedule: object) -> None:
        name = type(code).__name__
        trained, rate, none = checked_parameters(name, parameters), as_schedule(lr_schedule), as_schedule(0.0)
        super().__init__(trained, standard.kept_gradient(), rate, none, Regularisation(), name)
        self.code = code

    def update(self, gradient_values: Any, training_sample_count: int, is_sweep_end: bool = False) -> bool:
        """See `UserLearner.update`."""
        gradients = {parameter: self.code.given(gradient) for parameter, gradient in gradient_values.items()}
        return self.code.update(gradients, training_sample_count, is_sweep_end) is not False


class UniversalLearner(UserLearner):
    """A learner whose update rule is a function of a network.

    Args:
        update_func: makes the function of lists of the parameters and of their gradients, summed over the samples; its
            `assign`s change the parameters.
        parameters: what it changes.
        gradients: for each parameter, a parameter or constant whose value becomes the gradient; None: new constants.
    """

    def __init__(
        self,
        update_func: Callable[[object, object], object],
        parameters: object,
        gradients: Sequence[Function] | None = None,
    ) -> None:
        super().__init__(parameters)
        made = (
            [constant(0.0, trained.shape, trained.dtype) for trained in self.parameters]
            if gradients is None
            else gradients
        )
        self._gradients = list(made)
        update: Any = update_func(list(self.parameters), list(self._gradients))
        if not isinstance(update, Function):
            message = f"the update function of a universal learner gives {shorten(repr(update))}, not a function"
            raise ArgumentError(
                message, "return combine([assign(p, p - 0.01 * g) for p, g in zip(parameters, gradients)])"
            )
        self._update = update

    def update(self, gradient_values: Any, training_sample_count: int, is_sweep_end: bool = False) -> bool:
        """See `UserLearner.update`."""
        for parameter, gradient in zip(self.parameters, self._gradients, strict=True):
            gradient.value = gradient_values[parameter]
        values_of(self._update.outputs, None)(None)
        return True


def universal(update_func: Callable[[object, object], object], parameters: object) -> UniversalLearner:
    """Return a learner whose update rule is a function of a network; see `UniversalLearner`."""
    return UniversalLearner(update_func, parameters)


def update_all(
    learners: Mapping[Function, PythonLearner], gradients: Mapping[Function, HostArray], samples: int, sweep_end: bool
) -> bool:
    """Let learners change their parameters.

    Args:
        learners: by parameter, its learner.
        gradients: by parameter, its gradient.
        samples: those of the minibatch.
        sweep_end: whether a pass over the data ends.

    Returns:
        Whether training continues.
    """
    answers: list[bool] = []
    for learner in dict.fromkeys(learners.values()):
        parts = {parameter: gradients[parameter] for parameter, its in learners.items() if its is learner}
        answers.append(learner.update(parts, samples, sweep_end))
    return all(answers)
