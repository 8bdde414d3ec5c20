"""The code of the pages about training from Python runs, block after block."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

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
