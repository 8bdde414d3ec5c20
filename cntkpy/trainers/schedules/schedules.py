"""Learning rate and momentum of an epoch, converted to the per-sample form in which they are applied.

CNTK keeps the listed values, and the quotient of a rate and a minibatch size, in single precision; so do we,
because logs print them with eight digits (docs/specification/actions-and-training.md 0 and 2.3).
"""

import math
from array import array
from dataclasses import dataclass
from functools import cached_property

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.schedules.schedule import Schedule, of_time_constants


@dataclass(frozen=True)
class Schedules:
    """The schedules of a training, checked as a whole.

    Attributes:
        parameters: the `SGD` section.

    Under truncation a minibatch has `minibatchSize` steps of each of `parallel` sequences, the reader's number at the
    start of an epoch.

    Raises:
        ConfigError: if rates or momenta contradict one another or lie outside their range.
    """

    parameters: SGDParameters

    def __post_init__(self) -> None:
        p = self.parameters
        _ = self._sizes[0]
        if min(self._sizes.distinct()) < 1:
            raise p.error("minibatchSize", "a minibatch has at least one sample")
        per_mb, per_sample = p.rates_per_mb, p.rates_per_sample
        if per_mb is not None and per_sample is not None:
            raise p.error(
                "learningRatesPerSample",
                "learningRatesPerMB and learningRatesPerSample exclude each other",
                hint="keep one of them; a value of `default` removes the other",
                kind="Conflict",
            )
        if not per_mb and not per_sample and not self.automatic:  # neither given, or without a value
            raise p.error(
                "learningRatesPerMB",
                "no learning rate is given",
                hint="add learningRatesPerMB or learningRatesPerSample, or AutoAdjust=[autoAdjustLR=searchBeforeEpoch]",
            )
        momenta = (p.momentum_per_mb, p.momentum_per_sample, p.momentum_time_constant)
        names = ("momentumPerMB", "momentumPerSample", "momentumAsTimeConstant")
        chosen = [name for name, value in zip(names, momenta, strict=True) if value is not None]
        if len(chosen) > 1:
            raise p.error(chosen[1], f"{chosen[0]} and {chosen[1]} exclude each other", "keep one of them", "Conflict")
        lists = [value for value in (*momenta, self._sizes) if value is not None]
        for epoch in {0, *(epoch for rates in lists for epoch in rates.starts())}:
            if not 0 <= self.momentum_per_sample(epoch) < 1:
                raise p.error(chosen[0] if chosen else "momentumPerMB", "momentum must be at least 0 and below 1")
        dropout = p.dropout_rate
        for epoch, rate in zip(dropout.starts(), dropout.distinct(), strict=True):
            if not 0 <= rate < 1:
                raise p.error(
                    "dropoutRate", f"dropout rate {rate:g} of epoch {epoch + 1} must be at least 0 and below 1"
                )
        largest = max(self._sizes.distinct())
        if 0 < p.epoch_size < largest:
            raise p.error(
                "epochSize",
                f"epochSize {p.epoch_size} is smaller than the minibatch size {largest}",
                hint="epochSize=0 is one pass over the data",
            )

    @property
    def automatic(self) -> bool:
        """Return whether rates beyond the listed ones are chosen by the trainer."""
        return self._auto not in ("none", "false")

    @property
    def adjusts_after_epoch(self) -> bool:
        """Return whether the rate is adjusted after each epoch."""
        return "after" in self._auto

    @property
    def searches_before_epoch(self) -> bool:
        """Return whether the rate is searched before each epoch."""
        return "before" in self._auto

    @property
    def _auto(self) -> str:
        return self.parameters.auto_adjust.auto_adjust_lr.lower()

    @property
    def listed_rates(self) -> int:
        """Return for how many epochs a rate is listed."""
        p = self.parameters
        listed = p.rates_per_mb if p.rates_per_sample is None else p.rates_per_sample
        return 0 if listed is None else len(listed)

    def rate_per_sample(self, epoch: int, parallel: int = 1) -> float:
        """Return the listed rate per sample of an epoch (0-based); the last one repeats."""
        rate = single(self._rate.of_epoch(epoch))
        return rate if self._rate.size else single(rate / single(self._nominal(epoch, parallel)))

    def listed_ratio(self, epoch: int, parallel: int = 1) -> float:
        """Return the listed rate per sample of an epoch divided by that of the first; 1 if no rate is listed."""
        if not self.listed_rates:
            return 1.0
        return self.rate_per_sample(epoch, parallel) / self.rate_per_sample(0, parallel)

    def momentum_of_updates(self, epoch: int) -> tuple[float, bool]:
        """Return the momentum of an epoch (0-based), and whether it is per time step; else it is per sample.

        Under truncation, momentum per minibatch is converted with the number of sequences S of every minibatch: with T
        steps, `m = mu ** (T S)` and `mu = momentumPerMB ** (1 / (minibatchSize S))`, so that S does not matter.
        """
        per_mb = self._momentum.size is None
        return self.momentum_per_sample(epoch), per_mb and self.parameters.truncated and self._sizes[epoch] > 1

    def effective_momentum(self, epoch: int, size: int, parallel: int) -> float:
        """Return the momentum of a whole minibatch of the chosen size."""
        return self.momentum_per_sample(epoch, parallel) ** self._whole(size, max(1, parallel))

    def momentum_per_sample(self, epoch: int, parallel: int = 1) -> float:
        """Return the momentum per sample of an epoch (0-based)."""
        momentum = single(self._momentum.of_epoch(epoch))
        if self._momentum.size or not momentum >= 0:
            return momentum
        return momentum ** (1.0 / self._nominal(epoch, parallel))

    @cached_property
    def _sizes(self) -> PerEpoch[int]:
        """The listed minibatch sizes. Every list is read once: it may be long, and is looked at for every epoch."""
        return self.parameters.minibatch_size

    @cached_property
    def _rate(self) -> Schedule:
        """Return the listed rates, per sample or per minibatch."""
        p = self.parameters
        per_mb, per_sample = p.rates_per_mb, p.rates_per_sample
        if per_sample is not None:
            return Schedule(per_sample, 1)
        return Schedule(PerEpoch([]) if per_mb is None else per_mb)

    @cached_property
    def _momentum(self) -> Schedule:
        """Return the listed momenta, per sample or per minibatch."""
        p = self.parameters
        per_sample, constants = p.momentum_per_sample, p.momentum_time_constant
        if per_sample is not None:
            return Schedule(per_sample, 1)
        if constants is not None:
            return of_time_constants(constants)
        per_mb = p.momentum_per_mb
        return Schedule(PerEpoch([0.9]) if per_mb is None else per_mb)

    def _whole(self, size: int, parallel: int) -> int:
        """Samples of a full minibatch of a nominal size."""
        return size * parallel if self.parameters.truncated and size > 1 else size

    def _nominal(self, epoch: int, parallel: int) -> int:
        """Samples of a full minibatch of the listed size."""
        p = self.parameters
        size = self._whole(self._sizes[epoch], parallel)
        if size < 1:
            name = "momentumPerMB" if p.rates_per_mb is None else "learningRatesPerMB"
            raise p.error(
                name,
                "rates and momentum cannot be given per minibatch: the number of parallel sequences varies",
                hint="give them per sample: learningRatesPerSample, momentumAsTimeConstant",
            )
        return size


def single(value: float) -> float:
    """Return a number in single precision. The check of a configuration needs this, and it does without NumPy."""
    return array("f", [value])[0]


def time_constant(momentum_per_sample: float) -> float:
    """`-1/ln(mu)` in samples; 0 without momentum."""
    return -1 / math.log(momentum_per_sample) if 0 < momentum_per_sample < 1 else 0.0
