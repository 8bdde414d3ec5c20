"""Names that Keras 2.3.1 expects of Python, NumPy and h5py, and that their versions of today have no more.

`install()` calls `support_keras` where the environment variable KERAS_BACKEND is `cntk`.
"""

# h5py and the values of its attributes have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import collections
import collections.abc
import importlib.util
import os
from typing import Any

ABSTRACT = ("Callable", "Iterable", "Mapping", "Sequence")
"""Names of `collections.abc` that `collections` had until Python 3.9."""


class Text(str):
    """An attribute of an HDF5 file: a text that has `decode`, as the bytes of h5py 2 had."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the text."""
        del encoding, errors
        return str(self)


def is_keras_on_cntk() -> bool:
    """Return whether programs of this process ask for Keras on CNTK."""
    return os.environ.get("KERAS_BACKEND") == "cntk"


def support_keras() -> None:
    """Give Python's, NumPy's and h5py's modules the names that Keras 2.3.1 uses; those that exist stay."""
    import numpy

    for name in ABSTRACT:
        _set_missing(collections, name, getattr(collections.abc, name))
    for name, value in (("Inf", numpy.inf), ("string_", numpy.bytes_), ("unicode_", numpy.str_)):
        _set_missing(numpy, name, value)
    if importlib.util.find_spec("h5py") is not None:
        import h5py  # pyright: ignore

        _read_texts(h5py.AttributeManager)


def _read_texts(attributes: Any) -> None:
    """Let h5py's class of attributes give texts that have `decode`; it is outside software, and no class of cntkpy."""
    read = attributes.__getitem__
    if read.__module__ == __name__:
        return

    def read_text(self: Any, name: str) -> Any:
        return _with_texts(read(self, name))

    attributes.__getitem__ = read_text


def _with_texts(value: Any) -> Any:
    """Return an attribute whose texts have `decode`."""
    import numpy

    if isinstance(value, numpy.ndarray) and value.dtype == object:
        return numpy.array([_with_texts(item) for item in value.ravel()] + [None], object)[:-1].reshape(value.shape)
    return Text(value) if type(value) is str else value


def _set_missing(module: Any, name: str, value: Any) -> None:
    if name not in vars(module):
        setattr(module, name, value)


__all__ = ["is_keras_on_cntk", "support_keras"]
