# ruff: noqa: F401
"""CNTK's Python package as far as cntkpy has it: `import cntkpy.compat.cntk as C`.

A thin layer over `cntkpy.training` and `readers`: the same objects under CNTK's names, with CNTK's defaults. Names that
are missing raise an AttributeError that says what there is instead.
"""

from networks.builders.python.function import Function, load_model
from networks.builders.python.function import constant as Constant
from networks.builders.python.function import parameter as Parameter
from readers import Value

from . import (
    axis,
    cntk_py,
    device,
    distributed,
    initializer,
    io,
    layers,
    learners,
    logging,
    losses,
    metrics,
    ops,
    sequence,
    tests,
    train,
)
from .axis import Axis
from .clone import CloneMethod
from .device import DeviceDescriptor
from .distributed import Communicator, block_momentum_distributed_learner, data_parallel_distributed_learner
from .initializer import *  # noqa: F403
from .io import *  # noqa: F403
from .learners import *  # noqa: F403
from .logging import *  # noqa: F403
from .losses import *  # noqa: F403
from .metrics import *  # noqa: F403
from .missing import no_attribute
from .ops import *  # noqa: F403
from .train import *  # noqa: F403

__version__ = "2.7"
"""The version of CNTK whose names these are."""

input = ops.input_variable

_OWN = [
    "Axis", "CloneMethod", "Communicator", "Constant", "DeviceDescriptor", "Function", "Parameter", "Value",
    "axis", "block_momentum_distributed_learner", "cntk_py", "data_parallel_distributed_learner", "device",
    "distributed", "initializer", "input", "io", "layers", "learners", "load_model", "logging", "losses", "metrics",
    "ops", "sequence", "tests", "train",
]  # fmt: skip

__all__ = [
    *_OWN, *initializer.__all__, *io.__all__, *learners.__all__, *logging.__all__, *losses.__all__, *metrics.__all__,
    *ops.__all__, *train.__all__,
]  # fmt: skip

__getattr__ = no_attribute("cntk", __all__)
