"""What SequenceReader and LUSequenceReader have in common: how their sections are understood."""

from __future__ import annotations

from cntk_config.base.diagnostics import ConfigError

from .parameters import LUSequenceReaderParameters, SequenceReaderParameters

TRAINING = ("train", "trainrnn", "adapt")


def _is_for(p: SequenceReaderParameters | LUSequenceReaderParameters, *names: str) -> bool:
    """Whether the reader belongs to a command with one of these actions."""
    try:
        return any(name.lower() in names for name in p.action)
    except ConfigError:
        return False


def is_training(p: SequenceReaderParameters) -> bool:
    """Whether the reader belongs to a command that trains."""
    return _is_for(p, *TRAINING)


def slots_of(p: SequenceReaderParameters | LUSequenceReaderParameters) -> int:
    """Sentences in a minibatch: what `write` writes has the order of the corpus, so it reads one after the other."""
    return 1 if _is_for(p, "write") and not _is_for(p, *TRAINING) else p.slots
