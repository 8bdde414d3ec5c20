"""cntk.train.training_session."""

from __future__ import annotations

from typing import Any

from trainers.session import schedules
from trainers.session.schedules import Schedule
from trainers.session.session import (
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    TestConfig,
    TrainingSession,
)
from trainers.session.trainer import Trainer

from ..missing import no_attribute


def training_session(
    trainer: Trainer, mb_source: Any, mb_size: Any, model_inputs_to_streams: Any, max_samples: int | None = None,
    progress_frequency: Any = None, checkpoint_config: CheckpointConfig | None = None,
    cv_config: CrossValidationConfig | None = None, test_config: TestConfig | None = None,
) -> TrainingSession:  # fmt: skip
    """A session; see `cntkpy.training.TrainingSession`."""
    limit = None if isinstance(max_samples, int) and max_samples >= 2**63 else max_samples
    return TrainingSession(
        trainer, mb_source, mb_size, model_inputs_to_streams, limit, progress_frequency, checkpoint_config,
        cv_config, test_config,
    )  # fmt: skip


def minibatch_size_schedule(schedule: Any, epoch_size: int | None = None) -> Schedule:
    """Sizes of minibatches."""
    return schedules.minibatch_size(schedule, epoch_size)


__all__ = [
    "CheckpointConfig", "CrossValidationConfig", "DataUnit", "TestConfig", "TrainingSession",
    "minibatch_size_schedule", "training_session",
]  # fmt: skip

__getattr__ = no_attribute("cntk.train.training_session", __all__)
