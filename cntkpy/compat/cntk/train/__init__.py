"""cntk.train: the trainer and sessions."""

from cntkpy.trainers.fronts.cntk2.functions import EpochSummary, TrainingSummary
from cntkpy.trainers.fronts.cntk2.values import evaluate

from ..eval import Evaluator
from ..missing import no_attribute
from . import distributed, trainer
from .trainer import Trainer
from .training_session import (  # the function training_session hides the module, as in CNTK
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    TestConfig,
    TrainingSession,
    minibatch_size_schedule,
    training_session,
)

__all__ = [
    "CheckpointConfig", "CrossValidationConfig", "DataUnit", "EpochSummary", "Evaluator", "TestConfig", "Trainer",
    "TrainingSession", "TrainingSummary", "distributed", "evaluate", "minibatch_size_schedule", "trainer",
    "training_session",
]  # fmt: skip

__getattr__ = no_attribute("cntk.train", __all__)
