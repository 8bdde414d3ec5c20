"""CTC against a sum over all alignments, edit distances against the recursive definition."""

import functools
import itertools

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.compile.evaluate import PROBLEM, compile_network, network_parameters, network_state

BLANK = 3


def frames(tokens, first=2.0):
    """Labels of frames: `(row, number of frames)` of each token; the first frame has the value `first`."""
    found = []
    for row, count in tokens:
        for place in range(count):
            found.append(np.eye(4)[row] * (first if place == 0 else 1.0))
    return np.array(found)


SEQUENCES = [
    [(0, 2), (1, 1), (0, 2)],
    [(2, 1), (2, 3)],  # two equal tokens, which 2 tells apart
    [(1, 4)],
    [(BLANK, 1), (0, 1), (BLANK, 1), (0, 1)],
    [(BLANK, 3)],
]
TOKENS = [[0, 1, 0], [2, 2], [1], [0, 0], []]
ENDS = [[1, 2, 4], [0, 3], [3], [1, 3], []]
"""The last frame of the label of each token."""


def collapsed(path):
    return [row for row, _ in itertools.groupby(path) if row != BLANK]


def in_time(path, ends, delay):
    """Whether no token is emitted later than `delay` frames after the last frame of its label."""
    number, before = -1, None
    for time, row in enumerate(path):
        if row != BLANK:
            number += row != before
            if time > ends[number] + delay:
                return False
        before = row
    return True


