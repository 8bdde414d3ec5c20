"""Which kinds of nodes can be exported, and why the others cannot."""

from __future__ import annotations

from networks.onnx.writing import elementwise, images, linear, normalisation, recurrent_stack, sequences, shaping
from networks.onnx.writing.elementwise import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **linear.RULES,
    **shaping.RULES,
    **normalisation.RULES,
    **images.RULES,
    **sequences.RULES,
    **recurrent_stack.RULES,
    "Assign": lambda use: use.names[1],
}
"""By operation: makes the ONNX operators of a node."""

TRAINING_ONLY = "it is a criterion of training; export the output of the network"

REFUSED = {
    "CrossEntropyWithSoftmax": "it is a criterion of training; export its second operand, or that one's --softmax",
    "CrossEntropy": TRAINING_ONLY,
    "SquareError": TRAINING_ONLY,
    "Logistic": TRAINING_ONLY,
    "ClassificationError": TRAINING_ONLY,
    "ClassBasedCrossEntropyWithSoftmax": TRAINING_ONLY,
    "DummyCriterion": TRAINING_ONLY,
    "LambdaRank": TRAINING_ONLY,
    "ForwardBackward": TRAINING_ONLY,
    "EditDistanceError": TRAINING_ONLY,
    "LabelsToGraph": "it makes the labels of a criterion of training",
    "ToSequence": "it makes sequences of samples; export what follows it, with sequences as data",
    "ToSequenceLike": "it makes sequences of samples; export what follows it, with sequences as data",
    "UnpackSequence": "its size is that of one minibatch; export what comes before it",
    "UnpackBatch": "it mixes the samples of a minibatch, of one size",
    "ToBatch": "its minibatch has one size",
    "SampleNumber": "it depends on which sample of a minibatch it is",
    "AttentionWeights": "it has as many elements as a sequence has steps",
    "NDCG1Eval": TRAINING_ONLY,
    "MatrixL1Reg": "of data it mixes the samples of a minibatch; only that of parameters can be exported",
    "MatrixL2Reg": "of data it mixes the samples of a minibatch; only that of parameters can be exported",
    "SumElements": "of data it mixes the samples of a minibatch; SumColumnElements sums within a sample",
    "CosDistanceWithNegativeSamples": "it mixes the samples of a minibatch; export a CosDistance",
    "EpochAccumulator": "it counts the samples of an epoch of training",
    "Mean": "it is not computed yet: train the network, which computes it first",
    "InvStdDev": "it is not computed yet: train the network, which computes it first",
    "RandomLike": "it draws random numbers",
    "RandomSample": "it draws random numbers",
    "RandomSampleInclusionFrequency": "it belongs to the drawing of random numbers",
    "Diagonal": "its matrix depends on the data",
}
"""By operation: why a node of it that depends on data has no equivalent."""
