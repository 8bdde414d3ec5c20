"""Time axes: how they are inferred, steps selected and put back, against numpy sequence by sequence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.arrays.batch import Grid, PackedGrid
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.compile.evaluate import (
    LENGTHS,
    PROBLEM,
    Batch,
    compile_gradient,
    compile_network,
    network_parameters,
    network_state,
)
from cntkpy.networks.graph.axes import DEFAULT, ONE, equal_lengths, main_axis


class Built:
    """A network on two axes, with its functions: `x` has the axis t, `y` the default one."""

    def __init__(self, sketch):
        self.s = sketch
        self.t = sketch("DynamicAxis", name="t")
        self.x = sketch("InputValue", name="x", dims=(2,), dynamicAxis="t")
        self.y = sketch("InputValue", name="y", dims=(2,))

    def edge(self, node, kind="FutureValue", steps=1):
        zero = self.s("SumColumnElements", self.s("ElementTimes", self.constant(0), node))
        return self.s(kind, zero, rows=1, timeStep=steps, defaultHiddenActivity=1.0)

    def constant(self, value):
        return self.s.constant(value)

    def gather(self, condition, node, **options):
        return self.s("GatherPacked", self.s("PackedIndex", node, self.s("Where", condition)), node, **options)

    def last(self, node, **options):
        return self.gather(self.edge(node), node, **options)

    def scatter(self, condition, node, **options):
        index = self.s("PackedIndex", condition, self.s("Where", condition))
        return self.s("ScatterPacked", condition, index, node, **options)


def batch_of(data, axes, extra=0, order=None, slots=None, shared=False):
    """A minibatch of ragged sequences: input -> list of arrays (steps, elements); axes: input -> axis.

    `shared`: sequences share slots.
    """
    count = len(next(iter(data.values())))
    order = list(range(count)) if order is None else order
    slots = slots or count
    inputs, grids, several = {}, {}, {}
    for name, sequences in data.items():
        lengths = np.zeros(slots, np.int32)
        lengths[:count] = [len(sequences[i]) for i in order]
        steps = int(lengths.max()) + extra
        array = np.full((steps, slots, sequences[0].shape[1]), 7.0)
        for slot, i in enumerate(order):
            array[: len(sequences[i]), slot] = sequences[i]
        step = np.arange(steps, dtype=np.int32)[:, None]
        mask = step < lengths
        inputs[name] = array
        grids[axes[name]] = Grid(mask, np.where(mask, step, -1), np.where(mask, lengths - 1 - step, -1))
        if shared and axes[name] != ONE:
            several[axes[name]] = in_shared_slots(lengths, steps)
            inputs[name] = np.full((*several[axes[name]].mask.shape, array.shape[2]), 7.0)
            for number, (first, length) in enumerate(zip(several[axes[name]].first, lengths, strict=True)):
                step, slot = np.divmod(first, inputs[name].shape[1])
                inputs[name][step : step + length, slot] = array[:length, number]
    main = grids.get(DEFAULT) or next(iter(grids.values()))
    return Batch(inputs, *main, grids | several)


def in_shared_slots(lengths, steps):
    """Sequences after each other, each in the last slot if it has room, else in a new one."""
    placed, free = [], 0
    for length in lengths:
        free = free if free >= length and placed else steps
        new = free == steps
        placed.append((placed[-1][0] + new if placed else 0, steps - free))
        free -= length
    shape = steps, placed[-1][0] + 1
    mask, owner = np.zeros(shape, bool), np.zeros(shape, np.int32)
    to_start, to_end = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    for number, ((slot, begin), length) in enumerate(zip(placed, lengths, strict=True)):
        own = slice(begin, begin + length), slot
        mask[own], owner[own], to_start[own], to_end[own] = True, number, np.arange(length), np.arange(length)[::-1]
    first = np.array([begin * shape[1] + slot for slot, begin in placed], np.int32)
    return PackedGrid(mask, to_start, to_end, owner, first, np.asarray(lengths, np.int32))


def by_sequence(value, grid, lengths=None):
    """The values `(T, S, ...)` of each sequence; without a grid, of those with these lengths in slots of their own."""
    if isinstance(grid, PackedGrid):
        places = [(*np.divmod(first, value.shape[1]), n) for first, n in zip(grid.first, grid.lengths, strict=True)]
        return [value[step : step + length, slot] for step, slot, length in places]
    lengths = lengths if grid is None else np.asarray(grid.mask).sum(axis=0)
    return [value[:length, slot] for slot, length in enumerate(lengths)]


def ragged(seed, lengths, width=2):
    random = np.random.default_rng(seed)
    return [random.normal(size=(n, width)) for n in lengths]


AXES = {"x": "t", "y": "*"}


def sequences_of(network, name, batch, count):
    """The values of a node, sequence by sequence."""
    network.validate()
    found, state = jax.jit(compile_network(network, [name]))(network_parameters(network), network_state(network), batch)
    axis = network[name].axis
    each = by_sequence(np.asarray(found[name]), batch.axes.get(axis), found.get(axis + LENGTHS))
    wrong = [key for key, flag in state.items() if key.endswith(PROBLEM) and np.any(flag)]
    return each[:count], wrong


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_first_and_last_steps(sketch, shared):
    b = Built(sketch)
    b.last(b.x, name="last")
    b.gather(b.edge(b.x, "PastValue", 2), b.x, name="begin")
    xs, ys = ragged(1, [3, 1, 4]), ragged(2, [2, 2, 5])
    batch = batch_of({"x": xs, "y": ys}, AXES, shared=shared)
    same(sequences_of(sketch.network, "last", batch, 3)[0], [x[-1:] for x in xs])
    same(sequences_of(sketch.network, "begin", batch, 3)[0], [x[:2] for x in xs])
    assert sketch.network["last"].axis == ONE
    assert sketch.network["begin"].axis not in (ONE, "t", DEFAULT)


@pytest.mark.parametrize("shared", [False, True])
def test_condition_of_the_data(sketch, shared):
    b = Built(sketch)
    keep = sketch("Greater", sketch("RowSlice", b.x, start=0, count=1), b.constant(0), name="keep")
    b.gather(keep, b.x, name="kept")
    b.scatter(keep, sketch("GatherPacked", sketch("PackedIndex", b.x, sketch("Where", keep)), b.x), name="back")
    xs = [np.abs(x) * np.sign(np.arange(len(x)) % 2 - 0.5)[:, None] for x in ragged(3, [3, 2, 6])]
    batch = batch_of({"x": xs}, AXES, extra=1, shared=shared)
    kept, wrong = sequences_of(sketch.network, "kept", batch, 3)
    same(kept, [x[x[:, 0] > 0] for x in xs])
    assert not wrong
    same(sequences_of(sketch.network, "back", batch, 3)[0], [np.where(x[:, :1] > 0, x, 0) for x in xs])


def test_a_sequence_of_which_nothing_is_kept_is_noted(sketch):
    b = Built(sketch)
    keep = sketch("Greater", sketch("RowSlice", b.x, start=0, count=1), b.constant(0))
    b.gather(keep, b.x, name="kept")
    for shared in (False, True):
        batch = batch_of({"x": [np.ones((2, 2)), -np.ones((3, 2))]}, AXES, slots=4, shared=shared)
        assert len(sequences_of(sketch.network, "kept", batch, 2)[1]) == 1


def test_one_step_put_at_the_first_of_another_axis(sketch):
    b = Built(sketch)
    b.scatter(b.edge(b.y, "PastValue"), b.last(b.x), name="put")
    xs, ys = ragged(1, [3, 1, 4]), ragged(2, [2, 2, 5])
    expected = [np.concatenate([x[-1:], np.zeros((len(y) - 1, 2))]) for x, y in zip(xs, ys, strict=True)]
    for shared in (False, True):
        batch = batch_of({"x": xs, "y": ys}, AXES, shared=shared)
        same(sequences_of(sketch.network, "put", batch, 3)[0], expected)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_reconciled_axes(sketch, equal, shared):
    b = Built(sketch)
    first = b.gather(b.edge(b.x, "PastValue", 3), b.x)
    sketch("ReconcileDynamicAxis", first, b.y, name="r")
    xs = ragged(1, [4, 2])
    ys = ragged(2, [3, 2] if equal else [3, 1])
    found, wrong = sequences_of(sketch.network, "r", batch_of({"x": xs, "y": ys}, AXES, extra=2, shared=shared), 2)
    assert bool(wrong) != equal
    if equal:
        same(found, [x[:3] for x in xs])


def test_columns_of_a_matrix(sketch):
    b = Built(sketch)
    table = sketch.parameter("E", 2, 3)
    index = sketch("Floor", sketch("RowSlice", b.y, start=0, count=1))
    sketch("GatherPacked", index, table, name="columns")
    ys = [np.array([[0.0, 0], [2.5, 0]]), np.array([[1.0, 0]])]
    found, wrong = sequences_of(sketch.network, "columns", batch_of({"y": ys}, AXES), 2)
    matrix = table.matrix()
    same(found, [matrix[:, [0, 2]].T, matrix[:, [1]].T])
    assert not wrong
    assert sequences_of(sketch.network, "columns", batch_of({"y": [np.full((1, 2), 3.0)]}, AXES), 1)[1]


# ---- gradients


def criterion(b, sketch):
    """Both axes, a recurrence on each, steps selected and put back."""
    w, u, v = (sketch.parameter(name, 2, 2) for name in "WUV")
    past = sketch("PastValue", b.x, name="past", rows=2, defaultHiddenActivity=0.1)
    h = sketch("Tanh", sketch("Plus", sketch("Times", w, b.x), sketch("Times", u, past)), name="h")
    past.inputs = [h]
    end = b.last(h)
    padded = b.scatter(b.edge(b.y, "PastValue"), end)
    hold = sketch("PastValue", padded, name="hold", rows=2, defaultHiddenActivity=0.0)
    everywhere = sketch("Plus", padded, hold, name="everywhere")
    hold.inputs = [everywhere]
    z = sketch("ElementTimes", sketch("Times", v, everywhere), b.y)
    kept = b.gather(sketch("Greater", sketch("RowSlice", b.y, start=0, count=1), b.constant(-9)), z)
    one = sketch("SumElements", sketch("ElementTimes", kept, kept))
    two = sketch("SumElements", sketch("Sin", sketch("Times", v, end)))
    return sketch("Plus", one, two, name="ce")


@pytest.mark.parametrize("shared", [False, True])
def test_gradients(helpers, sketch, shared):
    b = Built(sketch)
    criterion(b, sketch)
    data = {"x": ragged(4, [3, 1, 2]), "y": ragged(5, [2, 4, 1])}
    batch = batch_of(data, AXES, extra=1, slots=4, shared=shared)
    _, found = helpers.gradients(sketch.network, "ce", batch)
    for name, (indices, slopes) in helpers.central_differences(sketch.network, "ce", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[indices], slopes, rtol=1e-5, atol=1e-8, err_msg=name)
        assert np.abs(slopes).max() > 1e-3


_FUNCTION = {}


def _compiled():
    if not _FUNCTION:
        from tests.networks.conftest import Sketch

        sketch = Sketch()
        criterion(Built(sketch), sketch)
        network = sketch.network.validate()
        function = jax.jit(compile_gradient(network, "ce"))
        _FUNCTION["f"] = function, network_parameters(network), network_state(network)
    return _FUNCTION["f"]


@pytest.mark.thorough
@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=2), st.randoms(use_true_random=False))
def test_neither_order_nor_padding_matters(lengths, random):
    """Slots permuted and gaps added: the same sums and gradients.

    Minibatches have few shapes, since a shape takes three seconds to compile: three without gaps, one with them.
    """
    function, parameters, state = _compiled()
    lengths = [(3, 3), *lengths]
    data = {"x": ragged(6, [a for a, _ in lengths]), "y": ragged(7, [b for _, b in lengths])}
    order = list(range(len(lengths)))
    random.shuffle(order)
    one, total, _ = function(parameters, state, batch_of(data, AXES))
    for more in ({}, {"shared": True}):
        other, moved, _ = function(parameters, state, batch_of(data, AXES, 1, order, 4, **more))
        np.testing.assert_allclose(moved["ce"], total["ce"], rtol=1e-10)
        for name in one:
            np.testing.assert_allclose(other[name], one[name], rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_one_step_repeated_for_all_steps_of_another_axis(helpers, sketch):
    """The loop of BroadcastSequenceAs, which is computed without steps, and its gradient."""
    check_repeated_step(helpers, sketch, shared=False)


def test_one_step_repeated_where_sequences_share_slots(helpers, sketch):
    check_repeated_step(helpers, sketch, shared=True)


def check_repeated_step(helpers, sketch, shared):
    b = Built(sketch)
    w = sketch.parameter("W", 2, 2)
    padded = b.scatter(b.edge(b.y, "PastValue"), b.last(sketch("Times", w, b.x)), name="padded")
    past = sketch("PastValue", padded, name="past", rows=2, defaultHiddenActivity=0.3)
    out = sketch("If", b.edge(padded, "PastValue"), padded, past, name="out")
    past.inputs = [out]
    sketch("SumElements", sketch("Sin", sketch("Plus", sketch("ElementTimes", out, b.y), past)), name="ce")
    xs, ys = ragged(1, [3, 1, 4]), ragged(2, [2, 2, 5])
    batch = batch_of({"x": xs, "y": ys}, AXES, extra=1, slots=4, shared=shared)
    expected = [np.repeat(x[-1:] @ w.matrix().T, len(y), axis=0) for x, y in zip(xs, ys, strict=True)]
    same(sequences_of(sketch.network, "out", batch, 3)[0], expected)
    before = [np.concatenate([np.full((1, 2), 0.3), one[:-1]]) for one in expected]
    for found, wanted in zip(sequences_of(sketch.network, "past", batch, 3)[0], before, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    _, found = helpers.gradients(sketch.network, "ce", batch)
    for name, (indices, slopes) in helpers.central_differences(sketch.network, "ce", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[indices], slopes, rtol=1e-5, atol=1e-8, err_msg=name)


# ---- axes as types


def test_mixed_axes_name_both_inputs(sketch):
    b = Built(sketch)
    sketch("Plus", sketch("Tanh", b.x), sketch("Sin", b.y), name="p")
    with pytest.raises(
        UserError, match=r"Plus 'p' mixes two time axes: .*\(from the input 'x'\).*\(from the input 'y'\)"
    ):
        sketch.network.validate()


def test_conditions_written_alike_keep_the_same_steps(sketch):
    b = Built(sketch)
    sketch("Plus", b.gather(b.edge(b.x, steps=2), b.x), b.gather(b.edge(b.x, steps=2), b.x), name="p")
    sketch.network.validate()
    sketch("Plus", b.gather(b.edge(b.x, steps=2), b.x), b.gather(b.edge(b.x, steps=3), b.x), name="q")
    with pytest.raises(UserError, match="mixes two time axes"):
        sketch.network.validate()


@pytest.mark.parametrize("label", [{}, {"dynamicAxis": "t2"}])
def test_an_input_that_meets_one_step_has_one(sketch, label):
    """And so has all that is computed from it, unless something looks along its axis."""
    b = Built(sketch)
    sketch("DynamicAxis", name="t2")
    given = sketch("InputValue", name="given", dims=(2,), **label)
    soft = sketch("Tanh", given, name="soft")
    sketch("Plus", sketch("Sin", b.last(b.x)), soft, name="p")
    sketch.network.validate()
    assert [sketch.network[name].axis for name in ("given", "soft", "p", "x")] == [ONE, ONE, ONE, "t"]
    with pytest.raises(UserError, match="mixes two time axes"):
        sketch.network.validate(exact_axes=True)
    sketch("PastValue", soft, name="before", rows=2)
    with pytest.raises(UserError, match=r"'p' mixes two time axes: .* one step per sequence \(from the input 'x'\)"):
        sketch.network.validate()


def test_a_step_does_not_meet_those_that_it_was_selected_from(sketch):
    b = Built(sketch)
    sketch("Plus", b.last(b.x), b.x, name="p")
    with pytest.raises(UserError, match=r"'p' mixes two time axes: .* one step per sequence .*, 'x' has the time"):
        sketch.network.validate()


def test_labels_of_sequences_that_share_the_axis_of_their_words(sketch):
    """CNTK's manual has a classifier of sequences like that; the hint is the declaration that it lacks."""
    b = Built(sketch)
    sketch("SquareError", sketch.input("label", 2), b.last(b.y), name="e")
    with pytest.raises(UserError, match="mixes two time axes") as caught:
        sketch.network.validate()
    assert "if each sequence has one sample of it: label = Input (..., dynamicAxis='#')" in str(caught.value.hint)


