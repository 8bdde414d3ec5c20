"""What SequenceReader and LUSequenceReader have in common: how their sections are understood."""

from __future__ import annotations

from typing import Any

from cntk_config.base.diagnostics import ConfigError
from readers.reader import Reader

from .parameters import SequenceReaderParameters

TRAINING = ("train", "trainrnn", "adapt")


def is_training(p: SequenceReaderParameters) -> bool:
    """Whether the reader belongs to a command that trains."""
    try:
        return any(name.lower() in TRAINING for name in p.action)
    except ConfigError:
        return False


def reader_of(source: Any) -> Reader:
    """A reader over a source of another kind than `readers.pipeline.source.Source`, with the same methods."""
    return Reader(source)
