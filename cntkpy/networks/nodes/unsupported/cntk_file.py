"""Rules for CNTK's model files: operations that have no counterpart."""

from __future__ import annotations

from cntkpy.networks.nodes.file_support.bodies import Attributes, Body, BodyReader, without_body
from cntkpy.networks.nodes.file_support.tables import Operation


def _noise_contrastive_body(body: Body) -> Attributes:
    mode = body.reader.i32()
    if not 0 <= mode <= 3:
        body.reader.position -= 4  # it was not stored
        mode = -1
    return {"evaluationMode": mode}


def _lattice_body(body: Body) -> Attributes:
    r = body.reader
    texts = [r.text() for _ in range(4)]
    numbers = 6 * 8 + 2
    if not body.next_node_follows(numbers):  # programs since 2.6 write one more text, in the same version
        texts.append(r.text())
    r.take(numbers)
    return {"texts": tuple(texts)}


BODIES: dict[str, BodyReader] = {
    **without_body("CRF", "SequenceDecoder", "SequenceWithSoftmax"),
    "NoiseContrastiveEstimation": _noise_contrastive_body,
    "NCEBasedCrossEntropyWithSoftmax": _noise_contrastive_body,
    "LatticeSequenceWithSoftmax": _lattice_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {90: Operation("LatticeSequenceWithSoftmax")}
"""By number in the later format."""
