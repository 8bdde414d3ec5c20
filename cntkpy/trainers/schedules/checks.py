"""Checks of an `SGD` section before any network is built."""

from cntkpy.cntk_config import ConfigValue
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.schedules.schedules import Schedules


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
    _check_rates(p, Schedules(p))
    auto = p.auto_adjust
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
    for name, value, hint in (
        ("clippingThresholdPerSample", p.clipping, "without it, or with 1#INF, gradients are not clipped"),
        ("fsAdagradTargetAvDenom", p.target_denominator, None),
    ):
        if not value > 0:
            raise p.error(name, f"{name} must be above 0", hint)
    for section, name, value, hint in (
        (auto, "learnRateDecreaseFactor", auto.decrease_factor, None),
        (p, "rms_gamma", p.rms_gamma, "the mean square of the gradient would become negative"),
        (p, "adaptationRegWeight", p.adaptation_weight, None),
    ):
        if not 0 <= value <= 1:
            raise section.error(name, f"{name} lies between 0 and 1", hint)
    if p.gradient_check and precision != "double":
        raise p.error("gradientcheck", "gradientcheck needs double precision", hint="add precision = double")


def _check_rates(p: SGDParameters, schedules: Schedules) -> None:
    """No rate is below zero, and the first one is large enough that an epoch is trained.

    Under truncation the number of parallel sequences, which is not known here, makes rates smaller, never larger.
    """
    for name in ("learningRatesPerMB", "learningRatesPerSample"):
        value = p.given(name)
        if value is None:
            continue
        value.as_array().convert(_rate)
        if schedules.listed_rates and schedules.rate_per_sample(0) < p.min_rate:
            raise value.as_array()[0].error("BadValue", *too_small(schedules.rate_per_sample(0), p.min_rate))


def too_small(rate: float, least: float) -> tuple[str, str]:
    """Return the message and the advice where a training would end before its first epoch, as nothing is written
    then.
    """
    message = f"nothing would be trained: the learning rate per sample of epoch 1 is {rate:.8g}, "
    message += f"which is less than minLearningRatePerSample = {least:.8g}"
    return message, "give a larger rate; minLearningRatePerSample = -1 allows passes over the data with a rate of 0"


def _rate(value: ConfigValue) -> float:
    rate = value.as_double()
    if rate < 0:
        raise value.error("BadValue", "a learning rate is not negative", "the gradient is descended already")
    return rate
