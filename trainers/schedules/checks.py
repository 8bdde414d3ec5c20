"""What can be wrong with an `SGD` section before any network is built."""

from cntk_config import ConfigValue
from trainers.parameters.sgd import SGDParameters
from trainers.schedules.schedules import Schedules


def check_parameters(p: SGDParameters, precision: str) -> None:
    """Read every parameter and compare those that depend on one another.

    Raises:
        ConfigError: for the first problem.
    """
    for section in (p, p.auto_adjust):
        for parameter in section.parameters():
            parameter.read(section.config)
    if p.parallel_train is not None:
        p.parallel_train.check(precision)
    Schedules(p)
    _check_rates(p)
    auto = p.auto_adjust
    if auto.decrease_factor > 1:
        raise auto.error("learnRateDecreaseFactor", "learnRateDecreaseFactor must not be above 1")
    if auto.increase_factor < 1:
        raise auto.error("learnRateIncreaseFactor", "learnRateIncreaseFactor must not be below 1")
    for section, name, value in (
        (p, "maxSamplesInRAM", p.max_samples_in_ram),
        (auto, "minibatchSizeTuningFrequency", auto.tuning_frequency),
        (auto, "minibatchSizeTuningMax", auto.tuning_max),
        (auto, "numPrevLearnRates", auto.previous_rates),
    ):
        if value < 1:
            raise section.error(name, f"{name} must be at least 1")
    if not p.clipping >= 0:
        raise p.error("clippingThresholdPerSample", "clippingThresholdPerSample must not be negative")
    if not 0 <= p.rms_gamma <= 1:
        hint = "the mean square of the gradient would become negative"
        raise p.error("rms_gamma", "rms_gamma lies between 0 and 1", hint)
    if not 0 <= p.adaptation_weight <= 1:
        raise p.error("adaptationRegWeight", "adaptationRegWeight lies between 0 and 1")
    if p.gradient_check and precision != "double":
        raise p.error("gradientcheck", "gradientcheck needs double precision", hint="add precision = double")


def _check_rates(p: SGDParameters) -> None:
    """A rate below zero would end the training before it begins, without a model."""
    for name in ("learningRatesPerMB", "learningRatesPerSample"):
        value = p.given(name)
        if value is not None:
            value.as_array().convert(_rate)


def _rate(value: ConfigValue) -> float:
    rate = value.as_double()
    if rate < 0:
        raise value.error("BadValue", "a learning rate is not negative", "the gradient is descended already")
    return rate
