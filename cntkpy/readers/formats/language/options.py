"""Options shared by SequenceReader and LUSequenceReader."""

from __future__ import annotations

from .parameters import TRAINING, LUSequenceReaderParameters, SequenceReaderParameters, is_for


def slots_of(p: SequenceReaderParameters | LUSequenceReaderParameters) -> int:
    """Sentences in a minibatch: what `write` writes has the order of the corpus, so it reads one after the other."""
    return 1 if is_for(p, "write") and not is_for(p, *TRAINING) else p.slots
