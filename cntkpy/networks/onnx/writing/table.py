"""Which kinds of nodes can be exported, and why the others cannot."""

from __future__ import annotations

from cntkpy.networks.onnx.writing import (
    criteria,
    elementwise,
    images,
    linear,
    normalisation,
    recurrent_stack,
    sequences,
    shaping,
)
from cntkpy.networks.onnx.writing.elementwise import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **linear.RULES,
    **shaping.RULES,
    **normalisation.RULES,
    **images.RULES,
    **sequences.RULES,
    **recurrent_stack.RULES,
    **criteria.RULES,
    "Assign": lambda use: use.names[1],
}
"""By operation: makes the ONNX operators of a node."""

REFUSED = {
    "ForwardBackward": "it sums over all alignments of labels and steps; export the output of the network",
    "EditDistanceError": "it compares sequences of labels; export the output of the network",
    "LabelsToGraph": "it makes the labels of a criterion of training",
    "ToSequence": "it makes sequences of samples; export what follows it, with sequences as data",
    "ToSequenceLike": "it makes sequences of samples; export what follows it, with sequences as data",
    "UnpackSequence": "its size is that of one minibatch; export what comes before it",
    "UnpackBatch": "it mixes the samples of a minibatch, of one size",
    "ToBatch": "its minibatch has one size",
    "EpochAccumulator": "it counts the samples of an epoch of training",
    "Mean": "it is not computed yet: train the network, which computes it first",
    "InvStdDev": "it is not computed yet: train the network, which computes it first",
    "RandomLike": "it draws random numbers",
    "RandomSample": "it draws random numbers",
    "RandomSampleInclusionFrequency": "it belongs to the drawing of random numbers",
}
"""By operation: why a node of it that depends on data has no equivalent."""
