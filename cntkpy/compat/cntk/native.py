"""Names of CNTK's native module in its own spelling: numbers of kinds, shapes, learners, initializers.

`cntk_py` has them; programs use them beside the names of the Python package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from cntkpy.networks.builders.python import initializers
from cntkpy.networks.builders.python.functions.function import load_model

from . import learners
from .clone import CloneMethod, ModelFormat
from .core import NDArrayView, Value
from .device import DeviceDescriptor, DeviceKind
from .distributed import (
    Communicator,
    DistributedLearner,
    WorkerDescriptor,
    block_momentum_distributed_learner,
    data_parallel_distributed_learner,
    mpi_communicator,
)
from .io import (
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    MinibatchData,
    StreamConfiguration,
    StreamInformation,
    UserMinibatchSource,
)
from .logging import TraceLevel
from .ops import AVG_POOLING, CONSTANT_PAD, MAX_POOLING, REFLECT_PAD, SYMMETRIC_PAD
from .train import CheckpointConfig, CrossValidationConfig, DataUnit, Evaluator, TestConfig, Trainer, TrainingSession

DataType_Unknown, DataType_Float, DataType_Double, DataType_UChar, DataType_Float16, DataType_Int8, DataType_Int16 = (
    range(7)
)
"""CNTK's numbers of types of elements."""

StorageFormat_Dense, StorageFormat_SparseCSC, StorageFormat_SparseBlockCol = range(3)
"""CNTK's numbers of forms of storage."""

VariableKind_Input, VariableKind_Output, VariableKind_Parameter, VariableKind_Constant, VariableKind_Placeholder = (
    range(5)
)
"""CNTK's numbers of kinds of variables."""

DeviceKind_CPU, DeviceKind_GPU = DeviceKind.CPU, DeviceKind.GPU
ModelFormat_CNTKv2, ModelFormat_ONNX = ModelFormat.CNTKv2, ModelFormat.ONNX
ParameterCloningMethod_Clone, ParameterCloningMethod_Freeze = CloneMethod.clone, CloneMethod.freeze
ParameterCloningMethod_Share = CloneMethod.share
TraceLevel_Error, TraceLevel_Warning, TraceLevel_Info = TraceLevel.Error, TraceLevel.Warning, TraceLevel.Info
DataUnit_Sample, DataUnit_Minibatch, DataUnit_Sweep = DataUnit.sample, DataUnit.minibatch, DataUnit.sweep
PoolingType_Max, PoolingType_Average = MAX_POOLING, AVG_POOLING
PaddingMode_CONSTANTPAD, PaddingMode_REFLECTPAD, PaddingMode_SYMMETRICPAD = CONSTANT_PAD, REFLECT_PAD, SYMMETRIC_PAD

InferredDimension = -1
"""An axis of a parameter whose size follows from its use; 0 is the same."""

FreeDimension = -3
"""An axis of an input whose size each minibatch says."""

DefaultParamInitScale = 1.0
"""The scale of initializers that name none."""

SentinelValueForInferParamInitRank: int | None = None
"""A rank of an initializer that is not given."""

DefaultParamInitOutputRank, DefaultParamInitFilterRank = 1, 0
"""The ranks of initializers that name none."""

SentinelValueForAutoSelectRandomSeed: int | None = None
"""A seed that is not given."""

sentinel_value_for_auto_select_random_seed = SentinelValueForAutoSelectRandomSeed
infinitely_repeat, full_data_sweep = INFINITELY_REPEAT, FULL_DATA_SWEEP
DistributedCommunicator, DistributedWorkerDescriptor = Communicator, WorkerDescriptor
SwigMinibatchSource = UserMinibatchSource


class Dictionary(dict[str, Any]):
    """A dictionary, as CNTK wraps it."""