def test_an_axis_is_no_operand(sketch):
    b = Built(sketch)
    sketch("Tanh", b.t, name="h")
    with pytest.raises(UserError, match="'t' is a time axis, which has no values"):
        sketch.network.validate()


def test_an_input_names_an_axis(sketch):
    b = Built(sketch)
    sketch("InputValue", name="v", dims=(2,), dynamicAxis="y")
    with pytest.raises(UserError, match="'y', which is not a DynamicAxis but InputValue"):
        sketch.network.validate()
    assert b.s.network["v"].options["dynamicAxis"] == "y"


def test_no_selection_inside_a_loop(sketch):
    b = Built(sketch)
    past = sketch("PastValue", b.x, name="past", rows=2)
    kept = b.gather(b.edge(b.x, steps=5), past, name="kept")
    h = sketch("ReconcileDynamicAxis", kept, b.x, name="h")
    past.inputs = [h]
    with pytest.raises(UserError, match="reduces over time and cannot be part of a loop"):
        sketch.network.validate()


@pytest.mark.parametrize(("of_label", "expected"), [("#", "#"), ("", "*"), ("t", "t")])
def test_whose_samples_count(sketch, of_label, expected):
    x = sketch("InputValue", name="x", dims=(2,), dynamicAxis="t" if of_label != "#" else "")
    label = sketch("InputValue", name="l", dims=(2,), dynamicAxis=of_label)
    b = Built.__new__(Built)
    b.s = sketch
    end = x if of_label == "t" else sketch("ReconcileDynamicAxis", b.last(x), label)
    sketch("CrossEntropyWithSoftmax", label, end, name="ce")
    network = sketch.network.validate()
    assert main_axis(network.below([network["ce"]]), [network["ce"]]) == expected


