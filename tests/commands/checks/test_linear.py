"""The work of `check` grows with the findings as they do, whatever they are."""

from __future__ import annotations

import cProfile
import pstats

import pytest

from cntkpy.cntk_config import parse
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.look import look

BASE = """command = train{commands}
train = [
    action = train ; modelPath = m
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1
{sgd}
    ]
    reader = [ readerType = UCIFastReader ; file = x
{reader}
        features = [ start = 0 ; dim = 2 ] ; labels = [ start = 2 ; dim = 2 ; labelType = regression ] ]
]
{root}
"""
EMPTY = {"commands": "", "sgd": "", "reader": "", "root": ""}


def commands(count: int) -> str:
    return "".join(f":c{number:05}" for number in range(count))


def lines(pattern: str, count: int) -> str:
    return "\n".join(pattern.replace("*", f"{number:05}") for number in range(count))


KINDS = {
    "unknown names": ("UnusedParameter", lambda n: {"sgd": lines("nobodyHasHeardOf*=1", n)}),
    "nearly known names": ("UnknownParameter", lambda n: {"sgd": lines("minibatchSiz*=1", n)}),
    "unknown sections": ("UnusedParameter", lambda n: {"sgd": lines("nobodyHasHeardOf*=[a=1]", n)}),
    "unknown names of the top level": ("UnusedParameter", lambda n: {"root": lines("nobodyHasHeardOf*=1", n)}),
    "unknown values": ("UnknownAction", lambda n: {"commands": commands(n), "root": lines("c*=[action=jump*]", n)}),
    "sections that are missing": ("MissingParameter", lambda n: {"commands": commands(n)}),
    "wrong numbers": ("BadInteger", lambda n: {"reader": lines("f*=[start=0;dim=x*]", n)}),
    "undefined variables": ("UnknownVariable", lambda n: {"sgd": lines("nobodyHasHeardOf*=$undefined*$", n)}),
}


SLOW = ("wrong numbers", "undefined variables", "unknown values")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.thorough) if kind in SLOW else kind for kind in KINDS]
)
@pytest.mark.sampled
def test_the_work_is_linear_in_the_findings(kind: str) -> None:
    expected, make = KINDS[kind]

    def calls(count: int) -> int:
        root = parse(BASE.format(**{**EMPTY, **make(count)}), "m.cntk")
        profile = cProfile.Profile()
        found = profile.runcall(look, root)
        for one in found:
            Finding.of(one).one_line()
        told = sum(one.kind == expected for one in found)
        assert told >= count, {one.kind for one in found}
        return pstats.Stats(profile).total_calls  # pyright: ignore[reportAttributeAccessIssue]

    few = 110  # nearest names are looked for in the first 100 errors of values only
    calls(1)
    once, twice, four = calls(few), calls(2 * few), calls(4 * few)
    assert four - twice < 2.2 * (twice - once), (once, twice, four)
