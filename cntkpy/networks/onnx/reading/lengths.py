"""Inputs with the lengths of sequences, which a network knows of its data: a model is read as if it had none."""

from __future__ import annotations

from dataclasses import replace

from cntkpy.networks.nodes.onnx_support.model import Model, Operator
from cntkpy.networks.nodes.recurrence.onnx_units import LENGTHS, UNITS

PASSED_ON = ("Cast", "Identity")


def without_lengths(model: Model) -> Model:
    """A model without inputs that are the lengths of sequences of recurrent operators and nothing else."""
    candidates = [{one.name} for one in model.inputs if one.integer and len(one.sizes or ()) == 1]
    for operator in model.operators:
        for own in candidates:
            if operator.kind in PASSED_ON and own.intersection(operator.inputs):
                own.update(operator.outputs)
    gone: set[str] = set()
    for own in candidates:
        users = [operator for operator in model.operators if own.intersection(operator.inputs)]
        only = all(_takes(operator, own) or operator.kind in PASSED_ON for operator in users)
        if only and any(_takes(operator, own) for operator in users) and not own.intersection(model.outputs):
            gone.update(own)
    if not gone:
        return model
    operators = [_without(one, gone) for one in model.operators if not gone.intersection(one.outputs)]
    return replace(model, inputs=[one for one in model.inputs if one.name not in gone], operators=operators)


def _takes(operator: Operator, names: set[str]) -> bool:
    """Whether an operator has one of the values as the lengths of sequences, and as no other input."""
    at = [index for index, name in enumerate(operator.inputs) if name in names]
    return operator.kind in UNITS and at == [LENGTHS]


def _without(operator: Operator, gone: set[str]) -> Operator:
    if not gone.intersection(operator.inputs):
        return operator
    return replace(operator, inputs=["" if name in gone else name for name in operator.inputs])
