"""CNTK's Python package as far as cntkpy has it: `import cntkpy.compat.cntk as C`.

A thin layer over `cntkpy.training` and `readers`: the same objects under CNTK's names, with CNTK's defaults. Names that
are missing raise an AttributeError that says what there is instead.
"""

from typing import Any

from cntkpy.training import load_model
from readers import Value

from . import (
    axis,
    cntk_py,
    contrib,
    core,
    debugging,
    device,
    distributed,
    eval,
    initializer,
    io,
    layers,
    learners,
    logging,
    losses,
    metrics,
    ops,
    random,
    sequence,
    tests,
    train,
    variables,
)
from .axis import Axis
from .clone import CloneMethod, ModelFormat
from .core import NDArrayView, asarray, asvalue
from .device import DeviceDescriptor, DeviceKind, all_devices, cpu, gpu, try_set_default_device, use_default_device
from .distributed import Communicator, block_momentum_distributed_learner, data_parallel_distributed_learner
from .initializer import *  # noqa: F403
from .io import *  # noqa: F403
from .layers import default_options, default_options_for
from .learners import *  # noqa: F403
from .logging import *  # noqa: F403
from .losses import *  # noqa: F403
from .metrics import *  # noqa: F403
from .missing import advise_imports, no_attribute
from .ops import *  # noqa: F403
from .ops.functions import BlockFunction, Function, Signature
from .train import *  # noqa: F403
from .variables import Constant, Parameter, Variable

__version__ = "2.7"
"""The version of CNTK whose names these are."""

input = ops.input_variable

InferredDimension = -1
"""An axis of a parameter whose size follows from its use; 0 is the same."""

FreeDimension = -3
"""An axis of an input whose size each minibatch says."""


def default_override_or(value: Any) -> Any:
    """The value: defaults of layers are those of `layers.default_options`."""
    return value


__all__ = [
    "Axis", "BlockFunction", "CloneMethod", "Communicator", "Constant", "DeviceDescriptor", "DeviceKind",
    "FreeDimension", "Function", "InferredDimension", "ModelFormat", "NDArrayView", "Parameter", "Signature",
    "Value", "Variable", "all_devices", "asarray", "asvalue", "axis", "block_momentum_distributed_learner",
    "cntk_py", "contrib", "core", "cpu", "data_parallel_distributed_learner", "debugging", "default_options",
    "default_options_for", "default_override_or", "device", "distributed", "eval", "gpu", "initializer", "input",
    "io", "layers", "learners", "load_model", "logging", "losses", "metrics", "ops", "random", "sequence", "tests",
    "train", "try_set_default_device", "use_default_device", "variables",
]  # fmt: skip
__all__ += initializer.__all__
__all__ += io.__all__
__all__ += learners.__all__
__all__ += logging.__all__
__all__ += losses.__all__
__all__ += metrics.__all__
__all__ += ops.__all__
__all__ += train.__all__

__getattr__ = no_attribute("cntk", __all__)

advise_imports()