class DictionaryValue:
    """A value of a `Dictionary`, as CNTK wraps it.

    Args:
        value: The value.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        """Return the value."""
        return self._value


class NDShape(tuple[int, ...]):
    """A shape: a tuple of sizes with CNTK's methods.

    Args:
        dimensions: The sizes.
    """

    def __new__(cls, dimensions: Iterable[int] = ()) -> Self:
        """Make it of whole numbers."""
        return super().__new__(cls, map(int, dimensions))

    def dimensions(self) -> tuple[int, ...]:
        """Return the sizes."""
        return tuple(self)

    def rank(self) -> int:
        """Return the number of axes."""
        return len(self)

    def total_size(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def sub_shape(self, begin_axis: int = 0, end_axis: int | None = None) -> NDShape:
        """Return the shape of some of the axes."""
        return NDShape(self[begin_axis:end_axis])

    def append_shape(self, shape: Iterable[int]) -> NDShape:
        """Return this shape with the axes of another one behind it."""
        return NDShape((*self, *shape))

    def has_inferred_dimension(self) -> bool:
        """Return whether a size is to be inferred."""
        return InferredDimension in self

    def has_free_dimension(self) -> bool:
        """Return whether the data say a size."""
        return FreeDimension in self


@dataclass
class AdditionalLearningOptions:
    """Options that all learners have; see `cntk.learners.sgd`."""

    l1_regularization_weight: float = 0.0
    l2_regularization_weight: float = 0.0
    gaussian_noise_injection_std_dev: float = 0.0
    gradient_clipping_threshold_per_sample: float = math.inf
    gradient_clipping_with_truncation: bool = True
    dict_options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of a learner, by the names that `Learner` has for them."""


def sgd_learner(parameters: Any, schedule: Any, additional_options: AdditionalLearningOptions | None = None) -> Any:
    """Return the learner of `cntk.learners.sgd`."""
    return learners.sgd(parameters, schedule, **_options(additional_options))


