"""The code of the pages about training from Python runs, block after block."""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.operations.operators import times
from cntkpy.readers import Value
from cntkpy.training import input_variable, sequence_input

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("training-from-python.md", "Finished Epoch[1"),
        ("large-files-from-python.md", "Finished Epoch[1"),
        ("python-sequences.md", "Finished Epoch[1"),
        ("python-functions.md", "hidden("),
    ],
)
def test_the_code_of_a_page_runs(page: str, printed: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)
    assert len(blocks) >= 3
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert printed in capsys.readouterr().out


def section(page: str, title: str, language: str) -> str:
    """Return the code of a section of a page."""
    text = (DOCS / page).read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return "".join(re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S))


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the first program of the example about PyTorch; return its names."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"C": C, "np": np}
    exec(section("python-functions.md", "The same values in PyTorch", "python"), names)
    names["data"] = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    return names


def test_the_file_for_pytorch_holds_an_lstm(layers: dict[str, Any]) -> None:
    """The formula is that of PyTorch's documentation."""
    with np.load("values.npz") as stored:
        values = {name: stored[name].astype(np.float64) for name in stored}
    h = c = np.zeros(4)
    states: list[Any] = []
    for x in layers["data"]:
        sums = values["lstm.weight_ih_l0"] @ x + values["lstm.bias_ih_l0"]
        i, f, g, o = np.split(sums + values["lstm.weight_hh_l0"] @ h + values["lstm.bias_hh_l0"], 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    (result,) = layers["recurrence"].eval({layers["x"]: [layers["data"]]})
    np.testing.assert_allclose(result, states, rtol=1e-4, atol=1e-6)
    (result,) = layers["dense"].eval({layers["x"]: [layers["data"]]})
    expected = layers["data"] @ values["linear.weight"].T + values["linear.bias"]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.torch
def test_pytorch_computes_the_same(layers: dict[str, Any]) -> None:
    torch = importlib.import_module("torch")
    names: dict[str, Any] = {"torch": torch, "np": np}
    exec(section("python-functions.md", "The same values in PyTorch", "py"), names)
    data = layers["data"]
    for ours, theirs in ((layers["dense"], names["layers"].linear), (layers["recurrence"], names["layers"].lstm)):
        result = theirs(torch.from_numpy(data)[None])
        result = result[0] if isinstance(result, tuple) else result
        (expected,) = ours.eval({layers["x"]: [data]})
        np.testing.assert_allclose(result[0].detach().numpy(), expected, rtol=1e-4, atol=1e-6)


def rows_of_data() -> list[list[str]]:
    """The cells of the table of data that have code, by row; "an error" where there is no result."""
    page = (DOCS / "python-sequences.md").read_text()
    table = page.split("| input `x` | data | what it is | `eval` |\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    found = [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in table]
    assert all(len(cells) == 4 for cells in found)
    return [[cells[0].strip("` "), cells[1], cells[3].strip("` ")] for cells in found]


@pytest.mark.parametrize(("made", "data", "expected"), rows_of_data())
def test_the_table_of_data_is_true(made: str, data: str, expected: str) -> None:
    names = {
        "array": np.array,
        "csr": scipy.sparse.csr_matrix,
        "Value": Value,
        "input_variable": input_variable,
        "sequence_input": sequence_input,
    }
    x: Function = eval(made, names)
    given: Any = eval(data, names)
    function = times(x, np.eye(x.shape[-1])) if x.is_sparse else x * 1
    if expected == "an error":
        with pytest.raises(UserError, match=r"of shape \([\d, ]*\).* for the .*input 'Input'.* shape \([\d, ]*\)"):
            function.eval(given)
        return
    wanted, found = eval(expected, names), function.eval(given)
    assert isinstance(found, list) == isinstance(wanted, list)
    for a, b in zip(*((one if isinstance(one, list) else [one]) for one in (found, wanted)), strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def test_the_table_of_data_is_long() -> None:
    rows = rows_of_data()
    assert len(rows) > 25
    assert {made.partition("(")[0] for made, *_ in rows} == {"input_variable", "sequence_input"}
