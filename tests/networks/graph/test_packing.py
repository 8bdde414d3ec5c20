"""On which time axes sequences may share slots."""

import pytest

from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.graph.packing import packed_axes

HEAD = """
t = DynamicAxis()
x = Input(2, dynamicAxis=t)
y = Input(2)
FeatureNodes = (x, y)
last = FutureValue(1, RowSlice(0, 1, ElementTimes(Constant(0), x)), defaultHiddenActivity=1)
at = PackedIndex(x, Where(last, single=true))
"""


@pytest.mark.parametrize(
    "script, axes",
    [
        ("h = GatherPacked(at, x)\ng = Tanh(y)", {"t", "*"}),
        ("h = ScatterPacked(x, at, GatherPacked(at, x))\ng = PastValue(2, y)", {"t", "*"}),
        ("h = ReconcileDynamicAxis(x, y)", {"t", "*"}),
        ("h = GatherPacked(at, y)", set()),  # cells of x, where the sequences of y lie elsewhere
        ("h = GatherPacked(Plus(at, at), x)\ng = Tanh(y)", {"*"}),  # computed with cells
        ("h = UnpackSequence(x, steps=9)\ng = Tanh(y)", {"*"}),
        ("h = RepeatSteps(x, factor=2)\ng = Tanh(y)", {"*"}),
        ("h = SampleNumber(y)", set()),
    ],
)
def test_axes_that_no_node_needs_a_slot_for_each_sequence_of(script: str, axes: set[str]) -> None:
    network = parse_ndl(HEAD + script).validate()
    assert packed_axes(network.nodes.values()) == axes
