"""Opens model files of CNTK: which format it is, and errors that name the file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.names import public_name
from cntkpy.networks.files.cntk_binary.build import build
from cntkpy.networks.files.cntk_binary.recognise import HEAD, V1, V2, recognise
from cntkpy.networks.files.cntk_binary.v1 import parse_v1
from cntkpy.networks.files.cntk_binary.v2 import parse_v2
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.precision import known_precision
from cntkpy.networks.nodes.file_support.records import BadFile, NotSupported, Records

T = TypeVar("T")
MODEL_LIMIT = 1 << 36
"""Most bytes of a model file of CNTK, which is read whole."""

_PARSERS = {V1: parse_v1, V2: parse_v2}

log = logging.getLogger("cntkpy.networks")


def load_cntk(path: str | Path, precision: str | None = None) -> ValidatedNetwork:
    """Read a model of CNTK.

    Args:
        path: the file.
        precision: "float" or "double" to convert to; by default that of the file. Files before version 7 of the first
            format do not say it; there the size of the elements of the first matrix decides.

    Raises:
        UserError: damaged, too new, or with operations that are not in the library, which are named.
    """
    return read_cntk(_content(path), public_name(path), precision)


def load_records(path: str | Path) -> Records:
    """Return the records of a model of CNTK, also if it cannot become a network.

    Raises:
        UserError: damaged or too new.
    """
    content = _content(path)
    return _said(public_name(path), lambda: parse(content))


def read_cntk(content: bytes, name: str = "<model>", precision: str | None = None) -> ValidatedNetwork:
    """As `load_cntk`, for the content of a file."""
    records = _said(name, lambda: parse(content))
    network = _said(name, lambda: build(records))
    for note in records.notes:
        log.info("%s: %s", name, note)
    wanted = known_precision(precision or records.precision)
    if wanted != network.precision:
        network.precision = wanted
        for node in network.nodes.values():
            if node.value is not None:
                with np.errstate(over="ignore"):
                    node.value = np.array(node.value, network.dtype)
    return network


def parse(content: bytes) -> Records:
    """Return the records of a file's content.

    Raises:
        BadFile: damaged.
        NotSupported: not a model, or of a newer version.
    """
    kind = recognise(content[:HEAD])
    if kind is None:
        raise BadFile("it does not begin as a model of CNTK", 0)
    if kind.form not in _PARSERS:
        raise NotSupported(kind.what, kind.hint)
    return _PARSERS[kind.form](content)


def _content(path: str | Path) -> bytes:
    try:
        return read_input(path, MODEL_LIMIT)
    except OSError as problem:
        raise UserError(
            "CannotRead", f"cannot read the model {public_name(path)}: {problem.strerror or problem}"
        ) from None


def _said(name: str, work: Callable[[], T]) -> T:
    """Work on a file, with errors that name it."""
    try:
        return work()
    except NotSupported as problem:
        raise UserError("BadModel", f"the model {name} cannot be used: {problem}", hint=problem.hint or None) from None
    except BadFile as problem:
        raise UserError(
            "BadModel", f"the model {name} is damaged at byte {problem.at}: {problem}", hint="restore it from a copy"
        ) from None
    except (OverflowError, MemoryError) as problem:
        raise UserError("BadModel", f"the model {name} is damaged: {problem}", hint="restore it from a copy") from None
    except UserError as problem:
        raise UserError("BadModel", f"the model {name} cannot be used: {problem}", hint=problem.hint) from None
