"""Criteria of whole sequences: connectionist temporal classification (CTC) and edit distances."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntkpy.networks.builders.python.functions.checks import check_flag, check_number, check_whole
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, operator
from cntkpy.networks.builders.python.operations.reshaping import Operand, number


def labels_to_graph(labels: Operand, name: str = "") -> Function:
    """Return the labels of frames as `forward_backward` takes them.

    Args:
        labels: a vector for each frame of the features: 2 (in the first frame of a token) or 1 in the row of the token
            or of the blank, 0 elsewhere. A token begins where there is a 2, and where the row is not that of the frame
            before. `HTKMLFDeserializer` gives such labels with `phoneBoundaries=True`.
        name: names the result.

    Returns:
        The labels, without a gradient.
    """
    return operator("LabelsToGraph", as_node(labels), label=name)


@described("ForwardBackward", lambda of: {"blankTokenId": of["blankTokenId"], "delayConstraint": of["delayConstraint"]})
def forward_backward(
    graph: Operand, features: Operand, blankTokenId: int, delayConstraint: int = -1, name: str = ""
) -> Function:
    """Connectionist temporal classification (A. Graves et al., ICML 2006): - ln p (tokens) of each sequence, summed up.

    Each frame emits a token or the blank; equal ones in neighbouring frames count once, and blanks do not count. p
    (tokens) is the sum over all alignments of the product of the probabilities of what the frames emit.

    Args:
        graph: from `labels_to_graph`: the tokens of each sequence. When a frame of its labels has a token matters for
            `delayConstraint` only.
        features: a vector for each frame; its softmax are the probabilities of tokens and blank.
        blankTokenId: the row of the blank.
        delayConstraint: how many frames after the last frame of its label a token may be emitted; -1: any number.
        name: names the result.

    Returns:
        One number for the whole minibatch. Its gradient to the features is the softmax less the probability of each row
        given the tokens.

    Raises:
        UserError: `blankTokenId` is no row, shapes differ. When it is computed: a sequence has fewer frames than its
            tokens need, an operand has other steps than the other.
    """
    blank = check_whole("forward_backward: blankTokenId", blankTokenId, 0)
    delay = check_whole("forward_backward: delayConstraint", delayConstraint, -1)
    operands = as_node(graph), as_node(features), float(blank)
    return number(operator("ForwardBackward", *operands, delayConstraint=float(delay)), name)


@described(
    "EditDistanceError",
    lambda of: {
        "substitutionPenalty": of["subPen"],
        "deletionPenalty": of["delPen"],
        "insertionPenalty": of["insPen"],
        "squashInputs": of["squashInputs"],
        "tokensToIgnore": of["tokensToIgnore"],
    },
)
def edit_distance_error(
    input_a: Operand,
    input_b: Operand,
    subPen: float = 1,
    delPen: float = 1,
    insPen: float = 1,
    squashInputs: bool = False,
    tokensToIgnore: Sequence[int] = (),
    name: str = "",
) -> Function:
    """Edit distance of two sequences of tokens, which are the rows of the largest elements of their steps.

    Args:
        input_a: the labels, for CTC what `labels_to_graph` gives.
        input_b: the output of the network.
        subPen: what another token in the place of one costs.
        delPen: what a token costs that `input_a` has and `input_b` lacks.
        insPen: what a token costs that `input_b` has and `input_a` lacks.
        squashInputs: equal tokens in neighbouring steps are one, also where labels have a 2: labels need a frame of the
            blank between two equal tokens.
        tokensToIgnore: rows that are left out, after equal neighbours became one: the blank.
        name: names the result.

    Returns:
        One number for the whole minibatch, the number of steps times the sum of edits by the sum of tokens of
        `input_a` (at least one for each sequence), so that the mean over the steps is the error rate. Penalties say
        which way is the cheapest; its edits are counted. No gradient.
    """
    costs = {"subPen": subPen, "delPen": delPen, "insPen": insPen}
    penalties = {label: check_number(f"edit_distance_error: {label}", cost) for label, cost in costs.items()}
    squash = check_flag("edit_distance_error: squashInputs", squashInputs)
    ignored = [
        float(check_whole("edit_distance_error: a token of tokensToIgnore", token, 0)) for token in tokensToIgnore
    ]
    options: dict[str, Any] = {**penalties, "squashInputs": squash, "tokensToIgnore": ignored}
    return number(operator("EditDistanceError", as_node(input_a), as_node(input_b), **options), name)


__all__ = ["edit_distance_error", "forward_backward", "labels_to_graph"]
