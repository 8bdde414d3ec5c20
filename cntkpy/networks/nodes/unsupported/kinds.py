"""Names that people may look for: each says what to use instead (docs/specification/networks.md B.11 and G).

Specified in docs/specification/networks.md#b11-names-that-are-not-ndl-functions-in-this-snapshot.
"""

from __future__ import annotations

from cntkpy.networks.nodes.declare import NodeKind

_LATTICES = "lattices are not supported; use CrossEntropyWithSoftmax on frames, or ForwardBackward (CTC) on sentences"
_OLD = "it belongs to older releases"


def _no(name: str, instead: str, *aliases: str) -> NodeKind:
    return NodeKind(name, aliases=aliases, unsupported=instead)


KINDS = [
    _no("Sum", "use Plus for two operands, SumElements for the sum of all elements"),
    _no("Avg", "use Mean (statistics of the data set) or SumElements"),
    _no(
        "NoiseContrastiveEstimation",
        "use CrossEntropyWithSoftmax or ClassBasedCrossEntropyWithSoftmax",
        "NCEBasedCrossEntropyWithSoftmax",
    ),
    _no("SequenceWithSoftmax", _LATTICES, "SEWithSM"),
    _no("LatticeSequenceWithSoftmax", _LATTICES),
    _no("CRF", "use CrossEntropyWithSoftmax on the frames"),
    _no("SequenceDecoder", "use Hardmax on the frames"),
    _no("GMMLogLikelihood", "write it with Log, Exp and Times", "GMMLL"),
    _no("Shift", "use PastValue or FutureValue"),
    _no("TimeReverse", "use FutureValue for a backward recurrence"),
    _no("StrideTimes", _OLD + "; use Times"),
    _no("PairNetwork", _OLD),
    _no("LSTM", "write the cell with PastValue, or use SimpleNetworkBuilder with rnnType=LSTM"),
    _no("ParallelNode", _OLD + "; use RowStack", "Parallel"),
    _no("ErrorPredictionWithTopN", "use ClassificationError(labels, z, Constant(N))"),
]
