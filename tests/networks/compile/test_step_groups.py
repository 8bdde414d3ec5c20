"""Attention that programs write with unpacked sequences, repeated at each step, in blocks of steps, against NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cntkpy.networks.arrays import step_blocks
from cntkpy.networks.arrays.batch import Batch, Grid
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import compile_gradient, compile_network, network_parameters, network_state
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.compile.step_groups import StepGroup
from cntkpy.networks.graph.packing import packed_axes
from tests.networks.nodes.test_sequences import batch_of
from tests.networks.nodes.test_several_axes_by_hand import AXES, DATA, X, Y, gradients_hold, made, matrix, same

HEAD = """
    rows (x, padding, mask, steps, tag='') = new ComputationNode [ operation = 'UnpackSequence' ; inputs = x ]
    every (like, x, steps, padding=0, mask=false) =
        BS.Sequences.BroadcastSequenceAs (like, rows (x, padding, mask, steps))
    attend (query, keys, values, steps) = {
        scores = TransposeTimes (every (query, keys, steps), query) .* Constant (0.5)
        known = BS.Boolean.If (every (query, keys, steps, mask=true), scores, Constant (-1e30))
        out = Times (every (query, values, steps), Softmax (known))
    }.out
    K = ParameterTensor {(3 : 2), init='gaussian'} ; Q = ParameterTensor {(3 : 2), init='gaussian'}
    V = ParameterTensor {(2 : 2), init='gaussian'}
"""
OTHER_AXIS = HEAD + "a = attend (Q * y, K * x, V * x, 5) ; ce = SquareError (a, y)"
OWN_AXIS = (
    HEAD + "a = FlattenDimensions (Tanh (attend (Q * y, K * y, V * y, 4)), 1, 2)"
    " ; ce = SquareError (attend (a, y, V * a, 4), y)"
)

NO_LATER_STEP = (
    HEAD
    + """
    steps = PastValue (1, steps, defaultHiddenActivation=0) + BS.Constants.OnesLike (Slice (0, 1, y))
    places = FlattenDimensions (every (y, steps, 4, padding=99), 1, 2)
    scores = TransposeTimes (every (y, K * y, 4), Q * y)
    known = BS.Boolean.If (LessEqual (places, steps), scores, Constant (-1e30))
    a = Times (every (y, V * y, 4), Softmax (known)) ; ce = SquareError (a, y)
"""
)
SUMS = (
    HEAD
    + """
    w = ParameterTensor {(1 : 3), init='gaussian'}
    scores = w * Tanh (every (y, K * x, 5) + Q * y)
    known = BS.Boolean.If (every (y, x, 5, mask=true), FlattenDimensions (scores, 1, 2), Constant (-1e30))
    a = Times (every (y, V * x, 5), Softmax (known)) ; ce = SquareError (a, y)
"""
)

TURNED = (
    HEAD
    + """
    scores = Times (TransposeDimensions (every (y, K * y, 4), 1, 2), Exp (Q * y))
    a = Times (every (y, V * y, 4), Softmax (scores)) ; ce = SquareError (a, y)
"""
)
USED_WEIGHTS = (
    HEAD
    + """
    p = Softmax (BS.Boolean.If (every (y, x, 5, mask=true), TransposeTimes (every (y, K * x, 5), Q * y), Constant (-9)))
    a = Times (every (y, V * x, 5), p) + Times (every (y, x, 5), p .* p) ; ce = SquareError (a, y)
