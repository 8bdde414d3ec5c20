"""JsonLinesReader: a JSON object a line, whose fields are the streams.

{"size": [5.1, 0.4], "kind": "daisy"}
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cntk_config import ConfigParameters
from cntk_config.declare import PATH, SIZE, TEXT, Declared, Parameter, Part, array, choice
from readers import DataError, Layout, Minibatch, StreamInformation


class JsonLinesParameters(Declared):
    """JsonLinesReader: a JSON object a line; every section inside is a stream."""

    file = Parameter("file", PATH, help="The data: a JSON object a line.")
    randomize = Parameter(
        "randomize",
        choice("auto", "none", ignore_case=True),
        default="auto",
        help="auto: shuffle the lines anew in every sweep.",
    )

    def named_parts(self) -> Iterator[Part]:
        """The streams: sections with names of the user's choice."""
        for _, inside in self.config.inner():
            yield Part("stream", inside, (StreamParameters,))


class StreamParameters(Declared):
    """A stream: numbers, or with `classes` a class."""

    field = Parameter("field", TEXT, own=True, help="The field of the objects that holds the values.")
    dim = Parameter("dim", SIZE, default="1", own=True, help="How many numbers the field holds.")
    classes = Parameter("classes", array(TEXT), default=None, own=True, help="Names of classes; the field has one.")


class JsonLinesReader:
    """Holds all lines in memory and hands them out minibatch by minibatch.

    values: by stream, float array (lines, dim). classes: by stream, names of its classes.
    """

    def __init__(self, path: str, values: dict[str, np.ndarray], classes: dict[str, list[str]], shuffle: bool):
        self.files = [path]
        self._values, self._classes, self._shuffle = values, classes, shuffle
        self.streams = [
            StreamInformation(name, number, "dense", rows.dtype, rows.shape[1:])
            for number, (name, rows) in enumerate(values.items())
        ]
        self.samples_per_sweep = len(next(iter(values.values())))
        self.data_end = False
        self._at = self._end = 0  # positions on a line that goes through one sweep after the other
        self._size, self._rank, self._workers = 1, 0, 1

    def start_minibatch_loop(
        self, minibatch_size: int, epoch: int, requested_epoch_samples: int | None = None, worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:  # fmt: skip
        """Go to the start of an epoch, counted from 0; without a number of samples it is one sweep."""
        length = requested_epoch_samples or self.samples_per_sweep
        self._at, self._end = epoch * length, (epoch + 1) * length
        self._size, self._rank, self._workers = minibatch_size, worker_rank, number_of_workers
        self.data_end = False

    def get_minibatch(self) -> Minibatch | None:
        """The next minibatch, or this worker's share of it; None after the last one of the epoch."""
        self.data_end = self._at >= self._end
        if self.data_end:
            return None
        sweep, first = divmod(self._at, self.samples_per_sweep)
        count = min(self._size, self._end - self._at, self.samples_per_sweep - first)
        lines = self._order(sweep)[first : first + count][self._rank :: self._workers]
        self._at += count
        self.data_end = self._at == self._end
        n = len(lines)
        sequences = np.zeros((n, 4), np.int64)  # number, slot, first step, step behind the last: a line is one step
        sequences[:, 0] = sequences[:, 1] = np.arange(n)
        sequences[:, 3] = 1
        layout = Layout(1, n, sequences)
        return Minibatch(
            {name: rows[lines][None] for name, rows in self._values.items()},  # (steps, slots, dim)
            dict.fromkeys(self._values, layout),
            keys=lines.tolist(),
            end_of_sweep=first + count == self.samples_per_sweep,
            end_of_epoch=self.data_end,
            columns_together=count,
        )

    def _order(self, sweep: int) -> np.ndarray:
        if not self._shuffle:
            return np.arange(self.samples_per_sweep)
        return np.random.default_rng(sweep).permutation(self.samples_per_sweep)

    def state(self) -> dict[str, Any]:
        """The position after the last minibatch, for checkpoints: anything that JSON can hold."""
        return {"at": self._at, "end": self._end, "size": self._size, "rank": self._rank, "workers": self._workers}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._at, self._end, self._size = state["at"], state["end"], state["size"]
        self._rank, self._workers = state["rank"], state["workers"]
        self.data_end = False

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """The classes of a stream."""
        return dict(enumerate(self._classes.get(name, [])))

    def close(self) -> None:
        """Nothing is open."""


def create_reader(section: ConfigParameters, precision: str) -> JsonLinesReader:
    """The reader that a section describes; cntkpy calls this for `readerType = JsonLinesReader`."""
    p = JsonLinesParameters(section)
    streams = {name: StreamParameters(inside) for name, inside in section.inner()}
    if not streams:
        raise section.error("", "the reader has no stream", "add features=[field=... ; dim=...]", "MissingParameter")
    path, dtype = str(p.file), np.float64 if precision == "double" else np.float32
    classes = {name: [str(one) for one in s.classes] for name, s in streams.items() if s.classes is not None}
    rows: dict[str, list[Any]] = {name: [] for name in streams}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise p.error("file", f"cannot read {path}: {error.strerror}", kind="CannotRead") from None
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            for name, s in streams.items():
                value = found[str(s.field)]
                rows[name].append(_one_hot(value, classes[name]) if name in classes else _numbers(value, s.dim))
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path}, line {number}: {type(error).__name__}: {error}"
            raise DataError(message, path=path, line=number, hint="a line is a JSON object with all fields") from None
    if not lines:
        raise DataError(f"{path} is empty.", path=path)
    return JsonLinesReader(
        path, {name: np.array(one, dtype) for name, one in rows.items()}, classes, p.randomize == "auto"
    )


create_reader.declared = JsonLinesParameters  # so that `cntkpy check` knows the parameters


def _one_hot(name: str, classes: list[str]) -> list[float]:
    if name not in classes:
        raise ValueError(f"'{name}' is not one of the classes {', '.join(classes)}")
    return [float(name == one) for one in classes]


def _numbers(value: Any, dim: int) -> list[float]:
    numbers = [float(one) for one in (value if isinstance(value, list) else [value])]
    if len(numbers) != dim:
        raise ValueError(f"{len(numbers)} numbers, not {dim}")
    return numbers
