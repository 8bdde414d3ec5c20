"""Training from Python: functions, layers, learners, the trainer, progress writers, sessions.

`docs/training-from-python.md` shows how it is used; `cntkpy.compat.cntk` offers the same under CNTK's names.
"""

from cntk_config.base.extras import need_to_import

need_to_import("train", "cntkpy.training")

from networks.builders.python import layers
from networks.builders.python.decoders import AttentionModel, UnfoldFrom
from networks.builders.python.functions.function import Function, as_function, combine, load_model
from networks.builders.python.functions.graph import set_seed
from networks.builders.python.functions.leaves import Initializer
from networks.builders.python.functions.mixins.evaluation import install
from networks.builders.python.functions.variables import (
    constant,
    input_variable,
    parameter,
    placeholder,
    sequence_input,
)
from networks.builders.python.operations import ops
from trainers.log.totals import Totals
from trainers.session import learners, schedules
from trainers.session.functions import EpochSummary, SessionBackend, TrainingSummary
from trainers.session.learners import BlockMomentumOptions, block_momentum, data_parallel
from trainers.session.progress import ProgressPrinter, ProgressWriter
from trainers.session.session import CheckpointConfig, CrossValidationConfig, DataUnit, TestConfig, TrainingSession
from trainers.session.tensorboard import TensorBoardProgressWriter
from trainers.session.tester import Tester
from trainers.session.trainer import Trainer
from trainers.session.values import evaluate
from trainers.session.workers import Communicator

__all__ = [
    "AttentionModel",
    "BlockMomentumOptions",
    "CheckpointConfig",
    "Communicator",
    "CrossValidationConfig",
    "DataUnit",
    "EpochSummary",
    "Function",
    "Initializer",
    "ProgressPrinter",
    "ProgressWriter",
    "TensorBoardProgressWriter",
    "TestConfig",
    "Tester",
    "Totals",
    "Trainer",
    "TrainingSession",
    "TrainingSummary",
    "UnfoldFrom",
    "as_function",
    "block_momentum",
    "combine",
    "constant",
    "data_parallel",
    "evaluate",
    "input_variable",
    "layers",
    "learners",
    "load_model",
    "ops",
    "parameter",
    "placeholder",
    "schedules",
    "sequence_input",
    "set_seed",
]

install(SessionBackend())