def probability(scores, tokens, ends=(), delay=-1):
    """The sum over all paths, and its derivative: of ln p, occupancies of rows in frames."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    total, occupancy = 0.0, np.zeros_like(p)
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        if collapsed(path) == tokens and (delay < 0 or in_time(path, ends, delay)):
            product = np.prod(p[np.arange(len(p)), path])
            total += product
            occupancy[np.arange(len(p)), path] += product
    return total, p - occupancy / total if total else None


def packed(h, arrays, extra=1):
    mask, start, end = h.grid([len(one) for one in arrays], extra=extra)
    values = np.full((*mask.shape, arrays[0].shape[1]), 0.25)
    for slot, one in enumerate(arrays):
        values[: len(one), slot] = one
    return values, (mask, start, end)


def network(h, precision="double", delay=-1):
    s = h.Sketch(precision)
    labels, x = s.input("labels", 4), s.input("x", 4)
    w = s.parameter("w", 4, 4)
    z = s("Times", w, x, name="z")
    s("ForwardBackward", s("LabelsToGraph", labels), z, blankTokenId=BLANK, delayConstraint=delay, name="ctc")
    return s, w


def data(h, numbers, dtype=np.float64, scale=1.0):
    random = np.random.default_rng(3)
    labels = [frames(SEQUENCES[i]) for i in numbers]
    scores = [scale * random.normal(size=(len(one), 4)) for one in labels]
    found, grid = packed(h, labels)
    x, _ = packed(h, scores)
    return scores, h.Batch({"labels": found.astype(dtype), "x": x.astype(dtype)}, *grid)


@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-10), ("float", 1e-4)])
@pytest.mark.parametrize("delay", [-1, 0, 1, 2])
@pytest.mark.sampled
def test_ctc_is_the_sum_over_all_alignments(helpers, precision, tolerance, delay):
    s, w = network(helpers, precision, delay)
    numbers = range(len(SEQUENCES))
    scores, batch = data(helpers, numbers, s.network.dtype)
    weight = w.matrix().astype(float)
    value, slope = 0.0, np.zeros((4, 4))
    for x, tokens, ends in zip(scores, TOKENS, ENDS, strict=True):
        p, gradient = probability(x @ weight.T, tokens, ends, delay)
        value -= np.log(p)
        slope += gradient.T @ x
    total, found = helpers.gradients(s.network, "ctc", batch)
    np.testing.assert_allclose(total, value, rtol=tolerance)
    np.testing.assert_allclose(found["w"].transpose(), slope, rtol=tolerance, atol=tolerance)
    assert found["w"].dtype == s.network.dtype


def test_the_gradient_of_ctc_is_that_of_its_value(helpers):
    s, _ = network(helpers, delay=1)
    _, batch = data(helpers, range(len(SEQUENCES)))
    _, found = helpers.gradients(s.network, "ctc", batch)
    for name, (chosen, slopes) in helpers.central_differences(s.network, "ctc", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-7)


def test_the_incoming_gradient_of_ctc_counts(helpers):
    s, _ = network(helpers)
    s("ElementTimes", s.network["ctc"], s.constant(-2.5), name="scaled")
    _, batch = data(helpers, [0, 1])
    one, other = (helpers.gradients(s.network, name, batch)[1]["w"] for name in ("ctc", "scaled"))
    np.testing.assert_allclose(other, -2.5 * one, rtol=1e-12)
    assert np.abs(one).max() > 0.1


def test_labels_of_1_change_tokens_where_the_row_changes(helpers):
    s, _ = network(helpers)
    scores, batch = data(helpers, [0])
    ones = frames(SEQUENCES[0], first=1.0)
    plain = batch._replace(inputs={**batch.inputs, "labels": packed(helpers, [ones])[0]})
    found = [helpers.run(s.network, ["ctc"], one)["ctc"] for one in (batch, plain)]
    np.testing.assert_array_equal(*found)
    p, _ = probability(scores[0] @ s.network["w"].matrix().T, TOKENS[0])
    np.testing.assert_allclose(found[0], [-np.log(p)], rtol=1e-12)


@pytest.mark.thorough
def test_ctc_of_long_sequences_in_single_precision(helpers):
    """Probabilities far below the smallest number: as in double precision, and all gradients are numbers."""
    random = np.random.default_rng(5)
    tokens = [(int(row), 3) for row in random.integers(0, 3, 150)]
    labels, x = frames(tokens), 5 * random.normal(size=(450, 4))
    results = []
    for precision in ("float", "double"):
        s, _ = network(helpers, precision)
        arrays = [packed(helpers, [one.astype(s.network.dtype)]) for one in (labels, x)]
        batch = helpers.Batch({"labels": arrays[0][0], "x": arrays[1][0]}, *arrays[0][1])
        results.append(helpers.gradients(s.network, "ctc", batch))
    (one, slopes), (other, expected) = results
    assert other > 200
    np.testing.assert_allclose(one, other, rtol=1e-5)
    np.testing.assert_allclose(slopes["w"], expected["w"], rtol=1e-3, atol=1e-3 * np.abs(expected["w"]).max())


def test_labels_that_do_not_fit_are_noted(helpers):
    s, _ = network(helpers)
    labels = frames([(0, 1), (0, 1), (1, 1)])  # a blank between the first two would need a fourth frame
    found, grid = packed(helpers, [labels])
    batch = helpers.Batch({"labels": found, "x": np.zeros((4, 1, 4))}, *grid)
    s.network.validate()
    function = jax.jit(compile_network(s.network, ["ctc"]))
    _, state = function(network_parameters(s.network), network_state(s.network), batch)
    assert np.all(state["ctc" + PROBLEM])


NETWORK = "labels = Input(3, tag=label)\nx = Input(3, tag=feature)\ny = Input(4)\n"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("ForwardBackward(LabelsToGraph(labels), x, 3)", "blankTokenId is the number of a row, from 0 to 2, not 3"),
        ("ForwardBackward(LabelsToGraph(labels), x, -1)", "from 0 to 2, not -1"),
        ("ForwardBackward(LabelsToGraph(labels), y, 1)", "has 3 rows, 'y' has 4"),
        ("ForwardBackward(labels, x, 1, delayConstraint=-2)", "or -1 for no constraint, not -2"),
        ("EditDistanceError(labels, y)", "a row for each token: 'labels' has 3, 'y' has 4"),
        ("EditDistanceError(labels, Constant(1))", "carries no minibatch data"),
    ],
)
def test_operands_that_do_not_fit(call, message):
    with pytest.raises(UserError, match=message):
        parse_ndl(f"{NETWORK}e = {call}\n").validate()


# ---- edit distances


def distance(a, b, cost):
    """The edits of the cheapest way: by the definition, the cheapest of three last edits; equal tokens are kept."""
    return ways(tuple(a), tuple(b), cost)[1]


@functools.cache
def ways(a, b, cost):
    """What the cheapest way costs, and how many edits it has."""
    if not a or not b:
        return len(a) * cost[1] + len(b) * cost[2], len(a) + len(b)
    if a[-1] == b[-1]:
        return ways(a[:-1], b[:-1], cost)
    places = (a[:-1], b[:-1]), (a[:-1], b), (a, b[:-1])
    changed, deleted, inserted = (
        (before + one, edits + 1) for (before, edits), one in zip((ways(*at, cost) for at in places), cost, strict=True)
    )
    if changed[0] <= deleted[0] and changed[0] <= inserted[0]:
        return changed
    return deleted if deleted[0] < inserted[0] else inserted


def tokens_of(rows, squash, ignored):
    return [row for row in ([row for row, _ in itertools.groupby(rows)] if squash else rows) if row not in ignored]


@pytest.mark.thorough
def test_edit_distances(helpers):
    """Every setting on the same random sequences, of other lengths on the two sides."""
    random = np.random.default_rng(7)
    lengths = [(4, 3), (1, 5), (5, 5), (3, 1), (2, 2)]
    rows = [[random.integers(0, 3, n).tolist() for n in pair] for pair in lengths]
    costs = [(1.0, 1.0, 1.0), (0.0, 1.0, 1.0), (3.0, 0.5, 0.75), (0.5, 2.0, 1.0)]
    settings = list(itertools.product(costs, (False, True), ((), (2,), (0, 1))))
    found = {}
    for precision in ("double", "float"):
        s = helpers.Sketch(precision)
        s("DynamicAxis", name="t")
        a, b = s("InputValue", name="a", dims=(3,), dynamicAxis="t"), s.input("b", 3)
        for number, (cost, squash, ignored) in enumerate(settings):
            given = dict(zip(("subPen", "delPen", "insPen"), cost, strict=True))
            s("EditDistanceError", a, b, name=f"e{number}", squashInputs=squash, tokensToIgnore=ignored, **given)
        from cntkpy.networks.arrays.batch import Grid

        sides = [packed(helpers, [np.eye(3)[pair[side]] for pair in rows], extra=side) for side in (0, 1)]
        grids = {"t": Grid(*sides[0][1]), "*": Grid(*sides[1][1])}
        arrays = {name: side[0].astype(s.network.dtype) for name, side in zip("ab", sides, strict=True)}
        batch = helpers.Batch(arrays, *sides[1][1], grids)
        found[precision] = helpers.run(s.network, [f"e{number}" for number in range(len(settings))], batch)
    steps = sum(first for first, _ in lengths)
    for number, (cost, squash, ignored) in enumerate(settings):
        pairs = [[tokens_of(side, squash, ignored) for side in pair] for pair in rows]
        sums = sum(distance(one, other, cost) for one, other in pairs)
        expected = [steps * sums / sum(max(1, len(one)) for one, _ in pairs)]
        np.testing.assert_allclose(found["double"][f"e{number}"], expected, rtol=1e-12)
        np.testing.assert_allclose(found["float"][f"e{number}"], expected, rtol=1e-5)
    assert len({float(one[0]) for one in found["double"].values()}) > len(settings) / 4
