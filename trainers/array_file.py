"""Files of arrays with a few JSON values beside them: safetensors, written in one step."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntk_config.diagnostics import UserError
from cntk_config.files import atomic_write

Arrays = dict[str, NDArray[Any]]


def save_arrays(path: str, what: str, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
    """Write a file so that `path` is either the old one or the whole new one.

    **Arguments:** `what` names the kind of file (and version); `values` are JSON-able.

    **Raises** a `UserError` if the disk does not take it.
    """
    from safetensors.numpy import save

    metadata = {"cntkpy": json.dumps({"format": what, **values})}  # one key: the order of several is not fixed
    data = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, metadata)
    try:
        with atomic_write(path) as file:
            file.write(data)
    except OSError as error:
        raise UserError(f"cannot write the checkpoint {path}: {error.strerror or error}") from None


def load_arrays(path: str, what: str) -> tuple[Arrays, dict[str, Any]]:
    """Read a file of `save_arrays`.

    **Raises** `FileNotFoundError`; a `UserError` if it is no whole file of that kind.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).exists():
        raise FileNotFoundError(path)
    try:
        with safe_open(path, framework="numpy") as file:  # pyright: ignore[reportUnknownVariableType]
            values = json.loads((file.metadata() or {})["cntkpy"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        if values.pop("format") != what:
            raise ValueError("another format")
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise UserError(
            f"'{path}' is not a checkpoint of this version of cntkpy: {error}",
            hint="delete it to go on from the model alone, or set makeMode=false to start again",
            kind="BadCheckpoint",
        ) from None
    return arrays, values
