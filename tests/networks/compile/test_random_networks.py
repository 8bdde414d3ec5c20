"""Networks drawn at random from the declared functions: refused at a place, or computed in the shapes inferred."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.graph.axes import is_kept
from cntkpy.networks.nodes.declare import BOOLEAN, BOOLEANS, INTEGER, INTEGERS, NODE, REAL

HEAD = {
    "x": "Input(2, tag=feature)",
    "s": "SparseInput(3)",
    "i": "ImageInput(4, 3, 2, imageLayout=CHW)",
    "c": "Constant(2)",
    "W": "Parameter(3, 2)",
    "U": "Parameter(0, 0)",
    "b": "Parameter(2, 1)",
    "K": "Parameter(2, 8)",
}
HEAD_TEXT = "".join(f"{name} = {call}\n" for name, call in HEAD.items())
KINDS = [kind for kind in nodes.kinds() if not kind.unsupported]
SCALARS = {
    INTEGER: st.integers(-1, 4).map(str),
    REAL: st.sampled_from(["0", "1", "-0.5", "2e-1", "1#INF"]),
    BOOLEAN: st.sampled_from(["true", "false", "maybe"]),
    INTEGERS: st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda v: "{" + ", ".join(map(str, v)) + "}"),
    BOOLEANS: st.lists(st.sampled_from(["true", "false"]), min_size=1, max_size=3).map(
        lambda v: "{" + ",".join(v) + "}"
    ),
}


@st.composite
def calls(draw, names):
    """One call of any function, its operands among the names."""
    kind = draw(st.sampled_from(KINDS))
    words = []
    for argument in draw(st.sampled_from(kind.signatures)):
        for _ in range(draw(st.integers(1, 3)) if argument.many else 1):
            if argument.type == NODE:
                words.append(draw(st.sampled_from(names)))
            else:
                words.append(draw(st.sampled_from(argument.choices) if argument.choices else SCALARS[argument.type]))
    for option in draw(st.lists(st.sampled_from(kind.options), max_size=2, unique=True)) if kind.options else ():
        if option.choices or option.type in SCALARS:
            value = draw(st.sampled_from(option.choices) if option.choices else SCALARS[option.type])
            words.append(f'{option.name}="{value}"' if value == "" else f"{option.name}={value}")
    return f"{draw(st.sampled_from(kind.names))}({', '.join(words)})"


@st.composite
def scripts(draw):
    names, lines = list(HEAD), []
    count = draw(st.integers(1, 6))
    for index in range(count):
        later = [f"n{index + 1}"] if index + 1 < count and draw(st.integers(0, 5)) == 0 else []
        lines.append(f"n{index} = {draw(calls(names + later))}")
        names.append(f"n{index}")
    used = {"x", *re.findall(r"\w+", " ".join(lines))}
    return "\n".join([*(f"{name} = {call}" for name, call in HEAD.items() if name in used), *lines, ""])


@pytest.mark.thorough
@settings(max_examples=200)
@given(scripts())
@example(HEAD_TEXT + "n0 = Convolution(U, i, 1, 1, -1, 1, 1)\n")
def test_any_network_is_built_or_refused_at_its_place(script):
    from cntkpy.networks.arrays.lazy import jax
    from cntkpy.networks.compile.evaluate import Batch, compile_network, network_parameters, network_state

    try:
        network = parse_ndl(script, precision="double", diagnostics=[])
        network.validate()
        parameters, state = network_parameters(network), network_state(network)
    except UserError as error:
        assert error.span is not None, script
        return
    data = {n.name: np.zeros((2, 3, *reversed(n.shape))) for n in network.nodes.values() if n.kind.layout == "always"}
    cells = np.zeros((2, 3), np.int32)
    batch = Batch(data, cells == 0, cells, cells)
    known = {n for n in network.nodes.values() if not any(m.kind.precompute for m in network.below([n]))}
    function = compile_network(network.validate(), [node.name for node in known])
    shapes, _ = jax.eval_shape(function, parameters, state, batch)
    for node in known:
        steps = shapes[node.name].shape[0] if is_kept(node.axis) else 2  # RepeatSteps makes more
        lead = (steps, 3) if node.has_layout else ()
        assert shapes[node.name].shape == (*lead, *reversed(node.shape)), f"{node.describe()} in {script}"
        assert shapes[node.name].dtype == np.float64


STEPS = [
    "Sigmoid({a})",
    "Tanh({a})",
    "Exp(Negate(Abs({a})))",
    "Log(Exp({a}))",
    "Reciprocal(Exp({a}))",
    "Plus({a}, {b})",
]
STEPS += ["ElementTimes({a}, Sigmoid({b}))", "Times(Parameter(3, 3), {a})", "PastValue(3, {a}, timeStep=2)"]
STEPS += ["FutureValue(3, {a})", "Softmax({a})", "Sqrt(Abs({a}))", "RowSlice(1, 3, RowStack({a}, {b}))"]
STEPS += ["Plus({a}, PastValue(3, {later}))", "CosDistance({a}, {b})", "DiagTimes(Parameter(3), {a})"]
STEPS += ["Convolution(Parameter(1, 2), {a}, {{2}}, mapCount=1)", "Pooling({a}, average, {{2}})"]
CRITERIA = ["CrossEntropyWithSoftmax(y, {a})", "SquareError(y, {a})", "Logistic(y, Sigmoid({a}))", "SumElements({a})"]


@st.composite
def recurrent_networks(draw):
    """A chain of operations on columns of three elements, some recurrent, and a criterion."""
    lines, names = ["x = Input(3, tag=feature)", "y = Input(3)"], ["x"]
    for index in range(draw(st.integers(1, 6))):
        step = draw(st.sampled_from(STEPS))
        operands = {"a": draw(st.sampled_from(names)), "b": draw(st.sampled_from(names)), "later": f"n{index}"}
        call = step.format(**operands)
        call = f"Plus({call}, {operands['a']})" if step.startswith("Cos") else call
        lines.append(f"n{index} = {call}")
        names.append(f"n{index}")
    lines.append("cost = " + draw(st.sampled_from(CRITERIA)).format(a=names[-1]))
    return "\n".join([*lines, f"error = ErrorPrediction(y, {names[-1]})", ""])


@pytest.mark.thorough
@settings(max_examples=12)
@given(st.data())
def test_the_layout_of_a_minibatch_changes_nothing(data):
    """Gaps, the order of sequences, their places in slots, a minibatch in pieces: neither sums nor gradients change."""
    from cntkpy.networks.arrays.lazy import jax
    from cntkpy.networks.compile.evaluate import Batch, compile_gradient, network_parameters, network_state

    network = parse_ndl(data.draw(recurrent_networks()), precision="double", diagnostics=[])
    function = jax.jit(compile_gradient(network.validate(), "cost", ["error"]))
    parameters, state = network_parameters(network), network_state(network)
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    random = np.random.default_rng(len(lengths))
    sequences = [(random.normal(size=(n, 3)), np.eye(3)[random.integers(0, 3, n)]) for n in lengths]

    def evaluated(slots, steps):
        """Sums and gradients of sequences placed in slots, garbage in the gaps."""
        grid = (steps, len(slots))
        x, y = random.normal(size=(*grid, 3)), np.zeros((*grid, 3))
        start, end = np.full(grid, -1, np.int32), np.full(grid, -1, np.int32)
        for s, members in enumerate(slots):
            t = 0
            for n, (values, labels) in ((lengths[i], sequences[i]) for i in members):
                x[t : t + n, s], y[t : t + n, s] = values, labels
                start[t : t + n, s], end[t : t + n, s] = np.arange(n), np.arange(n)[::-1]
                t += n
        gradients, sums, _ = function(parameters, state, Batch({"x": x, "y": y}, start >= 0, start, end))
        return jax.tree.map(np.asarray, (sums, gradients))

    order = data.draw(st.permutations(range(len(lengths))))
    slots = [[] for _ in range(3)]
    for index in order:
        slots[data.draw(st.integers(0, 2))].append(index)
    pieces = [evaluated([[index], [], []], 16) for index in range(len(lengths))]
    expected = jax.tree.map(lambda *parts: sum(parts), *pieces)
    for one, other in zip(jax.tree.leaves(evaluated(slots, 16)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
