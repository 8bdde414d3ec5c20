"""Learners: which parameters are trained, by which rule, how fast."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from networks.builders.python.function import Function
from readers.errors import ArgumentError
from trainers.rules import standard, updates
from trainers.rules.update_step import Regularisation
from trainers.rules.updates import Rule
from trainers.session.schedules import Schedule, as_schedule


@dataclass(eq=False)
class Learner:
    """Trains some parameters by a rule.

    Args:
        parameters: what is trained.
        rule: how a gradient changes it.
        rate: the learning rate.
        momentum: of rules that have one.
        regularisation: clipping, L1, L2, noise.
        name: of the rule, for messages.
    """

    parameters: tuple[Function, ...]
    rule: Rule
    rate: Schedule
    momentum: Schedule
    regularisation: Regularisation
    name: str

    def __post_init__(self) -> None:
        self.samples_seen = 0
        self.sweeps = 0

    def learning_rate(self) -> float:
        """The learning rate of now."""
        return self.rate.at(self.samples_seen, self.sweeps)

    def reset_learning_rate(self, rate: Any) -> None:
        """Go on with another learning rate or schedule of it, which starts with the samples seen so far."""
        self.rate = as_schedule(rate)

    @property
    def learning_rate_schedule(self) -> Schedule:
        """The schedule of the learning rate."""
        return self.rate

    @property
    def total_number_of_samples_seen(self) -> int:
        """Samples that it was trained on."""
        return self.samples_seen

    @property
    def total_number_of_sweeps_seen(self) -> int:
        """Passes over the data that ended."""
        return self.sweeps

    def __repr__(self) -> str:
        return f"{self.name}({len(self.parameters)} parameters, {self.rate!r})"


def _learner(name: str, parameters: Any, rule: Rule, lr: Any, momentum: Any, options: dict[str, Any]) -> Learner:
    found = _parameters(name, parameters)
    known = {
        "l1_regularization_weight": "l1",
        "l2_regularization_weight": "l2",
        "gaussian_noise_injection_std_dev": "noise",
        "gradient_clipping_threshold_per_sample": "clipping",
        "gradient_clipping_with_truncation": "clip_elements",
    }
    for key in options:
        if key not in known:
            raise ArgumentError(f"{name} has no argument '{key}'", f"possible: {', '.join(known)}")
    values = {known[key]: value for key, value in options.items() if value is not None}
    noise = as_schedule(values.get("noise", 0.0))
    if not noise.constant:
        raise ArgumentError(f"{name}: the deviation of the noise is one number, {noise!r} changes", "give a number")
    values["noise"] = noise.at(0)
    for key in ("l1", "l2", "noise"):
        if values.get(key, 0.0) < 0:
            raise ArgumentError(f"{name}: the weight of a regularisation is not negative, {values[key]} is")
    return Learner(found, rule, as_schedule(lr), as_schedule(momentum), Regularisation(**values), name)


def _parameters(name: str, given: Any) -> tuple[Function, ...]:
    several: Iterable[Any] = [given] if isinstance(given, Function) else given
    found = tuple(several)
    for one in found:
        if not isinstance(one, Function) or not one.is_parameter:
            raise ArgumentError(f"{name} trains parameters, not {one!r}", "give z.parameters")
    if not found:
        raise ArgumentError(
            f"{name} was given no parameters", "give z.parameters; a network without any is not trained"
        )
    return found


def sgd(parameters: Any, lr: Any, **options: Any) -> Learner:
    """Stochastic gradient descent: `W <- W - lr g`, `g` the mean gradient of the minibatch.

    Args:
        parameters: what to train: `z.parameters`.
        lr: the learning rate: a number (for the mean gradient) or a schedule.
        options: l1_regularization_weight, l2_regularization_weight, gaussian_noise_injection_std_dev,
            gradient_clipping_threshold_per_sample, gradient_clipping_with_truncation.
    """
    return _learner("sgd", parameters, standard.sgd(), lr, 0.0, options)


def momentum_sgd(parameters: Any, lr: Any, momentum: Any, unit_gain: bool = False, **options: Any) -> Learner:
    """SGD with momentum: `v <- m v + g; W <- W - lr v`; with `unit_gain` `(1-m) g` in the place of `g`."""
    return _learner("momentum_sgd", parameters, standard.momentum(unit_gain), lr, momentum, options)


def nesterov(parameters: Any, lr: Any, momentum: Any, unit_gain: bool = False, **options: Any) -> Learner:
    """Nesterov's momentum: `v <- m v + g; W <- W - lr (m v + g)`."""
    return _learner("nesterov", parameters, standard.nesterov(unit_gain), lr, momentum, options)


def adagrad(
    parameters: Any, lr: Any, need_ave_multiplier: bool = False, epsilon: float = 1e-8, **options: Any
) -> Learner:
    """AdaGrad: `a <- a + g^2; W <- W - lr g / (sqrt(a) + epsilon)`.

    With `need_ave_multiplier` the factors are divided by their mean, as in the `SGD` section of configurations.
    """
    rule = updates.adagrad(True) if need_ave_multiplier else standard.adagrad(epsilon)
    return _learner("adagrad", parameters, rule, lr, 0.0, options)


