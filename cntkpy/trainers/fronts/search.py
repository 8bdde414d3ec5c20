"""Searches before an epoch: for a learning rate and for a minibatch size.

See docs/specification/actions-and-training.md 2.7.2 and 2.7.3.
Both try values on the first samples of the epoch. A trial is a function given by the trainer, which also undoes what
the trial has changed.
"""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cntkpy.trainers.parameters.sgd import SGDParameters

log = logging.getLogger("cntkpy.trainers")

SHRINK = 0.618
"""Factor between two rates of a search."""

MULTIPLE = 64
"""Minibatch sizes that are tried are multiples of this."""

Trial = Callable[[float, int, int, str], float]
"""Trains with a rate per sample and a minibatch size on this many samples, undoes it, and returns the criterion.

The text begins the progress lines of the trial.
"""

RateTrial = Callable[[float, str], float]
SizeTrial = Callable[[int, str], float]


def search_rate(p: SGDParameters, epoch: int, found_rates: list[float], previous: float, trial: Trial) -> float:
    """Search the learning rate of an epoch.

    Args:
        found_rates: rates found before earlier epochs; the new one is appended.
        previous: control value of the epoch before; infinite if there is none.
    """
    auto, size, samples = p.auto_adjust, p.minibatch_size[epoch], search_samples(p, epoch)
    search = RateSearch(
        epoch,
        lambda rate, tag: trial(rate, size, samples, tag),
        size,
        found_rates[-auto.previous_rates :],
        previous,
        (samples / p.epoch_size) ** 0.5 if p.epoch_size else 0.3,
        p.min_rate,
        epoch < auto.best_search_epochs,
    )
    found_rates.append(search.run())
    return found_rates[-1]


def adapts_size(p: SGDParameters, epoch: int) -> bool:
    """Return whether the minibatch size of an epoch is adapted: `autoAdjustMinibatch`, beyond the listed sizes."""
    return p.auto_adjust.adjust_minibatch and epoch >= len(p.minibatch_size)


