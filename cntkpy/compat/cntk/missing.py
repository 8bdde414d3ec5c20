"""Names of CNTK's Python package that are missing here: the error says what to use instead."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Iterable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .betas import PACKAGE, beta_spec, older_member, warn_beta

INSTEAD = {
    "native_user_function": "user_function, a function in Python",
    "ctc": "forward_backward(labels_to_graph(labels), features, blankTokenId)",
    "onnx": "z.save(path, format=C.ModelFormat.ONNX)",
    "SequentialMaxPooling": "past_value and future_value of the input, and element_max",
    "TraceLevel": "cntk.logging.TraceLevel",
    "lattice_sequence_with_softmax": (
        "there are no lattices here: cross_entropy_with_softmax trains on the labels of frames, forward_backward (CTC) "
        "on those of sentences"
    ),
    "crosstalk": "numpy arrays: docs/python-functions.md, 'The same values in PyTorch'",
    "crosstalkcaffe": "ONNX: convert the Caffe model to ONNX, then load_model(path, format=ModelFormat.ONNX)",
    "quantization": (
        "there are no convolutions of bits here, which are native code of CNTK: "
        "cntk.contrib.netopt.factorization makes Dense layers smaller"
    ),
    **dict.fromkeys(
        ("policy_gradient", "preprocessing", "qlearning", "random_agent", "replay_memory", "tabular_qlearning"),
        "agent.shared for networks and losses, and a loop with train_minibatch: docs/training-from-python.md",
    ),
    "env": "the environments of the package gymnasium",
    "mpi_communicator": "cntk.distributed.mpi_communicator",
    "mat_mul": "times",
    "reshape_like": "reshape(x, like.shape)",
    "ParameterTensor": "parameter",
    "load_function": "load_model",
    "forward_declaration": "layers.ForwardDeclaration",
    "erf": "scipy.special.erf on what eval gives",
    "group_convolution": "convolution(..., groups=n)",
    "custom_proxy_op": "user_function, a function in Python",
    "set_default_override": "default_options_for",
    "register_native_user_function": "user_function, a function in Python",
    "layer_normalization": "layers.LayerNormalization",
    "cumsum": "layers.Recurrence(plus) along a sequence",
    "reverse": "Recurrence(..., go_backwards=True)",
    "set_default_device": "device.set_default_device, or try_set_default_device",
    "cntk_to_tensorflow": "numpy arrays: p.value",
    "hash": "hash of Python",
    "BiRecurrence": "(Recurrence(LSTM(n)), Recurrence(LSTM(n), go_backwards=True)) and splice in a Sequential",
}


class _Advice(MetaPathFinder):
    """Is asked last for modules of this package, so for those that do not exist: the advice of their `__getattr__`.

    `from a import b` looks for a module `a.b` where `a` has no attribute `b`, and hides what `a.__getattr__` said.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of the betas of CNTK 2.0; else None.

        Raises:
            ModuleNotFoundError: the module of that name would belong to this package.
        """
        spec = beta_spec(fullname, no_attribute)
        if spec is not None:
            return spec
        parent, _, name = fullname.rpartition(".")
        if not f"{parent}.".startswith(f"{PACKAGE}.") or name.startswith("__") or parent not in sys.modules:
            return None
        try:
            member = getattr(sys.modules[parent], name)
        except AttributeError as error:
            # without `name`: else `from a import b` takes it for an answer, and says its own words
            raise ModuleNotFoundError(str(error)) from None
        public = parent.removeprefix(f"{PACKAGE.rpartition('.')[0]}.")
        is_module = isinstance(member, ModuleType)
        instead = f"import {member.__name__.replace(PACKAGE, 'cntk')}" if is_module else f"from {public} import {name}"
        raise ModuleNotFoundError(f"{public}.{name} is not a module of CNTK 2.7: write `{instead}`")


def advise_imports() -> None:
    """Let `from cntkpy.compat.cntk.learners import name` of a missing name say what there is instead.

    Modules get an empty `__path__`: only below packages Python looks for modules.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}.") and not hasattr(module, "__path__"):
            module.__path__ = []
    if not any(isinstance(finder, _Advice) for finder in sys.meta_path):
        sys.meta_path.append(_Advice())


BETA_FILES = ("persist", "utils")
"""Modules of betas that have functions of their own here."""

LISTED = 60
"""Most names that a message lists."""


def no_attribute(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` for names that it does not have.

    Args:
        module: the module as CNTK calls it.
        names: what it has.
    """
    known = sorted(names)

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if module == "cntk" and (name in BETA_FILES or beta_spec(f"{PACKAGE}.{name}", no_attribute) is not None):
            return importlib.import_module(f"{PACKAGE}.{name}")
        if (older := older_member(module, name)) is not None:
            return older
        by_case = [known_name for known_name in known if known_name.lower() == name.lower()]
        near = by_case or difflib.get_close_matches(name, known, 1, 0.75)
        if name in INSTEAD:
            advice = INSTEAD[name] if INSTEAD[name].startswith("there ") else f"use {INSTEAD[name]}"
        elif near:
            advice = f"did you mean '{near[0]}'?"
        elif not known:
            advice = f"{module} has no names here"
        elif len(known) > LISTED:
            advice = f"dir({module.replace('cntk', 'cntkpy.compat.cntk', 1)}) lists what there is"
        else:
            advice = f"there are: {', '.join(known_name for known_name in known if not known_name.startswith('_'))}"
        raise AttributeError(f"{module}.{name} of CNTK does not exist in cntkpy: {advice}")

    return missing


__all__ = ["advise_imports", "no_attribute", "warn_beta"]
