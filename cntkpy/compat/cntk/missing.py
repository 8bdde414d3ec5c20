"""What CNTK's Python package has and this one does not: an error that says what there is instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

INSTEAD = {
    "Evaluator": "test a function with Trainer.test_minibatch, or with TestConfig of a training session",
    "UserFunction": "combine operators of cntk.ops; functions in Python inside of a network do not exist",
    "UserLearner": "the learners of cntk.learners; rules in Python do not exist",
    "universal": "the learners of cntk.learners; rules in Python do not exist",
    "user_function": "combine operators of cntk.ops; functions in Python inside of a network do not exist",
    "native_user_function": "combine operators of cntk.ops",
    "nce_loss": "ClassBasedCrossEntropyWithSoftmax of NDL or BrainScript",
    "edit_distance_error": "classification_error",
    "ctc": "there is no CTC",
    "forward_backward": "there is no CTC",
    "labels_to_graph": "there is no CTC",
    "optimized_rnnstack": "layers.Recurrence(layers.LSTM(n)), once for each layer",
    "onnx": "z.save(path), a safetensors file",
    "ModelFormat": "z.save(path), a safetensors file",
    "contrib": "the learners, layers and readers of this package",
    "misc": "nothing of it",
    "debugging": "traceNodeNames of a configuration; cntk.logging.ProgressPrinter",
    "random": "initializers (cntk.initializer), Dropout",
    "assign": "set parameter.value",
    "load_function": "load_model",
    "truncated_normal": "normal",
    "bilinear": "glorot_uniform, or an array as init",
    "set_default_unit_gain_value": "unit_gain=... of a learner",
    "default_unit_gain_value": "unit_gain=... of a learner",
    "hash": "hash of Python",
    "crosstalk": "save parameters as numpy arrays: p.value",
}


def no_attribute(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """A module's `__getattr__` for names that it does not have.

    Args:
        module: the module as CNTK calls it.
        names: what it has.
    """
    known = sorted(names)

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, known, 1, 0.75)
        if name in INSTEAD:
            advice = f"use {INSTEAD[name]}"
        elif near:
            advice = f"did you mean '{near[0]}'?"
        else:
            advice = f"there are: {', '.join(one for one in known if not one.startswith('_'))}"
        raise AttributeError(f"{module}.{name} of CNTK does not exist in cntkpy: {advice}")

    return missing
