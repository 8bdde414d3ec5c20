"""The words of the log: how criteria, rates and epochs are written (docs/specification/actions-and-training.md 5)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cntkpy.trainers.parameters.sgd import UNLIMITED


@dataclass(frozen=True)
class Total:
    """What one criterion node has summed up.

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
    """The value as the log shows it: a percentage if the node's name ends in a lower-case `s`."""
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
    """The line that opens an epoch; `epoch` counts from 1."""
    return (
        f"Starting Epoch {epoch}: learning rate per sample = {rate:f}  effective momentum = {momentum:f}  "
        f"momentum as time constant = {time_constant:.1f} samples"
    )


def duration(seconds: float) -> str:
    """A time as people say it: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def pieces(subminibatches: int, max_samples: int) -> str:
    """How the line that begins the minibatches says that they are computed in pieces; empty if they are not."""
    if subminibatches > 1:
        return f", with {subminibatches} subminibatch"
    return f", with maximum {max_samples} samples in RAM" if max_samples < UNLIMITED else ""


def progress(
    epoch: int,
    epochs: int,
    first: int,
    last: int,
    percent: tuple[float, int] | None,
    totals: Sequence[Total],
    seconds: float,
    samples: int,
) -> str:
    """One progress line inside an epoch.

    Args:
        epoch, epochs: 1-based epoch and the number of epochs.
        first, last: the minibatches since the previous line, 1-based.
        percent: share of the epoch in percent and its decimals; `None` while the size of the epoch is unknown.
        totals: criteria of the interval.
        seconds, samples: duration of the interval and samples seen in it.
    """
    share = "" if percent is None else f", {percent[0]:2.{percent[1]}f}%"
    speed = samples / seconds if seconds > 0 else 0.0
    return (
        f" Epoch[{epoch:2d} of {epochs}]-Minibatch[{first:4d}-{last:4d}{share}]: {totals_line(totals)}; "
        f"time = {fixed(seconds, 4)}s; samplesPerSecond = {speed:.1f}"
    )


def perf_trace(own: int, samples: int, read: float, compute: float) -> str:
    """Where the time of a minibatch went; exchange and update are compiled together with the computation.

    Args:
        own: samples of this worker.
        samples: of all workers.
        read, compute: seconds.
    """
    return (
        f"Perf trace: Worker MB size = {own}, Read = {read:.5g}s; Compute = {compute:.5g}s; "
        f"Parameter update = 0s; Parameter sync = 0s; Aggregate MB size = {samples}"
    )


def finished_epoch(
    epoch: int, epochs: int, totals: Sequence[Total], samples_seen: int, rate: float, seconds: float
) -> str:
    """The line that closes the training part of an epoch."""
    return (
        f"Finished Epoch[{epoch:2d} of {epochs}]: [Training] {totals_line(totals)}; totalSamplesSeen = {samples_seen}; "
        f"learningRatePerSample = {rate:.8g}; epochTime={seconds:.6g}s"
    )


def validated_epoch(epoch: int, epochs: int, totals: Sequence[Total]) -> str:
    """The line that closes the validation part of an epoch."""
    return f"Finished Epoch[{epoch:2d} of {epochs}]: [Validate] {totals_line(totals)}"
