"""Planned shapes are compiled beside the first ones, each for exactly the stacks that come."""

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from cntk_config import parse
from networks.builders.build import build_network
from networks.compile import beside, executables
from networks.compile.evaluate import Settings
from networks.graph.initialize import SeedCounter
from readers import create_reader
from readers.contracts import MinibatchReader
from readers.minibatch import Minibatch
from trainers.evaluation.evaluate import minibatches
from trainers.evaluation.evaluator import Evaluator
from trainers.rules.updates import momentum
from trainers.step.step import EpochSettings, Trainer

NDL = """run=n
n=[
x=INPUT
y=Input(1)
f=Parameter(1, 1, learningRateMultiplier=0)
p=PastValue(1, 1, h)
h=Tanh(Plus(Times(Parameter(1, 3), x), p))
cost=SquareError(y, ElementTimes(f, h))
FeatureNodes=(x)
LabelNodes=(y)
CriterionNodes=(cost)
]"""
AXES = """BrainScriptNetworkBuilder = {
    axis = DynamicAxis ()
    x = Input (3, dynamicAxis = axis)
    y = Input (1)
    cost = SquareError (y, Times (ParameterTensor {(1:3)}, BS.Sequences.BroadcastSequenceAs (y, BS.Sequences.Last (x))))
    featureNodes = (x) ; labelNodes = (y) ; criterionNodes = (cost)
}"""
NETWORKS = {
    "dense": (f"NDLNetworkBuilder=[{NDL.replace('INPUT', 'Input(3)')}]", "0.5 1 2", "dense"),
    "sparse": (f"NDLNetworkBuilder=[{NDL.replace('INPUT', 'SparseInput(3)')}]", "1:0.5", "sparse"),
    "several axes": (AXES, "0.5 1 2", "dense"),
}
LENGTHS = [*[2] * 50, *[150] * 50]


def prepared(name: str, folder: Path) -> tuple[Trainer, MinibatchReader]:
    """A trainer and its reader, of sequences that are far from equally long."""
    builder, x, form = NETWORKS[name]
    with (folder / "data.ctf").open("w") as file:
        for number, length in enumerate(LENGTHS):
            file.write(
                "".join(f"{number} |x {x}" + " |y 1" * (k < 1 or name != "several axes") + "\n" for k in range(length))
            )
    streams = f"x=[dim=3;format={form}];y=[dim=1;format=dense]"
    section = parse(f'r=[readerType=CNTKTextFormatReader;file="{folder}/data.ctf";randomize=none;input=[{streams}]]')
    network = build_network(parse(builder), "float", SeedCounter())
    return Trainer(network, [network["cost"]], momentum()), create_reader(section.section("r"))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Future[Any]]]:
    """What was begun on a machine with many cores."""
    futures: list[Future[Any]] = []
    begin = beside.begin

    def watched(make: Any) -> Any:
        futures.append(begin(make))
        return futures[-1]

    monkeypatch.setattr(beside, "_cores", lambda: 8)
    monkeypatch.setattr(beside, "begin", watched)
    monkeypatch.setattr(executables, "cache_folder", lambda: tmp_path)
    yield futures
    for future in futures:
        future.exception(60)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_planned_is_compiled_and_used(
    name: str,
    begun: list[Future[Any]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executables, "PATIENCE", 0.0)
    trainer, reader = prepared(name, tmp_path)
    epoch = EpochSettings(0.001, 0.9, Settings(), 0)
    with caplog.at_level(logging.INFO, "cntkpy.networks"):
        for stack in trainer.batcher(100, epoch=epoch).stacks(source(reader), lambda number: False):
            np.asarray(trainer.run(stack, epoch, 0))
    assert trainer.compilations == len(begun) == len(trainer.shapes.used) >= 2
    lines = [line for line in caplog.messages if "Compiling" in line]
    assert len(lines) == len(begun)
    assert all("so far): training, " in line for line in lines)
    trainer.store()
    evaluator = Evaluator(trainer.network, trainer.nodes)
    for stack in evaluator.batcher(100).stacks(source(reader), lambda number: False):
        np.asarray(evaluator.run(stack))
    assert evaluator.compilations == len(begun) - trainer.compilations == len(evaluator.shapes.used) == 2


def source(reader: MinibatchReader) -> Iterator[Minibatch]:
    """The minibatches of an epoch."""
    return minibatches(reader, 100, 0, None)
