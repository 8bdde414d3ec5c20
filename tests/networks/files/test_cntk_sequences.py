"""CNTK's later format: functions on sequences, and operands that carry no minibatch data."""

import cntk_v2_writer as v
import numpy as np
import pytest
from cntk_v2_blocks import broadcast_as, dense, is_within, last, lstm, run_lstm, sequence_slice, values

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.batch import Grid
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import LENGTHS, PROBLEM, Batch, compile_network, network_parameters, network_state
from cntkpy.networks.files.cntk_binary.load import read_cntk
from cntkpy.networks.graph.axes import DEFAULT, ONE
from cntkpy.trainers.step.sequence_problems import sequence_problem

RANDOM = np.random.default_rng(5)
LENGTHS_OF_X = (4, 2, 5)
X = [RANDOM.normal(size=(n, 2)) for n in LENGTHS_OF_X]


def grid(lengths, steps):
    step = np.arange(steps, dtype=np.int32)[:, None]
    mask = step < np.array(lengths)
    return Grid(mask, np.where(mask, step, -1), np.where(mask, np.array(lengths) - 1 - step, -1))


def batch_of(network, **data):
    """A minibatch with a slot for each sequence; all that is not a sequence's is 7."""
    inputs, grids = {}, {}
    for name, sequences in data.items():
        lengths = [len(one) for one in sequences]
        steps = max(lengths)
        array = np.full((steps, len(sequences), *sequences[0].shape[1:]), 7.0)
        for slot, one in enumerate(sequences):
            array[: len(one), slot] = one
        inputs[name] = array
        grids[network[name].axis] = grid(lengths, steps)
    main = grids.get(DEFAULT) or next(iter(grids.values()))
    return Batch(inputs, *main, grids)


def evaluate(f, root, name="z", **data):
    """The values of a node, sequence by sequence, and whether sequences did not fit."""
    network = read_cntk(f.content(root), precision="double")
    batch = batch_of(network, **data)
    function = jax.jit(compile_network(network, [name]))
    found, state = function(network_parameters(network), network_state(network), batch)
    value, node = np.asarray(found[name]), network[name]
    if not node.has_layout:
        return value
    axis = batch.axes.get(node.axis)
    lengths = np.asarray(found[node.axis + LENGTHS]) if axis is None else axis.mask.sum(axis=0)
    wrong = any(np.any(flag) for key, flag in state.items() if key.endswith(PROBLEM))
    return [value[:n, slot].reshape(n, *reversed(node.shape)) for slot, n in enumerate(lengths)], wrong


def sequence(f, name, width):
    """An input on another sequence axis than `x`."""
    return f.input(name, width, axes=(v.Axis(2147483647, "other", True), v.BATCH))


def assert_sequences(found, expected):
    sequences, wrong = found
    assert not wrong
    assert len(sequences) == len(expected)
    for one, other in zip(sequences, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    ("begin", "end"), [(0, 1), (-1, 0), (1, 2), (-2, -1), (0, 2), (-2, 0), (1, 0), (0, -1), (1, -1), (0, 5), (-5, 0)]
)
@pytest.mark.sampled
def test_slices_of_sequences(begin, end):
    """Their conditions are made of a constant 0 that has the layout of the operand."""
    f = v.Writer(double=True)
    sequence_slice(f, "Block1", f.input("x", 2), begin, end, 2)
    f.function(0, "Negate2", "Block1_Output_0", name="z")
    data = [x for x in X if len(x[begin : end or None])]
    assert_sequences(evaluate(f, "Negate2", x=data), [-x[begin : end or None] for x in data])
    one_step = (begin, end) in ((0, 1), (-1, 0), (1, 2), (-2, -1))
    assert (read_cntk(f.content("Negate2"))["z"].axis == ONE) == one_step


def test_a_slice_of_a_sequence_that_is_too_short():
    f = v.Writer(double=True)
    sequence_slice(f, "Block1", f.input("x", 2), 2, 3, 2)
    f.function(0, "Negate2", "Block1_Output_0", name="z")
    assert evaluate(f, "Negate2", x=X)[1]


