"""Names under which no model can be written: told before anything is read (R19)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntkpy.cntk_config.base.systems.locks import lock

CONFIG = """command = train
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 1 ; learningRatesPerMB = 0.1 ]
    reader = [ file = missing.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""


@pytest.mark.parametrize(
    ("path", "said"), [("/dev/null", "it is a device, not a regular file"), ("/tmp", "there is a folder of that name")]
)
def test_a_model_that_cannot_be_written(cntkpy, path: str, said: str) -> None:
    done = cntkpy("configFile=main.cntk", f"modelPath={path}", files={"main.cntk": CONFIG})
    assert done.code == 2
    assert said in done.message
    assert "modelPath" in done.message


def test_a_log_into_which_another_run_writes(cntkpy, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("of the other run\n")
    with path.open("a") as other:
        assert lock(other.fileno())
        done = cntkpy("configFile=main.cntk", f"stderr={path}", "modelPath=m", files={"main.cntk": CONFIG})
        assert done.code == 1
        assert "another run writes into the log file" in done.message
        assert path.read_text() == "of the other run\n"
