"""Programs on several time axes against NumPy, sequence by sequence; whatever the slots and the gaps are."""

from typing import Any

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.brainscript.build import build_program
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.program import parse_network
from cntkpy.networks.compile.evaluate import (
    LENGTHS,
    compile_gradient,
    compile_network,
    network_parameters,
    network_state,
)
from cntkpy.networks.files.model_file import save_model
from cntkpy.networks.graph.initialize import SeedCounter
from tests.networks.nodes.test_sequences import batch_of, by_sequence, ragged

HEAD = "t = DynamicAxis () ; x = Input {2, dynamicAxis=t} ; y = Input {2}\n"
KEEP = "BS.Boolean.Or (BS.Loop.IsFirst (x), Greater (Slice (0, 1, x), 0))"
X, Y = ragged(1, [3, 1, 4, 2, 5]), ragged(2, [2, 4, 1, 3, 3])
DATA, AXES = {"x": X, "y": Y}, {"x": "t", "y": "*"}
MOVED: dict[str, Any] = {"order": [2, 0, 4, 1, 3], "extra": 2, "slots": 8}
SHARED: dict[str, Any] = {"order": [2, 0, 4, 1, 3], "extra": 1, "slots": 7, "shared": True}


def made(members: str, head: str = "{" + HEAD, tail: str = "}"):
    """The network of a program."""
    program = parse_network(text_of_string(head + members + tail, "test.bs"))
    return build_program(program, "double", SeedCounter(), {"deviceId": -1.0, "traceLevel": 0.0}).network


def values(network, names, data=DATA, axes=AXES, **more):
    """By name, the values of each sequence in the order of the data."""
    batch, order = batch_of(data, axes, **more), more.get("order") or range(5)
    found, _ = jax.jit(compile_network(network, names))(network_parameters(network), network_state(network), batch)
    result = {}
    for name in names:
        axis = network[name].axis
        each = by_sequence(np.asarray(found[name]), batch.axes.get(axis), found.get(axis + LENGTHS))
        by_slot = {i: each[slot].reshape(len(each[slot]), -1) for slot, i in enumerate(order)}
        result[name] = [by_slot[i] for i in range(5)]
    return result


def same(network, expected, data=DATA, axes=AXES):
    """Values are as expected, with other slots and gaps too."""
    for more in ({}, MOVED, SHARED):
        found = values(network, list(expected), data, axes, **more)
        for name, wanted in expected.items():
            for one, other in zip(found[name], wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=f"{name} {more}")


def gradients_hold(network):
    """Those of `ce` do not depend on slots and gaps, and are central differences."""
    function = jax.jit(compile_gradient(network, "ce"))
    parameters, state = network_parameters(network), network_state(network)
    found, totals, _ = function(parameters, state, batch_of(DATA, AXES))
    for more in (MOVED, SHARED):
        moved, other, _ = function(parameters, state, batch_of(DATA, AXES, **more))
        np.testing.assert_allclose(other["ce"], totals["ce"], rtol=1e-9)
        for name in parameters:
            np.testing.assert_allclose(moved[name], found[name], rtol=1e-8, atol=1e-10)
    for name, value in parameters.items():
        step = np.zeros(value.size)
        step[-1] = 1e-6
        step = step.reshape(value.shape)
        up, down = (
            float(function(parameters | {name: value + sign * step}, state, batch_of(DATA, AXES))[1]["ce"])
            for sign in (1, -1)
        )
        np.testing.assert_allclose(np.ravel(found[name])[-1], (up - down) / 2e-6, rtol=1e-5, atol=1e-7)


def kept(x):
    """The steps that `KEEP` keeps."""
    chosen = x[:, 0] > 0
    chosen[0] = True
    return chosen


def matrix(network, name):
    return np.asarray(network[name].value).T


def states(inputs, recurrent, start, sequence, function=np.tanh):
    """Of a recurrence from the first step to the last."""
    state, found = np.full(len(recurrent), start), []
    for now in sequence:
        state = function(inputs @ now + recurrent @ state)
        found.append(state)
    return np.array(found)


@pytest.mark.thorough
def test_steps_selected_of_selected_ones() -> None:
    network = made(f"""
        one = {KEEP} ; g = BS.Sequences.Gather (one, x)
        two = BS.Boolean.Or (BS.Loop.IsLast (g), Greater (Slice (1, 2, g), 0)) ; gg = BS.Sequences.Gather (two, g)
        back = BS.Sequences.Scatter (one, BS.Sequences.Scatter (two, gg))
        outputNodes = (gg : back)""")
    expected: dict[str, list[np.ndarray]] = {"gg": [], "back": []}
    for x in X:
        g, back = x[kept(x)], np.zeros_like(x)
        chosen = g[:, 1] > 0
        chosen[-1] = True
        back[kept(x)] = np.where(chosen[:, None], g, 0)
        expected["gg"].append(g[chosen])
        expected["back"].append(back)
    same(network, expected)