def bidirectional(criterion=False):
    """The last states of two LSTMs, one of them backwards, and a dense layer."""
    f = v.Writer(double=True)
    x = f.input("x", 2)
    forward, one = lstm(f, "Block1", x, 3)
    backward, two = lstm(f, "Block2", x, 2, op=38)
    ends = [last(f, "Block3", forward, 3), sequence_slice(f, "Block4", backward, 0, 1, 2)]
    f.function(43, "Splice5", *ends, axis=v.static(0))
    z = dense(f, "Block6", "Splice5_Output_0", 2, 5, name="z")
    if criterion:
        f.function(35, "Loss7", z, f.input("label", 2, axes=[v.BATCH]), name="ce")
    return f, one, two


def test_a_bidirectional_lstm_with_the_last_states():
    f, one, two = bidirectional()
    weights, bias = values(f, "ParameterBlock60"), values(f, "ParameterBlock61")
    expected = []
    for x in X:
        forward = run_lstm(x, *(values(f, name) for name in one), 3)[-1]
        backward = run_lstm(x, *(values(f, name) for name in two), 2, backwards=True)[0]
        expected.append((weights @ np.concatenate([forward, backward]) + bias)[None])
    assert_sequences(evaluate(f, "Block6", x=X), expected)


@pytest.mark.thorough
def test_gradients_of_a_bidirectional_lstm(helpers):
    f, _, _ = bidirectional(criterion=True)
    network = read_cntk(f.content("Loss7"), precision="double")
    labels = [np.eye(2)[[n % 2]] for n in LENGTHS_OF_X]
    assert_gradients(helpers, network, "ce", batch_of(network, x=X, label=labels))


def assert_gradients(helpers, network, criterion, batch):
    _, found = helpers.gradients(network, criterion, batch)
    assert found
    for name, (chosen, slopes) in helpers.central_differences(network, criterion, batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-5, atol=1e-8, err_msg=name)
        assert np.any(slopes), name


@pytest.mark.parametrize("what", ["constant", "parameter", "dense over a constant", "slice of a constant"])
def test_without_minibatch_data_it_is_the_same_at_every_step(what, helpers):
    f = v.Writer(double=True)
    x = f.input("x", 2)
    value = np.array([0.5, -2.0])
    if what == "constant":
        p = f.constant("p", value)
    elif what == "slice of a constant":
        whole = f.constant("p", np.array([9.0, 0.5, -2.0, 9.0]))
        p = f.function(14, "Slice1", whole, axis=v.static(0), beginIndex=v.Int(1), endIndex=v.Int(3))
    elif what == "parameter":
        p = f.parameter("p", value)
    else:
        p = dense(f, "Block9", f.constant("p", np.array([1.0, 2, 3])), 2, 3)
        value = values(f, "ParameterBlock90") @ np.array([1.0, 2, 3]) + values(f, "ParameterBlock91")
    broadcast_as(f, "Block2", p, x, 2)
    f.function(21, "Times3", "Block2_Output_0", x, name="z")
    f.function(34, "Loss4", "Times3_Output_0", f.input("y", 2), name="loss")
    f.function(44, "Both", "Times3_Output_0", "Loss4_Output_0")
    assert_sequences(evaluate(f, "Both", x=X, y=X), [x * value for x in X])
    assert_sequences(evaluate(f, "Both", "Block2_reconcile", x=X, y=X), [np.tile(value, (len(x), 1)) for x in X])
    if what not in ("constant", "slice of a constant"):
        network = read_cntk(f.content("Both"), precision="double")
        assert_gradients(helpers, network, "loss", batch_of(network, x=X, y=X))


def test_one_step_is_repeated_at_every_step(helpers):
    """Attention and decoders have the last state of one sequence at every step of another."""
    f = v.Writer(double=True)
    y = sequence(f, "y", 3)
    end = last(f, "Block1", f.input("x", 2), 2)
    p = f.parameter("p", [1.5, -1.0])
    f.function(21, "Scaled2", p, end)
    broadcast_as(f, "Block3", "Scaled2_Output_0", y, 2)
    f.function(43, "Splice4", "Block3_Output_0", y, name="z", axis=v.static(0))
    ys = [RANDOM.normal(size=(n, 3)) for n in (2, 6, 1)]
    expected = [
        np.concatenate([np.tile(x[-1] * [1.5, -1], (len(y), 1)), y], axis=1) for x, y in zip(X, ys, strict=True)
    ]
    assert_sequences(evaluate(f, "Splice4", x=X, y=ys), expected)
    f.function(34, "Loss6", "Block3_Output_0", sequence(f, "label", 2), name="loss")
    network = read_cntk(f.content("Loss6"), precision="double")
    assert_gradients(helpers, network, "loss", batch_of(network, x=X, y=ys, label=[y[:, :2] for y in ys]))


