"""Files of arrays with a few JSON values beside them: safetensors, written in one step."""

import json
from collections.abc import Mapping
from types import UnionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.retry import cure
from cntkpy.cntk_config.base.writing import shown
from cntkpy.networks.files.cntk_binary.recognise import is_cntk
from cntkpy.networks.files.tensor_file import Damaged, TensorFile, write_tensors

Arrays = dict[str, NDArray[Any]]


def save_arrays(path: str, what: str, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
    """Write a file so that `path` is either the old one or the whole new one.

    Args:
        what: names the kind of file, and its version.
        values: JSON-able.

    Raises:
        UserError: if the disk does not take it.
    """
    metadata = {"cntkpy": json.dumps({"format": what, **values})}  # one key: the order of several is not fixed
    try:
        given = {name: np.asarray(array) for name, array in arrays.items()}
        write_tensors(path, given, metadata, through_link=False)
    except OSError as error:
        raise UserError(
            "CannotWrite", f"cannot write the checkpoint {shown(path)}: {error.strerror or error}"
        ) from None


def load_arrays(path: str, what: str, fields: Mapping[str, type | UnionType]) -> tuple[Arrays, dict[str, Any]]:
    """Read a file of `save_arrays`.

    Args:
        fields: the values that must be there, and their types.

    Raises:
        FileNotFoundError: if there is none.
        UserError: if it cannot be read, or is no whole file of that kind.
    """
    try:
        with TensorFile(path) as file:
            values = json.loads(file.metadata["cntkpy"])
            arrays = {name: file.read(name) for name in file.entries}
        if values.pop("format") != what:
            raise ValueError("another format")
        for name, kind in fields.items():
            if name not in values or not isinstance(values[name], kind):
                raise ValueError(f"its field '{name}' is missing or of another type")
    except FileNotFoundError:
        raise
    except OSError as error:  # nothing is said against the file
        raise UserError(
            "CannotRead", f"cannot read the checkpoint {path}: {error.strerror or error}", hint=cure(error)
        ) from None
    except (Damaged, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise not_a_checkpoint(path, "it is one of CNTK" if is_cntk(path) else str(error)) from None
    return arrays, values


def not_a_checkpoint(path: str, why: str) -> UserError:
    """The error of a file that is damaged, or of another version."""
    return UserError(
        "BadCheckpoint",
        f"'{path}' is not a checkpoint of this version of cntkpy: {why}",
        hint="delete it to resume from the model alone, or set makeMode=false to start again",
    )
