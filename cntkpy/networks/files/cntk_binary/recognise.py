"""Recognise CNTK model files by their first bytes, and files mistaken for them (docs/specification/model-files.md 1).

Imports nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cntkpy.cntk_config.base.files import read_start

HEAD = 64
"""So many bytes tell what a file is."""
V1, V2, ONNX, OTHER = "v1", "v2", "onnx", "other"

_CHECKPOINT = ("it is a checkpoint, not a model", "the model lies next to it, under the same name without .ckp")
_ONNX_VERSIONS = range(3, 64)
_ONNX_KEYS = (0x12, 0x22, 0x3A)


class Kind(NamedTuple):
    """Kind of a file.

    Attributes:
        form: the format of a model, `ONNX` for one of another program, or `OTHER`.
        what: what another file is.
        hint: what to do instead.
    """

    form: str
    what: str = ""
    hint: str = ""


_STARTS = (
    (b"B\0C\0N\0\0\0", Kind(V1)),
    (b"\x08\x01\x12", Kind(V2)),
    (b"\x08\x02\x12", Kind(V2)),
    (b"B\0V\0e\0r\0", Kind(OTHER, *_CHECKPOINT)),
    (b"B\0C\0K\0P\0", Kind(OTHER, *_CHECKPOINT)),
    (b"ktnc", Kind(OTHER, "it is larger than 2 GB: its arrays follow the model, which is not supported")),
    (b"version https://git-lfs", Kind(OTHER, "it is a pointer of Git LFS, not the model", "get it: git lfs pull")),
)


def recognise(head: bytes) -> Kind | None:
    """Return the kind of a file that begins with these bytes; None if it has nothing to do with CNTK."""
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head[:1] == b"\x08" and len(head) > 2 and head[1] in _ONNX_VERSIONS and head[2] in _ONNX_KEYS:
        return Kind(ONNX, "it is an ONNX model")
    return None


def is_cntk(path: str | Path) -> bool:
    """Return whether a file is a model of CNTK, or one of the files that people take for it."""
    kind = _kind_of(path)
    return kind is not None and kind.form != ONNX


def is_onnx(path: str | Path) -> bool:
    """Return whether a file is an ONNX model: by its first bytes, or by its name `*.onnx` if it is no other model."""
    kind = _kind_of(path)
    if kind is not None or Path(path).suffix.lower() != ".onnx":
        return kind is not None and kind.form == ONNX
    return Path(path).is_file()


def _kind_of(path: str | Path) -> Kind | None:
    try:
        return recognise(read_start(path, HEAD))
    except (OSError, ValueError):
        return None