@pytest.mark.thorough
def test_recurrences_over_selected_steps() -> None:
    network = made(f"""
        keep = {KEEP} ; g = BS.Sequences.Gather (keep, x)
        W = ParameterTensor {{(3:2)}} ; R = ParameterTensor {{(3:3)}} ; Q = ParameterTensor {{(3:3)}}
        h = Tanh (W * g + R * PastValue (3, h, defaultHiddenActivation=0.2))
        k = Tanh (W * g + Q * FutureValue (3, k, defaultHiddenActivation=0.3))
        before = PastValue (3, h, timeStep=2, defaultHiddenActivation=0.5)
        last = BS.Sequences.Last (h) ; first = BS.Sequences.First (k)
        wide = BS.Sequences.Scatter (keep, h)
        again = Tanh (wide + R * PastValue (3, again))
        ce = ReduceSum (Sin (BS.Sequences.Last (again)) + last .* first, tag='criterion')
        outputNodes = (h : k : before : last : first : again)""")
    w, r, q = (matrix(network, name) for name in "WRQ")
    names = ["h", "k", "before", "last", "first", "again"]
    expected: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for x in X:
        g = x[kept(x)]
        h, k = states(w, r, 0.2, g), states(w, q, 0.3, g[::-1])[::-1]
        before = np.concatenate([np.full((2, 3), 0.5), h])[: len(h)]
        wide = np.zeros((len(x), 3))
        wide[kept(x)] = h
        for name, value in zip(names, (h, k, before, h[-1:], k[:1], states(np.eye(3), r, 0.1, wide)), strict=True):
            expected[name].append(value)
    same(network, expected)
    gradients_hold(network)


@pytest.mark.thorough
def test_a_shared_clone_on_another_axis() -> None:
    """Its conditions are those of its own input."""
    network = made(f"""
        W = ParameterTensor {{(3:2)}} ; R = ParameterTensor {{(3:3)}}
        h = Tanh (W * x + R * PastValue (3, h)) ; last = BS.Sequences.Last (h)
        some = BS.Sequences.Gather ({KEEP}, h)
        f = BS.Network.CloneFunction (x, {{ a = last ; b = some }}, parameters="shared")
        r = f (y) ; of_y = r.b ; sum = last + r.a
        ce = ReduceSum (Sin (sum), tag='criterion')
        outputNodes = (some : of_y : sum)""")
    w, r = matrix(network, "W"), matrix(network, "R")
    hx, hy = ([states(w, r, 0.1, one) for one in sequences] for sequences in (X, Y))
    chosen = {
        name: [h[kept(one)] for h, one in zip(*both, strict=True)]
        for name, both in (("some", (hx, X)), ("of_y", (hy, Y)))
    }
    same(network, chosen | {"sum": [a[-1:] + b[-1:] for a, b in zip(hx, hy, strict=True)]})
    gradients_hold(network)


@pytest.mark.thorough
def test_models_on_several_axes_edited_and_cloned(tmp_path, monkeypatch) -> None:
    """Inputs exchanged, or joined to one axis; an operation replaced."""
    monkeypatch.chdir(tmp_path)
    network = made("""
        W = ParameterTensor {(3:2)} ; R = ParameterTensor {(3:3)}
        h = Tanh (W * x + R * PastValue (3, h))
        o = BS.Sequences.BroadcastSequenceAs (y, BS.Sequences.Last (h))
        outputNodes = (o)""")
    save_model("m.dnn", network)
    w, r = matrix(network, "W"), matrix(network, "R")
    clone = made(
        """
        f = BS.Network.CloneFunction ((old.x : old.y), old.o, parameters="constant")
        q = f (y, x) ; outputNodes = (q)""",
        head='{ old = BS.Network.Load ("m.dnn")\n' + HEAD,
    )
    same(clone, {"q": [np.repeat(states(w, r, 0.1, y)[-1:], len(x), 0) for x, y in zip(X, Y, strict=True)]})
    edited = made(
        """
        swap (n) = if n.name == 'h' then Sigmoid (n.inputs[0]) else n
        first = BS.Network.Edit (old, swap, None)
        r = BS.Network.Edit (first, BS.Network.Editing.ReplaceLinksToNode (first.y, old.x), None)""",
        head='({ old = BS.Network.Load ("m.dnn")\n',
        tail="}.r)",
    )
    each = [states(w, r, 0.1, x, lambda z: 1 / (1 + np.exp(-z))) for x in X]
    same(edited, {"o": [np.repeat(h[-1:], len(h), 0) for h in each]}, {"x": X}, {"x": "t"})
