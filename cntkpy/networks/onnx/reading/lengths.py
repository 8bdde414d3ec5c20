"""Inputs with the lengths of sequences, which a network knows of its data: a model is read as if it had none."""

from __future__ import annotations

from dataclasses import replace

from cntkpy.networks.nodes.onnx_support.model import Model, Operator
from cntkpy.networks.nodes.recurrence.onnx_units import LENGTHS, UNITS

PASSED_ON = ("Cast", "Identity")


def without_lengths(model: Model) -> Model:
    """Return a model without inputs that are the lengths of sequences of recurrent operators and nothing else."""
    candidates = [{operand.name} for operand in model.inputs if operand.integer and len(operand.sizes or ()) == 1]
    for operator in model.operators:
        for candidate in candidates:
            if operator.kind in PASSED_ON and candidate.intersection(operator.inputs):
                candidate.update(operator.outputs)
    gone: set[str] = set()
    for candidate in candidates:
        users = [operator for operator in model.operators if candidate.intersection(operator.inputs)]
        only = all(_takes(operator, candidate) or operator.kind in PASSED_ON for operator in users)
        if (
            only
            and any(_takes(operator, candidate) for operator in users)
            and not candidate.intersection(model.outputs)
        ):
            gone.update(candidate)
    if not gone:
        return model
    operators = [_without(operator, gone) for operator in model.operators if not gone.intersection(operator.outputs)]
    return replace(model, inputs=[operand for operand in model.inputs if operand.name not in gone], operators=operators)


def _takes(operator: Operator, names: set[str]) -> bool:
    """Return whether an operator has one of the values as the lengths of sequences, and as no other input."""
    positions = [index for index, name in enumerate(operator.inputs) if name in names]
    return operator.kind in UNITS and positions == [LENGTHS]


def _without(operator: Operator, gone: set[str]) -> Operator:
    if not gone.intersection(operator.inputs):
        return operator
    return replace(operator, inputs=["" if name in gone else name for name in operator.inputs])
