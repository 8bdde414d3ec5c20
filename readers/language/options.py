"""What SequenceReader and LUSequenceReader have in common: how their sections are understood."""

from __future__ import annotations

from typing import Any

from cntk_config.diagnostics import ConfigError

from ..reader import Reader
from .parameters import SequenceReaderParameters

TRAINING = ("train", "trainrnn", "adapt")


def is_training(p: SequenceReaderParameters) -> bool:
    """Whether the reader belongs to a command that trains."""
    try:
        return any(name.lower() in TRAINING for name in p.action)
    except ConfigError:
        return False


def reader_of(source: Any) -> Reader:
    """A reader over a source of another kind than `readers.source.Source`, with the same methods."""
    return Reader(source)