def momentum_sgd_learner(
    parameters: Any,
    schedule: Any,
    momentum: Any,
    unit_gain: bool | None = None,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.momentum_sgd`."""
    return learners.momentum_sgd(parameters, schedule, momentum, unit_gain, **_options(additional_options))


def nesterov_learner(
    parameters: Any,
    schedule: Any,
    momentum: Any,
    unit_gain: bool | None = None,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.nesterov`."""
    return learners.nesterov(parameters, schedule, momentum, unit_gain, **_options(additional_options))


def ada_grad_learner(
    parameters: Any,
    schedule: Any,
    need_ave_multiplier: bool = True,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.adagrad`."""
    return learners.adagrad(parameters, schedule, need_ave_multiplier, **_options(additional_options))


def fsada_grad_learner(
    parameters: Any,
    schedule: Any,
    momentum: Any,
    unit_gain: bool | None = None,
    variance_momentum: Any = None,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.fsadagrad`."""
    options = _options(additional_options)
    if variance_momentum is not None:
        options["variance_momentum"] = variance_momentum
    return learners.fsadagrad(parameters, schedule, momentum, unit_gain, **options)


def adam_learner(
    parameters: Any,
    schedule: Any,
    momentum: Any,
    unit_gain: bool | None = None,
    variance_momentum: Any = None,
    epsilon: float = 1e-8,
    adamax: bool = False,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.adam`."""
    options = _options(additional_options)
    options.update(epsilon=epsilon, adamax=adamax)
    if variance_momentum is not None:
        options["variance_momentum"] = variance_momentum
    return learners.adam(parameters, schedule, momentum, unit_gain, **options)


def rmsprop_learner(
    parameters: Any,
    schedule: Any,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.rmsprop`."""
    options = _options(additional_options)
    return learners.rmsprop(parameters, schedule, gamma, inc, dec, max, min, need_ave_multiplier, **options)


def ada_delta_learner(
    parameters: Any,
    schedule: Any,
    rho: float = 0.95,
    epsilon: float = 1e-8,
    additional_options: AdditionalLearningOptions | None = None,
) -> Any:
    """Return the learner of `cntk.learners.adadelta`."""
    return learners.adadelta(parameters, schedule, rho, epsilon, **_options(additional_options))


def _options(options: AdditionalLearningOptions | None) -> dict[str, Any]:
    if options is None:
        return {}
    named = dict(vars(options))
    return named | named.pop("dict_options")


SizeTWrapper = int
"""A whole number, as CNTK wraps it in options."""


def constant_initializer(value: float = 0.0) -> float:
    """Return the initializer of a constant value: the number itself."""
    return float(value)


uniform_initializer = initializers.uniform
normal_initializer = initializers.normal
xavier_initializer = initializers.xavier
glorot_uniform_initializer, glorot_normal_initializer = initializers.glorot_uniform, initializers.glorot_normal
he_uniform_initializer, he_normal_initializer = initializers.he_uniform, initializers.he_normal
truncated_normal_initializer, bilinear_initializer = initializers.truncated_normal, initializers.bilinear
random_initializer_with_rank = initializers.initializer_with_rank
mpicommunicator = mpi_communicator


def create_trainer(
    model: Any,
    loss_function: Any,
    evaluation_function: Any = None,
    parameter_learners: Any = None,
    progress_writers: Any = None,
) -> Trainer:
    """Return a trainer of a loss and a metric; None: there is no metric."""
    criterion = loss_function if evaluation_function is None else (loss_function, evaluation_function)
    return Trainer(model, criterion, parameter_learners, progress_writers)


def create_evaluator(evaluation_function: Any, progress_writers: Any = None) -> Evaluator:
    """Return an evaluator of a metric."""
    return Evaluator(evaluation_function, progress_writers)


def create_data_parallel_distributed_learner(
    communicator: Communicator, learner: Any, distributed_after: int = 0, use_async_buffered_update: bool = False
) -> DistributedLearner:
    """Return the learner of `data_parallel_distributed_learner`."""
    del communicator
    return data_parallel_distributed_learner(
        learner, distributed_after, use_async_buffered_parameter_update=use_async_buffered_update
    )


def get_max_num_cpu_threads() -> int:
    """Return the number of processors that computations use."""
    return _threads[0]


def set_max_num_cpu_threads(num_cpu_threads: int) -> None:
    """Keep a number for `get_max_num_cpu_threads`; XLA decides how many processors a computation uses."""
    _threads[0] = int(num_cpu_threads)


def _processors() -> int:
    import os

    return os.cpu_count() or 1


_threads = [_processors()]


def set_gpumemory_allocation_trace_level(level: int) -> None:
    """Nothing: JAX reserves the memory of GPUs."""


def are_equal(left: Any, right: Any) -> bool:
    """Return whether two values or views have the same shape and elements."""
    return np.array_equal(np.asarray(left.asarray()), np.asarray(right.asarray()))


__all__ = [
    "AdditionalLearningOptions", "CheckpointConfig", "Communicator", "CrossValidationConfig", "DataType_Double",
    "DataType_Float", "DataType_Float16", "DataType_Int8", "DataType_Int16", "DataType_UChar", "DataType_Unknown",
    "DataUnit_Minibatch", "DataUnit_Sample", "DataUnit_Sweep", "DefaultParamInitFilterRank",
    "DefaultParamInitOutputRank", "DefaultParamInitScale", "DeviceDescriptor", "DeviceKind", "DeviceKind_CPU",
    "DeviceKind_GPU", "Dictionary", "DictionaryValue", "DistributedCommunicator", "DistributedLearner",
    "DistributedWorkerDescriptor", "Evaluator", "FreeDimension", "InferredDimension", "MinibatchData",
    "ModelFormat_CNTKv2", "ModelFormat_ONNX", "NDArrayView", "NDShape", "PaddingMode_CONSTANTPAD",
    "PaddingMode_REFLECTPAD", "PaddingMode_SYMMETRICPAD", "ParameterCloningMethod_Clone",
    "ParameterCloningMethod_Freeze", "ParameterCloningMethod_Share", "PoolingType_Average", "PoolingType_Max",
    "SentinelValueForAutoSelectRandomSeed", "SentinelValueForInferParamInitRank", "SizeTWrapper", "StorageFormat_Dense",
    "StorageFormat_SparseBlockCol", "StorageFormat_SparseCSC", "StreamConfiguration", "StreamInformation",
    "SwigMinibatchSource", "TestConfig", "TraceLevel_Error", "TraceLevel_Info", "TraceLevel_Warning", "Trainer",
    "TrainingSession", "Value", "VariableKind_Constant", "VariableKind_Input", "VariableKind_Output",
    "VariableKind_Parameter", "VariableKind_Placeholder", "ada_delta_learner", "ada_grad_learner", "adam_learner",
    "are_equal", "bilinear_initializer", "block_momentum_distributed_learner", "constant_initializer",
    "create_data_parallel_distributed_learner", "create_evaluator", "create_trainer",
    "data_parallel_distributed_learner", "fsada_grad_learner", "full_data_sweep", "get_max_num_cpu_threads",
    "glorot_normal_initializer", "glorot_uniform_initializer", "he_normal_initializer", "he_uniform_initializer",
    "infinitely_repeat", "load_model", "momentum_sgd_learner", "mpi_communicator", "mpicommunicator",
    "nesterov_learner", "normal_initializer", "random_initializer_with_rank", "rmsprop_learner",
    "sentinel_value_for_auto_select_random_seed", "set_gpumemory_allocation_trace_level", "set_max_num_cpu_threads",
    "sgd_learner", "truncated_normal_initializer", "uniform_initializer", "xavier_initializer",
]  # fmt: skip
