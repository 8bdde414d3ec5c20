"""The words of the log: how criteria, rates and epochs are written (docs/specification/actions-and-training.md 5)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cntkpy.trainers.parameters.sgd import UNLIMITED


@dataclass(frozen=True)
class Total:
    """The sum of one criterion node.

    Attributes:
        name: the node.
        value: sum over all minibatches so far.
        count: number of samples it was summed over.
    """

    name: str
    value: float
    count: int

    @property
    def average(self) -> float:
        """Value per sample; 0 before the first sample."""
        return self.value / self.count if self.count else 0.0

    def __str__(self) -> str:
        return f"{self.name} = {criterion_value(self.name, self.average)} * {self.count}"


def criterion_value(name: str, value: float) -> str:
    """Return the value as the log shows it: a percentage if the node's name ends in a lower-case `s`."""
    if name.endswith("s"):
        return fixed(100 * value, 3) + "%"
    return fixed(value, 8)


def fixed(value: float, digits: int) -> str:
    """`%.{digits}f`, or the exponent form where `%.{digits}g` would need an exponent."""
    exponent = "e" in f"{value:.{digits}g}"
    return f"{value:.{digits}e}" if exponent else f"{value:.{digits}f}"


def totals_line(totals: Iterable[Total]) -> str:
    """Criteria separated by semicolons, nothing at the end."""
    return "; ".join(str(total) for total in totals)


def percent_digits(minibatches_per_epoch: float, minibatches_shown: int) -> int:
    """Decimals of the percentage in a progress line: enough to tell one line from the next, at least two."""
    if minibatches_per_epoch <= 0 or minibatches_shown <= 0:
        return 2
    return max(2, math.ceil(math.log10(minibatches_per_epoch / minibatches_shown)) - 2)


def starting_epoch(epoch: int, rate: float, momentum: float, time_constant: float) -> str:
    """Return the line that opens an epoch; `epoch` counts from 1."""
    return (
        f"Starting Epoch {epoch}: learning rate per sample = {rate:f}  effective momentum = {momentum:f}  "
        f"momentum as time constant = {time_constant:.1f} samples"
    )


def duration(seconds: float) -> str:
    """Return a time as people say it: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def pieces(subminibatches: int, max_samples: int) -> str:
    """Return the words about pieces in the line that begins the minibatches; empty if there are none."""
    if subminibatches > 1:
        return f", with {subminibatches} subminibatch"
    return f", with maximum {max_samples} samples in RAM" if max_samples < UNLIMITED else ""


def minibatch_range(first: int, last: int, share: str = "") -> str:
    """Return the minibatches of a progress line; `share`: the part of the epoch."""
    return f"Minibatch[{first:4d}-{last:4d}{share}]"


def samples_per_second(samples: int, seconds: float) -> float:
    """Return the speed; 0 where no time has passed."""
    return samples / seconds if seconds > 0 else 0.0


def progress(
    epoch: tuple[int, int],
    minibatches: tuple[int, int],
    percent: tuple[float, int] | None,
    totals: Sequence[Total],
    seconds: float,
) -> str:
    """Return a progress line inside an epoch of an `SGD` section.

    Args:
        epoch: 1-based epoch and the number of epochs.
        minibatches: the first and the last one since the previous line, 1-based.
        percent: share of the epoch in percent and its decimals; `None` while the size of the epoch is unknown.
        totals: criteria of the interval.
        seconds: duration of the interval.
    """
    share = "" if percent is None else f", {percent[0]:2.{percent[1]}f}%"
    return (
        f" Epoch[{epoch[0]:2d} of {epoch[1]}]-{minibatch_range(*minibatches, share)}: {totals_line(totals)}; "
        f"time = {fixed(seconds, 4)}s; samplesPerSecond = {samples_per_second(totals[0].count, seconds):.1f}"
    )


def perf_trace(worker_samples: int, samples: int, read: float, compute: float) -> str:
    """Return the line about the time of a minibatch; exchange and update are compiled with the computation.

    Args:
        worker_samples: samples of this worker.
        samples: of all workers.
        read, compute: seconds.
    """
    return (
        f"Perf trace: Worker MB size = {worker_samples}, Read = {read:.5g}s; Compute = {compute:.5g}s; "
        f"Parameter update = 0s; Parameter sync = 0s; Aggregate MB size = {samples}"
    )


def finished_epoch(
    epoch: int, epochs: int, totals: Sequence[Total], samples_seen: int, rate: float, seconds: float
) -> str:
    """Return the line that closes the training part of an epoch."""
    return (
        f"Finished Epoch[{epoch:2d} of {epochs}]: [Training] {totals_line(totals)}; totalSamplesSeen = {samples_seen}; "
        f"learningRatePerSample = {rate:.8g}; epochTime={seconds:.6g}s"
    )


def validated_epoch(epoch: int, epochs: int, totals: Sequence[Total]) -> str:
    """Return the line that closes the validation part of an epoch."""
    return f"Finished Epoch[{epoch:2d} of {epochs}]: [Validate] {totals_line(totals)}"


# ---- programs of CNTK 2


def loss_and_metric(loss: float, metric: str | None, samples: int) -> str:
    """Return the averages of an interval or an epoch; `metric`: as `metric_value` has written it, None: without."""
    written = f"loss = {loss:.6f} * {samples}"
    return written if metric is None else f"{written}, {metric_sum(metric, samples)}"


def metric_value(value: float, percent: bool) -> str:
    """Return a metric as a program shows it."""
    return f"{100 * value:.2f}%" if percent else f"{value:.6f}"


def metric_sum(metric: str, samples: int) -> str:
    """Return a metric and its number of samples."""
    return f"metric = {metric} * {samples}"


GROWING_INTERVALS_HEAD = (
    " average      since    average      since      examples",
    "    loss       last     metric       last              ",
    " ------------------------------------------------------",
)
"""Head of the table that has a row after 1, 2, 4, ... minibatches."""


def growing_interval(averages: Sequence[float], samples: int) -> str:
    """Return a row of that table: average and average since the last row of loss and metric, samples so far."""
    return " ".join(f"{average:8.3g}  " for average in averages) + f" {samples:10d}"
