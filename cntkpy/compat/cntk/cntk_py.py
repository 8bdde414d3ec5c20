"""cntk.cntk_py: what programs use of CNTK's native module, which is `_cntk_py` as well.

Switches of CNTK's engine that change nothing here say why.
"""

from __future__ import annotations

import warnings
from typing import Any

from cntkpy.networks.arrays.lazy import DETERMINISTIC, ask_for_determinism
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.graph import SEEDS, set_seed
from cntkpy.readers import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, INFINITELY_REPEAT, MinibatchSource
from cntkpy.trainers.fronts.cntk2.learners import Learner
from cntkpy.trainers.fronts.cntk2.timing import set_node_timing
from cntkpy.trainers.fronts.cntk2.user.learners import UniversalLearner

from . import losses, metrics, native, ops
from .axis import Axis
from .device import DeviceKind, use_default_device
from .logging import ProgressWriter, get_trace_level, set_computation_network_trace_level, set_trace_level
from .missing import no_attribute
from .native import *  # noqa: F403
from .ops import sequence
from .variables import Constant, Parameter, Variable


def set_fixed_random_seed(value: int) -> None:
    """Let the next random parameter have this seed, the one after it the next number."""
    set_seed(value)


def reset_random_seed(value: int = 1) -> None:
    """The same."""
    set_seed(value)


def get_random_seed() -> int:
    """Return the seed that the next random parameter has, if its initializer names none."""
    return SEEDS.count + 1


def is_random_seed_fixed() -> bool:
    """Return True: without `set_fixed_random_seed` seeds are 1, 2, 3, ..."""
    return True


def force_deterministic_algorithms() -> None:
    """The same results in every run, on GPUs as well; on CPUs they are anyway.

    Warns:
        RuntimeWarning: it comes too late: functions were computed on a GPU before.
    """
    _forced[:] = [True]
    if not ask_for_determinism() and use_default_device().type() == DeviceKind.GPU:
        message = f"force_deterministic_algorithms comes before the first eval, or set XLA_FLAGS={DETERMINISTIC}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def should_force_deterministic_algorithms() -> bool:
    """Return whether `force_deterministic_algorithms` was called."""
    return bool(_forced)


_forced: list[bool] = []


def always_allow_setting_default_device() -> None:
    """Nothing: `try_set_default_device` may be called at any time."""


def enable_cpueval_optimization() -> None:
    """Nothing: evaluation on CPUs is compiled in one way."""


def disable_cpueval_optimization() -> None:
    """Nothing: evaluation on CPUs is compiled in one way."""


def enable_forward_values_sharing() -> None:
    """Nothing: XLA decides which values share memory."""


def disable_forward_values_sharing() -> None:
    """Nothing: XLA decides which values share memory."""


def enable_gradient_accumulation_optimization() -> None:
    """Nothing: XLA decides how gradients are summed up."""


def disable_gradient_accumulation_optimization() -> None:
    """Nothing: XLA decides how gradients are summed up."""


def enable_hyper_memory_compress() -> None:
    """Nothing: XLA decides which values are kept for gradients."""


def disable_hyper_memory_compress() -> None:
    """Nothing: XLA decides which values are kept for gradients."""


def use_sparse_gradient_aggregation_in_data_parallel_sgd(enable: bool) -> None:
    """Nothing: gradients of sparse inputs are exchanged in the form that is smaller."""


def set_computation_network_track_gap_nans(enable: bool) -> None:
    """Nothing: the gaps of short sequences never enter a result."""


def set_checked_mode(enable: bool) -> None:
    """Nothing: shapes are always checked, and a criterion that is not a number always names the node."""


class MinibatchSourceConfig:
    """The arguments of a `MinibatchSource` as attributes; `create_composite_minibatch_source` makes the source.

    Args:
        deserializers: the deserializers.
        randomize: whether sequences are shuffled.

    Attributes:
        deserializers: see above.
        max_samples: samples after which the source ends.
        max_sweeps: sweeps after which it ends.
        randomization_window_in_chunks: the window of the shuffling in chunks; 0: none.
        randomization_window_in_samples: the same in samples.
        randomization_seed: added to the number of the sweep.
        trace_level: the amount of messages.
        is_multithreaded: whether it reads ahead on all cores; None: for pictures.
        is_frame_mode_enabled: whether every sequence is one sample.
        truncation_length: steps of pieces for truncated BPTT; 0: sequences are whole.
    """

    def __init__(self, deserializers: Any, randomize: bool = True) -> None:
        self.deserializers = deserializers
        self.max_samples = self.max_sweeps = INFINITELY_REPEAT
        self.randomization_window_in_chunks = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS if randomize else 0
        self.randomization_window_in_samples = self.randomization_seed = self.truncation_length = 0
        self.trace_level = get_trace_level()
        self.is_multithreaded: bool | None = None
        self.is_frame_mode_enabled = False


def create_composite_minibatch_source(configuration: MinibatchSourceConfig) -> MinibatchSource:
    """Return the source of a configuration."""
    return MinibatchSource(
        configuration.deserializers,
        configuration.max_samples,
        configuration.max_sweeps,
        configuration.randomization_window_in_chunks,
        configuration.randomization_window_in_samples,
        configuration.randomization_seed,
        configuration.trace_level,
        configuration.is_multithreaded,
        configuration.is_frame_mode_enabled,
        configuration.truncation_length,
        randomize=bool(configuration.randomization_window_in_chunks or configuration.randomization_window_in_samples),
    )


def universal_learner(parameters: Any, gradients: Any, update_func: Function) -> UniversalLearner:
    """Return a learner whose update rule is a function of a network; see `cntk.learners.universal`.

    Args:
        parameters: the trained parameters.
        gradients: for each of them, a parameter whose value becomes the gradient.
        update_func: its `assign`s change the parameters.
    """
    return UniversalLearner(lambda trained, values: update_func, parameters, gradients)


def enable_node_timing() -> None:
    """See `cntk.debugging.set_node_timing`."""
    set_node_timing(True)


def disable_node_timing() -> None:
    """See `cntk.debugging.set_node_timing`."""
    set_node_timing(False)


__all__ = [
    "Axis", "Constant", "Function", "Learner", "MinibatchSource", "MinibatchSourceConfig", "Parameter",
    "ProgressWriter", "Variable", "always_allow_setting_default_device", "create_composite_minibatch_source",
    "disable_cpueval_optimization", "disable_forward_values_sharing", "disable_gradient_accumulation_optimization",
    "disable_hyper_memory_compress", "disable_node_timing", "enable_cpueval_optimization",
    "enable_forward_values_sharing", "enable_gradient_accumulation_optimization", "enable_hyper_memory_compress",
    "enable_node_timing", "force_deterministic_algorithms", "get_random_seed", "get_trace_level",
    "is_random_seed_fixed", "reset_random_seed", "set_checked_mode", "set_computation_network_trace_level",
    "set_computation_network_track_gap_nans", "set_fixed_random_seed", "set_trace_level",
    "should_force_deterministic_algorithms", "universal_learner",
    "use_sparse_gradient_aggregation_in_data_parallel_sgd",
]  # fmt: skip
__all__ += native.__all__

_missing = no_attribute("cntk.cntk_py", __all__)


def __getattr__(name: str) -> Any:
    """Operators, losses and metrics; `sequence_first` is `sequence.first`."""
    of_sequences = name.removeprefix("sequence_")
    if name != of_sequences and of_sequences in sequence.__all__:
        return getattr(sequence, of_sequences)
    for module in (ops, losses, metrics):
        if name in module.__all__:
            return getattr(module, name)
    return _missing(name)