def test_inputs_of_one_sample_are_repeated():
    f = v.Writer(double=True)
    x, one = f.input("x", 2), f.input("one", 2, axes=[v.BATCH])
    broadcast_as(f, "Block1", one, x, 2)
    f.function(19, "Plus2", "Block1_Output_0", x, name="z")
    ones = [RANDOM.normal(size=(1, 2)) for _ in X]
    assert_sequences(evaluate(f, "Plus2", x=X, one=ones), [x + one for x, one in zip(X, ones, strict=True)])


def test_lengths_that_differ_are_a_problem():
    """What keeps several steps is not repeated."""
    f = v.Writer(double=True)
    x = f.input("x", 2)
    sequence_slice(f, "Block1", x, 0, 2, 2)
    broadcast_as(f, "Block2", "Block1_Output_0", x, 2)
    f.function(0, "Negate3", "Block2_Output_0", name="z")
    assert evaluate(f, "Negate3", x=X)[1]
    assert_sequences(evaluate(f, "Negate3", x=[X[1]]), [-X[1]])


def test_a_constant_as_condition():
    f = v.Writer(double=True)
    x = f.input("x", 2)
    f.function(42, "Select1", f.constant("c", [1.0, 0.0]), x, f.constant("d", [5.0, 6.0]), name="z")
    assert_sequences(evaluate(f, "Select1", x=X), [np.stack([x[:, 0], np.full(len(x), 6.0)], axis=1) for x in X])


def test_the_condition_of_a_layout_of_its_own():
    f = v.Writer(double=True)
    x = f.input("x", 2)
    f.function(42, "Select1", is_within(f, "First", x, 1), f.constant("a", [5.0, 6.0]), x, name="z")
    assert_sequences(evaluate(f, "Select1", x=X), [np.concatenate([[[5.0, 6.0]], x[1:]]) for x in X])


@pytest.mark.parametrize("op", [37, 38])
def test_an_initial_state_of_each_sequence(op, helpers):
    """CNTK's Recurrence with an initial state that the network computes: the thought vector of a decoder."""
    f = v.Writer(double=True)
    y = sequence(f, "y", 2)
    end = last(f, "Block1", f.input("x", 2), 2)
    start = f.function(21, "Start2", f.parameter("p", [1.5, -1.0]), end)
    f.placeholder("Plus4_Output_0", 2)
    f.function(op, "Delay3", "Plus4_Output_0", start, offset=2)
    f.function(19, "Plus4", y, "Delay3_Output_0", name="z")
    f.function(op, "Plain5", y, start, name="plain", offset=1)
    f.function(44, "Both6", "Plus4_Output_0", "Plain5_Output_0")
    ys = [RANDOM.normal(size=(n, 2)) for n in (3, 6, 1)]
    expected, plain = [], []
    for x, y in zip(X, ys, strict=True):
        start = x[-1] * [1.5, -1]
        y = y[::-1] if op == 38 else y
        states = [start, start]
        for step in y:
            states.append(step + states[-2])
        order = slice(None, None, -1 if op == 38 else 1)
        expected.append(np.array(states[2:])[order])
        plain.append(np.concatenate([start[None], y[:-1]])[order])
    assert_sequences(evaluate(f, "Both6", x=X, y=ys), expected)
    assert_sequences(evaluate(f, "Both6", "plain", x=X, y=ys), plain)
    f.function(34, "Loss7", "Plus4_Output_0", sequence(f, "label", 2), name="loss")
    network = read_cntk(f.content("Loss7"), precision="double")
    assert_gradients(helpers, network, "loss", batch_of(network, x=X, y=ys, label=[y - 1 for y in ys]))


