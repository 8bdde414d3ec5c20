"""JsonLinesReader: a JSON object a line, whose fields are the streams.

{"size": [5.1, 0.4], "kind": "daisy"}
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.declare import PATH, SIZE, TEXT, Declared, Parameter, Part, array
from cntkpy.readers import DataError, RowsReader, StreamInformation
from cntkpy.readers.parameters import OrderParameters


class JsonLinesParameters(OrderParameters):
    """JsonLinesReader: a JSON object a line; every section inside is a stream."""

    file = Parameter("file", PATH, help="The data: a JSON object a line.")

    def named_parts(self) -> Iterator[Part]:
        """The streams: sections with names of the user's choice."""
        for _, inside in self.config.inner():
            yield Part("stream", inside, (StreamParameters,))


class StreamParameters(Declared):
    """A stream: numbers, or with `classes` a class."""

    field = Parameter("field", TEXT, own=True, help="The field of the objects that holds the values.")
    dim = Parameter("dim", SIZE, default="1", own=True, help="How many numbers the field holds.")
    classes = Parameter("classes", array(TEXT), default=None, own=True, help="Names of classes; the field has one.")


class JsonLinesReader(RowsReader):
    """All lines, in memory: made for `readerType = JsonLinesReader`; cntkpy shuffles, shares them out and resumes."""

    declared = JsonLinesParameters  # so that `cntkpy check` knows the parameters

    def __init__(self, section: ConfigParameters):
        p = JsonLinesParameters(section)
        streams = {name: StreamParameters(inside) for name, inside in section.inner()}
        if not streams:
            raise section.error(
                "", "the reader has no stream", "add features=[field=... ; dim=...]", "MissingParameter"
            )
        path = str(p.file)
        self.files = [path]
        self._classes = {name: [str(one) for one in s.classes] for name, s in streams.items() if s.classes is not None}
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
                    classes = self._classes.get(name)
                    rows[name].append(_numbers(value, s.dim) if classes is None else _one_hot(value, classes))
            except (ValueError, KeyError, TypeError) as error:
                message = f"{path}, line {number}: {type(error).__name__}: {error}"
                hint = "a line is a JSON object with all fields"
                raise DataError(message, path=path, line=number, hint=hint) from None
        if not lines:
            raise DataError(f"{path} is empty.", path=path)
        self._values = {name: np.array(one, np.float64) for name, one in rows.items()}

    def stream_infos(self) -> list[StreamInformation]:
        """The sections inside, in order."""
        return [
            StreamInformation(name, number, "dense", np.float32, values.shape[1:])
            for number, (name, values) in enumerate(self._values.items())
        ]

    def num_rows(self) -> int:
        """Number of lines."""
        return len(next(iter(self._values.values())))

    def get_rows(self, rows: np.ndarray) -> dict[str, Any]:
        """These lines."""
        return {name: values[rows] for name, values in self._values.items()}

    def classes(self, stream: str) -> Sequence[str]:
        """The classes of a stream."""
        return self._classes.get(stream, [])


def _one_hot(name: str, classes: list[str]) -> list[float]:
    if name not in classes:
        raise ValueError(f"'{name}' is not one of the classes {', '.join(classes)}")
    return [float(name == one) for one in classes]


def _numbers(value: Any, dim: int) -> list[float]:
    numbers = [float(one) for one in (value if isinstance(value, list) else [value])]
    if len(numbers) != dim:
        raise ValueError(f"{len(numbers)} numbers, not {dim}")
    return numbers
