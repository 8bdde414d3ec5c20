"""Errors of sequences that a node could not select steps of, or join with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import PROBLEM
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.step.axes import lengths_hint

if TYPE_CHECKING:
    from jax import Array


def check_sequences(network: ValidatedNetwork, state: Mapping[str, Array]) -> None:
    """Look whether a node noted in the state that sequences do not fit.

    Args:
        network: The network.
        state: Its state after some minibatches.

    Raises:
        UserError: It did.
    """
    problems = {name: problem for name, problem in state.items() if name.endswith(PROBLEM)}
    for name, problem in jax.device_get(problems).items():
        if np.any(problem):
            raise sequence_problem(network.find(name.removesuffix(PROBLEM)))


def sequence_problem(node: Node, keys: Sequence[str | int] = ()) -> UserError:
    """Return the error for a node.

    Args:
        node: The node that found it.
        keys: The sequences of the minibatch, where they are known.
    """
    if node.options.get("single"):
        message = "keeps no step of a sequence, or several"
        hint = f"the condition '{node.input(0).name}' must be other than 0 in one step of every sequence"
    elif node.operation == "ToSequence":
        message = "has the length of a sequence that its data do not have"
        hint = f"'{node.input(1).name}' gives whole numbers from 1 to {(node.input(0).shape or (0,))[-1]}"
    elif node.operation == "ToSequenceLike":
        message = "lies along a sequence that has more steps than its data"
        hint = f"'{node.input(1).name}' may have {(node.input(0).shape or (0,))[-1]} steps at most"
    elif node.operation == "UnpackSequence":
        message = f"unpacks {node.options['steps']} steps, and a sequence has more"
        hint = "give it as many steps as the longest sequence has"
    elif node.operation in ("ToBatch", "UnpackBatch"):
        size = (node.input(0).shape or (0,))[-1] if node.operation == "ToBatch" else node.options["count"]
        message = f"is for minibatches of {size} samples, and there is one of another size"
        hint = "all data of a minibatch have as many samples"
    elif node.kind.time.keeps_steps:
        message = "keeps no step of a sequence"
        hint = (
            f"the condition '{node.input(0).name}' is 0 in all its steps, or the sequence is too short for the steps "
            "selected; every sequence needs at least one"
        )
    elif node.operation == "PackedIndex":
        message = "has the number of a step that the sequence does not have"
        hint = f"the steps of '{node.input(0).name}' are counted from 0"
    elif node.operation == "GatherPacked":
        message = f"has the number of a column that '{node.input(1).name}' does not have"
        hint = "columns are counted from 0"
    elif node.operation == "ForwardBackward":
        message = "cannot align the labels of a sequence: it has fewer frames than its tokens need"
        delay = node.options["delayConstraint"]
        late = f", in time for delayConstraint={delay}" if delay >= 0 else ""
        hint = f"each token needs a frame{late}, and a blank between two equal tokens needs one; leave the sequence out"
    else:
        message = "joins sequences of different lengths"
        hint = lengths_hint(node)
    notes = []
    if keys:
        omitted = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
        notes = [f"sequences in that minibatch: {', '.join(str(key) for key in keys[:8])}{omitted}"]
    return UserError(
        "BadSequences", f"{node.operation} '{node.name}' {message}", span=node.span, hint=hint, notes=notes
    )