def test_two_operands_without_minibatch_data():
    f = v.Writer()
    broadcast_as(f, "Block1", f.constant("p", 1.0), f.constant("q", 2.0), 1)
    f.function(19, "Plus2", "Block1_Output_0", f.input("x", 1), name="z")
    with pytest.raises(UserError, match="'q' carries no minibatch data"):
        read_cntk(f.content("Plus2"))


# ---- what has the steps of its operand: ones_like, zeros_like, windows of past values


ONES_LIKE = {
    "itself": lambda f, ones: f.function(0, "Negate3", ones),
    "past_value": lambda f, ones: f.function(37, "Past3", ones, f.constant("start", 0.0), offset=1),
    "last": lambda f, ones: last(f, "Last3", ones, 2),
}


@pytest.mark.parametrize("what", ONES_LIKE)
def test_ones_like_a_sequence_are_a_sequence(what):
    f = v.Writer(double=True)
    ones = f.function(89, "Ones1", f.input("x", 2), fillValue=v.Float(1.0))
    f.function(21, "Z4", ONES_LIKE[what](f, ones), f.constant("five", 5.0), name="z")
    ones = [np.ones_like(x) for x in X]
    expected = {
        "itself": [-one for one in ones],
        "past_value": [np.concatenate([np.zeros((1, 2)), one[1:]]) for one in ones],
        "last": [one[:1] for one in ones],
    }
    assert_sequences(evaluate(f, "Z4", x=X), [5 * one for one in expected[what]])


def test_ones_like_a_state_and_a_parameter():
    f = v.Writer(double=True)
    x = f.input("x", 2)
    f.placeholder("Sum4_Output_0", 2)
    past = f.function(37, "Past1", "Sum4_Output_0", f.constant("start", 0.0), offset=1)
    more = f.function(19, "Plus2", past, f.function(89, "Ones3", past, fillValue=v.Float(1.0)))
    f.function(89, "Twos5", f.parameter("p", [3.0, 4.0]), fillValue=v.Float(2.0))
    f.function(19, "Sum4", more, f.function(21, "Times6", x, "Twos5_Output_0"), name="z")
    assert_sequences(evaluate(f, "Sum4", x=X), [np.cumsum(2 * x + 1, axis=0) for x in X])


def test_attention_over_a_window_of_past_values(helpers):
    """The last steps side by side, with flags of those that are there, at every step of another sequence."""
    f = v.Writer(double=True)
    x, y, steps = f.input("x", 2), sequence(f, "y", 3), 3
    zero = f.constant("zero", 0.0)
    ones = f.function(89, "Ones1", x, fillValue=v.Float(1.0))
    flag = f.function(
        14, "Flag2", ones, axis=v.static(0), beginIndex=v.Int(0), endIndex=v.Int(1), sliceStrides=v.Int(1)
    )
    values = [x] + [f.function(37, f"Value{k}", x, zero, offset=k) for k in range(1, steps)]
    flags = [flag] + [f.function(37, f"There{k}", flag, zero, offset=k) for k in range(1, steps)]
    window = last(f, "Last6", f.function(43, "Values4", *values, axis=v.static(1)), 2)
    there = last(f, "Last7", f.function(43, "Flags5", *flags, axis=v.static(0)), 3)
    scores = f.function(21, "Scores8", y, f.parameter("p", [1.0, -2.0, 0.5]))
    weights = f.function(21, "Weights9", scores, broadcast_as(f, "Block10", there, y, 3))
    f.function(31, "Mean11", broadcast_as(f, "Block12", window, y, 2), weights, outputRank=1, name="z")
    ys = [RANDOM.normal(size=(n, 3)) for n in (2, 5, 1)]
    expected = []
    for x, y in zip(X, ys, strict=True):
        latest = np.zeros((3, 2))
        latest[: min(3, len(x))] = x[::-1][:3]
        expected.append(y * [1.0, -2.0, 0.5] * (np.arange(3) < len(x)) @ latest)
    assert_sequences(evaluate(f, "Mean11", x=X, y=ys), expected)
    f.function(34, "Loss13", "Mean11_Output_0", sequence(f, "label", 2), name="loss")
    network = read_cntk(f.content("Loss13"), precision="double")
    assert_gradients(helpers, network, "loss", batch_of(network, x=X, y=ys, label=[y[:, :2] for y in ys]))


