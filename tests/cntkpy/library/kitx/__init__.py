"""A library on top of CNTK 2: layers, operators, learners, losses and metrics."""

from . import layers, learners, losses, metrics, misc, ops

__all__ = ["layers", "learners", "losses", "metrics", "misc", "ops"]
