"""Learners: which parameters are trained, by which rule, how fast."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse  # pyright: ignore[reportMissingTypeStubs]

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.graph import NOISE_SEEDS
from cntkpy.networks.builders.python.functions.leaves import differ_by_leading_ones
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.checks import check_flag, check_range, is_number
from cntkpy.trainers.fronts.cntk2.schedules import Schedule, Values, as_schedule
from cntkpy.trainers.rules import standard, updates
from cntkpy.trainers.rules.update_step import OF_MEAN, OF_MINIBATCH, PER_SAMPLE, Regularisation, Update, scalars_of
from cntkpy.trainers.rules.updates import Rule

Parameters = Function | Iterable[Function]
"""Parameters that a learner trains: `z.parameters`, or some of them."""
Rate = Values | Schedule
"""A learning rate or a momentum: a number, one for each epoch, pairs (number of epochs, value), or a schedule."""


class LearnerOptions(TypedDict, total=False):
    """Options of every learner; None is as not given."""

    l1_regularization_weight: float | None
    """L1 regularisation, per sample."""
    l2_regularization_weight: float | None
    """L2 regularisation, per sample."""
    gaussian_noise_injection_std_dev: float | Schedule | None
    """The deviation of noise that is added to gradients; a constant."""
    gradient_clipping_threshold_per_sample: float | None
    """Bound of gradients, per sample; inf is no clipping."""
    gradient_clipping_with_truncation: bool | None
    """Clip elements (True) or the norm (False)."""


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
    _MINIBATCH_SIZE: ClassVar[str] = "minibatch_size"
    """The key that CNTK has in `AdditionalLearningOptions.dict_options`."""

    def __post_init__(self) -> None:
        self.samples_seen = 0
        self.sweeps = 0
        self.rate_since = (0, 0)
        """Samples and passes over the data that were trained on when the schedule of the rate began."""
        self._state: dict[str, Any] | None = None
        """State of the rule between calls of `update`."""
        self.size: int | None = None
        """A rate that is set later, and does not say, is for minibatches of this many samples; None: of any size."""
        self.noise_seed = NOISE_SEEDS.next()
        """Seed of the noise that `update` adds."""
        self.reported: tuple[str, ...] = ()
        """Names under which progress writers get the rate and the momentum when they change."""
        self._last_reported: dict[str, float] = {}
        self.of_sums = False
        """True: the rule is of sums of gradients also where the rate is for minibatches of any size."""

    @property
    def minibatch_size(self) -> int:
        """Number of samples that its rate is for; 0, CNTK's IGNORE: any number."""
        return self.size or self.rate.minibatch_size

    def is_compatible_mode(self) -> bool:
        """Return whether its rule is of mean gradients where the rate is for minibatches of any size."""
        return not self.of_sums

    def learning_rate(self) -> float:
        """Return the learning rate of now."""
        samples, sweeps = self.rate_since
        return self.rate.at(self.samples_seen - samples, self.sweeps - sweeps)

    def reset_learning_rate(self, learning_rate: object) -> None:
        """Continue with another learning rate or schedule of it, which begins with the next sample."""
        rate = as_schedule(learning_rate)
        self.rate = rate.for_minibatches_of(self.size) if rate.open and self.size else rate
        self.rate_since = self.samples_seen, self.sweeps

    def scalars(self) -> tuple[float, float, float, float]:
        """Rate and momentum of now, what the rate is for, whether the momentum is per sample."""
        rate, momentum = self.rate, self.momentum
        value = self.learning_rate()
        kept = momentum.at(self.samples_seen, self.sweeps)
        if rate.size is not None:
            value /= rate.size
        if momentum.size is not None:
            kept **= 1 / momentum.size
        any_size = OF_MINIBATCH if self.of_sums else OF_MEAN
        rate_for = PER_SAMPLE if rate.size is not None else any_size
        return value, kept, float(rate_for), float(momentum.size is not None)

    def changed_numbers(self) -> dict[str, float]:
        """Return rate and momentum of now, under the names that progress writers show, where they have changed."""
        momentum = self.momentum.at(self.samples_seen, self.sweeps)
        settings = (self.rate, self.learning_rate()), (self.momentum, momentum)
        changed: dict[str, float] = {}
        for name, (schedule, value) in zip(self.reported, settings, strict=False):
            if self._last_reported.get(name) != value:
                self._last_reported[name] = value
                size = schedule.minibatch_size
                changed[f"{name} per {size} samples" if size else f"{name} per minibatch"] = value
        return changed

    def count(self, samples: int, sweep_end: bool) -> None:
        """Add trained samples."""
        self.samples_seen += samples
        self.sweeps += sweep_end

    def update(self, gradient_values: object, training_sample_count: int, is_sweep_end: bool = False) -> bool:
        """Change the parameters by gradients that the program has computed; a trainer does that by itself.

        Args:
            gradient_values: by parameter, an array: the gradient summed over samples.
            training_sample_count: how many samples these are.
            is_sweep_end: whether a pass over the data ends.

        Returns:
            True.
        """
        check_range(self.name, "training_sample_count", training_sample_count, 1)
        named = {str(place): parameter for place, parameter in enumerate(self.parameters)}
        weights = {name: _kept(parameter) for name, parameter in named.items()}
        gradients = {
            name: self._gradient(parameter, gradient_values, weights[name].dtype) for name, parameter in named.items()
        }
        if self._state is None:
            self._state = {name: self.rule.start(weight) for name, weight in weights.items()}
        multipliers = {name: parameter.root.learning_rate_multiplier for name, parameter in named.items()}
        change = Update(self.rule, self.regularisation, multipliers)
        key, finite = None, jnp.asarray(True)
        if change.noisy:
            key = jax.random.fold_in(jax.random.key(self.noise_seed), self.samples_seen)
        scalars = scalars_of(jnp.asarray(self.scalars()), jnp.asarray(float(training_sample_count)), finite)
        changed, self._state = change(weights, self._state, gradients, scalars, key, finite)
        for name, parameter in named.items():
            parameter.value = np.asarray(changed[name])
        self.count(int(training_sample_count), is_sweep_end)
        return True

    def create_checkpoint(self) -> dict[str, Any]:
        """Return a state that `restore_from_checkpoint` takes: counts, the seed of the noise, values of the rule.

        Raises:
            UserError: a trainer has its state.
        """
        if self._state is None and self.samples_seen:
            hint = "trainer.save_checkpoint(path) saves it, trainer.restore_from_checkpoint(path) restores it"
            raise UserError("NotSupported", f"the state of {self!r} belongs to its trainer", hint=hint)
        counts = {"samples": self.samples_seen, "sweeps": self.sweeps, "rate_since": self.rate_since}
        return {**counts, "noise_seed": self.noise_seed, "state": jax.tree.map(np.asarray, self._state)}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Take a state that a learner of this kind, for parameters of these shapes, has returned.

        Args:
            checkpoint: the value of `create_checkpoint`.

        Raises:
            ArgumentError: it is the state of another kind of learner, or of other parameters.
        """
        start = {str(place): self.rule.start(_kept(parameter)) for place, parameter in enumerate(self.parameters)}
        state: Any = checkpoint["state"]
        if state is not None and _forms(state) != _forms(start):
            raise ArgumentError(f"the checkpoint is not one of {self!r}", "make the same learner for the same model")
        self._state = jax.tree.map(jnp.asarray, state)
        self.samples_seen, self.sweeps = checkpoint["samples"], checkpoint["sweeps"]
        self.rate_since, self.noise_seed = checkpoint["rate_since"], checkpoint["noise_seed"]

    def _gradient(self, parameter: Function, gradients: Any, dtype: Any) -> Any:
        """Return the gradient of a parameter among those that a program gives."""
        if not isinstance(gradients, Mapping) or parameter not in gradients:
            raise ArgumentError(f"there is no gradient for {parameter!r}", "give {parameter: gradient, ...} for all")
        gradient: Any = gradients[parameter]
        read: Any = getattr(gradient, "asarray", None)  # of a `Value`
        array: Any = gradient if read is None else read()
        array = np.asarray(array.toarray() if issparse(array) else array, dtype)  # pyright: ignore[reportUnknownMemberType]
        is_flat = getattr(gradient, "is_sparse", False) and array.size == math.prod(parameter.shape)
        if is_flat or differ_by_leading_ones(array.shape, parameter.shape):
            array = array.reshape(parameter.shape)
        if array.shape != parameter.shape:
            shapes = f"the gradient of {parameter!r} has the shape {array.shape}, not {parameter.shape}"
            raise ArgumentError(shapes, "loss.grad(data, wrt=[parameter]) gives one")
        return jnp.asarray(array)

    @property
    def learning_rate_schedule(self) -> Schedule:
        """Return the schedule of the learning rate."""
        return self.rate

    _learning_rate_schedule = learning_rate_schedule
    ignored_minibatch_size = 0
    """A size of minibatches that does not matter, CNTK's IGNORE."""

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


