"""Progress as event files of TensorBoard, by the package tensorboardX."""

from __future__ import annotations

import importlib
from typing import Any

from cntk_config.base.diagnostics import UserError
from trainers.log.totals import Totals
from trainers.session.progress import ProgressWriter


class TensorBoardProgressWriter(ProgressWriter):
    """Writes loss and metric into event files.

    Args:
        freq: minibatches between values; 0: after 1, 2, 4, ...; None: only those of epochs.
        log_dir: the folder of the files.
        rank: which worker this is; only worker 0 writes.
        model: accepted; the graph is not written.
    """

    def __init__(self, freq: int | None = None, log_dir: str = ".", rank: int | None = None, model: Any = None) -> None:
        super().__init__(freq, rank=rank)
        del model
        try:
            package: Any = importlib.import_module("tensorboardX")
        except ImportError:
            raise UserError(
                "MissingPackage",
                "event files of TensorBoard are written by the package tensorboardX, which is not installed",
                hint="pip install 'cntkpy[tensorboard]'",
            ) from None
        self._writer: Any = package.SummaryWriter(log_dir) if not rank else None
        self._minibatches = 0

    def _values(self, kind: str, totals: Totals, step: int) -> None:
        if self._writer is not None:
            self._writer.add_scalar(f"{kind}/avg_loss", totals.average_loss, step)
            self._writer.add_scalar(f"{kind}/avg_metric", totals.average_metric, step)

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """Loss and metric of some minibatches."""
        self._minibatches += interval.minibatches
        self._values("minibatch", interval, self._minibatches)

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """Loss and metric of an epoch."""
        self._values("summary", totals, self.epochs)
        self.flush()

    def on_test_end(self, totals: Totals) -> None:
        """The metric of a test."""
        if self._writer is not None:
            self._writer.add_scalar("summary/test_avg_metric", totals.average_metric, self.tests)
        self.flush()

    def write(self, key: str, value: Any) -> None:
        """A value of the program's own."""
        self.write_value(key, value, self._minibatches)

    def write_value(self, name: str, value: float, step: int) -> None:
        """A value of the program's own at a step."""
        if self._writer is not None:
            self._writer.add_scalar(name, float(value), step)

    def flush(self) -> None:
        """Write everything to the file."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write everything and close the file."""
        if self._writer is not None:
            self._writer.close()
