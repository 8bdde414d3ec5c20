"""Rules for CNTK's model files: samples."""

from __future__ import annotations

from cntkpy.networks.nodes.file_support.bodies import Body, BodyReader, random_state
from cntkpy.networks.nodes.file_support.dictionary import Table
from cntkpy.networks.nodes.file_support.rules import Rule, same
from cntkpy.networks.nodes.file_support.tables import Attributes, Operation


def _random_sample_body(body: Body) -> Attributes:
    r = body.reader
    return {"sampleWithReplacement": r.boolean(), "numSamples": r.u64(), **random_state(body)}


def _random_sample_attributes(table: Table) -> Attributes:
    return {
        "numSamples": table.get("numSamples", int, 0),
        "sampleWithReplacement": table.get("allowDuplicates", bool, False),
    }


BODIES: dict[str, BodyReader] = {
    "RandomSample": _random_sample_body,
    "RandomSampleInclusionFrequency": _random_sample_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    45: Operation("RandomSample", _random_sample_attributes),
    46: Operation("RandomSampleInclusionFrequency", _random_sample_attributes),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {"RandomSample": same, "RandomSampleInclusionFrequency": same}
"""By operation: makes nodes of a record."""