def test_axes_survive_renaming(sketch):
    b = Built(sketch)
    sketch.network.rename("t", "inAxis")
    sketch.network.validate()
    assert b.x.axis == "inAxis"
    assert nodes.find("Where").time.keeps_steps


# ---- operands without minibatch data


SAME_AT_EVERY_STEP = """t = DynamicAxis()
x = Input(2, dynamicAxis=t)
y = Input(2)
p = Parameter(2, 1, init=fixedValue, value=1.5)
zero = Constant(0)
everywhere = ReconcileDynamicAxis(p, x)
h = ElementTimes(everywhere, x)
first = PastValue(1, ReconcileDynamicAxis(zero, x), defaultHiddenActivity=1)
begin = GatherPacked(PackedIndex(x, Where(first)), x)
put = ScatterPacked(first, PackedIndex(first, Where(first)), p)
past = PastValue(2, sum, defaultHiddenActivity=0)
sum = Plus(past, ElementTimes(ReconcileDynamicAxis(p, past), x))
loss = SquareError(ReconcileDynamicAxis(h, y), y)
also = SquareError(ReconcileDynamicAxis(sum, y), y)
all = Plus(loss, also)
"""


def test_data_without_minibatch_data(helpers):
    """They are the same at every step of the other operand, as in CNTK."""
    network = parse_ndl(SAME_AT_EVERY_STEP, precision="double", require_features=False)
    xs, ys = ragged(1, [3, 1, 4]), ragged(2, [3, 1, 4])
    batch = batch_of({"x": xs, "y": ys}, AXES, extra=1)
    for name, of in {
        "everywhere": lambda x: np.full_like(x, 1.5),
        "h": lambda x: 1.5 * x,
        "first": lambda x: np.eye(len(x))[:1].T,
        "begin": lambda x: x[:1],
        "put": lambda x: np.eye(len(x))[:1].T * [[1.5, 1.5]],
        "sum": lambda x: np.cumsum(1.5 * x, axis=0),
    }.items():
        found, wrong = sequences_of(network, name, batch, 3)
        assert not wrong
        same(found, [of(x) for x in xs])
    assert network["begin"].axis == ONE
    _, found = helpers.gradients(network, "all", batch)
    ((_, slopes),) = helpers.central_differences(network, "all", batch).values()
    np.testing.assert_allclose(np.sort(found["p"].reshape(-1)), np.sort(slopes), rtol=1e-6)


@pytest.mark.parametrize("repeat", [True, False])
def test_one_step_at_every_step_where_that_is_said(sketch, repeat):
    b = Built(sketch)
    sketch("ReconcileDynamicAxis", b.last(b.x), b.y, name="r", broadcast=repeat)
    xs, ys = ragged(1, [4, 2]), ragged(2, [1, 3])
    found, _ = sequences_of(sketch.network, "r", batch_of({"x": xs, "y": ys}, AXES), 2)
    if repeat:
        same(found, [np.tile(x[-1:], (len(y), 1)) for x, y in zip(xs, ys, strict=True)])
    compared = [node.name for node, _, _ in equal_lengths(sketch.network.nodes.values())]
    assert compared == ([] if repeat else ["r"])  # the lengths of what is read are compared before it is computed


@pytest.mark.parametrize(("operation", "options"), [("Where", {}), ("PastValue", {"rows": 1})])
def test_operands_without_minibatch_data_are_refused(sketch, operation, options):
    Built(sketch)
    sketch(operation, sketch.constant(1), name="w", **options)
    with pytest.raises(UserError, match="carries no minibatch data") as caught:
        sketch.network.validate()
    assert "ReconcileDynamicAxis (constant, x)" in str(caught.value.hint)
