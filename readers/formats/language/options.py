"""What SequenceReader and LUSequenceReader have in common: how their sections are understood."""

from __future__ import annotations

from cntk_config.base.diagnostics import ConfigError

from .parameters import SequenceReaderParameters

TRAINING = ("train", "trainrnn", "adapt")


def is_training(p: SequenceReaderParameters) -> bool:
    """Whether the reader belongs to a command that trains."""
    try:
        return any(name.lower() in TRAINING for name in p.action)
    except ConfigError:
        return False
