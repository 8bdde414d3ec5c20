"""Names that a star gives besides those of a module: in CNTK, whatever the module has imported.

CNTK's modules have no `__all__`, and public programs use `np` or `Parameter` after `from cntk.layers import *`.
"""

from __future__ import annotations

import collections
import math
import numbers
import os
import re
import sys
import time
import warnings
from collections.abc import Mapping
from enum import Enum, unique
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

PLAIN = {
    "Enum": Enum, "Number": numbers.Number, "collections": collections, "math": math, "np": np, "numbers": numbers,
    "os": os, "re": re, "sys": sys, "time": time, "unique": unique,
    "warnings": warnings, "wraps": wraps,
}  # fmt: skip
"""Names of other packages."""

SANITIZERS = (
    "sanitize_axis sanitize_dtype_cntk sanitize_dtype_numpy sanitize_dynamic_axes sanitize_input sanitize_shape"
)

OPTIONS = "default_options default_override_or get_default_override is_default_override"

OF_LAYERS = (
    f"{OPTIONS} Axis BlockFunction Constant Function Parameter Record combine cntk_py identity np placeholder splice"
)

NAMES = {
    "": f"{SANITIZERS} DistributedLearner WorkerDescriptor install_samples np",
    "axis": "cntk_py typemap",
    "core": "DATATYPE NDArrayViewOpsMixin cntk_py np typemap use_default_device warnings",
    "debugging.debug": "Function Signature UserFunction cntk_py sys",
    "debugging.profiler": "cntk_py os",
    "default_options": "Record",
    "device": "Enum cntk_py typemap unique",
    "eval.evaluator": "Value cntk_py",
    "initializer": "cntk_py",
    "internal.sanitize": "Axis _as_tuple cntk_py cpu numbers np typemap use_default_device warnings",
    "internal.swig_helper": "wraps",
    "internal.utils": "Signature cntk_py np sanitize_precision",
    "io": "Record Value cntk_py np typemap warnings",
    "layers": f"{OF_LAYERS} Variable alias cntk_py parameter warnings",
    "layers.blocks": f"{OPTIONS} alias cntk cntk_py combine element_times parameter softplus splice",
    "layers.higher_order_layers": f"{OF_LAYERS} warnings",
    "layers.layers": f"{OF_LAYERS} Variable cntk_py glorot_uniform parameter sequence times warnings",
    "layers.models.attention": (
        f"{OF_LAYERS} Dense Label Stabilizer element_select expand_dims glorot_uniform reduce_sum sequence softmax "
        "tanh times"
    ),
    "layers.sequence": f"{OF_LAYERS} ForwardDeclaration Signature alias future_value past_value sequence warnings",
    "layers.typing": "Axis",
    "learners": "C Enum NDArrayView asarray cntk_py math np typemap unique warnings",
    "logging": "cntk_py math np",
    "logging.graph": "cntk_py os sys",
    "logging.progress_print": "TrainingSummaryProgressCallback cntk_py math os sys time",
    "losses": "C cntk_py np sanitize_axis sanitize_input typemap",
    "metrics": "cntk_py sanitize_axis sanitize_input typemap",
    "misc.converter": "C",
    "misc.optimized_rnnstack_converter": "C np",
    "ops": (
        f"{SANITIZERS} Axis CloneMethod Constant Number Parameter Value Variable cntk_py default_override_or "
        "get_data_type get_default_override load_model np numbers sanitize_axis_list "
        "sanitize_multi_axis_reduction_list sanitize_permutation typemap"
    ),
    "ops.functions": (
        "Axis DeviceDescriptor Enum EpochSummary Record TrainingSummary UserDeserializer Value Variable cntk_py "
        "collections cpu get_python_function_arguments map_function_arguments map_if_possible np os re sanitize_batch "
        "sanitize_function sanitize_var_map sanitize_variable_value_dict typemap unique use_default_device "
        "value_to_seq variable_value_to_seq warnings"
    ),
    "ops.sequence": "Axis cntk_py np sanitize_input sanitize_shape typemap",
    "random": "cntk_py np",
    "sequence": "Axis cntk_py np sanitize_input sanitize_shape typemap",
    "train": (
        "Communicator DistributedLearner WorkerDescriptor block_momentum_distributed_learner cntk_py "
        "data_parallel_distributed_learner"
    ),
    "train.distributed": "cntk_py typemap",
    "train.trainer": "UserMinibatchSource Value cntk_py np sanitize_function typemap",
    "train.training_session": "Enum Trainer cntk_py",
    "variables": "Axis Value cntk_py np typemap",
}  # fmt: skip
"""By module, the names; the empty name stands for `cntk` itself, which has those of `STARS` as well."""

STARS = ("core", "device", "initializer", "io", "learners", "losses", "metrics", "ops", "train", "variables")
"""Modules of which `cntk` gives everything by a star."""


PLACES = (
    "ops.functions ops variables axis core device default_options internal layers learners train tensor distributed io "
    "sample_installer logging"
)
"""The modules where names are found; the first one that has a name gives it."""


def add_star_names(package: ModuleType) -> None:
    """Give modules the names of `NAMES` that they do not have, and their stars all of them.

    Args:
        package: `cntkpy.compat.cntk`, whose modules are loaded.

    Raises:
        KeyError: no module has a name.
    """
    modules = {
        name.removeprefix(package.__name__).removeprefix("."): module
        for name, module in list(sys.modules.items())
        if name == package.__name__ or name.startswith(f"{package.__name__}.")
    }
    values = _public_names(package, modules)
    names = {path: text.split() for path, text in NAMES.items()}
    names[""] += [name for path in STARS for name in names[path]]
    for path in names.keys() & modules.keys():
        members = vars(modules[path])
        for name in names[path]:
            members.setdefault(name, values[name])
        members["__all__"] += sorted({*names[path]} - {*members["__all__"]})


def _public_names(package: ModuleType, modules: Mapping[str, ModuleType]) -> dict[str, Any]:
    """Return by name what it stands for in CNTK's modules."""
    values: dict[str, Any] = {}
    for path in PLACES.split():
        module = modules[path]
        for name in module.__all__:
            values.setdefault(name, vars(module)[name])
    named = {"C": package, "cntk": package, "cntk_py": modules["cntk_py"], "sequence": modules["ops.sequence"]}
    return {**values, **PLAIN, **named}


__all__ = ["add_star_names"]