@pytest.mark.parametrize("operation", ["Sum", "Mean"])
@pytest.mark.parametrize("over", ["samples", "all of a sample", "all of a sequence", "all of a parameter"])
def test_reductions_over_the_minibatch(operation, over, helpers):
    f = v.Writer(double=True)
    axes = (v.SEQUENCE, v.BATCH) if over == "all of a sequence" else [v.BATCH]
    x = f.function(21, "Scaled1", f.input("x", 2, axes=axes), f.parameter("p", [1.5, -1.0]))
    operand = "Parameter_p" if over == "all of a parameter" else x
    axis = v.BATCH if over == "samples" else v.ALL
    f.function(39, "Reduced2", operand, axis=axis, reductionOpName=operation, reductionKeepDimensions=True, name="z")
    f.function(44, "Both3", x, "Reduced2_Output_0")
    data = X if over == "all of a sequence" else [x[:1] for x in X]
    scaled = np.array([[1.5, -1.0]]) if over == "all of a parameter" else np.concatenate(data) * [1.5, -1.0]
    reduced = {"Sum": np.sum, "Mean": np.mean}[operation]
    found = evaluate(f, "Both3", x=data)
    np.testing.assert_allclose(found.reshape(-1), reduced(scaled, axis=0 if over == "samples" else None), rtol=1e-12)
    if over.startswith("all of a s"):
        network = read_cntk(f.content("Reduced2"), precision="double")
        assert_gradients(helpers, network, "z", batch_of(network, x=data))


# ---- what earlier and later programs wrote in place of these functions


def _of_all(f, x):
    return f.function(39, "All1", x, axis=v.ALL_STATIC, reductionOpName="Sum")


ZEROS = {
    "a sum minus itself": lambda f, x: f.function(20, "Zeros2", _of_all(f, x), "All1_Output_0"),
    "a sparse input times zeros": lambda f, x: f.function(32, "Zeros2", x, f.constant("no", np.zeros(2)), outputRank=1),
    "a row of zeros times it": lambda f, x: f.function(31, "Zeros2", f.constant("no", np.zeros((1, 2))), x),
    "a sum times zero": lambda f, x: f.function(21, "Zeros2", _of_all(f, x), f.constant("no", 0.0)),
}


@pytest.mark.parametrize("zeros", ZEROS)
def test_the_last_step_in_other_words_goes_with_a_label_of_the_sequence(zeros):
    f = v.Writer(double=True)
    x = f.input("x", 2)
    flag = f.function(38, "Last3", ZEROS[zeros](f, x), f.constant("one", 1.0), offset=1)
    index = f.function(28, "Index5", x, f.function(13, "Where4", flag))
    end = f.function(29, "Gather6", x, index)
    z = f.function(31, "Times7", f.parameter("W", [[1.0, 2.0], [-3.0, 4.0]]), end, name="z")
    f.function(35, "Loss8", z, f.input("label", 2, axes=[v.BATCH]), name="ce")
    f.function(44, "Both9", z, "Loss8_Output_0")
    labels = [np.array([[0.0, 1.0]])] * len(X)
    assert_sequences(evaluate(f, "Both9", x=X, label=labels), [x[-1:] @ [[1.0, -3.0], [2.0, 4.0]] for x in X])


OVER_STEPS = {
    "Sum": lambda x: x.sum(axis=0),
    "Prod": lambda x: x.prod(axis=0),
    "Max": lambda x: x.max(axis=0),
    "Min": lambda x: x.min(axis=0),
    "LogSum": lambda x: np.log(np.exp(x).sum(axis=0)),
}


