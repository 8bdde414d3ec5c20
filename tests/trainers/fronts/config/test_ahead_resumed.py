"""A training on a device with memory of its own that is stopped and resumed: the next stack was read already."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.readers.registry import create_reader
from cntkpy.trainers.fronts.config.partial import Interrupted
from cntkpy.trainers.fronts.config.training import TrainingLoop
from cntkpy.trainers.log.reporting import Reporting
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.step.placement import OneDevice

pytestmark = [pytest.mark.thorough, pytest.mark.optimised]

CONFIG = """
    SimpleNetworkBuilder = [ rnnType=LSTM ; recurrentLayer=1 ; layerSizes=3:5:2
                             trainingCriterion=CrossEntropyWithSoftmax
                             evalCriterion=ErrorPrediction ; applyMeanVarNorm=false ; uniformInit=true ]
    SGD = [ modelPath="{folder}/m" ; maxEpochs=2 ; numMBsToShowResult={every} ; minibatchSize=24
            learningRatesPerSample=0.05 ; momentumPerMB=0.5 ]
    reader = [ readerType=CNTKTextFormatReader ; file="{data}" ; randomize=true
               input=[features=[dim=3;format=dense] ; labels=[dim=2;format=dense]] ]
"""


def run(data: Path, folder: Path, every: int, stop_after: int = 0) -> bytes:
    """Train; `stop_after`: asked so often, the run is stopped inside an epoch, and started again. The model's bytes."""
    folder.mkdir()
    calls = stopped = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls >= stop_after > 0 and not stopped

    for _ in range(2 if stop_after else 1):
        config = parse(CONFIG.format(folder=folder, data=data, every=every))
        network = build_network(config, "float", SeedCounter())
        reader, sgd = create_reader(config.section("reader"), "float"), SGDParameters(config.section("SGD"))
        loop = TrainingLoop(sgd, network, reader, reporting=Reporting(device=None), stop=stop)
        try:
            loop.run()
        except Interrupted:
            assert list(folder.glob("*.partial"))
            stopped = calls
        reader.close()
    assert bool(stopped) == bool(stop_after)
    return (folder / "m").read_bytes()


@pytest.mark.parametrize("every", [0, 3])
def test_a_resumed_training_ends_with_the_same_model(
    every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, data = np.random.default_rng(0), tmp_path / "data.ctf"
    with data.open("w") as file:
        for sequence in range(150):
            for _ in range(random.integers(2, 13)):
                x, label = " ".join(map(str, random.normal(size=3).round(3))), random.integers(2)
                file.write(f"{sequence} |features {x} |labels {1 - label} {label}\n")
    expected = run(data, tmp_path / "cpu", every)
    monkeypatch.setattr(OneDevice, "copies", True)
    assert run(data, tmp_path / "whole", every) == expected
    for stop_after in (47, 49, 53, 75):
        assert run(data, tmp_path / f"stopped{stop_after}", every, stop_after) == expected, stop_after
