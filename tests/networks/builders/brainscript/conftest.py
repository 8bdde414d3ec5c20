"""Evaluating BrainScript without a configuration around it."""

import pytest

from cntkpy.networks.builders.brainscript.language.expressions import evaluator_of
from cntkpy.networks.builders.brainscript.language.parse import parse_members
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.language.standard import CLASSES
from cntkpy.networks.builders.brainscript.language.values import Scope
from cntkpy.networks.builders.brainscript.program import evaluate_network, evaluator_with, parse_network, root_scope
from cntkpy.networks.graph.initialize import SeedCounter

NAMES = {"deviceId": -1.0, "traceLevel": 0.0, "precision": "double"}


@pytest.fixture
def plain():
    """The value of the member `z` of a program that has no library."""

    def evaluate(text):
        evaluator = evaluator_of(CLASSES)
        record = evaluator.evaluate(parse_members(text_of_string(text, "test.bs")), Scope({}, None))
        return evaluator.value(record.names["z"], record.place)

    return evaluate


@pytest.fixture
def value():
    """The value of the member `z` of a program that sees the library."""

    def evaluate(text):
        evaluator = evaluator_with(SeedCounter())
        root = root_scope(evaluator, NAMES)
        record = evaluator.evaluate(parse_members(text_of_string(text, "test.bs")), root)
        return evaluator.value(record.names["z"], record.place)

    return evaluate


@pytest.fixture
def network():
    """The nodes of a network with these members, as `name = Operation(inputs)`."""

    def evaluate(text, seeds=None):
        program = parse_network(text_of_string(f"{{\n{text}\n}}", "test.bs"))
        return evaluate_network(program, evaluator_with(seeds or SeedCounter()), NAMES)

    return evaluate
