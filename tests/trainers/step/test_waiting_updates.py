"""What takes much memory waits until compiling has given back what it needs, and goes when it was used."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batching_cases import batcher, case

from cntkpy.cntk_config import parse
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.compile import executables
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.compile.executables import Program
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.trainers.rules.updates import Rule, momentum, rmsprop
from cntkpy.trainers.step.stack import Prepared
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

NDL = """NDLNetworkBuilder=[run=n
n=[
x=Input(3)
y=Input(1)
cost=SquareError(y, Times(Parameter(1, 3), x))
FeatureNodes=(x)
LabelNodes=(y)
CriterionNodes=(cost)
]]"""


@pytest.mark.parametrize("rule", [momentum(), rmsprop(True, 0.9, 1.2, 0.75, 10.0, 0.1)])
def test_the_start_of_an_update_rule_takes_no_memory_before_there_is_a_program(
    rule: Rule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    network = build_network(parse(NDL), "float", SeedCounter())
    trainer = CompiledStep(network, [network["cost"]], rule)
    kinds: list[set[bool]] = []

    def placed() -> set[bool]:
        return {isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(trainer._state.updates)}  # pyright: ignore[reportPrivateUsage]

    made = Program._made  # pyright: ignore[reportPrivateUsage]

    def watched(*arguments: Any) -> Any:
        kinds.append(placed())
        return made(*arguments)

    monkeypatch.setattr(executables, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(Program, "_made", watched)
    shown = trainer.updates()
    assert all(np.shape(array) in ((), (3, 1)) for arrays in shown.values() for array in arrays.values())
    minibatch = case([1, 1]).minibatch
    minibatch.streams["y"], minibatch.layouts["y"] = np.ones((1, 2, 1), np.float32), minibatch.layouts["x"]
    (stack,) = trainer.batcher(2).stacks(iter([minibatch]), lambda number: False)
    for _ in range(2):
        trainer.run(stack, EpochSettings(0.01, 0.9, Settings(), 1), 0)
        assert placed() == {True}
    assert kinds == [{False}] and trainer.compilations == 1


@pytest.mark.thorough
def test_prepared_minibatches_go_when_they_are_stacked() -> None:
    def prepared() -> int:
        return sum(type(one) is Prepared for one in gc.get_objects())

    gc.collect()
    before = prepared()  # of other tests
    stacks = batcher().stacks(iter([case([4, 2]).minibatch] * 3), lambda number: number == 2)
    assert len(next(stacks).minibatches) == 2
    assert prepared() - before <= 1, "the last one"
