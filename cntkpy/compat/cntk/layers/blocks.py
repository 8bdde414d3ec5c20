"""cntk.layers.blocks: steps of recurrences, and helpers that libraries on top of CNTK 2 import."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cntkpy.networks.builders.python.functions.function import Function as OwnFunction
from cntkpy.networks.builders.python.functions.leaves import UNKNOWN
from cntkpy.networks.builders.python.layers import GRU, LSTM, RNNStep, RNNUnit, Stabilizer, identity
from cntkpy.networks.builders.python.operations.structured import ForwardDeclaration

from .. import initializer
from ..axis import Axis
from ..initializer import *  # noqa: F403
from ..internal import _as_tuple as _as_tuple
from ..missing import no_attribute
from ..ops import alias, exp, future_value, log, past_value, placeholder, sigmoid, slice, tanh, times
from ..ops.functions import BlockFunction, Function
from ..variables import Constant, Parameter, Record

_INFERRED = (UNKNOWN,)
"""The shape of a parameter of one axis that follows from its use."""


def UntestedBranchError(name: str) -> None:
    """Refuse an option that a layer of CNTK was never tested with.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"{name} was never tested")


def _inject_name(f: Any, name: str) -> Any:  # pyright: ignore[reportUnusedFunction]
    """Return a function or a layer under a name; without one as it is."""
    if not name:
        return f
    if isinstance(f, OwnFunction) and f.root.name not in ("", name):
        return alias(f, name)
    f.name = name
    return f


def _initializer_for(init: Any, rank_params: Any = None) -> Any:  # pyright: ignore[reportUnusedFunction]
    """Return an initializer, with these ranks if it has none; a number or an array unchanged.

    Args:
        init: an initializer, a number or an array.
        rank_params: `output_rank` and `filter_rank`, as a dictionary.
    """
    if init is None:
        raise ValueError("init parameter cannot be None")
    start = dict(rank_params or {})
    return initializer.initializer_with_rank(init, **start) if start and hasattr(init, "with_ranks") else init


def _get_initial_state_or_default(initial_state: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
    """Return the state before the first step: as given, a number as a constant; 0 where there is none."""
    if initial_state is None:
        return Constant(0)
    return Constant(initial_state) if isinstance(initial_state, int | float | np.generic) else initial_state


__all__: list[str] = [
    "GRU", "LSTM", "Axis", "BlockFunction", "Constant", "ForwardDeclaration", "Function", "Parameter", "RNNStep",
    "RNNUnit", "Record", "Stabilizer", "UntestedBranchError", "exp", "future_value", "identity",
    "log", "np", "past_value", "placeholder",
    "sigmoid", "slice", "tanh", "times", "warnings",
]  # fmt: skip
"""In CNTK a star gives all that a module has imported, and programs use it."""

__all__ += initializer.__all__

__getattr__ = no_attribute("cntk.layers.blocks", __all__)
