"""CNTK's Python package as far as cntkpy has it: `import cntkpy.compat.cntk as C`.

A thin layer over `cntkpy.training` and `readers`: the same objects under CNTK's names, with CNTK's defaults. Names that
are missing raise an AttributeError that says what there is instead.
"""

import sys

from cntkpy.training import load_model

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
    internal,
    io,
    layers,
    learners,
    logging,
    losses,
    metrics,
    misc,
    ops,
    random,
    sample_installer,
    sequence,
    tensor,
    tests,
    train,
    types,
    variables,
)
from .axis import Axis
from .clone import CloneMethod, ModelFormat
from .core import *  # noqa: F403
from .default_options import (  # the function default_options hides the module, as in CNTK
    default_options,
    default_options_for,
    default_override_or,
    get_default_override,
    get_global_option,
    is_default_override,
    set_global_option,
)
from .device import *  # noqa: F403
from .distributed import Communicator, block_momentum_distributed_learner, data_parallel_distributed_learner
from .initializer import *  # noqa: F403
from .internal import typemap
from .io import *  # noqa: F403
from .learners import *  # noqa: F403
from .logging import *  # noqa: F403
from .losses import *  # noqa: F403
from .metrics import *  # noqa: F403
from .missing import advise_imports, no_attribute
from .ops import *  # noqa: F403
from .ops.functions import BlockFunction, Function, Signature
from .star_names import add_star_names
from .train import *  # noqa: F403
from .variables import *  # noqa: F403

__version__ = "2.7"
"""The version of CNTK whose names these are."""

input = ops.input_variable

InferredDimension = cntk_py.InferredDimension
FreeDimension = cntk_py.FreeDimension


__all__: list[str] = [
    "Axis", "BlockFunction", "CloneMethod", "Communicator", "FreeDimension", "Function", "InferredDimension",
    "ModelFormat", "Signature", "axis", "block_momentum_distributed_learner", "cntk_py", "contrib", "core",
    "data_parallel_distributed_learner", "debugging", "default_options", "default_options_for", "default_override_or",
    "device", "distributed", "eval", "get_default_override", "get_global_option", "initializer", "input", "internal",
    "io", "is_default_override", "layers", "learners", "load_model", "logging", "losses", "metrics", "misc", "ops",
    "random", "sample_installer", "sequence", "set_global_option", "tensor", "tests", "train", "typemap", "types",
    "variables",
]  # fmt: skip
__all__ += core.__all__
__all__ += device.__all__
__all__ += variables.__all__
__all__ += initializer.__all__
__all__ += io.__all__
__all__ += learners.__all__
__all__ += logging.__all__
__all__ += losses.__all__
__all__ += metrics.__all__
__all__ += ops.__all__
__all__ += train.__all__

__getattr__ = no_attribute("cntk", __all__)

sys.modules[f"{__name__}.training_session"] = sys.modules[f"{__name__}.train.training_session"]
"""A module of the betas that the function must go on hiding."""

add_star_names(sys.modules[__name__])
advise_imports()
