"""Training from Python: functions, layers, learners, the trainer, progress writers, sessions.

`docs/training-from-python.md` shows how it is used; `cntkpy.compat.cntk` offers the same under CNTK's names.
"""

from cntkpy.cntk_config.base.extras import need_to_import

need_to_import("train", "cntkpy.training")

from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.decoders import AttentionModel, UnfoldFrom
from cntkpy.networks.builders.python.functions.function import Function, as_function, combine, load_model
from cntkpy.networks.builders.python.functions.graph import set_seed
from cntkpy.networks.builders.python.functions.leaves import Initializer
from cntkpy.networks.builders.python.functions.mixins.evaluation import install
from cntkpy.networks.builders.python.functions.variables import (
    constant,
    input_variable,
    parameter,
    placeholder,
    sequence_input,
)
from cntkpy.networks.builders.python.operations import ops
from cntkpy.trainers.fronts.cntk2 import learners, schedules
from cntkpy.trainers.fronts.cntk2.functions import EpochSummary, SessionBackend, TrainingSummary
from cntkpy.trainers.fronts.cntk2.learners import BlockMomentumOptions, block_momentum, data_parallel
from cntkpy.trainers.fronts.cntk2.progress import ProgressPrinter, ProgressWriter
from cntkpy.trainers.fronts.cntk2.session import (
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    TestConfig,
    TrainingSession,
)
from cntkpy.trainers.fronts.cntk2.tensorboard import TensorBoardProgressWriter
from cntkpy.trainers.fronts.cntk2.tester import Tester
from cntkpy.trainers.fronts.cntk2.trainer import Trainer
from cntkpy.trainers.fronts.cntk2.values import evaluate
from cntkpy.trainers.fronts.cntk2.workers import Communicator
from cntkpy.trainers.log.totals import Totals

__all__ = [
    "AttentionModel", "BlockMomentumOptions", "CheckpointConfig", "Communicator", "CrossValidationConfig", "DataUnit",
    "EpochSummary", "Function", "Initializer", "ProgressPrinter", "ProgressWriter", "TensorBoardProgressWriter",
    "TestConfig", "Tester", "Totals", "Trainer", "TrainingSession", "TrainingSummary", "UnfoldFrom", "as_function",
    "block_momentum", "combine", "constant", "data_parallel", "evaluate", "input_variable", "layers", "learners",
    "load_model", "ops", "parameter", "placeholder", "schedules", "sequence_input", "set_seed",
]  # fmt: skip

install(SessionBackend())
