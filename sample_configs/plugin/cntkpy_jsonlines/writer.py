"""JsonLinesWriter: the values of all nodes as a JSON object a line."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.cntk_config.declare import PATH, SIZE, Declared, Parameter


class JsonLinesWriterParameters(Declared):
    """JsonLinesWriter: a JSON object a line, with a field for every node."""

    file = Parameter("file", PATH, help="Where the lines go.")
    digits = Parameter("digits", SIZE, default="4", help="Digits behind the decimal point.")


class JsonLinesWriter:
    """Writes records as they come. The file appears when everything has been written."""

    def __init__(self, path: str, digits: int):
        self._digits = digits
        self._stack = ExitStack()
        self._file = self._stack.enter_context(atomic_write(path))

    def sections(self) -> dict[str, str]:
        """Nothing: any node can be written."""
        return {}

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write the next records: by name of the node, an array (records, values)."""
        names = list(data)
        for values in zip(*(np.asarray(data[name], float).round(self._digits).tolist() for name in names), strict=True):
            self._file.write((json.dumps(dict(zip(names, values, strict=True))) + "\n").encode())
        return True

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Names of classes are not written."""

    def close(self) -> None:
        """Everything has been written: let the file appear."""
        self._stack.close()

    def abandon(self) -> None:
        """Writing went wrong: leave no file behind."""
        self._stack.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)


def create_writer(section: ConfigParameters, precision: str) -> JsonLinesWriter:
    """The writer that a section describes; cntkpy calls this for `writerType = JsonLinesWriter`."""
    p = JsonLinesWriterParameters(section)
    return JsonLinesWriter(str(p.file), p.digits)


create_writer.declared = JsonLinesWriterParameters  # so that `cntkpy check` knows the parameters
