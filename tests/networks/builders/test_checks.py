"""The checks of builders: each finds the problems of its section and makes its network without start values."""

from collections.abc import Generator
from typing import Any

import pytest

from cntkpy.cntk_config import load
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.cntk_config.declare import SECTION
from cntkpy.networks.builders.check import CheckContext, CheckedNetwork
from cntkpy.networks.builders.parameters import builder_of, entry_of
from cntkpy.networks.builders.registry import ENTRIES
from cntkpy.networks.graph.network import Network

NDL = """NDLNetworkBuilder=[ load=macros ; run=net
    macros=[ Idle(x) = [ y = Times(x, x, dimm=1) ] ]
    net=[ features=Input(2, tag=feature) ; w=Parameter(3,2) ; z=Times(w, features, tag=output) ] ]"""
BRAIN_SCRIPT = """BrainScriptNetworkBuilder={
    features = Input {2} ; second = features ; idle = 3 ; z = DenseLayer {3} (features) ; outputNodes = (z) }"""

CRITERIA = "trainingCriterion=SquareError;evalCriterion=SquareError"


def no_model(path: str, precision: str) -> Network:
    raise AssertionError(path)


def check(text: str, **options: Any) -> tuple[list[Diagnostic], Any]:
    section = load([f"train=[{text}]"]).section("train")
    builder = builder_of(section)
    assert builder is not None
    value = builder.read(section) if builder.type is SECTION else section.opaque(builder.name)
    generator: Generator[Diagnostic, None, CheckedNetwork | None] = entry_of(builder).load_check()(
        value, CheckContext("float", no_model, **options)
    )
    problems: list[Diagnostic] = []
    while True:
        try:
            problems.append(next(generator))
        except StopIteration as end:
            return problems, end.value


def test_every_supported_builder_has_a_check() -> None:
    assert [entry.name for entry in ENTRIES if not entry.check] == ["createNetwork"]


@pytest.mark.parametrize("text", [NDL, BRAIN_SCRIPT])
def test_a_network_without_values(text: str) -> None:
    _, checked = check(text)
    network = checked.make()
    assert checked.inputs is None and network.find("z").shape == (3,)
    assert all(node.value is None for node in network.nodes.values() if node.is_parameter and node.shape != (1,))


def test_macros_that_nothing_calls_concern_only_a_strict_check() -> None:
    problems, _ = check(NDL)
    assert [(problem.kind, problem.severity) for problem in problems] == [("IgnoredOption", "warning")]
    assert check(NDL, strict=False)[0] == []


def test_members_that_nothing_uses_and_second_names() -> None:
    problems, checked = check(BRAIN_SCRIPT, named={"second"})
    assert [problem.message for problem in problems] == ["nothing uses the member 'idle' of the network"]
    assert checked.aliases["second"] == "features" and checked.reads_all_streams


def test_a_feed_forward_network_is_known_by_its_layers() -> None:
    text = "SimpleNetworkBuilder=[layerSizes=4:3:1;trainingCriterion=CrossEntropyWithSoftmax;evalCriterion=SquareError]"
    problems, checked = check(text)
    assert [problem.kind for problem in problems] == ["OneClass"]
    assert [(layer.name, layer.size) for layer in checked.inputs or []] == [("features", 4), ("labels", 1)]
    assert check(text, trains=False)[0] == []
    assert {"features", "labels"} <= set(checked.make().nodes)


def test_a_wrong_network_has_problems_only() -> None:
    problems, checked = check(f"SimpleNetworkBuilder=[layerSizes=4:0:2;rnnType=LSTN;{CRITERIA}]")
    assert checked is None
    assert [problem.message.rpartition(": ")[2] for problem in problems] == [
        "unknown rnnType 'LSTN'",
        "the entries of layerSizes are at least 1, not 0",
    ]
