"""cntk.train.trainer."""

from __future__ import annotations

from typing import Any

from cntkpy.trainers.session.trainer import Trainer as OwnTrainer

from ..missing import no_attribute


class Trainer(OwnTrainer):
    """See `cntkpy.training.Trainer`."""

    def __init__(self, model: Any, criterion: Any, parameter_learners: Any, progress_writers: Any = None) -> None:
        super().__init__(model, criterion, parameter_learners, progress_writers)


__all__ = ["Trainer"]

__getattr__ = no_attribute("cntk.train.trainer", __all__)