def _forms(state: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """Return the structure of a state, and the shapes of its arrays."""
    leaves, structure = jax.tree.flatten(state)
    return structure, [np.shape(leaf) for leaf in leaves]


def _learner(
    name: str, parameters: Parameters, rule: Rule, lr: Rate, momentum: Rate, options: LearnerOptions
) -> Learner:
    trained = checked_parameters(name, parameters)
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
    rate, kept = as_schedule(lr), as_schedule(momentum)
    for value in kept.values:
        check_range(name, "momentum", value, 0.0, 1.0)
    return Learner(trained, rule, rate, kept, _regularisation(name, values), name)


def _regularisation(name: str, values: dict[str, Any]) -> Regularisation:
    noise = as_schedule(values.get("noise", 0.0))
    if not noise.constant:
        raise ArgumentError(f"{name}: the deviation of the noise is one number, {noise!r} changes", "give a number")
    values["noise"] = noise.at(0)
    for key in ("l1", "l2", "noise"):
        value = values.get(key, 0.0)
        if not is_number(value) or value < 0:
            raise ArgumentError(f"{name}: the weight of a regularisation is a number from 0 on, not {value!r}")
    bound = values.get("clipping", 1.0)
    if not (is_number(bound) or _is_infinite(bound)) or bound <= 0:
        raise ArgumentError(
            f"{name}: gradient_clipping_threshold_per_sample is a number above 0, not {bound!r}", "inf is no clipping"
        )
    check_flag(name, "gradient_clipping_with_truncation", values.get("clip_elements", True))
    return Regularisation(**values)


def _is_infinite(value: object) -> bool:
    """Return whether it is the number infinity."""
    return isinstance(value, float | np.floating) and value == math.inf


def checked_parameters(name: str, parameters: object) -> tuple[Function, ...]:
    """Return the parameters that a learner is to train, as a tuple.

    Raises:
        ArgumentError: it is no parameter, or there is none.
    """
    functions: tuple[Any, ...] = (
        tuple(parameters)
        if isinstance(parameters, Iterable) and not isinstance(parameters, Function)
        else (parameters,)
    )
    for function in functions:
        if not isinstance(function, Function) or not function.is_parameter:
            raise ArgumentError(f"{name} trains parameters, not {function!r}", "give z.parameters")
        if functions.count(function) > 1:
            raise ArgumentError(f"{name} was given {function!r} twice", "give each parameter once")
    if not functions:
        raise ArgumentError(
            f"{name} was given no parameters", "give z.parameters; a network without any is not trained"
        )
    return functions


def sgd(parameters: Parameters, lr: Rate, **options: Unpack[LearnerOptions]) -> Learner:
    """Stochastic gradient descent: `W <- W - lr g`, `g` the mean gradient of the minibatch.

    Args:
        parameters: what to train: `z.parameters`.
        lr: the learning rate: a number (for the mean gradient) or a schedule.
        options: l1_regularization_weight, l2_regularization_weight, gaussian_noise_injection_std_dev,
            gradient_clipping_threshold_per_sample, gradient_clipping_with_truncation.
    """
    return _learner("sgd", parameters, standard.sgd(), lr, 0.0, options)


def momentum_sgd(
    parameters: Parameters, lr: Rate, momentum: Rate, unit_gain: bool = False, **options: Unpack[LearnerOptions]
) -> Learner:
    """SGD with momentum: `v <- m v + lr g; W <- W - v`; with `unit_gain` `(1-m) lr g` in the place of `lr g`."""
    check_flag("momentum_sgd", "unit_gain", unit_gain)
    return _learner("momentum_sgd", parameters, updates.momentum(unit_gain, by_rows=False), lr, momentum, options)


def nesterov(
    parameters: Parameters, lr: Rate, momentum: Rate, unit_gain: bool = False, **options: Unpack[LearnerOptions]
) -> Learner:
    """Nesterov's momentum: `v <- m v + lr g; W <- W - m v - lr g`."""
    check_flag("nesterov", "unit_gain", unit_gain)
    return _learner("nesterov", parameters, updates.nesterov(unit_gain, by_rows=False), lr, momentum, options)


def adagrad(
    parameters: Parameters,
    lr: Rate,
    need_ave_multiplier: bool = False,
    epsilon: float = 1e-8,
    **options: Unpack[LearnerOptions],
) -> Learner:
    """AdaGrad: `a <- a + g^2; W <- W - lr g / (sqrt(a) + epsilon)`.

    With `need_ave_multiplier` the factors are divided by their mean, as in the `SGD` section of configurations.
    """
    check_range("adagrad", "epsilon", epsilon, 0.0)
    check_flag("adagrad", "need_ave_multiplier", need_ave_multiplier)
    rule = updates.adagrad(True) if need_ave_multiplier else standard.adagrad(epsilon)
    return _learner("adagrad", parameters, rule, lr, 0.0, options)


def rmsprop(
    parameters: Parameters, lr: Rate, rho: float = 0.9, epsilon: float = 1e-8, **options: Unpack[LearnerOptions]
) -> Learner:
    """RMSProp: `a <- rho a + (1-rho) g^2; W <- W - lr g / (sqrt(a) + epsilon)`."""
    check_range("rmsprop", "rho", rho, 0.0, 1.0)
    check_range("rmsprop", "epsilon", epsilon, 0.0)
    return _learner("rmsprop", parameters, standard.rmsprop(rho, epsilon), lr, 0.0, options)


def rmsprop_with_steps(
    parameters: Parameters,
    lr: Rate,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    **options: Unpack[LearnerOptions],
) -> Learner:
    """Return the RMSProp of configurations, with a step factor for each element that grows while the sign stays.

    The factor lies between `min` and `max`; `max=math.inf` is no upper bound.
    """
    check_range("rmsprop", "gamma", gamma, 0.0, 1.0)
    for argument, value in (("inc", inc), ("dec", dec), ("max", max), ("min", min)):
        if argument != "max" or not _is_infinite(value):
            check_range("rmsprop", argument, value, 0.0)
    if min > max:
        raise ArgumentError(f"rmsprop: min, {min:g}, is larger than max, {max:g}", "they bound the factor of a step")
    check_flag("rmsprop", "need_ave_multiplier", need_ave_multiplier)
    rule = updates.rmsprop(need_ave_multiplier, gamma, inc, dec, max, min)
    return _learner("rmsprop", parameters, rule, lr, 0.0, options)


def fsadagrad(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    variance_time_constant: float = 720000.0,
    unit_gain: bool = True,
    **options: Unpack[LearnerOptions],
) -> Learner:
    """Return the FSAdaGrad of configurations: AdaGrad with a forgetting mean square, a bounded scale, momentum.

    Args:
        parameters: what to train.
        lr: the learning rate.
        momentum: of the mean of scaled gradients.
        variance_time_constant: memory of the mean square, in samples.
        unit_gain: `p <- m p + (1-m) h` of the scaled gradient `h`; False: `p <- m p + h`.
        options: see `sgd`.
    """
    check_range("fsadagrad", "variance_time_constant", variance_time_constant, 0.0)
    check_flag("fsadagrad", "unit_gain", unit_gain)
    rule = updates.fsadagrad(variance_time_constant, 1.0, unit_gain=bool(unit_gain))
    return _learner("fsadagrad", parameters, rule, lr, momentum, options)


def adam(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate = 0.9,
    variance_momentum: Rate = 0.999,
    epsilon: float = 1e-8,
    unit_gain: bool = True,
    **options: Unpack[LearnerOptions],
) -> Learner:
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
    check_range("adam", "epsilon", epsilon, 0.0)
    check_flag("adam", "unit_gain", unit_gain)
    return _learner("adam", parameters, standard.adam(beta, epsilon, per_sample, unit_gain), lr, momentum, options)


def adamax(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate = 0.9,
    variance_momentum: Rate = 0.999,
    epsilon: float = 1e-8,
    unit_gain: bool = True,
    **options: Unpack[LearnerOptions],
) -> Learner:
    """AdaMax: Adam with the largest gradient in the place of the mean square."""
    beta, per_sample = _beta("adamax", variance_momentum)
    check_range("adamax", "epsilon", epsilon, 0.0)
    check_flag("adamax", "unit_gain", unit_gain)
    return _learner("adamax", parameters, standard.adamax(beta, epsilon, per_sample, unit_gain), lr, momentum, options)


def adadelta(
    parameters: Parameters, lr: Rate = 1.0, rho: float = 0.95, epsilon: float = 1e-8, **options: Unpack[LearnerOptions]
) -> Learner:
    """AdaDelta: steps as large as the mean of those before."""
    check_range("adadelta", "rho", rho, 0.0, 1.0)
    check_range("adadelta", "epsilon", epsilon, 0.0)
    return _learner("adadelta", parameters, standard.adadelta(rho, epsilon), lr, 0.0, options)


def _beta(name: str, momentum: object) -> tuple[float, bool]:
    schedule = as_schedule(momentum)
    if not schedule.constant:
        raise ArgumentError(f"the variance momentum of {name} is constant")
    value, size = schedule.at(0), schedule.size
    if not 0 <= value < 1:
        raise ArgumentError(f"the variance momentum of {name} lies from 0 to 1, it is not {value}")
    return (value, False) if size is None else (value ** (1 / size), True)


# --------------------------------------------------------------------------------------------- several workers


@dataclass(frozen=True)
class BlockMomentumOptions:
    """Joining of workers' models after a block of samples.

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

    def __post_init__(self) -> None:
        check_range("block momentum", "block_size", self.block_size, 1)
        if self.time_constant is not None:
            check_range("block momentum", "the time constant", self.time_constant, 0.0)
        check_range("block momentum", "the learning rate of a block", self.rate, 0.0)


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
    return _distributed(learner, after, None)


def block_momentum(learner: Learner, options: BlockMomentumOptions, after: int = 0) -> DistributedLearner:
    """Return every worker trains by itself for a block of samples; then the models are joined."""
    return _distributed(learner, after, options)


def _kept(parameter: Function) -> NDArray[Any]:
    """Return the value of a parameter as it is kept: that of half precision in single."""
    value = cell_of(parameter.root).current()
    return parameter.value if value is None else value


def _distributed(learner: Learner, after: int, block: BlockMomentumOptions | None) -> DistributedLearner:
    if not isinstance(learner, Learner):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{type(learner).__name__} is not a learner", "make one: sgd(z.parameters, lr=0.1)")
    if isinstance(learner, DistributedLearner):
        raise ArgumentError("this learner is one of several workers already")
    if not is_number(after) or after < 0:
        raise ArgumentError(f"the samples before workers train together are a number from 0 on, not {after!r}")
    values = {field.name: getattr(learner, field.name) for field in fields(Learner)}
    distributed = DistributedLearner(**values, after=int(after), block=block)
    distributed.size, distributed.of_sums = learner.size, learner.of_sums
    return distributed
