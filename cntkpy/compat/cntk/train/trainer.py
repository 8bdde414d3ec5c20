"""cntk.train.trainer."""

from __future__ import annotations

from typing import Any

from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.session import DataUnit
from cntkpy.trainers.fronts.cntk2.trainer import Trainer as OwnTrainer

from ..missing import no_attribute


class Trainer(OwnTrainer):
    """See `cntkpy.training.Trainer`."""

    def __init__(self, model: Any, criterion: Any, parameter_learners: Any, progress_writers: Any = None) -> None:
        super().__init__(model, criterion, parameter_learners, progress_writers)

    def test_minibatch(self, arguments: Any, device: Any = None) -> float:
        """Return the metric per sample for some data; see `cntkpy.training.Trainer.test_minibatch`.

        Raises:
            ArgumentError: the trainer has no metric.
        """
        if self.evaluation_function is None:
            raise ArgumentError("the trainer has no metric to test", "Trainer(model, (loss, metric), learners)")
        return super().test_minibatch(arguments, device)

    def total_number_of_units_seen(self, unit: DataUnit) -> int:
        """Return the samples, minibatches or passes over the data that were trained on."""
        seen = {DataUnit.sample: self.total_number_of_samples_seen, DataUnit.minibatch: self.total_number_of_updates}
        return seen.get(unit, self.total_number_of_sweeps)

    @staticmethod
    def _get_loss_metric(criterion: Any) -> tuple[Any, Any]:
        """Return the loss and the metric of a criterion: a function of one or two outputs, or a pair; None: there is
        none.
        """
        criteria: Any = getattr(criterion, "outputs", criterion)
        pair: tuple[Any, ...] = tuple(criteria) if is_several(criteria) else (criteria,)
        return pair[0], pair[1] if len(pair) > 1 else None


__all__ = ["Trainer"]

__getattr__ = no_attribute("cntk.train.trainer", __all__)
