"""A run with `precision = bfloat16` trains as one in single precision does, within what the type rounds."""

import re
from pathlib import Path

import numpy as np
import pytest

from cntkpy.networks.files.model_file import load_model

SAMPLES = Path(__file__).parents[3] / "sample_configs"


def trained(cntkpy, precision: str, folder: Path) -> tuple[float, float, float]:
    """Criterion and errors of the last epoch, and the criterion on the test data."""
    got = cntkpy(
        f"configFile={SAMPLES / 'digits.cntk'}",
        "command=train:test",
        f"precision={precision}",
        f"SampleDir={SAMPLES}",
        f"RunDir={folder / precision}",
        "train=[SGD=[maxEpochs=3]]",
        "traceLevel=1",
    )
    assert got.code == 0, got.err
    assert f'precision = "{precision}"' in got.err
    (last,) = re.findall(r"Finished Epoch\[ *3 of 3\].*CrossEntropyWithSoftmax = (\S+) .*Error = (\S+) \*", got.err)
    (test,) = re.findall(r"Final Results:.*CrossEntropyWithSoftmax = (\S+) ", got.err)
    return float(last[0]), float(last[1]), float(test)


def test_digits_are_trained_as_in_single_precision(cntkpy, tmp_path: Path) -> None:
    exact, short = (trained(cntkpy, one, tmp_path) for one in ("float", "bfloat16"))
    assert exact != short
    assert short[0] == pytest.approx(exact[0], rel=0.03)
    assert short[1] == pytest.approx(exact[1], abs=0.01)
    assert short[2] == pytest.approx(exact[2], rel=0.03)
    models = [load_model(tmp_path / one / "digits.model") for one in ("float", "bfloat16")]
    assert {one.precision for one in models} == {"float"}
    weights, other = (one.nodes["W0"].value for one in models)
    assert weights is not None
    assert other is not None
    assert weights.dtype == other.dtype == np.float32
    assert (np.abs(weights - other) < 0.05 * np.abs(weights).max()).all()


@pytest.mark.parametrize("name", ["half", "float16", "FP16"])
def test_no_run_is_of_half_precision(cntkpy, name: str) -> None:
    got = cntkpy("check", "m.cntk", files={"m.cntk": f"command=a\nprecision={name}\na=[action=train]\n"})
    assert got.code == 2
    message = f'precision is "float", "double" or "bfloat16", not "{name}" - for products in 16 bits write bfloat16'
    assert message in got.out
