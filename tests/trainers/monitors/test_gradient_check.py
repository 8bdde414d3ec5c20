"""`gradientcheck`: passes on sound networks of many kinds, and finds a gradient that is wrong."""

import contextlib
import re

import numpy as np
import pytest
import small_classification as actions

from cntkpy.trainers.monitors.gradient_check import allowed

DEEP = """
deep = [ action = train ; NDLNetworkBuilder = [ run = rich ]
    rich = [
        x = Input(2)
        y = Input(3)
        W = Parameter(60, 2, init=uniform, initValueScale=10)
        t = Times(W, x)
        r = RectifiedLinear(t)
        d = Dropout(r)
        V = Parameter(3, 60, init=uniform)
        k = Constant(2)
        s = Times(V, d)
        z = Scale(k, s)
        ce = CrossEntropyWithSoftmax(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (ce)
    ]
    SGD = [ minibatchSize = 20 ; maxEpochs = 2 ; learningRatesPerSample = 0.01 ; dropoutRate = 0.5
        gradientcheck = true ; traceLevel = 1 ] ]
"""
CHECKED = r"^Gradient check, minibatch (\d): (\w+): (\d+) of (\d+) elements, largest difference (\S+)$"


@pytest.fixture
def run(cntkpy):

    def run(*words: str):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(DEEP))

    return run


def test_a_sound_network_passes(run) -> None:
    got = run("train=[SGD=[gradientcheck=true;maxEpochs=1;traceLevel=1]]")
    assert got.code == 0, got.err
    lines = re.findall(CHECKED, got.err, re.M)
    assert [line[:4] for line in lines[:2]] == [("1", "W", "6", "6"), ("1", "b", "3", "3")]
    assert len(lines) == 8
    assert all(float(line[4]) < 1e-7 for line in lines)


@pytest.mark.thorough
def test_dropout_rectifiers_and_many_elements(run) -> None:
    got = run("command=deep")
    assert got.code == 0, got.err
    lines = re.findall(CHECKED, got.err, re.M)
    assert {line[1:4] for line in lines} == {("W", "50", "120"), ("V", "50", "180")}
    assert len(lines) == 8


def test_no_report_at_trace_level_0(run) -> None:
    got = run("train=[SGD=[gradientcheck=true;maxEpochs=1]]")
    assert got.code == 0
    assert "Gradient check" not in got.err


@contextlib.contextmanager
def wrong_gradients(share: float):
    """The gradient of the criterion with respect to its scores is too small by this share."""
    from cntkpy.networks import nodes
    from cntkpy.networks.arrays.lazy import jax

    cross_entropy = nodes.operation("CrossEntropyWithSoftmax")
    forward = cross_entropy.forward
    assert forward is not None

    def less(call, labels, scores):
        return forward(call, labels, scores * (1 - share) + jax.lax.stop_gradient(scores) * share)

    find, wrong = nodes.find, cross_entropy._replace(forward=less)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "find", lambda name: wrong if find(name) is cross_entropy else find(name))
        yield


def test_a_wrong_gradient_names_the_parameter(run) -> None:
    with wrong_gradients(0.5):
        got = run("train=[SGD=[gradientcheck=true;maxEpochs=1]]")
    assert got.code == 1
    found = re.match(
        r"the gradient check fails for parameter 'W' in minibatch 1: element \[\d,\d\] has the gradient (\S+), "
        r"but finite differences say (\S+)$",
        got.message,
    )
    assert found is not None, got.message
    assert float(found[2]) == pytest.approx(2 * float(found[1]), rel=1e-6)


@pytest.mark.parametrize(("digits", "code"), [("6", 1), ("3", 0)])
def test_as_many_digits_as_asked_for_have_to_agree(digits: str, code: int, run) -> None:
    """The gradients are sums over ten samples, below 10; a share of 0.0001 is wrong in the fourth digit."""
    with wrong_gradients(0.0001):
        got = run(f"train=[SGD=[gradientcheck=true;maxEpochs=1;sigFigs={digits}]]")
    assert got.code == code, got.err


def test_it_needs_double_precision(run) -> None:
    got = run("train=[SGD=[gradientcheck=true]]", "precision=float")
    assert got.code == 2
    assert "gradientcheck needs double precision" in got.message


@pytest.mark.parametrize(
    ("analytic", "numeric", "expected"),
    [(0.5, 0.5, 1e-6), (0, 0, 1e-6), (12.0, 13.0, 1e-4), (1.0, 5000.0, 1e-6), (-2000.0, 1999.0, 1e-2)],
)
def test_the_difference_that_is_allowed(analytic: float, numeric: float, expected: float) -> None:
    assert allowed(analytic, numeric, 6) == pytest.approx(expected)
    assert allowed(analytic, numeric, 4) == pytest.approx(100 * expected)


@pytest.mark.thorough
def test_sparse_inputs(cntkpy) -> None:
    config = actions.CONFIG.replace("x = Input(2)", "x = SparseInput(2)")
    config = config.replace("x = [ dim = 2 ; format = dense ]", "x = [ dim = 2 ; format = sparse ]")
    rows = zip(actions.X, actions.Y, strict=True)
    data = "".join(f"|x 1:{x[1]} |y {' '.join(f'{v:g}' for v in y)}\n" for x, y in rows)
    got = cntkpy(
        "configFile=m.cntk", "train=[SGD=[gradientcheck=true;maxEpochs=1]]", files={"m.cntk": config, "data.ctf": data}
    )
    assert got.code == 0, got.err
    assert np.isfinite(actions.X).all()
