"""Resume from checkpoints that the version at c557990e has written; `former/` has them, and the models at the end.

`python tests/trainers/checkpoints/test_former_checkpoints.py FOLDER` writes such files with the version that runs it.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.functions.variables import input_variable
from cntkpy.networks.builders.python.operations import operators
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network
from cntkpy.readers.registry import create_reader
from cntkpy.trainers.fronts.cntk2 import learners
from cntkpy.trainers.fronts.cntk2.trainer import Trainer
from cntkpy.trainers.fronts.config.partial import Interrupted
from cntkpy.trainers.fronts.config.training import TrainingLoop
from cntkpy.trainers.log.reporting import Reporting
from cntkpy.trainers.parameters.sgd import SGDParameters

FORMER = Path(__file__).parent / "former"
STOP_CALLS = 40
"""Calls of `stop` after which the training is interrupted: inside the second epoch."""

CONFIG = """
    SimpleNetworkBuilder = [ rnnType=LSTM ; recurrentLayer=1 ; layerSizes=3:5:2
                             trainingCriterion=CrossEntropyWithSoftmax
                             evalCriterion=ErrorPrediction ; applyMeanVarNorm=false ; uniformInit=true ]
    SGD = [ modelPath="{folder}/m" ; maxEpochs=3 ; numMBsToShowResult=0 ; minibatchSize=24 ; keepCheckPointFiles=true
            learningRatesPerSample=0.05 ; momentumPerMB=0.5 ; gaussianNoiseInjectStd=0.001
            autoAdjust=[autoAdjustLR=adjustAfterEpoch ; loadBestModel=true ; learnRateDecreaseFactor=0.5] ]
    reader = [ readerType=CNTKTextFormatReader ; file="{data}" ; randomize=true
               input=[features=[dim=3;format=dense] ; labels=[dim=2;format=dense]] ]
"""


def train_section(folder: Path, stop_calls: int = 0) -> None:
    """Train with an `SGD` section to the end, or until `stop` was called so often."""
    random, data = np.random.default_rng(0), folder / "data.ctf"
    with data.open("w") as file:
        for sequence in range(60):
            for _ in range(random.integers(2, 13)):
                x, label = " ".join(map(str, random.normal(size=3).round(3))), random.integers(2)
                file.write(f"{sequence} |features {x} |labels {1 - label} {label}\n")
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls >= stop_calls > 0

    config = parse(CONFIG.format(folder=folder, data=data))
    loaded = sorted(folder.glob("m.[0-9]"))
    network = load_model(loaded[-1], "float") if loaded else build_network(config, "float", SeedCounter())
    start = int(loaded[-1].suffix[1:]) if loaded else 0
    reader, sgd = create_reader(config.section("reader"), "float"), SGDParameters(config.section("SGD"))
    reporting = Reporting(device=None)
    loop = TrainingLoop(sgd, network, reader, start=start, loaded=bool(loaded), reporting=reporting, stop=stop)
    try:
        loop.run()
        assert not stop_calls
    except Interrupted:
        assert stop_calls
    reader.close()


def program() -> Trainer:
    """The trainer of a program: dropout, batch normalisation, two learners."""
    x, y = input_variable(8, name="x"), input_variable(3, name="y")
    hidden = layers.Dense(6, activation=operators.tanh, init=layers.glorot_uniform(seed=1))(x)
    hidden = layers.BatchNormalization()(operators.dropout(hidden, 0.2, seed=5))
    z = layers.Dense(3, init=layers.glorot_uniform(seed=2))(hidden)
    loss, errors = operators.cross_entropy_with_softmax(z, y), operators.classification_error(z, y)
    (bias,) = [parameter for parameter in z.parameters if parameter.shape == (3,)]
    others = [parameter for parameter in z.parameters if parameter.shape != (3,)]
    return Trainer(z, (loss, errors), [learners.adam([bias], 0.01), learners.momentum_sgd(others, 0.1, 0.9)])


def train_program(trainer: Trainer, first: int, last: int) -> None:
    """Train on some of the minibatches, which have two sizes."""
    random = np.random.default_rng(4)
    for number in range(last):
        x = random.normal(size=(12 if number % 3 else 20, 8)).astype(np.float32)
        if number >= first:
            trainer.train_minibatch({"x": x, "y": np.eye(3, dtype=np.float32)[x[:, :3].argmax(axis=1)]})


def write(folder: Path) -> None:
    """Write the files of `former/`."""
    work = folder / "work"
    work.mkdir(parents=True)
    train_section(work)
    for source, target in (("m", "end"), ("m.1", "m.1"), ("m.1.ckp", "m.1.ckp")):
        shutil.copy(work / source, folder / target)
    shutil.rmtree(work)
    work.mkdir()
    train_section(work, STOP_CALLS)
    shutil.copy(work / "m.1.partial", folder / "m.1.partial")
    shutil.rmtree(work)
    trainer = program()
    train_program(trainer, 0, 5)
    trainer.save_checkpoint(folder / "program", {"words": ["of", "the", "program"]})
    train_program(trainer, 5, 9)
    assert trainer.model is not None
    trainer.model.save(folder / "program.end")
    save_model(folder / "program.end", load_model(folder / "program.end"))


def assert_equal(network: Network, expected: Path) -> None:
    """Compare all values with those of a model; another processor may round otherwise."""
    known = load_model(expected)
    compared = 0
    for name, node in known.nodes.items():
        if node.value is not None:
            np.testing.assert_allclose(network.nodes[name].value, node.value, rtol=2e-4, atol=1e-6, err_msg=name)
            compared += 1
        assert network.nodes[name].samples == node.samples
    assert compared


@pytest.mark.thorough
@pytest.mark.optimised
@pytest.mark.parametrize("files", [["m.1", "m.1.ckp"], ["m.1", "m.1.ckp", "m.1.partial"]])
def test_a_section_resumes_from_files_of_before(files: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for name in files:
        shutil.copy(FORMER / name, tmp_path / name)
    train_section(tmp_path)
    assert not [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert_equal(load_model(tmp_path / "m"), FORMER / "end")


@pytest.mark.optimised
@pytest.mark.usefixtures("functions")
def test_a_program_resumes_from_files_of_before(tmp_path: Path):
    for name in ("program", "program.ckp"):
        shutil.copy(FORMER / name, tmp_path / name)
    trainer = program()
    assert trainer.restore_from_checkpoint(tmp_path / "program") == {"words": ["of", "the", "program"]}
    assert trainer.total_number_of_samples_seen == 20 + 12 + 12 + 20 + 12
    train_program(trainer, 5, 9)
    assert trainer.model is not None
    trainer.model.save(tmp_path / "end")
    assert_equal(load_model(tmp_path / "end"), FORMER / "program.end")


@pytest.fixture
def functions() -> None:
    """Functions have the backend of `cntkpy.training`."""
    import cntkpy.training  # noqa: F401


if __name__ == "__main__":
    import cntkpy.training  # noqa: F401

    write(Path(sys.argv[1]))
