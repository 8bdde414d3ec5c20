"""Progress as event files of TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.checks import check_type
from cntkpy.trainers.fronts.cntk2.progress import ProgressWriter
from cntkpy.trainers.log.event_files import EventFile
from cntkpy.trainers.log.totals import Totals


class TensorBoardProgressWriter(ProgressWriter):
    """Writes loss, metric and the graph of a model into an event file.

    Args:
        freq: minibatches between values; 0: after 1, 2, 4, ...; None: only those of epochs.
        log_dir: the folder of the file.
        rank: which worker this is; only worker 0 writes.
        model: a function whose graph is written, too.

    Raises:
        UserError: the file cannot be written.
    """

    def __init__(
        self,
        freq: int | None = None,
        log_dir: str | os.PathLike[str] = ".",
        rank: int | None = None,
        model: Function | None = None,
    ) -> None:
        super().__init__(freq, rank=rank)
        if model is not None:
            check_type(
                "the model of a TensorBoardProgressWriter", model, Function, "TensorBoardProgressWriter(model=z)"
            )
        self._file = EventFile(log_dir) if not rank else None
        self._minibatches = 0
        if self._file is not None and model is not None:
            self._file.graph(model.network)
            self._file.flush()

    def _values(self, kind: str, totals: Totals, step: int) -> None:
        self._track({f"{kind}/avg_loss": totals.average_loss, f"{kind}/avg_metric": totals.average_metric}, step)

    def _track(self, values: Mapping[str, float], step: int) -> None:
        if self._file is not None:
            self._file.scalars(values, step)

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """Loss and metric of some minibatches."""
        self._minibatches += interval.minibatches
        self._values("minibatch", interval, self._minibatches)

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """Loss and metric of an epoch."""
        self._values("summary", totals, self._epochs)
        self.flush()

    def on_test_end(self, totals: Totals) -> None:
        """The metric of a test."""
        self._track({"summary/test_avg_metric": totals.average_metric}, self._tests)
        self.flush()

    def write(self, key: str, value: object) -> None:
        """A value of the program's own."""
        self.write_value(key, value, self._minibatches)

    def write_value(self, name: str, value: object, step: int) -> None:
        """A value of the program's own at a step.

        Args:
            name: of the curve.
            value: a number, or an array of one element, as `reduce_mean(p).eval()` gives it.
            step: the place on the curve.

        Raises:
            ArgumentError: `value` is not one number.
        """
        if self._file is not None:
            self._track({name: _number(name, value)}, int(_number("the step", step)))

    def write_image(self, name: str, data: Mapping[Any, Any], step: int) -> None:
        """Pictures of the program's own at a step.

        Args:
            name: of the pictures.
            data: one value: an input or a function of the shape (channels, height, width), or (height, width), by
                which its pictures stand: numbers from 0 to 255.
            step: the place.

        Raises:
            ArgumentError: `data` are not pictures.
        """
        if self._file is not None:
            self._file.images(name, _pictures(name, data), int(_number("the step", step)))

    def flush(self) -> None:
        """Write everything to the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write everything and close the file."""
        if self._file is not None:
            self._file.close()


def _pictures(name: str, data: object) -> np.ndarray:
    """Return pictures as bytes, (pictures, channels, height, width)."""
    hint = (
        "write_image(name, {function: array}, step): an array (pictures, channels, height, width) with 1 or 3 channels"
    )
    shown = shorten(repr(data))
    pictures: Mapping[Any, Any] = cast("Mapping[Any, Any]", data) if isinstance(data, Mapping) else {}
    if len(pictures) != 1:
        raise ArgumentError(f"{name}: {shown} is not a dict of one function and its pictures", hint)
    ((function, value),) = pictures.items()
    read: Any = getattr(value, "asarray", None)
    array = np.asarray(value if read is None else read())
    shape = tuple(function.shape)
    if len(shape) == 2:
        shape = (1, *shape)
    is_size = len(shape) == 3 and shape[0] in (1, 3) and min(shape) > 0
    if not is_size or array.dtype.kind not in "fiub" or array.size % max(int(np.prod(shape)), 1) or not array.size:
        message = f"{name}: an array {array.shape} of {array.dtype} is no pictures of the shape {tuple(function.shape)}"
        raise ArgumentError(message, hint)
    return np.clip(np.nan_to_num(array.reshape(-1, *shape)), 0, 255).astype(np.uint8)


def _number(name: str, value: object) -> float:
    """Return a number of an array of one element, whatever its axes."""
    read: Any = getattr(value, "asarray", None)  # of a `Value`
    array = np.asarray(value if read is None else read())
    if array.size != 1 or array.dtype.kind not in "fiub":
        message = f"{name}: {shorten(repr(value))} is not one number"
        raise ArgumentError(message, "C.reduce_mean(p).eval() gives one of an array")
    return float(array.reshape(())[()])