@pytest.mark.parametrize("reduction", OVER_STEPS)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.sampled
def test_reductions_over_the_steps(reduction, keep, helpers):
    """CNTK 2.1 and later: the steps become an axis, which is reduced."""
    f = v.Writer(double=True)
    x = f.function(21, "Scaled1", f.input("x", 2), f.parameter("p", [1.5, -1.0]))
    steps = f.function(72, "Steps2", x, sequenceUnpackPaddingValue=0.0, sequenceUnpackSuppressMaskOutput=True)
    axis = v.static(1 if keep else -1)
    f.function(39, "Reduced3", steps, axis=axis, reductionOpName=reduction, reductionKeepDimensions=keep, name="z")
    expected = [OVER_STEPS[reduction](x * [1.5, -1.0]) for x in X]
    assert_sequences(evaluate(f, "Reduced3", x=X), [e.reshape(1, 1, 2) if keep else e[None] for e in expected])
    network = read_cntk(f.content("Reduced3"), precision="double")
    assert (network["z"].axis, network["z"].shape) == (ONE, (2, 1) if keep else (2,))
    if not keep:
        f.function(34, "Loss4", "Reduced3_Output_0", f.input("y", 2, axes=[v.BATCH]), name="loss")
        network = read_cntk(f.content("Loss4"), precision="double")
        assert_gradients(helpers, network, "loss", batch_of(network, x=X, y=[x[:1] for x in X]))


def test_what_else_takes_the_steps_as_an_axis_is_refused():
    def refused(root, make, **attributes):
        f = v.Writer(double=True)
        f.function(72, "Steps", f.input("x", 2), name="steps", **attributes)
        make(f)
        with pytest.raises(UserError) as caught:
            read_cntk(f.content(root))
        return f"{caught.value} {caught.value.hint}"

    def reduced(axis, how):
        return lambda f: f.function(39, "z", "Steps_Output_0", axis=axis, reductionOpName=how)

    assert "UnpackSequence ('steps': its value)" in refused("Steps", lambda f: None)
    assert "only sequence.reduce_sum" in refused("Steps", lambda f: None)
    assert "taken by Negate 'z'" in refused("z", lambda f: f.function(0, "z", "Steps_Output_0"))
    assert "taken by ReduceElements 'z'" in refused("z", reduced(v.static(0), "Sum"))
    assert "taken by ReduceElements 'z'" in refused("z", reduced(v.ALL_STATIC, "Sum"))
    assert "Mean over the steps and the padding" in refused("z", reduced(v.static(-1), "Mean"))
    assert "the sum of a padding of 3" in refused("z", reduced(v.static(-1), "Sum"), sequenceUnpackPaddingValue=3.0)
    text = refused("z", lambda f: f.function(0, "z", "Steps_Output_1"))
    assert "output 1 of UnpackSequence 'steps' is not available here" in text
    assert "save a model without it" in text


def one_step(f, x, condition, axes):
    index = f.function(28, "Index2", x, f.function(13, "Where1", condition, newDynamicAxes=axes))
    return f.function(29, "Gather3", x, index)


def test_steps_that_the_file_says_are_one_for_each_sequence():
    """sequence.gather (x, condition, (0, 1)): any condition that is not 0 in one step."""
    f = v.Writer(double=True)
    chosen = one_step(f, f.input("x", 2), f.input("m", 1), [v.BATCH])
    f.function(20, "Minus4", chosen, f.input("y", 2, axes=[v.BATCH]), name="z")
    ys = [x[:1] for x in X]
    flags = [np.eye(len(x))[:, [len(x) // 2]] for x in X]
    assert_sequences(
        evaluate(f, "Minus4", x=X, m=flags, y=ys), [x[[len(x) // 2]] - y for x, y in zip(X, ys, strict=True)]
    )
    for change in (0, 1):  # no step, all steps
        assert evaluate(f, "Minus4", x=X, m=[np.full((len(x), 1), change) for x in X], y=ys)[1]
    error = sequence_problem(next(n for n in read_cntk(f.content("Minus4")).nodes.values() if n.operation == "Where"))
    assert "keeps no step of a sequence, or several" in str(error)
    assert "the condition 'm'" in str(error.hint)


@pytest.mark.parametrize("axes", [[], [v.Axis(2147483645)], [v.Axis(2147483647, "kept", True), v.BATCH]])
def test_steps_of_which_the_file_says_less(axes):
    f = v.Writer(double=True)
    f.function(0, "Negate4", one_step(f, f.input("x", 2), f.input("m", 1), axes), name="z")
    flags = [np.array([[1.0]] * (len(x) - 1) + [[0.0]]) for x in X]
    assert_sequences(evaluate(f, "Negate4", x=X, m=flags), [-x[:-1] for x in X])