def rmsprop(parameters: Any, lr: Any, rho: float = 0.9, epsilon: float = 1e-8, **options: Any) -> Learner:
    """RMSProp: `a <- rho a + (1-rho) g^2; W <- W - lr g / (sqrt(a) + epsilon)`."""
    return _learner("rmsprop", parameters, standard.rmsprop(rho, epsilon), lr, 0.0, options)


def rmsprop_with_steps(
    parameters: Any, lr: Any, gamma: float, inc: float, dec: float, max: float, min: float,
    need_ave_multiplier: bool = True, **options: Any,
) -> Learner:  # fmt: skip
    """The RMSProp of configurations, with a step factor for each element that grows while the sign stays."""
    rule = updates.rmsprop(need_ave_multiplier, gamma, inc, dec, max, min)
    return _learner("rmsprop", parameters, rule, lr, 0.0, options)


def fsadagrad(
    parameters: Any, lr: Any, momentum: Any, variance_time_constant: float = 720000.0, **options: Any
) -> Learner:
    """The FSAdaGrad of configurations: AdaGrad with a forgetting mean square, a bounded scale, unit-gain momentum."""
    rule = updates.fsadagrad(variance_time_constant, 1.0)
    return _learner("fsadagrad", parameters, rule, lr, momentum, options)


def adam(
    parameters: Any, lr: Any, momentum: Any = 0.9, variance_momentum: Any = 0.999, epsilon: float = 1e-8,
    unit_gain: bool = True, **options: Any,
) -> Learner:  # fmt: skip
    """Adam, with the correction of the first steps.

    Args:
        parameters: what to train.
        lr: the learning rate.
        momentum: of the mean of gradients.
        variance_momentum: of the mean of their squares; constant.
        epsilon: added to the root of the latter.
        unit_gain: False: gradients are summed up instead.
        options: see `sgd`.
    """
    beta, per_sample = _beta("adam", variance_momentum)
    return _learner("adam", parameters, standard.adam(beta, epsilon, per_sample, unit_gain), lr, momentum, options)


def adamax(
    parameters: Any, lr: Any, momentum: Any = 0.9, variance_momentum: Any = 0.999, epsilon: float = 1e-8,
    unit_gain: bool = True, **options: Any,
) -> Learner:  # fmt: skip
    """AdaMax: Adam with the largest gradient in the place of the mean square."""
    beta, per_sample = _beta("adamax", variance_momentum)
    return _learner("adamax", parameters, standard.adamax(beta, epsilon, per_sample, unit_gain), lr, momentum, options)


def adadelta(parameters: Any, lr: Any = 1.0, rho: float = 0.95, epsilon: float = 1e-8, **options: Any) -> Learner:
    """AdaDelta: steps as large as the mean of those before."""
    return _learner("adadelta", parameters, standard.adadelta(rho, epsilon), lr, 0.0, options)


def _beta(name: str, given: Any) -> tuple[float, bool]:
    schedule = as_schedule(given)
    if not schedule.constant:
        raise ArgumentError(f"the variance momentum of {name} is constant")
    value, size = schedule.at(0), schedule.minibatch_size
    if not 0 <= value < 1:
        raise ArgumentError(f"the variance momentum of {name} lies from 0 to 1, it is not {value}")
    return (value, False) if size is None else (value ** (1 / size), True)


# --------------------------------------------------------------------------------------------- several workers


@dataclass(frozen=True)
class BlockMomentumOptions:
    """How workers join their models after a block of samples.

    Args:
        block_size: samples of all workers.
        time_constant: of the momentum of blocks, in samples; None: chosen by the number of workers.
        nesterov: workers start ahead.
        reset: the learner of every worker starts afresh after a block.
        rate: of a block's own change.
    """

    block_size: int
    time_constant: float | None = None
    nesterov: bool = True
    reset: bool = True
    rate: float = 1.0


@dataclass(eq=False)
class DistributedLearner(Learner):
    """A learner whose workers train together.

    Args:
        after: the samples that are trained by each worker alone, before.
        block: how models are joined; None: gradients are summed in every minibatch.
    """

    after: int = 0
    block: BlockMomentumOptions | None = None


def data_parallel(learner: Learner, after: int = 0) -> DistributedLearner:
    """All workers have the same weights: the gradients of their shares of a minibatch are summed."""
    return DistributedLearner(**_fields(learner), after=after)


def block_momentum(learner: Learner, options: BlockMomentumOptions, after: int = 0) -> DistributedLearner:
    """Every worker trains by itself for a block of samples; then the models are joined."""
    return DistributedLearner(**_fields(learner), after=after, block=options)


def _fields(learner: Learner) -> dict[str, Any]:
    if isinstance(learner, DistributedLearner):
        raise ArgumentError("this learner is one of several workers already")
    return {name: getattr(learner, name) for name in Learner.__dataclass_fields__}
