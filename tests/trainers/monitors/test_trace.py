"""Traces of nodes and times of minibatches: the values against NumPy, the lines, where they come from."""

import re
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

MORE = """
test = [ action = test ; minibatchSize = 25 ]
out = [ action = write ; outputNodeNames = z ; outputPath = run/o ; minibatchSize = 20 ]
sequences = [ action = train ; reader = [ readerType = CNTKTextFormatReader ; file = seq.ctf ; randomize = none
        input = [ v = [ dim = 1 ; format = dense ] ; s = [ dim = 4 ; format = sparse ] ] ]
    NDLNetworkBuilder = [ run = sums ]
    sums = [
        v = Input(1)
        s = SparseInput(4)
        E = Parameter(2, 4, init=fixedValue, value=0.5)
        q = Times(E, s)
        w = Parameter(2, 1, init=fixedValue, value=1)
        u = Times(w, v)
        ce = SquareError(u, q)
        FeatureNodes = (v, s)
        CriterionNodes = (ce)
    ]
    SGD = [ minibatchSize = 30 ; maxEpochs = 1 ; learningRatesPerSample = 0.001 ; momentumPerMB = 0 ] ]
"""
SEQUENCES = "".join(f"{s} |v {10 * s + t} |s {t % 4}:{t + 1}\n" for s, n in enumerate((10, 2)) for t in range(n))
SHORT = "train=[SGD=[maxEpochs=1;epochSize=20]]"


@pytest.fixture
def run(cntkpy):

    def run(*words: str):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(MORE) | {"seq.ctf": SEQUENCES})

    return run


def blocks(text: str) -> list[list[str]]:
    """The lines after each `Trace -->`, that line first."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("Trace --> "):
            found.append([line])
        elif found and line.startswith("  "):
            found[-1].append(line)
    return found


def test_real_values_before_every_update(run, tmp_path: Path) -> None:
    got = run(SHORT, "train=[SGD=[traceNodeNamesReal=z]]")
    assert got.code == 0, got.err
    first, second = blocks(got.err)
    assert first[0] == "Trace --> z = Plus (t, b) : [3 x *], [3 x 1] -> [3 x 1 x *]"
    start = actions.model(tmp_path / "run/m.0")
    scores = actions.X[:10] @ start["W"].T + start["b"].T
    expected = [f"  [{i},0]\t{value:13.10f}" for row in scores for i, value in enumerate(row)]
    assert first[1:] == expected
    rate = float(np.float32(0.05))
    delta = actions.softmax(scores) - actions.Y[:10]
    w, b = start["W"] - rate * delta.T @ actions.X[:10], start["b"] - rate * delta.sum(0)[:, None]
    values = [float(line.split("\t")[1]) for line in second[1:]]
    np.testing.assert_allclose(values, (actions.X[10:20] @ w.T + b.T).ravel(), atol=1e-10)


def test_category_and_sparse(run) -> None:
    got = run(SHORT, "train=[SGD=[traceNodeNamesCategory=z;traceNodeNamesSparse=y]]")
    y, z, *_ = blocks(got.err)
    assert y[0] == "Trace --> y = InputValue() :  -> [3 x *]"
    assert y[1:] == [f"  [{label}]" for label in actions.Y[:10].argmax(axis=1)]
    assert [line[:2] for line in z[1:]] == ["  "] * 10
    assert {line[2:] for line in z[1:]} <= {f"{i:13.10f}" for i in range(3)}


def test_the_last_list_wins(run) -> None:
    got = run(SHORT, "train=[SGD=[traceNodeNamesReal=y;traceNodeNamesSparse=Y]]")
    assert blocks(got.err)[0][1].startswith("  [")


def test_sequences_are_cut_but_not_sparse_ones(run) -> None:
    got = run("command=sequences", "sequences=[SGD=[traceNodeNamesReal=v;traceNodeNamesSparse=s]]")
    assert got.code == 0, got.err
    by_name = {block[0].split()[2]: block[1:] for block in blocks(got.err)}
    assert by_name["v"][0] == "  " + " ".join(f"{t:13.10f}" for t in range(8))
    assert by_name["v"][1] == "  " + " ".join(f"{10 + t:13.10f}" for t in range(2))
    entries = [(f"{t + 1:13.10f}" if t else "") + f"[{t % 4};{t}]" for t in range(10)]
    assert by_name["s"] == ["  " + " ".join(entries), "  " + f"[0;0] {2:13.10f}[1;1]"]


def test_names_that_are_not_there_or_not_needed(run) -> None:
    got = run(SHORT, "train=[SGD=[traceNodeNamesReal=zz:p:b]]")
    assert got.code == 0
    assert "Trace: the network has no node 'zz'; it is not traced" in got.err
    assert "Trace: node 'p' is not needed for what is computed; it is not traced" in got.err
    assert [block[0] for block in blocks(got.err)] == ["Trace --> b = LearnableParameter() :  -> [3 x 1]"] * 2
    assert not blocks(run(SHORT, "train=[SGD=[traceNodeNamesReal=zz]]").err)


@pytest.mark.parametrize("command", ["test", "out"])
def test_in_test_and_write(command: str, run, tmp_path: Path) -> None:
    got = run(f"command=train:{command}", f"{command}=[traceNodeNamesReal=t]")
    assert got.code == 0, got.err
    parameters = actions.model(tmp_path / "run/m")
    found = blocks(got.err)
    assert len(found) == 2
    values = [float(line.split("\t")[-1]) for block in found for line in block[1:]]
    np.testing.assert_allclose(values, (actions.X @ parameters["W"].T).ravel(), atol=1e-10)


def test_tracing_changes_no_number(run, tmp_path: Path) -> None:
    dropout = "train=[SGD=[dropoutRate=0.3]]"
    plain = run(dropout)
    first = actions.model(tmp_path / "run/m")
    traced = run(dropout, "makeMode=false", "train=[SGD=[traceNodeNamesReal=z;perfTraceLevel=1;gradientcheck=true]]")
    assert plain.code == traced.code == 0
    np.testing.assert_allclose(actions.model(tmp_path / "run/m")["W"], first["W"], rtol=1e-12)


def test_times_of_minibatches(run) -> None:
    got = run("train=[SGD=[maxEpochs=1;minibatchSize=16;perfTraceLevel=1]]")
    time = r"[\d.e-]+"
    shape = (
        rf"^Perf trace: Worker MB size = (\d+), Read = {time}s; Compute = {time}s; Parameter update = {time}s; "
        rf"Parameter sync = {time}s; Aggregate MB size = (\d+)$"
    )
    assert re.findall(shape, got.err, re.M) == [("16", "16"), ("16", "16"), ("8", "8")]
