"""cntk.train.training_session."""

from __future__ import annotations

import sys
from typing import Any

from cntkpy.trainers.fronts.cntk2 import schedules, session
from cntkpy.trainers.fronts.cntk2.schedules import Schedule
from cntkpy.trainers.fronts.cntk2.session import CheckpointConfig, DataUnit, TrainingSession
from cntkpy.trainers.fronts.cntk2.trainer import Trainer

from ..missing import no_attribute


class CrossValidationConfig(session.CrossValidationConfig):
    """Evaluations during training; `source` and `mb_size` are older names of the data and the size."""

    def __init__(
        self,
        minibatch_source: Any = None,
        frequency: Any = None,
        minibatch_size: Any = 32,
        callback: Any = None,
        max_samples: Any = None,
        model_inputs_to_streams: Any = None,
        criterion: Any = None,
        source: Any = None,
        mb_size: Any = None,
    ) -> None:
        data, size = _older(minibatch_source, source), _older(minibatch_size, mb_size)
        super().__init__(data, frequency, size, callback, max_samples, model_inputs_to_streams, criterion)


class TestConfig(session.TestConfig):
    """The evaluation after training; `source` and `mb_size` are older names of the data and the size."""

    def __init__(
        self,
        minibatch_source: Any = None,
        minibatch_size: Any = 32,
        model_inputs_to_streams: Any = None,
        criterion: Any = None,
        source: Any = None,
        mb_size: Any = None,
    ) -> None:
        data, size = _older(minibatch_source, source), _older(minibatch_size, mb_size)
        super().__init__(data, size, model_inputs_to_streams, criterion)


def _older(frequency: Any, old: Any) -> Any:
    return frequency if old is None else old


def training_session(
    trainer: Trainer,
    mb_source: Any,
    mb_size: Any,
    model_inputs_to_streams: Any,
    progress_frequency: Any = None,
    max_samples: int | None = None,
    checkpoint_config: CheckpointConfig | None = None,
    cv_config: CrossValidationConfig | None = None,
    test_config: TestConfig | None = None,
) -> TrainingSession:
    """Return a session; see `cntkpy.training.TrainingSession`."""
    limit = None if isinstance(max_samples, int) and max_samples >= 2**63 else max_samples
    return TrainingSession(
        trainer,
        mb_source,
        mb_size,
        model_inputs_to_streams,
        limit,
        progress_frequency,
        checkpoint_config,
        cv_config,
        test_config,
    )


def minibatch_size_schedule(schedule: Any, epoch_size: int = 1) -> Schedule:
    """Sizes of minibatches: a number, a list of numbers, or pairs of a number of epochs and a size.

    Args:
        schedule: the sizes.
        epoch_size: samples of an epoch; with 1 the first numbers of pairs count samples.
    """
    return schedules.minibatch_size(schedule, epoch_size)


__all__ = [
    "CheckpointConfig", "CrossValidationConfig", "DataUnit", "TestConfig", "TrainingSession", "minibatch_size_schedule",
    "sys", "training_session",
]  # fmt: skip

__getattr__ = no_attribute("cntk.train.training_session", __all__)
