"""cntk.metrics."""

from cntkpy.networks.builders.python.operations.alignments import edit_distance_error
from cntkpy.networks.builders.python.operations.operators import classification_error, ndcg_at_1

from .missing import no_attribute

__all__ = ["classification_error", "edit_distance_error", "ndcg_at_1"]

__getattr__ = no_attribute("cntk.metrics", __all__)
