"""`cntkpy plot`: what is read out of logs, what is drawn, every error."""

import re
import sys
from pathlib import Path

import pytest

from cntkpy.commands.tools.plot_log import choose_node, plot, read_curves

LOG = """\
09/01/2026 10:00:00: # train command (train action)                                                     #
 Epoch[ 1 of 2]-Minibatch[   1-   5]: ce = 0.90000000 * 100; errs = 50.000% * 100; time = 0.1s; samplesPerSecond = 9.0
 Epoch[ 1 of 2]-Minibatch[   6-  10]: ce = 0.70000000 * 100; errs = 30.000% * 100; time = 0.1s; samplesPerSecond = 9.0
Finished Epoch[ 1 of 2]: [Training] ce = 0.80000000 * 200; errs = 40.000% * 200; totalSamplesSeen = 200; learningRatePerSample = 0.02; epochTime=0.1s
Final Results: Minibatch[1-4]: ce = 0.75000000 * 80; errs = 35.000% * 80
Finished Epoch[ 1 of 2]: [Validate] ce = 0.75000000 * 80; errs = 35.000% * 80
  AdaptiveLearnRateSearch: Epoch[ 2 of 2]-Minibatch[   1-   5]: ce = 9.00000000 * 100; time = 0.1s; samplesPerSecond = 9.0
 Epoch[ 2 of 2]-Minibatch[   1-   5, 50.00%]: ce = 1.00000000e-05 * 100; errs = 5.000% * 100; time = 0.1s; samplesPerSecond = 9.0
09/01/2026 10:00:01: Finished Epoch[ 2 of 2]: [Training] ce = 0.30000000 * 200; errs = 10.000% * 200; totalSamplesSeen = 400
Finished Epoch[ 2 of 2]: [Training] ce = 0.20000000 * 200; errs = 9.000% * 200; totalSamplesSeen = 400
"""  # noqa: E501
SECOND = (
    "# more command (train action)  #\nFinished Epoch[ 1 of 1]: [Training] nan_ = nan * 10; ce = 0.5 * 10; total = 1\n"
)
EVENTS = """\
{"time": "x", "command": "train", "event": "action", "action": "train"}
{"event": "progress", "epoch": 1, "minibatches": [1, 4], "nodes": {"ce": 0.9}, "command": "train"}
{"event": "progress", "epoch": 1, "minibatches": [1, 4], "nodes": {"ce": 9.0}, "trial": "AdaptiveLearnRateSearch"}
{"event": "epoch finished", "epoch": 1, "nodes": {"ce": 0.8, "err": null}, "samples": 200}
{"event": "validation", "epoch": 1, "nodes": {"ce": 0.7}, "samples": 200}
{"event": "epoch fini"""


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_log(tmp_path: Path) -> None:
    (run,) = read_curves(Path(write(tmp_path, "log", LOG)))
    assert run.name.endswith("log")
    assert run.training == {"ce": {1: 0.8, 2: 0.2}, "errs": {1: 0.4, 2: 0.09}}  # of an epoch trained twice, the last
    assert run.validation == {"ce": {1: 0.75}, "errs": {1: 0.35}}
    assert run.progress("ce") == {0.5: 0.9, 1.0: 0.7, 1.5: 1e-5}
    assert run.progress("other") == {}


def test_several_trainings_in_one_log(tmp_path: Path) -> None:
    path = write(tmp_path, "log", LOG + SECOND)
    assert [run.name for run in read_curves(Path(path))] == [f"{path}: train", f"{path}: more"]


def test_events(tmp_path: Path) -> None:
    (run,) = read_curves(Path(write(tmp_path, "log.jsonl", EVENTS)))
    assert (run.training, run.validation) == ({"ce": {1: 0.8}}, {"ce": {1: 0.7}})
    assert run.progress("ce") == {1.0: 0.9}


def test_the_node(tmp_path: Path) -> None:
    runs = read_curves(Path(write(tmp_path, "log", LOG)))
    assert (choose_node(runs, None), choose_node(runs, "ERRS")) == ("ce", "errs")


def test_pictures(cntkpy, tmp_path: Path) -> None:
    files = {"a": LOG, "b": LOG + SECOND, "c.jsonl": EVENTS}
    got = cntkpy("plot", "a", "b", "c.jsonl", files=files)
    assert (got.code, got.out) == (0, "a.png\n")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    got = cntkpy("plot", "a", "b", "--node", "errs", "-o", "deep/p.svg")
    assert (got.code, got.out) == (0, "deep/p.svg\n")
    svg = (tmp_path / "deep/p.svg").read_text()
    # full line and dashed line of a, of b's first command; the other one has no such node
    assert len(re.findall(r"stroke-dasharray: 5", svg)) >= 2
    assert {"<!-- a -->", "<!-- a, validation -->", "<!-- errs -->", "<!-- epoch -->"} <= set(
        re.findall("<!-- .* -->", svg)
    )


def test_the_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn = []
    monkeypatch.setattr(Axes, "plot", lambda self, x, y, **style: drawn.append((list(x), list(y), style.get("label"))))
    assert plot([write(tmp_path, "log", LOG)], str(tmp_path / "p.png")) == 0
    name = str(tmp_path / "log")
    assert drawn == [
        ([0.5, 1.0, 1.5], [0.9, 0.7, 1e-5], None),
        ([1, 2], [0.8, 0.2], name),
        ([1], [0.75], f"{name}, validation"),
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["none"], "error: cannot read none: No such file"),
        (["empty"], "error: empty has no epochs to plot"),
        (["a", "-n", "er"], "error: no log has a node 'er'"),
        (["a", "-n", "zzzz"], "help: there are ce, errs"),
        (["a", "-o", "p.doc"], "error: cannot draw a file p.doc"),
        (["a", "-o", "a/p.png"], "error: a/p.png cannot be written"),
    ],
)
def test_errors(words: list[str], expected: str, cntkpy) -> None:
    got = cntkpy("plot", *words, files={"a": LOG, "empty": "nothing\n"})
    assert got.code == (2 if words[-1] in ("p.doc", "none") else 1)  # the words alone are wrong
    assert expected in got.err


def test_without_matplotlib(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    got = cntkpy("plot", "a", files={"a": LOG})
    assert got.code == 1
    assert got.err.startswith("error: plot needs matplotlib, which is not installed\n  help: add the extra plot: ")