def adapt_size(p: SGDParameters, epoch: int, rate: float, remembered: int, ratio: float, trial: Trial) -> int:
    """Return the minibatch size of an epoch for which it is adapted; see `adapts_size`.

    Args:
        rate: of this epoch, per sample.
        remembered: the size that was adapted last, see `Training`; 0 if it is not known.
        ratio: how the rate has changed: that listed for this epoch divided by the first, times that found by the last
            search divided by the one before.
        trial: see `Trial`.
    """
    auto, listed = p.auto_adjust, p.minibatch_size[epoch]
    known = remembered if epoch >= 2 else 0
    frequency = auto.tuning_frequency
    if known and epoch + 1 > frequency and (epoch + 1) % frequency:
        skipped = f"Search for a better minibatchSize in epoch {epoch + 1} skipped"
        log.info(" AdaptiveMinibatchSearch: %s, keeping minibatchSize of %d", skipped, known)
        return known
    shrink = math.sqrt(ratio)
    smallest = int(listed / shrink) if shrink < 1 else listed
    largest = auto.tuning_max
    if known:
        smallest, largest = max(smallest, known // 2), min(largest, 2 * known)
    samples = search_samples(p, epoch)
    size = SizeSearch(
        epoch, lambda size, tag: trial(rate, size, samples, tag), smallest, largest, auto.error_margin
    ).run()
    if not p.trace_level:
        log.info("Minibatch size adapted to %d.", size)
    return size


def search_samples(p: SGDParameters, epoch: int) -> int:
    """Samples of one trial: `numMiniBatch4LRSearch`, `numSamples4Search`, or 500 minibatches; at most an epoch."""
    auto = p.auto_adjust
    if auto.search_minibatches is not None:
        # entry times entry; the product of the last entry repeats, also where `minibatchSize` has more of them
        entry = min(epoch, len(auto.search_minibatches) - 1)
        samples = auto.search_minibatches[entry] * p.minibatch_size[entry]
    elif auto.search_samples is not None:
        samples = auto.search_samples[epoch]
    else:
        samples = 500 * p.minibatch_size[epoch]
    return min(samples, p.epoch_size) if p.epoch_size else samples


@dataclass(frozen=True)
class RateSearch:
    """The search of a learning rate before one epoch.

    Attributes:
        epoch: 0-based.
        trial: trains on the first samples of the epoch with a rate, and a tag that begins its progress lines;
            returns the criterion.
        minibatch_size: nominal size.
        previous_rates: the rates found before earlier epochs.
        previous: control value of the epoch before; infinite if there is none.
        ratio: weight of that value in the bound.
        min_rate: smallest rate of the training.
        fine: whether a golden-section search follows.
    """

    epoch: int
    trial: RateTrial
    minibatch_size: int
    previous_rates: Sequence[float]
    previous: float
    ratio: float
    min_rate: float
    fine: bool

    def run(self) -> float:
        """Return the rate per sample to train with."""
        # CNTK has these constants in single precision, and continues in double
        eighth, shrink = np.float32(1 / 8), np.float32(SHRINK)
        if self.previous_rates:
            rate = max(self.previous_rates) / float(shrink) ** 2
        else:
            rate = float(eighth / shrink) / math.sqrt(self.minibatch_size)
        base = self.trial(0.0, "BaseAdaptiveLearnRateSearch")
        previous = base if math.isinf(self.previous) else self.previous
        bound = max(self.ratio * previous + (1 - self.ratio) * base, base)
        while True:
            rate *= SHRINK
            value = self.trial(rate, "AdaptiveLearnRateSearch")
            if not math.isnan(value) and (value <= bound or rate <= 0.3 * self.min_rate):
                break
        if self.fine:
            rate = self._refine(rate, value)
        log.info(
            " SearchForBestLearnRate Epoch[%d]: Best learningRatePerSample = %.10g, baseCriterion=%.10g",
            self.epoch + 1,
            rate,
            bound,
        )
        return rate

    def _refine(self, right: float, right_value: float) -> float:
        left = 0.01 / self.minibatch_size
        left_value = self.trial(left, "DetailBaseAdaptiveLearnRateSearch")
        while right > 1.2 * left:
            if right_value > left_value:
                right *= SHRINK
                right_value = self.trial(right, "DetailRightAdaptiveLearnRateSearch")
            else:
                left /= SHRINK
                left_value = self.trial(left, "DetailLeftAdaptiveLearnRateSearch")
        return right if right_value <= left_value else left


@dataclass(frozen=True)
class SizeSearch:
    """The search of a minibatch size before one epoch.

    Attributes:
        epoch: 0-based.
        trial: trains on the first samples of the epoch with a minibatch size, and a tag that begins its progress
            lines; returns the criterion.
        smallest, largest: bounds of the search.
        margin: accepted loss in percent.
    """

    epoch: int
    trial: SizeTrial
    smallest: int
    largest: int
    margin: float

    def run(self) -> int:
        """Return the largest size that does not make the criterion worse by more than the margin."""
        lowest, highest = min(self.smallest, self.largest), self.largest
        self._say(f"Evaluating minibatchSizes {lowest}..{highest}")
        sizes = list(self._sizes(lowest, highest))
        base = self._try(sizes[0], lowest, highest, "BaseAdaptiveMinibatchSearch")
        self._say(f"Computed baseCriterion {base:.8f} for minibatchSize={sizes[0]}")
        best, best_value = sizes[0], base
        for number, size in enumerate(sizes[1:], 2):
            value = self._try(size, lowest, highest, "AdaptiveMinibatchSearch")
            if math.isnan(value) or value > base * (1 + self.margin / 100):
                break
            best, best_value = size, value
            if number < len(sizes):
                self._say(f"Keep searching... epochCriterion = {value:.8f} vs. baseCriterion = {base:.8f}")
        self._say(
            f"Search successful. New minibatchSize is {best}. "
            f"epochCriterion = {best_value:.8f} vs baseCriterion = {base:.8f}"
        )
        return best

    @staticmethod
    def _sizes(lowest: int, highest: int) -> Iterator[int]:
        size = float(lowest)
        while True:
            yield max(1, int(size / MULTIPLE + 0.5)) * MULTIPLE
            size *= math.sqrt(2)
            if size > highest * (1 + 1e-6):  # two roots are a rounding error more than 2
                return

    def _try(self, size: int, lowest: int, highest: int, tag: str) -> float:
        self._say(f"Evaluating trial minibatchSize={size} (search range: {lowest}..{highest})...")
        return self.trial(size, tag)

    def _say(self, text: str) -> None:
        log.info(" AdaptiveMinibatchSearch Epoch[%d]: %s", self.epoch + 1, text)