"""
)
"""The weights are needed twice."""


@pytest.fixture(params=[pytest.param(False, marks=pytest.mark.thorough), True], ids=["at once", "in blocks"])
def blocks(request: Any, monkeypatch: Any) -> bool:
    """Whether there are blocks, of two steps."""
    if request.param:
        monkeypatch.setattr(step_blocks, "BLOCK", 1)
        monkeypatch.setattr(step_blocks, "FEWEST", 2)
        monkeypatch.setattr(step_blocks, "FEWEST_OF_ONE_SLOT", 2)
    return request.param


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def planned(network: Any, names: list[str]) -> tuple[Plan, list[StepGroup]]:
    """The plan of an evaluation, and its groups."""
    plan = Plan(network, names, training=True)
    return plan, [part for part in plan.parts if isinstance(part, StepGroup)]


def loops(network: Any, name: str) -> int:
    """How many loops the program for a node has."""
    function = jax.make_jaxpr(lambda *given: compile_network(network, [name])(*given)[0][name])
    inputs = {one: np.zeros((6, 5, 2)) for one in DATA}
    grid = Grid(np.ones((6, 5), bool), *(np.zeros((6, 5), np.int32),) * 2)
    axes = {AXES[one]: grid for one in DATA}
    batch = Batch(inputs, *grid, axes)
    return str(function(network_parameters(network), network_state(network), batch)).count("scan[")


def test_attention_to_another_axis(blocks: bool) -> None:
    network = made(OTHER_AXIS)
    k, q, v = (matrix(network, name) for name in "KQV")
    same(network, {"a": [softmax(y @ q.T @ (x @ k.T).T / 2) @ (x @ v.T) for x, y in zip(X, Y, strict=True)]})
    gradients_hold(network)
    assert loops(network, "a") == (2 if blocks else 0)  # of slots, and in it of blocks


@pytest.mark.thorough
def test_attention_after_attention(blocks: bool) -> None:
    """The second one is a group of its own, because it needs all steps of the first one."""
    network = made(OWN_AXIS)
    k, q, v = (matrix(network, name) for name in "KQV")
    once = [np.tanh(softmax(y @ q.T @ (y @ k.T).T / 2) @ (y @ v.T)) for y in Y]
    same(network, {"a": once})
    gradients_hold(network)
    assert len(planned(network, ["ce"])[1]) == 2


@pytest.mark.thorough
def test_a_mask_of_each_step_is_cut_into_blocks(blocks: bool) -> None:
    """No step sees a later one."""
    network = made(NO_LATER_STEP)
    k, q, v = (matrix(network, name) for name in "KQV")
    expected = []
    for y in Y:
        scores = y @ q.T @ (y @ k.T).T
        expected.append(softmax(np.where(np.tri(len(y)), scores, -1e30)) @ (y @ v.T))
    same(network, {"a": expected})
    gradients_hold(network)


@pytest.mark.thorough
def test_scores_of_each_step_and_each_key(blocks: bool) -> None:
    """Products are not the only function of a step that sees all keys."""
    network = made(SUMS)
    k, q, v, w = (matrix(network, name) for name in "KQVw")
    expected = [
        softmax((np.tanh(x @ k.T + (y @ q.T)[:, None]) @ w.T)[..., 0]) @ (x @ v.T) for x, y in zip(X, Y, strict=True)
    ]
    same(network, {"a": expected})
    gradients_hold(network)


@pytest.mark.parametrize(
    "text",
    [
        OTHER_AXIS,
        *(
            pytest.param(text, marks=pytest.mark.thorough)
            for text in (USED_WEIGHTS, OWN_AXIS, NO_LATER_STEP, SUMS, TURNED)
        ),
    ],
    ids=["other axis", "used weights", "own axis", "no later step", "sums", "turned"],
)
def test_one_slot_gives_what_several_give(text: str, blocks: bool) -> None:
    """Vectors of one slot are rows of a matrix."""
    network = made(text)
    function = jax.jit(compile_gradient(network, "ce"))

    def gradients(numbers: Sequence[int]) -> tuple[Any, Any]:
        batch = batch_of({name: [every[i] for i in numbers] for name, every in DATA.items()}, AXES)
        found, totals, _ = function(network_parameters(network), network_state(network), batch)
        return found, totals["ce"]

    several, total = gradients([1, 4])
    each = [gradients([i]) for i in (1, 4)]
    np.testing.assert_allclose(sum(one for _, one in each), total, rtol=1e-12)
    for name, gradient in several.items():
        np.testing.assert_allclose(sum(found[name] for found, _ in each), gradient, rtol=1e-9, atol=1e-12)


def test_sequences_of_a_group_share_no_slots() -> None:
    """One step of the keys goes with all steps of a slot."""
    assert packed_axes(made(OTHER_AXIS).nodes.values()) == frozenset()


def test_what_a_group_has() -> None:
    plan, (group,) = planned(made(OTHER_AXIS), ["a"])
    assert [node.operation for node in group.nodes] == ["TransposeTimes", "ElementTimes", "If", "Softmax", "Times"]
    assert len(group.repeated) == 3
    flat = [node for part in plan.parts for node in (part.nodes if isinstance(part, StepGroup) else part)]
    assert sorted(node.name for node in flat) == sorted(node.name for node in plan.nodes)
    place = {node: index for index, node in enumerate(flat)}
    assert all(place[i] < place[node] for node in flat for i in node.connected if not node.kind.time.delay)


@pytest.mark.thorough
@pytest.mark.optimised
@pytest.mark.parametrize("gradient", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_memory_grows_with_the_steps_and_not_with_their_square(gradient: bool, monkeypatch: Any) -> None:
    """All scores of 3,000 steps take 72 MB; those of one block take 8, and what goes in and out of it 0.05 each."""
    network = made(HEAD + "a = attend (Q * y, K * y, V * y, 3000) ; ce = SquareError (a, y)")
    step, there = np.arange(3000, dtype=np.int32)[:, None], np.ones((3000, 1), bool)
    grid = Grid(there, step, 2999 - step)
    batch = Batch({"y": np.zeros((3000, 1, 2))}, *grid, {"*": grid})

    def bytes_of(block: int) -> int:
        monkeypatch.setattr(step_blocks, "BLOCK", block)
        function = compile_gradient(network, "ce") if gradient else compile_network(network, ["a"])
        compiled = jax.jit(function).lower(network_parameters(network), network_state(network), batch).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert bytes_of(1 << 20) < 36e6 < 72e6 < bytes_of(1 << 30)
